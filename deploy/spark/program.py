"""The program `sizeleak` as a part of a task: started, watched, and always ended with it."""

import os
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

NAME = "sizeleak"

# At most this much of what the program said is part of an error.
LONGEST_SAID = 500


class Fault(Exception):
    """One sentence for the user: what is wrong, and what to do."""


@dataclass(frozen=True)
class ProgramPlace:
    """Where executors find the program."""

    # A folder that all of them see; None if `spark-submit --files` brings it.
    folder: str | None

    def path(self):
        """The program on this machine."""
        if self.folder is not None:
            path = Path(self.folder) / NAME
        else:
            from pyspark import SparkFiles

            path = Path(SparkFiles.get(NAME))
        if not os.access(path, os.X_OK):
            how = "name its folder with --binaries, or bring it with `spark-submit --files .../sizeleak`"
            raise Fault(f"{path} is no program on an executor: {how}")
        return str(path)


class RunningProgram:
    """A call of the program; killed if the block that it is used in ends before it."""

    def __init__(self, place, arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL):
        # A file, not a pipe: nobody would read the pipe while the program writes frames.
        self.said = tempfile.TemporaryFile()
        command = [place.path(), *arguments]
        # Not where the driver was started: `sizeleak run` takes a pipeline.toml that it finds.
        self.process = subprocess.Popen(command, cwd="/", stdin=stdin, stdout=stdout, stderr=self.said)

    def __enter__(self):
        return self

    def __exit__(self, *_error):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()
        self.said.close()

    def last_words(self):
        """The last line that the program wrote on stderr, without its name."""
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").strip().splitlines()
        line = lines[-1][-LONGEST_SAID:] if lines else "it said nothing"
        return line.removeprefix(f"{NAME}: ").removeprefix("`capture`: ")
