"""Runs the job of deploy/spark on a cluster, while workers die, captures are damaged and an engine forgets to sort, and
prints what came out as JSON. The archives, and what `sizeleak archive` makes of them, are in the folder that is named:

    cases.py FOLDER PROGRAM MODEL...
"""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet

from cluster import PATIENCE, Cluster
from held_program import HeldProgram

HERE = Path(__file__).resolve().parent
JOB = HERE.parents[2] / "deploy" / "spark" / "job.py"
GATEWAYS = ("--gateway", "192.168.1.20", "--gateway", "192.168.1.21", "--gateway", "fd00::20")


def main():
    folder, program, *models = map(Path, sys.argv[1:])
    options = [*GATEWAYS, *(part for model in models for part in ("--model", str(model)))]
    (folder / "cluster").mkdir()
    with Cluster(folder / "cluster") as cluster:
        results = {
            "killed": with_killed_workers(cluster, folder, program, options),
            **in_one_application(cluster, folder, program, options),
        }
    print(json.dumps(results))


def with_killed_workers(cluster, folder, program, options):
    """Kills a worker in each phase."""
    held = HeldProgram(program, folder / "held")
    out = folder / "spark"
    arguments = [folder / "homes", "-o", out, *options, "--binaries", held.folder, "--partitions", "3"]
    job, said = cluster.submit(JOB, *arguments)
    cluster.kill_worker_of(held.process_of("first"))
    cluster.add_worker()
    cluster.kill_worker_of(held.process_of("second"))
    code = job.wait(PATIENCE)
    cluster.add_worker()
    return {"code": code, "said": words(said), **compared(out, folder / "archive")}


def in_one_application(cluster, folder, program, options):
    """What needs no application of its own: one that runs the job several times, with a Python without modules last."""
    python = folder / "bare-python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n')
    python.chmod(0o755)
    arguments = [folder, *options, "--binaries", program.parent, "--partitions", "2"]
    application, said = cluster.submit(HERE / "several_runs.py", JOB.parent, python, *arguments)
    application.wait(PATIENCE)
    lines = [line for line in said.read_text().splitlines() if line.startswith('{"')]
    found = {case: outcome for line in lines for case, outcome in json.loads(line).items()}
    quarantine = folder / "quarantined" / "quarantine"
    aside = pyarrow.parquet.read_table(quarantine).to_pylist() if quarantine.exists() else []
    compare = compared(folder / "quarantined", folder / "damaged-archive")
    driver = subprocess.run([python, JOB, *arguments], capture_output=True, text=True).stderr
    return {**found, "quarantine": {"said": words(said), "aside": aside, **compare}, "driver without modules": driver}


def words(said):
    """What the job says in a log of Spark."""
    return [line for line in said.read_text().splitlines() if line.startswith("job: ")]


def compared(found, expected):
    """Whether two folders have the same partitions with the same rows, and how many."""
    found, expected = rows_of(found), rows_of(expected)
    different = [part for part in found.keys() | expected.keys() if found.get(part) != expected.get(part)]
    rows = [row for _, rows in found.values() for row in rows]
    return {"rows": len(rows), "answered": sum(bool(row["candidates"]) for row in rows), "different": different}


def rows_of(folder):
    """The columns and rows of each part."""
    parts = sorted((folder / "identifications").rglob("*.parquet"))
    tables = {str(part.relative_to(folder)): pyarrow.parquet.ParquetFile(part).read() for part in parts}
    return {part: (table.schema, table.to_pylist()) for part, table in tables.items()}


if __name__ == "__main__":
    main()
