"""What the tests share: the bundled home, and the program that the package must equal."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "examples" / "home"
GATEWAY = "192.168.1.20"
PROGRAM = os.environ.get("SIZELEAK_PROGRAM") or shutil.which("sizeleak", path=Path(sys.executable).parent) or "sizeleak"
# Its segmenter is an example for people, and what the tests replace a stage with.
sys.path.insert(0, str(ROOT / "examples" / "segmenters"))


def program(*arguments: object) -> str:
    """What the program prints."""
    run = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=True, timeout=300)
    return run.stdout


@pytest.fixture(autouse=True)
def warnings_are_wanted(recwarn: pytest.WarningsRecorder) -> None:
    """Notices are warnings, which some captures bring."""
