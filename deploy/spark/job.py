"""Processes an archive of captures on Apache Spark, into the answers of `sizeleak archive`.

    PYSPARK_PYTHON=/opt/python/bin/python3 spark-submit --master spark://HOST:7077 deploy/spark/job.py \\
        CAPTURES -o RESULTS --gateway 192.168.0.0/16 --model model.toml --binaries /opt/sizeleak/bin

Captures, models, results and binaries are on a file system that all machines see. docs/archives.md says more.
"""

import argparse
import json
import os
import re
import sys
from ipaddress import ip_network
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

# What tasks import.
MODULES = ("program.py", "rows.py", "settings.py", "captures.py", "segments.py", "answers.py")

PYTHON_ADVICE = (
    "PYSPARK_PYTHON must name an interpreter, on every machine, that has them: "
    'pip install "pyspark>=4.2" pandas pyarrow msgpack'
)

try:
    import msgpack  # noqa: F401
    import pandas  # noqa: F401
    import pyarrow  # noqa: F401
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
except ModuleNotFoundError as error:
    sys.exit(f"job: {sys.executable} has no module {error.name}; {PYTHON_ADVICE}")

from answers import OF_CAPTURE, OF_GATEWAY, REPORT_COLUMNS, make_answers  # noqa: E402
from captures import find_captures  # noqa: E402
from program import Fault, ProgramPlace  # noqa: E402
from remarks import remarks  # noqa: E402
from results import Results, check_reports  # noqa: E402
from rows import COLUMNS, KEY  # noqa: E402
from segments import START_COLUMNS, find_starts, make_segments  # noqa: E402
from settings import Settings  # noqa: E402

# At most this many tasks of the first phase; beyond that a task has several captures.
MAX_TASKS = 10_000


def arguments(texts):
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="job.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    add("captures", nargs="+", metavar="CAPTURES", help="folders of captures, single ones, or globs")
    add("-o", "--output", required=True, metavar="RESULTS", help="the folder of results, which does not exist yet")
    add(
        "--gateway",
        required=True,
        action="append",
        metavar="IP|CIDR",
        help="a gateway or a network of them; repeatable",
    )
    add("--model", required=True, action="append", metavar="FILE", help="a model of `sizeleak learn`; repeatable")
    add("--set", action="append", default=[], metavar="STAGE.KEY=VALUE", help="an option of a stage; repeatable")
    add("--binaries", metavar="FOLDER", help="where `sizeleak` is on executors [default: from `spark-submit --files`]")
    add("--partitions", type=positive, metavar="N", help="tasks of the second phase [default: 4 for each core]")
    add(
        "--on-error", choices=("fail", "quarantine"), default="fail", help="what a damaged capture does [default: fail]"
    )
    add("--one-point", action="store_true", help="take each folder named as one capture point, with all below it")
    return parser.parse_args(texts)


