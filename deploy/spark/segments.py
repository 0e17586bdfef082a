"""The first phase: from captures to rows of segments. Each task runs `capture | flow-filter` over its captures."""

import json
from collections import Counter
from dataclasses import asdict, dataclass
from ipaddress import ip_address, ip_network
from subprocess import PIPE

import msgpack
import pyarrow

from program import Fault, RunningProgram
from rows import REPORT, RowBatcher

START_COLUMNS = "file bigint, first_ns bigint, fault string"
START_SCHEMA = pyarrow.schema({"file": pyarrow.int64(), "first_ns": pyarrow.int64(), "fault": pyarrow.string()})

# A value of a stream is at most 16 MiB (docs/frames.md, section 7).
LONGEST_FRAME = 17 << 20

# The begin of a `segments` frame of one row.
ONE_SEGMENT = msgpack.packb({"segments": [None]})[:-1]

MIN_TIME_NS = -(2**63)

# What `capture` says of a file of which something is missing (docs/frames.md, section 4).
DAMAGE = ("failed", "malformed", "resync", "truncated", "unsupported")

# At most this many bytes are read at once.
READ_BYTES = 1 << 18


@dataclass
class CaptureReport:
    """What became of a capture."""

    point: str
    path: str
    # What is missing of it, in one sentence; None if nothing is.
    fault: str | None = None
    # How many segments it has, by gateway.
    segments: dict[str, int] | None = None
    # How often stages noticed something, by the stage and the word.
    notices: dict[str, int] | None = None
    # The least and the greatest time of a segment, and whether times go back.
    first_ns: int | None = None
    last_ns: int | None = None
    goes_back: bool = False
    # Whether a flow is between two gateways.
    joins_gateways: bool = False
    # Whether the stream of its segments has its end.
    is_whole: bool = False


def frames(stream):
    """The frames of a stream, as pairs of kind and body."""
    unpacker = msgpack.Unpacker(max_buffer_size=LONGEST_FRAME, strict_map_key=False)
    while chunk := stream.read1(READ_BYTES):
        unpacker.feed(chunk)
        for frame in unpacker:
            yield from frame.items()


def find_starts(settings, captures):
    """The phase before: the time of the first packet of each capture, and what is no capture."""

    def phase(batches):
        for batch in batches:
            for file in batch.column("id").to_pylist():
                first_ns, fault = first_packet(captures[file])
                yield pyarrow.RecordBatch.from_pylist(
                    [{"file": file, "first_ns": first_ns, "fault": fault}], START_SCHEMA
                )

    def first_packet(capture):
        arguments = ["run", capture.path, "--kind", "hello,packets,summary", "--format", "frames", "--quiet"]
        # So a wrong option is found now.
        arguments += settings.stage_options
        with RunningProgram(settings.program, arguments, stdout=PIPE) as program:
            for kind, body in frames(program.process.stdout):
                if kind == "packets" and body:
                    return body[0][0], None
            code = program.process.wait()
            if code not in (0, 1):
                raise Fault(f"{capture.path}: the program ended with {code}: {program.last_words()}")
            return None, None if code == 0 else program.last_words()

    return phase


def make_segments(settings, captures):
    """The first phase; rows of segments, and behind those of a capture one that reports on it."""

    def phase(batches):
        for batch in batches:
            for file in batch.column("id").to_pylist():
                yield from capture_rows(settings, file, captures[file])

    return phase


def capture_rows(settings, file, capture):
    """The rows of a capture, in batches."""
    report = CaptureReport(capture.point, capture.path)
    batcher = RowBatcher()
    arguments = ["run", capture.path, "--gateway", ",".join(settings.gateways), *settings.stage_options]
    # A gateway need not be in every capture.
    arguments += ["--set", "flow-filter.allow-absent=true", "--format", "frames", "--quiet"]
    arguments += ["--kind", "hello,flow,segments,notice,summary"]
    with RunningProgram(settings.program, arguments, stdout=PIPE) as program:
        for row in segment_rows(program.process.stdout, file, report, settings):
            batcher.add(row)
            if batcher.is_full():
                yield batcher.take()
        check_end(program, report)
    if report.fault is not None and not settings.quarantines:
        raise Fault(f"{capture.path}: {report.fault}")
    batcher.add((capture.point, REPORT, 0, file, 0, json.dumps(asdict(report)).encode()))
    yield batcher.take()


def segment_rows(stream, file, report, settings):
    """The segments of a stream as rows; what else it says goes into the report."""
    gateways, new_flows = {}, {}
    segments, notices = Counter(), Counter()
    networks = [ip_network(gateway, strict=False) for gateway in settings.gateways]
    packer = msgpack.Packer()
    greatest_ns, sequence = MIN_TIME_NS, 0
    for kind, body in frames(stream):
        if kind == "segments":
            for segment in body:
                time_ns, flow = segment[0], segment[1]
                if time_ns >= greatest_ns:
                    greatest_ns = time_ns
                else:
                    report.goes_back = True
                gateway = gateways[flow]
                segments[gateway] += 1
                sequence += 1
                described = new_flows.pop(flow, b"") + ONE_SEGMENT + packer.pack(segment)
                yield report.point, gateway, greatest_ns, file, sequence, described
            report.first_ns = body[0][0] if report.first_ns is None else report.first_ns
            report.last_ns = greatest_ns
        elif kind == "flow":
            gateways[body["flow"]] = body["gateway"]
            new_flows[body["flow"]] = packer.pack({"flow": body})
            service = ip_address(body["service"].rpartition(":")[0].strip("[]"))
            report.joins_gateways |= any(service in network for network in networks)
        elif kind == "notice":
            notices[f"{body['stage']}: {body['what']}"] += 1
            if body["stage"] == "capture" and body["what"] in DAMAGE:
                report.fault = report.fault or body["detail"].removeprefix(f"{report.path}: ")
        elif kind == "summary":
            report.is_whole = True
    report.segments, report.notices = dict(segments), dict(notices)


def check_end(program, report):
    """Checks that the stream has its end, or that it is the capture that has none."""
    code = program.process.wait()
    is_damaged = code == 1 and report.fault is not None
    if not is_damaged and not (code == 0 and report.is_whole):
        raise Fault(f"{report.path}: the program ended with {code}: {program.last_words()}")
