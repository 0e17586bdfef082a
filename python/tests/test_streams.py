"""Streams of record batches: the program's columns, whatever reads them, however they end."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sizeleak
from conftest import GATEWAY, HOME, program

CAPTURE, MODEL = HOME / "test.pcap", HOME / "model.toml"


def of_kind(kind: str) -> sizeleak.Stream:
    made = {"record": sizeleak.records, "command": sizeleak.commands, "identification": sizeleak.identify}[kind]
    return made(CAPTURE, gateway=GATEWAY, **({} if kind == "record" else {"model": MODEL}))


def test_every_column_equals_that_of_the_programs_parquet(tmp_path: Path) -> None:
    for kind in ("record", "command", "identification"):
        file = tmp_path / f"{kind}.parquet"
        model = [] if kind == "record" else ["--model", MODEL]
        program("run", CAPTURE, "--gateway", GATEWAY, "--kind", kind, *model, "-q", "-o", file)
        wanted, found = pq.read_table(file), of_kind(kind).read_all()
        assert found.schema.equals(wanted.schema), kind
        assert found.num_rows > 300
        for name in wanted.column_names:
            assert found[name].combine_chunks().equals(wanted[name].combine_chunks()), (kind, name)


def test_rows_are_the_same_in_pyarrow_polars_pandas_and_duckdb() -> None:
    stream = of_kind("identification")
    table = stream.read_all()
    assert table.num_rows == 307
    assert pa.table(stream) == table
    assert pl.DataFrame(stream).equals(stream.to_polars())
    assert stream.to_polars().height == len(stream.to_pandas()) == 307
    counted = duckdb.sql("select count(*), sum(size) from stream").fetchall()
    assert counted == [(307, sum(table["size"].to_pylist()))]


def test_a_stream_can_be_read_again_and_from_saved_frames(tmp_path: Path) -> None:
    stream = of_kind("command")
    first = stream.read_all()
    assert stream.read_all() == first
    saved = tmp_path / "records.frames"
    of_kind("record").write(saved)
    assert sizeleak.commands(saved, model=MODEL).read_all() == first
    with pytest.raises(sizeleak.UsageError, match="read one kind of input"):
        sizeleak.commands([saved, CAPTURE])


def test_files_have_what_the_program_writes(tmp_path: Path) -> None:
    run = ["run", CAPTURE, "--gateway", GATEWAY, "--model", MODEL, "-q", "-o"]
    for ending in ("csv", "parquet", "ndjson", "frames"):
        ours, theirs = tmp_path / f"ours.{ending}", tmp_path / f"theirs.{ending}"
        of_kind("identification").write(ours)
        if ending == "frames":
            program(*run, theirs)
            without_times = [[frame for frame in sizeleak.read_frames(file)][:-1] for file in (ours, theirs)]
            assert without_times[0] == without_times[1]
        else:
            program(*run, theirs, "--kind", "identification")
            assert ours.read_bytes() == theirs.read_bytes()


def test_errors_are_the_programs_sentences(tmp_path: Path) -> None:
    with pytest.raises(sizeleak.UsageError, match="there is no such stage"):
        sizeleak.records(CAPTURE, gateway=GATEWAY, pipeline=sizeleak.Pipeline().set("prunner", keep=1))
    with pytest.raises(sizeleak.Error, match=r"none\.pcap: No such file") as error:
        sizeleak.records(tmp_path / "none.pcap", gateway=GATEWAY).read_all()
    assert error.value.exit_code == 1
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(CAPTURE.read_bytes()[:-5])
    rows = []
    with pytest.raises(sizeleak.Error, match=r"damaged\.pcap"):
        rows.extend(sizeleak.records(damaged, gateway=GATEWAY))
    assert sum(batch.num_rows for batch in rows) > 300, "what was read before the damage comes out"


def test_what_is_skipped_is_a_warning() -> None:
    with pytest.warns(sizeleak.Notice, match=r"assumed: "):
        of_kind("identification").read_all()


def test_a_warning_points_to_the_line_that_reads() -> None:
    with pytest.warns(sizeleak.Notice, match=f"gateway {GATEWAY}, the only one that a survey finds") as warned:
        stream = sizeleak.records(CAPTURE)
    assert [Path(warning.filename).name for warning in warned] == ["test_streams.py"]
    assert stream.read_all() == sizeleak.records(CAPTURE, gateway=GATEWAY).read_all()


def test_an_ending_that_is_no_form_gets_the_list(tmp_path: Path) -> None:
    with pytest.raises(sizeleak.UsageError, match=r"one of \.parquet, \.csv"):
        sizeleak.records(CAPTURE, gateway=GATEWAY).write(tmp_path / "records.txt")


def test_progress_is_reported_until_all_is_read() -> None:
    calls: list[tuple[int, int | None]] = []
    stream = sizeleak.records(CAPTURE, gateway=GATEWAY, progress=lambda read, total: calls.append((read, total)))
    stream.read_all()
    assert calls[-1] == (CAPTURE.stat().st_size, CAPTURE.stat().st_size)


def test_an_exception_in_progress_ends_the_run() -> None:
    def fail(_: int, __: int | None) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        sizeleak.records(CAPTURE, gateway=GATEWAY, progress=fail).read_all()


def threads() -> int:
    return len(os.listdir("/proc/self/task"))


def test_a_reader_that_stops_early_leaves_no_thread(tmp_path: Path) -> None:
    silent = tmp_path / "silent.pcap"
    os.mkfifo(silent)
    writer = os.open(silent, os.O_RDWR)
    os.write(writer, CAPTURE.read_bytes()[:24])
    of_kind("record").read_all()
    before = threads()
    reader = pa.RecordBatchReader.from_stream(sizeleak.records(silent, gateway=GATEWAY))
    assert threads() > before
    del reader
    assert threads() == before
    os.close(writer)


INTERRUPTED = """
    import os, sizeleak, sys
    sizeleak.records({capture!r}, gateway="192.168.1.20").read_all()
    before = len(os.listdir("/proc/self/task"))
    try:
        print("reads", flush=True)
        {call}
    except KeyboardInterrupt:
        print("stopped, threads:", len(os.listdir("/proc/self/task")) - before, flush=True)
"""


@pytest.mark.parametrize(
    "call",
    [
        "sizeleak.records({silent!r}, gateway='192.168.1.20').read_all()",
        "list(sizeleak.records({silent!r}, gateway='192.168.1.20'))",
        "sizeleak.records({silent!r}, gateway='192.168.1.20').write({silent!r} + '.frames')",
        "sizeleak.survey({silent!r})",
    ],
)
def test_an_interrupt_ends_a_call_and_its_threads(tmp_path: Path, call: str) -> None:
    silent = tmp_path / "silent.pcap"
    os.mkfifo(silent)
    writer = os.open(silent, os.O_RDWR)
    os.write(writer, CAPTURE.read_bytes()[:24])
    code = textwrap.dedent(INTERRUPTED.format(capture=str(CAPTURE), call=call.format(silent=str(silent))))
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "reads\n"
        time.sleep(0.5)  # Until it waits for more of the capture.
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "stopped, threads: 0\n"
    os.close(writer)
