"""The second phase: from a gateway's segments, in order, to its answers. Each task runs
`record-sizer | … | pruner` over the segments of one gateway after another, and leaves the answers of each day in a
Parquet file that the driver publishes."""

import json
import shutil
import tempfile
import uuid
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from subprocess import PIPE

import msgpack
import pyarrow
import pyarrow.compute
import pyarrow.parquet

from program import Fault, RunningProgram
from rows import REPORT, groups_in_order, joined_frames
from segments import LONGEST_FRAME

REPORT_COLUMNS = "kind string, report string"

# What a report is about.
OF_CAPTURE, OF_GATEWAY = "capture", "gateway"

FIRST_FRAME = msgpack.packb(
    {"hello": {"schema": 1, "stage": "flow-filter", "version": "spark", "upstream": ["capture"]}}
)
NOTHING = {"frames_in": 0, "frames_out": 0, "bytes_in": 0, "latency": b"", "queue": b""}
LAST_FRAME = msgpack.packb({"summary": {"stages": [{"stage": name, **NOTHING} for name in ("capture", "flow-filter")]}})

# The exit codes with which the program says that its answers, which are whole, are not to be trusted: the model fits
# no flow, or belongs to another gateway. As in an archive of many gateways, that ends nothing.
OF_ANSWERS = (0, 1)


@dataclass
class GatewayReport:
    """What became of a gateway at a point."""

    point: str
    gateway: str
    # How many segments it has, of all captures.
    segments: int
    # How often stages noticed something, by the stage and the word.
    notices: dict[str, int]
    # The answers of each day.
    parts: list["Part"]


@dataclass
class Part:
    """The answers of one day."""

    day: str
    answers: int
    # The name of the file that waits to be published.
    file: str


def make_answers(settings):
    """The second phase; a row for each gateway of a point, and those that report on captures."""

    def phase(batches):
        for (point, gateway), parts in groupby(groups_in_order(batches), key=itemgetter(0)):
            rows = (rows for _, rows in parts)
            if gateway == REPORT:
                texts = [text.decode() for batch in rows for text in batch.column("frames").to_pylist()]
                yield report_rows(OF_CAPTURE, texts)
            else:
                report = answer(settings, point, gateway, rows)
                yield report_rows(OF_GATEWAY, [json.dumps(asdict(report))])

    return phase


def report_rows(kind, texts):
    """Reports as a batch."""
    return pyarrow.RecordBatch.from_arrays(
        [pyarrow.array([kind] * len(texts)), pyarrow.array(texts)], ["kind", "report"]
    )


def answer(settings, point, gateway, batches):
    """Makes the answers of a gateway."""
    models = [argument for model in settings.models for argument in ("--model", model)]
    segments = 0
    with tempfile.TemporaryDirectory() as folder:
        file, stream = Path(folder) / "answers.parquet", Path(folder) / "answers.frames"
        arguments = ["run", "--from", "-", "--kind", "identification", "-o", str(file), "--quiet"]
        # How much payload is missing is a question to each flow's notices, and not to the job.
        arguments += ["--max-loss", "100", *models, *settings.stage_options]
        # With what the stages noticed.
        arguments += ["--set", f"pruner.save={stream}"]
        with RunningProgram(settings.program, arguments, stdin=PIPE) as program:
            # It writes to files alone, so it never waits for this task.
            feed = program.process.stdin
            try:
                feed.write(FIRST_FRAME)
                for batch in batches:
                    feed.write(joined_frames(batch))
                    segments += batch.num_rows
                feed.write(LAST_FRAME)
                feed.close()
            except BrokenPipeError:
                # It has ended, and says why.
                pass
            code = program.process.wait()
            # A file that it has written under this name is whole.
            if code not in OF_ANSWERS or not file.exists():
                raise Fault(f"{point}, gateway {gateway}: the program ended with {code}: {program.last_words()}")
        parts = parts_by_day(file, Path(settings.parts))
        return GatewayReport(point, gateway, segments, notices_in(stream), parts)


def notices_in(file):
    """How often stages noticed something, by the stage and the word, in a saved stream."""
    found = Counter()
    with open(file, "rb") as stream:
        unpacker = msgpack.Unpacker(stream, max_buffer_size=LONGEST_FRAME, strict_map_key=False)
        while True:
            try:
                unpacker.read_map_header()
            except msgpack.OutOfData:
                return dict(sorted(found.items()))
            if unpacker.unpack() == "notice":
                body = unpacker.unpack()
                found[f"{body['stage']}: {body['what']}"] += 1
            else:
                unpacker.skip()


def parts_by_day(file, folder):
    """Writes the answers of each day to a file of its own in a folder."""
    answers = pyarrow.parquet.ParquetFile(file)
    days = pyarrow.compute.unique(days_of(answers.read(columns=["time"]))).to_pylist()
    if len(days) == 1:
        # It is the part.
        part = Part(days[0].isoformat(), answers.metadata.num_rows, f"{uuid.uuid4()}.parquet")
        shutil.move(file, folder / part.file)
        return [part]
    parts, writers = {}, {}
    try:
        for batch in answers.iter_batches():
            days = days_of(batch)
            for day in pyarrow.compute.unique(days):
                rows = batch.filter(pyarrow.compute.equal(days, day))
                name = day.as_py().isoformat()
                if name not in parts:
                    # An attempt of this task that was given up may have left its own.
                    parts[name] = Part(name, 0, f"{uuid.uuid4()}.parquet")
                    path = folder / parts[name].file
                    writers[name] = pyarrow.parquet.ParquetWriter(path, answers.schema_arrow, compression="zstd")
                writers[name].write_batch(rows)
                parts[name].answers += rows.num_rows
    finally:
        for writer in writers.values():
            writer.close()
    return [parts[name] for name in sorted(parts)]


def days_of(answers):
    """The days of answers, in UTC."""
    return answers.column("time").cast(pyarrow.timestamp("ns")).cast(pyarrow.date32())
