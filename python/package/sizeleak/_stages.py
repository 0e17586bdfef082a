"""Stages in Python, and the pipelines that they are put into."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from copy import copy
from typing import Any, ClassVar, NoReturn

from . import _native
from ._frames import Frame

Path = str | os.PathLike[str]


class Stage:
    """A stage: `process` gets each frame of the kind `consumes`, and yields or returns what it makes of it.

    All other frames are passed on. Each run works on a deep copy, so that it begins anew. Times come from frames, never
    from a clock.
    """

    consumes: ClassVar[str] = "record"

    def process(self, frame: Any) -> Iterable[Frame] | Frame | None:
        """Takes a frame, and gives those that follow from it, or one, or None."""
        raise NotImplementedError

    def finish(self) -> Iterable[Frame] | Frame | None:
        """Gives the frames that are still pending at the end of the input."""
        return None


class Pipeline:
    """The standard pipeline, or that of a pipeline file, with changes.

    Each change makes a new pipeline: `Pipeline().set("pruner", keep=1).replace("command-segmenter", Mine())`.
    """

    def __init__(self, file: Path | None = None) -> None:
        """`file` is a pipeline file (TOML), whose paths are relative to its folder."""
        self._file = None if file is None else os.fspath(file)
        self._options: list[str] = []
        self._replaced: dict[str, object] = {}

    def set(self, stage: str, **options: Any) -> Pipeline:
        """Sets options of a stage, as `STAGE --help` lists them, with `_` for `-`."""
        changed = copy(self)
        made = [f"{stage}.{name.replace('_', '-')}={_toml(value)}" for name, value in options.items()]
        changed._options = [*self._options, *made]
        return changed

    def replace(self, stage: str, own: Stage | object) -> Pipeline:
        """Puts an object with `process` and `finish` in the place of a standard stage."""
        changed = copy(self)
        changed._replaced = {**self._replaced, stage: own}
        return changed

    def __repr__(self) -> str:
        parts = [self._file] if self._file else []
        parts += [*self._options, *(f"{stage}={type(own).__name__}" for stage, own in self._replaced.items())]
        return ",".join(parts) or "standard"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_toml(entry) if not isinstance(entry, str) else repr(entry) for entry in value)}]"
    return str(value)


def serve(stage: Stage | object) -> NoReturn:
    """Runs a stage as a program between stdin and stdout, and ends the process with the exit code of the contract.

    The stage takes part in a pipe (`record-sizer … | python3 mine.py | …`), in a pipeline file
    (`command = ["python3", "mine.py"]`) and in `sizeleak check-stage -- python3 mine.py`.
    """
    # The first stage stops; what it has sent is still processed. A second signal ends this process (`_native`).
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code, cause = _native.serve(stage)
    if cause is not None:
        print(f"python-stage: {cause}", file=sys.stderr)
    sys.exit(code)
