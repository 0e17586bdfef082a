"""Files of frames, as objects."""

import os
from pathlib import Path

import pytest

import sizeleak
from conftest import GATEWAY, HOME, program


def test_frames_that_were_read_are_written_as_they_were(tmp_path: Path) -> None:
    saved, again = tmp_path / "saved.frames", tmp_path / "again.frames"
    for stage in ("capture", "flow-filter", "record-sizer", "command-segmenter"):
        run = ["run", HOME / "test.pcap", "--gateway", GATEWAY, "--kind", "command", "-q", "-o", os.devnull]
        program(*run, "--set", f"{stage}.save={saved}")
        frames = list(sizeleak.read_frames(saved))
        assert sizeleak.write_frames(frames, again) == len(frames)
        assert list(sizeleak.read_frames(again)) == frames, stage
        assert {frames[0].kind, frames[-1].kind} == {"hello", "summary"}


def test_frames_of_unknown_kinds_go_through(tmp_path: Path) -> None:
    class Own(sizeleak.Frame):
        kind = "own_kind"

    file = tmp_path / "own.frames"
    command = sizeleak.Command(time_ns=1, end_ns=2, flow=2**64 - 1, size=3)
    assert sizeleak.write_frames([Own(number=7, text="ü"), command], file) == 2
    hello, own, found, summary = sizeleak.read_frames(file)
    assert (hello.kind, own.kind, own.number, own.text, summary.kind) == ("hello", "own_kind", 7, "ü", "summary")
    assert (found.flow, found.size, found.plaintext, found.records) == (2**64 - 1, 3, None, 1)


def test_faults_are_named(tmp_path: Path) -> None:
    file = tmp_path / "cut.frames"
    sizeleak.write_frames([], file)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(sizeleak.CutError, match=r"cut\.frames: the frame stream"):
        list(sizeleak.read_frames(file))
    with pytest.raises(sizeleak.UsageError, match="missing field `flow`"):
        sizeleak.write_frames([sizeleak.Command(time_ns=1, end_ns=2, size=3)], tmp_path / "none.frames")
    assert not (tmp_path / "none.frames").exists(), "a file is whole or absent"
    with pytest.raises(sizeleak.Error, match=r"missing: No such file"):
        sizeleak.read_frames(tmp_path / "missing")
