"""What an archive costs on Apache Spark: processor time and bytes of each phase, for docs/archives.md.

    python3 benches/spark.py --program target/release/sizeleak --gateway IP [--model M] CAPTURE...

Runs the program alone, and the tasks of deploy/spark without and with Spark (`--spark`, needs Java, and spark-submit on
the PATH), over each capture, and prints a table. Time is that of processors, in user mode and in the kernel, of all
processes: what else the machine does matters little. Needs pip install "pyspark>=4.2" pandas pyarrow msgpack
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "deploy" / "spark"))

import pyarrow  # noqa: E402
from answers import make_answers  # noqa: E402
from captures import find_captures  # noqa: E402
from program import ProgramPlace  # noqa: E402
from rows import COLUMNS, KEY, groups_in_order, joined_frames  # noqa: E402
from segments import make_segments  # noqa: E402
from settings import Settings  # noqa: E402

SEGMENTS = ("--kind", "hello,flow,segments,notice,summary", "--format", "frames")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+", metavar="CAPTURE")
    parser.add_argument("--program", required=True, type=lambda path: Path(path).resolve())
    parser.add_argument("--gateway", required=True)
    parser.add_argument("--model", help="without it, no answers are made")
    parser.add_argument("--spark", action="store_true", help="also let Spark sort the rows of phase 1")
    parser.add_argument("--shuffle", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.shuffle:
        run_shuffle(options.captures[0], options)
        return
    for capture in options.captures:
        measure(capture, options)


def measure(capture, options):
    """Prints a line for each part of the work on a capture."""
    size = os.path.getsize(capture)
    print(f"{capture}: {size / 1e6:.0f} MB")
    print(f"  {'':30} {'seconds':>8} {'at start':>8} {'core hours/TB':>14} {'bytes out/in':>13}")
    with tempfile.TemporaryDirectory() as folder:
        # What is spent before the first packet, and once a gateway.
        empty = f"{folder}/empty.pcap"
        with open(capture, "rb") as file, open(empty, "wb") as header:
            header.write(file.read(24))
        start = list(parts_of(empty, options, folder))
        for (_, seconds, _), (what, full, written) in zip(start, parts_of(capture, options, folder), strict=True):
            hours = (full - seconds) / size * 1e12 / 3600
            ratio = "" if written is None else f"{written / size:.3f}"
            print(f"  {what:30} {full:8.2f} {seconds:8.2f} {hours:14.2f} {ratio:>13}", flush=True)


def parts_of(capture, options, folder):
    """The parts of the work on a capture: what it is, processor time, and bytes written if they matter."""
    models = [os.path.abspath(options.model)] if options.model else []
    use = [argument for model in models for argument in ("--model", model)]
    run = [str(options.program), "run", "--gateway", options.gateway, "--quiet", "--max-loss", "100"]
    allow = ["--set", "flow-filter.allow-absent=true"]
    segments, answers = f"{folder}/segments.frames", f"{folder}/answers.parquet"
    if models:
        yield "one process", call([*run, capture, *allow, *use, "-o", answers]), None
    seconds = call([*run, capture, *allow, *SEGMENTS, "-o", segments])
    yield "`capture | flow-filter`", seconds, os.path.getsize(segments)
    records = ["--from", segments, "--kind", "record", "--format", "frames", "-o", f"{folder}/records.frames"]
    yield "`record-sizer`", call([*run, *records]), os.path.getsize(f"{folder}/records.frames")
    if models:
        yield "`record-sizer | … | pruner`", call([*run, "--from", segments, *use, "-o", answers]), None
    settings = Settings(ProgramPlace(str(options.program.parent)), [options.gateway], models, [], False, folder)
    captures, _ = find_captures([capture], False)
    numbers = pyarrow.RecordBatch.from_pydict({"id": [0]})
    rows, seconds = timed(lambda: list(make_segments(settings, captures)([numbers])))
    table = pyarrow.Table.from_batches(rows)
    yield f"phase 1, {table.num_rows - 1} segments", seconds, table.nbytes
    if models:
        batches = table.sort_by([(column, "ascending") for column in KEY]).to_batches(max_chunksize=10_000)
        yield "phase 2", timed(lambda: list(make_answers(settings)(batches)))[1], None
    if options.spark:
        yield "phase 1, Spark, and no phase 2", shuffle(capture, options), None


def timed(work):
    """What a function returns, and the processor time of this process and of those it started and ended."""
    before = processor_seconds(resource.RUSAGE_SELF) + processor_seconds(resource.RUSAGE_CHILDREN)
    result = work()
    after = processor_seconds(resource.RUSAGE_SELF) + processor_seconds(resource.RUSAGE_CHILDREN)
    return result, after - before


def processor_seconds(who):
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime


def call(command):
    """The processor time of a command. A model that fits nothing, which is code 1, costs as much."""
    return timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))[1]


def shuffle(capture, options):
    """The processor time of phase 1 and of Spark, which sorts its rows, on one core."""
    conf = ["--conf", "spark.log.level=ERROR", "--conf", "spark.ui.enabled=false"]
    task = [__file__, "--shuffle", capture, "--program", str(options.program), "--gateway", options.gateway]
    command = ["spark-submit", "--master", "local[1]", *conf, *task]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    return timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True))[1]


def run_shuffle(capture, options):
    """Sorts the rows of phase 1 with Spark, and reads them as phase 2 does."""
    from pyspark.sql import SparkSession

    session = SparkSession.builder.getOrCreate()
    modules = ("program.py", "rows.py", "settings.py", "captures.py", "segments.py")
    session.addArtifacts(*(str(ROOT / "deploy" / "spark" / module) for module in modules), pyfile=True)
    settings = Settings(ProgramPlace(str(options.program.parent)), [options.gateway], [], [], False, "")
    captures, _ = find_captures([capture], False)

    def count(batches):
        for _, rows in groups_in_order(batches):
            yield pyarrow.RecordBatch.from_pydict({"bytes": [len(joined_frames(rows))]})

    segments = session.range(0, 1, 1, numPartitions=1).mapInArrow(make_segments(settings, captures), COLUMNS)
    ordered = segments.repartition(4, *KEY[:2]).sortWithinPartitions(*KEY)
    ordered.mapInArrow(count, "bytes bigint").collect()
    session.stop()


main()
