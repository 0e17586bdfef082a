"""A stage in Python is the same in this process, as a program in a pipe, and in the program's pipelines."""

import subprocess
import sys
from pathlib import Path

import pytest
from bursts import Bursts

import sizeleak
from conftest import GATEWAY, HOME, PROGRAM, ROOT, program

CAPTURE, MODEL = HOME / "test.pcap", HOME / "model.toml"
FILE = ROOT / "examples" / "segmenters" / "bursts.py"
OWN = sizeleak.Pipeline().replace("command-segmenter", Bursts())


def commands_of(path: Path) -> list[sizeleak.Frame]:
    return [frame for frame in sizeleak.read_frames(path) if frame.kind == "command"]


def test_a_segmenter_of_25_lines_has_the_same_output_in_process_and_in_a_pipe(tmp_path: Path) -> None:
    text = FILE.read_text(encoding="utf-8")
    body = text[text.index("class Bursts") : text.index("\n\nif __name__")]
    assert len([line for line in body.splitlines() if line.strip()]) <= 25
    inside, piped, records = (tmp_path / name for name in ("inside.frames", "piped.frames", "records.frames"))
    sizeleak.commands(CAPTURE, gateway=GATEWAY, pipeline=OWN).write(inside)
    sizeleak.records(CAPTURE, gateway=GATEWAY).write(records)
    with records.open("rb") as stdin, piped.open("wb") as stdout:
        subprocess.run([sys.executable, FILE], stdin=stdin, stdout=stdout, check=True)
    assert commands_of(inside) == commands_of(piped)
    assert len(commands_of(inside)) > 300


def test_the_program_finds_that_the_segmenter_keeps_the_contract() -> None:
    program("check-stage", "--", sys.executable, FILE)  # It fails where a rule is broken.


def test_the_program_runs_a_stage_of_this_process(tmp_path: Path) -> None:
    labels = HOME / "test.csv"
    own = sizeleak.evaluate(CAPTURE, labels, model=MODEL, gateway=GATEWAY, pipeline=OWN)
    file = tmp_path / "pipeline.toml"
    stages = [f'run = "{name}"' for name in ("capture", "flow-filter", "record-sizer")]
    stages.append(f'command = ["{sys.executable}", "{FILE}"]')
    stages += [f'run = "{name}"' for name in ("epsilon-corrector", "decomposer", "pruner")]
    file.write_text("".join(f"[[stage]]\n{stage}\n" for stage in stages))
    program_only = sizeleak.evaluate(CAPTURE, labels, model=MODEL, gateway=GATEWAY, pipeline=file)
    assert own == program_only
    assert own.matched > 250


def test_an_exception_of_a_stage_is_named_with_its_place() -> None:
    class Fails(sizeleak.Stage):
        def process(self, record: sizeleak.Record) -> None:
            raise ValueError(f"no size for {record.length}")

    pipeline = sizeleak.Pipeline().replace("command-segmenter", Fails())
    said = r"Fails\.process: ValueError: no size for \d+ \(.*test_stages\.py, line \d+\)"
    with pytest.raises(sizeleak.Error, match=said):
        sizeleak.commands(CAPTURE, gateway=GATEWAY, pipeline=pipeline).read_all()


def test_process_may_return_one_frame_and_nothing_but_frames(tmp_path: Path) -> None:
    class One(sizeleak.Stage):
        def process(self, record: sizeleak.Record) -> sizeleak.Frame:
            return sizeleak.Command(time_ns=record.time_ns, end_ns=record.time_ns, flow=record.flow, size=record.length)

    class Text(sizeleak.Stage):
        def process(self, record: sizeleak.Record) -> int:  # type: ignore[override]
            return record.length

    def rows(stage: sizeleak.Stage) -> int:
        pipeline = sizeleak.Pipeline().replace("command-segmenter", stage)
        table = sizeleak.commands(CAPTURE, gateway=GATEWAY, pipeline=pipeline).read_all()
        return int(table.num_rows)

    assert rows(One()) == sizeleak.records(CAPTURE, gateway=GATEWAY).read_all().num_rows
    with pytest.raises(sizeleak.Error, match=r"Text\.process returned .*int.*, which is no frame"):
        rows(Text())


def test_a_frame_that_lacks_a_field_is_named() -> None:
    class Incomplete(sizeleak.Stage):
        def process(self, record: sizeleak.Record) -> list[sizeleak.Frame]:
            return [sizeleak.Command(flow=record.flow)]

    pipeline = sizeleak.Pipeline().replace("command-segmenter", Incomplete())
    with pytest.raises(sizeleak.Error, match="a `command` that cannot be read: missing field `time_ns`"):
        sizeleak.commands(CAPTURE, gateway=GATEWAY, pipeline=pipeline).read_all()


def test_kinds_that_cannot_be_consumed_and_stages_that_are_not_there_are_refused() -> None:
    class Packets(sizeleak.Stage):
        consumes = "packets"

    for stage, own, fault in [
        ("flow-filter", Packets(), "cannot consume `packets`"),
        ("segmenter", Bursts(), "has no stage `segmenter`"),
    ]:
        with pytest.raises(sizeleak.UsageError, match=fault):
            sizeleak.commands(CAPTURE, gateway=GATEWAY, pipeline=sizeleak.Pipeline().replace(stage, own))


def test_each_run_of_a_stage_begins_anew() -> None:
    stream = sizeleak.commands(CAPTURE, gateway=GATEWAY, pipeline=OWN)
    assert stream.read_all() == stream.read_all()


def test_a_pipe_that_is_cut_ends_with_the_code_of_the_contract(tmp_path: Path) -> None:
    records = tmp_path / "records.frames"
    sizeleak.records(CAPTURE, gateway=GATEWAY).write(records)
    cut = records.read_bytes()[:-100]
    run = subprocess.run([sys.executable, FILE], input=cut, capture_output=True, check=False)
    assert run.returncode == sizeleak.CutError.exit_code
    assert b"python-stage: the frame stream" in run.stderr
    assert PROGRAM
