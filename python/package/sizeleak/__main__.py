"""The program `sizeleak`, as `python -m sizeleak` and as the command that the package installs."""

import os
import sys

from . import _native


def main() -> None:
    """Runs the program and ends the process: threads that wait for input do not delay it."""
    code = _native.program(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
