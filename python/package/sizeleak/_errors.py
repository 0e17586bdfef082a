"""Exceptions with the program's sentences, and warnings of what stages skipped, lost or assumed."""

from __future__ import annotations

import sys
import warnings
from typing import Any

CODE_USAGE, CODE_CUT = 2, 3

# Packages whose lines are not the caller's.
BETWEEN = {"sizeleak", "pyarrow", "pandas", "polars", "duckdb"}


class Error(Exception):
    """Why something failed, in one sentence.

    `exit_code` is that of the program; `report` is the result so far where there is one, as with a damaged capture.
    """

    exit_code: int = 1
    report: Any = None


class UsageError(Error, ValueError):
    """An argument, an option of a stage or a pipeline file is invalid."""

    exit_code = CODE_USAGE


class CutError(Error, EOFError):
    """The input was cut short."""

    exit_code = CODE_CUT


class Notice(UserWarning):
    """What a stage skipped, lost or assumed."""


def failure(sentence: str, code: int) -> Error:
    """The exception for an exit code of the program."""
    error = {CODE_USAGE: UsageError, CODE_CUT: CutError}.get(code, Error)(sentence)
    error.exit_code = code
    return error


def warn(stage: str, what: str, times: int, detail: str | None) -> None:
    """Warns of notices of the same stage and word, in the program's form."""
    often = f" ({times} times)" if times > 1 else ""
    # The line that called the package, also through a library that reads its streams.
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(f"{stage}: {what}{often}{': ' if detail else ''}{detail or ''}", Notice, stacklevel=level)
