"""What an archive costs on Apache Spark: processor time and bytes of each phase, for docs/scale.md.

    python3 benches/spark.py --program target/release/sizeleak --gateway IP --model M CAPTURE...

Runs the program alone, and the tasks of deploy/spark without and with Spark (`--spark`, needs Java), over copies of each
capture, and prints a table. Time is that of processors, in user mode and in the kernel, of all processes: what else
the machine does matters little. Needs what the job needs: pip install "pyspark>=4.2" pandas pyarrow msgpack
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
from rows import KEY  # noqa: E402
from segments import make_segments  # noqa: E402
from settings import Settings  # noqa: E402

JOB = ROOT / "deploy" / "spark" / "job.py"
SEGMENTS = ("--kind", "hello,flow,segments,notice,summary", "--format", "frames")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("captures", nargs="+", metavar="CAPTURE")
    parser.add_argument("--program", required=True, type=lambda path: Path(path).resolve())
    parser.add_argument("--gateway", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("--spark", action="store_true", help="also run the job with --master local[1]")
    options = parser.parse_args()
    for capture in options.captures:
        measure(capture, options)


def measure(capture, options):
    """Prints a line for each part of the work on a capture."""
    size = os.path.getsize(capture)
    print(f"{capture}: {size / 1e6:.0f} MB")
    line = Lines(size)
    model = os.path.abspath(options.model)
    run = [str(options.program), "run", "--gateway", options.gateway, "--quiet", "--max-loss", "100"]
    with tempfile.TemporaryDirectory() as folder:
        segments, answers = f"{folder}/segments.frames", f"{folder}/answers.parquet"
        line.print("whole pipeline, one process", call([*run, capture, "--model", model, "-o", answers]))
        line.print("`capture | flow-filter`", call([*run, capture, *SEGMENTS, "-o", segments]), os.path.getsize(segments))
        line.print("`record-sizer | … | pruner`", call([*run, "--from", segments, "--model", model, "-o", answers]))
        settings = Settings(ProgramPlace(str(options.program.parent)), [options.gateway], [model], [], False, folder)
        captures, _ = find_captures([capture], False)
        numbers = pyarrow.RecordBatch.from_pydict({"id": [0]})
        rows, seconds = timed(lambda: list(make_segments(settings, captures)([numbers])))
        table = pyarrow.Table.from_batches(rows)
        line.print("tasks of phase 1", seconds, table.nbytes)
        print(f"  segments {table.num_rows - 1}, bytes of a row {table.nbytes / table.num_rows:.0f}")
        batches = table.sort_by([(column, "ascending") for column in KEY]).to_batches(max_chunksize=10_000)
        del table, rows
        _, seconds = timed(lambda: list(make_answers(settings)(batches)))
        line.print("tasks of phase 2", seconds)
        del batches
        if options.spark:
            line.print("job, Spark included", spark(capture, options, model, f"{folder}/out"))
            empty = f"{folder}/empty.pcap"
            Path(empty).write_bytes(b"".join((Path(capture).open("rb").read(24),)))
            line.print("job over no packet", spark(empty, options, model, f"{folder}/none"))


class Lines:
    """Prints what parts of the work on so many bytes cost."""

    def __init__(self, size):
        self.size = size

    def print(self, what, seconds, written=None):
        """Prints processor time, that of a terabyte in core hours, and bytes written per byte of the capture."""
        hours = seconds / self.size * 1e12 / 3600
        ratio = "" if written is None else f"  {written / self.size:6.3f} bytes out per byte in"
        print(f"  {what:30} {seconds:7.2f} s  {hours:7.2f} core hours/TB{ratio}", flush=True)


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


def spark(capture, options, model, out):
    """The processor time of the whole job on one core."""
    submit = ["spark-submit", "--master", "local[1]", "--conf", "spark.log.level=ERROR", "--conf", "spark.ui.enabled=false"]
    job = [str(JOB), capture, "-o", out, "--gateway", options.gateway, "--model", model]
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [*submit, *job, "--binaries", str(options.program.parent)]
    return timed(lambda: subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment))[1]


main()
