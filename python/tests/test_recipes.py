"""The recipes of docs/reference.md run, one block after another."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import HOME, PROGRAM, ROOT

pytestmark = pytest.mark.outside

TOOLS = ("gnuplot", "jq", "tshark")

# A stand-in for zeek-cut, which few distributions have: the columns named, by the header of the log.
ZEEK_CUT = """#!/usr/bin/env python3
import sys
for line in sys.stdin:
    fields = line.rstrip("\\n").split("\\t")
    if fields[0] == "#fields":
        places = [fields.index(name) - 1 for name in sys.argv[1:]]
    elif not line.startswith("#"):
        print("\\t".join(fields[place] for place in places))
"""


def sections() -> dict[str, list[tuple[str, str]]]:
    """The blocks of each recipe, each with its language."""
    document = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    found = {}
    recipes = document.partition("\n## Other tools\n")[2].partition("\n## ")[0]
    for section in recipes.split("\n### ")[1:]:
        found[section.splitlines()[0]] = re.findall(r"```(\w+)\n(.*?)```", section, re.DOTALL)
    return found


@pytest.mark.parametrize("title", sections())
def test_recipes_run(title: str, tmp_path: Path) -> None:
    blocks = sections()[title]
    assert blocks
    text = "".join(block for _, block in blocks)
    used = [tool for tool in TOOLS if re.search(rf"^\W*{tool}\b|\| {tool}\b", text, re.MULTILINE)]
    missing = [tool for tool in used if not shutil.which(tool)]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    if "import NFStreamer" in text:
        pytest.importorskip("nfstream")
    home, programs = tmp_path / "home", tmp_path / "programs"
    shutil.copytree(HOME, home)
    (home / "results").mkdir()
    programs.mkdir()
    (programs / "sizeleak").symlink_to(PROGRAM)
    if not shutil.which("zeek-cut"):
        (programs / "zeek-cut").write_text(ZEEK_CUT)
        (programs / "zeek-cut").chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    for language, block in blocks:
        command = ["bash", "-e", "-c"] if language == "sh" else [sys.executable, "-c"]
        run = subprocess.run([*command, block], cwd=home, env=environment, capture_output=True, text=True, check=False)
        assert run.returncode == 0, f"{block}\n{run.stderr}"
        assert run.stdout or "results/" in block