def positive(text):
    """A number of tasks."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1 is needed")
    return number


def main():
    """Runs the job; returns the exit code."""
    options = arguments(sys.argv[1:])
    try:
        check(options)
        spark = SparkSession.builder.appName("sizeleak").getOrCreate()
        try:
            run(spark, options)
        finally:
            spark.stop()
    except Fault as fault:
        say(fault)
        return 1
    return 0


def say(text):
    """Writes a line for people."""
    print(f"job: {text}", file=sys.stderr, flush=True)


def check(options):
    """Checks what no task could know."""
    for gateway in options.gateway:
        try:
            ip_network(gateway, strict=False)
        except ValueError as error:
            raise Fault(f"--gateway: {error}") from error
    for model in options.model:
        if not Path(model).is_file():
            raise Fault(f"--model: {model} is no file")
    for option in options.set:
        key, is_set, value = option.partition("=")
        if not is_set or "." not in key:
            raise Fault(f"--set: `{option}` is not of the form STAGE.KEY=VALUE")
        if key.endswith(".save"):
            raise Fault(f"--set: `{key}`: every task would write to the same file")
        if key == "capture.order" and value != "time":
            raise Fault("--set: `capture.order`: segments are sorted by time; `sizeleak archive` can do without")
        if key == "flow-filter.service" and not all(is_address(it) for it in re.findall(r"[^\[\]\",\s]+", value)):
            raise Fault(
                "--set: `flow-filter.service`: a name is resolved by answers of DNS, which may be in another capture "
                "than its connections: name addresses"
            )


def is_address(text):
    """Whether a service is given by its address or network."""
    try:
        ip_network(text, strict=False)
    except ValueError:
        return False
    return True


def run(spark, options):
    """Runs the phases and publishes their results."""
    captures, others = find_captures(options.captures, options.one_point)
    if not captures:
        raise Fault("there is no capture in what was named")
    with Results(options.output) as results:
        binaries = os.path.abspath(options.binaries) if options.binaries else None
        settings = Settings(
            program=ProgramPlace(binaries),
            gateways=options.gateway,
            models=[os.path.abspath(model) for model in options.model],
            stage_options=[argument for option in options.set for argument in ("--set", option)],
            quarantines=options.on_error == "quarantine",
            parts=str(results.parts),
        )
        spark.addArtifacts(*(str(HERE / module) for module in MODULES), pyfile=True)
        try:
            captures, unread = in_order_of_start(spark, settings, captures)
            reports = collect_reports(spark, settings, captures, options.partitions)
        except (PySparkException, Py4JJavaError) as error:
            raise Fault(cause(error)) from error
        publish(results, reports, unread, others)


def tasks(spark, rows):
    """The numbers of rows, in as many tasks as is useful."""
    return spark.range(0, len(rows), 1, numPartitions=max(1, min(len(rows), MAX_TASKS)))


def in_order_of_start(spark, settings, captures):
    """The captures by their first packets, and those that cannot be read, with the reason.

    This is the order of `sizeleak archive`: captures that begin at the same time follow by path.
    """
    found = tasks(spark, captures).mapInArrow(find_starts(settings, captures), START_COLUMNS).collect()
    unread = [(captures[row.file], row.fault) for row in found if row.fault is not None]
    if unread and not settings.quarantines:
        capture, fault = min(unread, key=lambda pair: pair[0].path)
        raise Fault(f"{capture.path}: {fault}")
    starts = {row.file: row.first_ns for row in found if row.first_ns is not None}
    order = sorted(starts, key=lambda file: (starts[file], captures[file].path.split("/")))
    return [captures[file] for file in order], unread


def collect_reports(spark, settings, captures, partitions):
    """Runs both phases; what they report, by what it is about."""
    partitions = partitions or 4 * spark.sparkContext.defaultParallelism
    segments = tasks(spark, captures).mapInArrow(make_segments(settings, captures), COLUMNS)
    # The second phase fails where an engine leaves out the sorting.
    ordered = segments.repartition(partitions, *KEY[:2]).sortWithinPartitions(*KEY)
    reports = {OF_CAPTURE: [], OF_GATEWAY: []}
    for row in ordered.mapInArrow(make_answers(settings), REPORT_COLUMNS).collect():
        reports[row.kind].append(json.loads(row.report))
    check_reports(captures, reports[OF_CAPTURE], reports[OF_GATEWAY])
    return reports


def publish(results, reports, unread, others):
    """Checks the reports of all tasks, publishes what they made, and says what is missing."""
    captures = sorted(reports[OF_CAPTURE], key=lambda report: report["path"])
    gateways = sorted(reports[OF_GATEWAY], key=lambda report: (report["point"], report["gateway"]))
    damaged = [(capture.path, fault) for capture, fault in unread]
    damaged += [(report["path"], report["fault"]) for report in captures if report["fault"] is not None]
    if not gateways:
        raise Fault(
            "no packet of any capture is from or to a gateway; `sizeleak survey CAPTURE` says which look like one"
        )
    results.add_answers(gateways)
    results.set_aside(sorted(damaged))
    lines = [{"file": report} for report in captures]
    lines += [{"file": {"point": capture.point, "path": capture.path, "fault": fault}} for capture, fault in unread]
    lines += [{"other": {"path": path}} for path in others]
    lines += [{"gateway": {**report, "parts": without_files(report["parts"])}} for report in gateways]
    results.write_manifest(lines)
    results.publish()
    for text in remarks(captures, gateways, damaged):
        say(text)
    answers = sum(part["answers"] for report in gateways for part in report["parts"])
    counts = {"captures": len(captures), "gateways": len(gateways), "identifications": answers, "damaged": len(damaged)}
    say(", ".join(f"{what} {count}" for what, count in counts.items()))


def without_files(parts):
    """Parts without the names that they had while they waited."""
    return [{"day": part["day"], "answers": part["answers"]} for part in parts]


def cause(error):
    """Why a job failed, in one sentence, if the sentence of a task can be found in it."""
    text = str(error)
    missing = re.search(r"No module named '([\w.]+)'", text)
    if missing:
        return f"an executor's Python has no module {missing.group(1)}; {PYTHON_ADVICE}"
    faults = re.findall(r"^(?:\w+\.)*Fault: (.+)$", text, re.MULTILINE)
    return faults[-1] if faults else text.partition("\nDriver stacktrace")[0]


if __name__ == "__main__":
    sys.exit(main())
