"""Captures as streams of Arrow record batches."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import Any

from . import _native
from ._errors import UsageError
from ._files import Model, model_files
from ._program import listed
from ._stages import Path, Pipeline

Progress = Callable[[int, "int | None"], object] | bool

FORMATS = {".parquet": "parquet", ".csv": "csv", ".ndjson": "ndjson", ".frames": "frames", ".log": "zeek"}


class Stream:
    """Frames of one kind, as Arrow record batches with the columns of the program's Parquet.

    Whatever reads Arrow's C stream interface takes it as it is, without a copy: `pyarrow.table(stream)`,
    `polars.DataFrame(stream)`, `duckdb.sql("from stream")`. Each reader starts a run of its own, so that a stream can
    be read again. A batch has at most 65,536 rows or about 4 MiB; memory does not grow with the capture.
    """

    def __init__(self, run: _native.Run, kind: str, progress: Progress | None, folder: str) -> None:
        self._run, self.kind, self._progress = run, kind, progress
        # Every run reads the models that are in it.
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A run as a capsule of Arrow's C stream interface; its schema is its own, whatever is requested."""
        return self._run.stream(_callback(self._progress))

    def __arrow_c_schema__(self) -> object:
        """The columns as a capsule of Arrow's C data interface."""
        return self._run.schema()

    def __iter__(self) -> Iterator[Any]:
        """The batches, as `pyarrow.RecordBatch`."""
        pa = _pyarrow()
        try:
            yield from pa.RecordBatchReader.from_stream(self)
        except (pa.ArrowException, OSError) as error:
            raise self._run.failure() or error from None

    @property
    def schema(self) -> Any:
        """The names and types of the columns, as `pyarrow.Schema`."""
        return _pyarrow().schema(self)

    def read_all(self) -> Any:
        """All rows, as `pyarrow.Table`."""
        return _pyarrow().Table.from_batches(self, schema=self.schema)

    def to_pandas(self) -> Any:
        """All rows, as `pandas.DataFrame`."""
        return self.read_all().to_pandas()

    def to_polars(self) -> Any:
        """All rows, as `polars.DataFrame`."""
        try:
            import polars
        except ImportError as error:
            raise ImportError("this needs polars: pip install 'sizeleak[tables]'") from error
        return polars.from_arrow(self.read_all())

    def write(self, path: Path) -> None:
        """Writes a file, whole or not at all. Its ending chooses the form: .parquet, .csv, .ndjson, .log (as Zeek's) or
        .frames, which holds all kinds of frame and is what `detect`, `profile` and `plot` read."""
        ending = FilePath(path).suffix
        if ending not in FORMATS:
            raise UsageError(f"{os.fspath(path)}: the ending says the form; it is one of {', '.join(FORMATS)}")
        self._run.write(os.fspath(path), FORMATS[ending])

    def __repr__(self) -> str:
        return f"<Stream of {self.kind}>"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><td>{field.name}</td><td>{field.type}</td></tr>" for field in self.schema)
        return f"<p>stream of {self.kind}</p><table><tr><th>column</th><th>type</th></tr>{rows}</table>"


def records(
    captures: Any,
    *,
    gateway: Any = None,
    pipeline: Pipeline | Path | None = None,
    recursive: bool = False,
    progress: Progress | None = None,
) -> Stream:
    """The TLS records of captures, one row each, in order of time.

    `captures` is a path or several: captures (pcap or pcapng, also compressed), folders of them with `recursive`, or
    saved frame streams. `gateway` is an address or network, or several. Columns: time, start (timestamps, UTC),
    flow, direction, content_type, length (bytes on the wire), plaintext_min, plaintext_max (bytes; null where the
    cipher suite is unknown), handshake, gateway, service. `progress` is called with the bytes read and their total
    (None if unknown); True shows a bar of tqdm, if that is installed.
    """
    return _stream("record", captures, gateway, pipeline, recursive, progress)


def commands(
    captures: Any,
    *,
    gateway: Any = None,
    model: Any = None,
    pipeline: Pipeline | Path | None = None,
    recursive: bool = False,
    progress: Progress | None = None,
) -> Stream:
    """The commands in captures, one row each.

    As `records`, and: `model` is a `Model` or its path, or several; with one, commands are told from noise as it has
    learned. Columns: time, end, flow, size (bytes on the wire), plaintext_min, plaintext_max, records, replies,
    reply_bytes, direction, single_replies (list of after_ns, length), gateway, service.
    """
    return _stream("command", captures, gateway, pipeline, recursive, progress, model)


def identify(
    captures: Any,
    *,
    model: Any,
    gateway: Any = None,
    profile: Path | None = None,
    pipeline: Pipeline | Path | None = None,
    recursive: bool = False,
    progress: Progress | None = None,
) -> Stream:
    """The commands in captures with the actions that they may have carried, one row each.

    As `commands`; `profile` is what the home usually does (`sizeleak.profile`). Columns: those of commands, and
    candidate_count, listed, min_actions, max_actions, size_probability, reply_probability, actions (of the first
    candidate: a map from names to counts), epsilon (bytes), probability, candidates (a list of actions, epsilon,
    probability, likelihood), shifts, numbers, device_types.
    """
    return _stream("identification", captures, gateway, pipeline, recursive, progress, model, profile)


def _stream(
    kind: str,
    captures: Any,
    gateway: Any,
    pipeline: Pipeline | Path | None,
    recursive: bool,
    progress: Progress | None,
    model: Model | Path | None = None,
    profile: Path | None = None,
) -> Stream:
    pipeline = pipeline if isinstance(pipeline, Pipeline) else Pipeline(pipeline)
    folder = FilePath(tempfile.mkdtemp(prefix="sizeleak-"))
    run = _native.Run(
        kind,
        listed(captures),
        listed(gateway),
        model_files(model, folder),
        None if profile is None else model_files(profile, folder)[0],
        pipeline._file,
        pipeline._options,
        pipeline._replaced,
        recursive,
    )
    return Stream(run, kind, progress, str(folder))


def _pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ImportError("tables need pyarrow: pip install 'sizeleak[tables]'") from error
    return pyarrow


def _callback(progress: Progress | None) -> Callable[[int, int | None], object] | None:
    if progress is None or progress is False:
        return None
    if progress is not True:
        return progress
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar = tqdm(unit="B", unit_scale=True)

    def show(read: int, total: int | None) -> None:
        bar.total = total
        bar.update(read - bar.n)

    return show
