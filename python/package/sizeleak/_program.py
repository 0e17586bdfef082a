"""Runs the program in a process of its own: it can be stopped at any moment of a computation, and leaves no thread."""

from __future__ import annotations

import csv
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path as FilePath
from typing import IO, Any

from . import _native
from ._errors import Notice, failure
from ._stages import Path, Pipeline

# What is installed is run, whatever the current folder holds.
_RUN = "import sys; sys.path[0] = {folder!r}; from sizeleak.{module}"
_FOLDER = str(FilePath(__file__).parent.parent)
_FAILED = (1, 2, 3)


class Output:
    """What the program wrote to stdout, and the texts of several lines that it showed to its user."""

    def __init__(self, text: str, shown: list[str]) -> None:
        self.text = text
        self.shown = "\n".join(shown)


class Call:
    """A call of the program: its arguments, the files that it needs, and the stages that it gets from this process."""

    def __init__(self, command: str) -> None:
        self.arguments = [command]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._relays: list[_native.Relay] = []

    def __enter__(self) -> Call:
        return self

    def __exit__(self, *_: object) -> None:
        for relay in self._relays:
            relay.close()
        if self._folder is not None:
            self._folder.cleanup()

    def file(self, name: str) -> FilePath:
        """The path of a file that is there during the call."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="sizeleak-")
        return FilePath(self._folder.name, name)

    def add(self, **options: Any) -> None:
        """Adds options: True is a flag, None and False are left out, a list is an option for each entry."""
        for name, value in options.items():
            flag = f"--{name.replace('_', '-')}"
            if value is True:
                self.arguments.append(flag)
            elif value is not None and value is not False:
                self.arguments += [f"{flag}={entry}" for entry in listed(value)]

    def add_pipeline(self, pipeline: Pipeline | Path | None) -> None:
        """Adds a pipeline by its file, named like captures, and its options."""
        file: Path | str | None
        if isinstance(pipeline, Pipeline) and not pipeline._replaced:
            file = pipeline._file
            self.add(set=pipeline._options)
        elif isinstance(pipeline, Pipeline):
            file = self.pipeline_file(pipeline)
        else:
            file = pipeline
        if file is not None:
            self.arguments.append(os.fspath(file))

    def pipeline_file(self, pipeline: Pipeline) -> str:
        """The file of a pipeline whose stages in Python are served by this process."""
        programs = []
        for name, stage in pipeline._replaced.items():
            socket = str(self.file(f"{len(self._relays)}.socket"))
            self._relays.append(_native.Relay(stage, socket))
            code = _RUN.format(folder=_FOLDER, module="_native import relay; relay(sys.argv[1])")
            programs.append((name, [sys.executable, "-c", code, socket]))
        file = self.file(f"pipeline-{len(self._relays)}.toml")
        file.write_text(_native.pipeline_file(pipeline._file, pipeline._options, programs), encoding="utf-8")
        return str(file)

    def labels(self, labels: Any) -> Path | None:
        """The file of labels, which may be a table in memory: of pandas, Polars or Arrow, or a list of dicts."""
        if labels is None or isinstance(labels, (str, os.PathLike)):
            return labels
        file = self.file("labels.csv")
        if hasattr(labels, "to_csv"):
            labels.to_csv(file, index=False)
        elif hasattr(labels, "write_csv"):
            labels.write_csv(file)
        else:
            rows = labels.to_pylist() if hasattr(labels, "to_pylist") else list(labels)
            with file.open("w", newline="", encoding="utf-8") as output:
                writer = csv.DictWriter(output, list(rows[0]) if rows else ["time"])
                writer.writeheader()
                writer.writerows(rows)
        return file

    def run(self, *, has_messages: bool = True) -> Output:
        """Runs the program to its end. What it says becomes warnings, its error an exception.

        A command without options for messages prints only errors, as text.
        """
        code = _RUN.format(folder=_FOLDER, module="__main__ import main; main()")
        arguments = [sys.executable, "-c", code, *self.arguments, *(["--log-format=json"] if has_messages else [])]
        with tempfile.TemporaryFile() as stdout:
            # In a session of its own: the terminal's Ctrl-C is for this process, which ends that one.
            process = subprocess.Popen(
                arguments, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, start_new_session=True
            )
            said: list[dict[str, Any]] = []
            shown: list[str] = []
            raw: list[str] = []
            try:
                assert process.stderr is not None
                for line in _lines(process.stderr):
                    _take(line, said, shown, raw)
                exit_code = process.wait()
            except BaseException:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            finally:
                if process.stderr is not None:
                    process.stderr.close()
            stdout.seek(0)
            output = Output(stdout.read().decode(), shown)
        errors = [message["message"] for message in said if message.get("level") == "ERROR"]
        for message in said:
            if message.get("level") != "ERROR":
                warnings.warn(f"{message.get('stage', 'sizeleak')}: {message['message']}", Notice, stacklevel=4)
        if exit_code in _FAILED or exit_code < 0:
            killed = f"the program was ended by signal {-exit_code}"
            # The last error is why it failed; of a fault of the command line, the first line says what it is.
            sentence = [*raw[:1], *errors, killed][-2 if raw or errors else -1].removeprefix("error: ")
            error = failure(sentence, exit_code if exit_code > 0 else 1)
            error.report = output.text or None
            raise error
        return output


def _lines(pipe: IO[bytes]) -> Iterator[str]:
    """The lines of a pipe. After a signal a read goes on where a library has a handler of its own; `select` ends."""
    rest = b""
    while select.select([pipe], [], []) and (read := os.read(pipe.fileno(), 1 << 16)):
        *lines, rest = (rest + read).split(b"\n")
        yield from (line.decode(errors="replace") for line in lines)
    if rest:
        yield rest.decode(errors="replace")


def _take(line: str, said: list[dict[str, Any]], shown: list[str], raw: list[str]) -> None:
    """Sorts a line of stderr: what is said, what is shown, and what was written before messages have a format."""
    try:
        message = json.loads(line)
    except ValueError:
        raw.append(line.strip())
        return
    if str(message.get("target", "")).endswith("::said") or message.get("level") == "ERROR":
        said.append(message)
    else:
        shown.append(message["message"])


def listed(value: Any) -> list[str]:
    """One value or several, as texts."""
    if value is None:
        return []
    if isinstance(value, (str, os.PathLike)) or not isinstance(value, (Sequence, Iterable)):
        return [os.fspath(value) if isinstance(value, os.PathLike) else str(value)]
    return [text for entry in value for text in listed(entry)]
