"""The notebook runs, and shows what it was committed with. Remake its output: SIZELEAK_NOTEBOOK=write pytest …"""

import os
import re
from typing import Any

import pytest

from conftest import ROOT

pytestmark = pytest.mark.outside

NOTEBOOK = ROOT / "examples" / "notebook.ipynb"


def shown(notebook: Any) -> list[str]:
    """The texts and pictures that the cells show."""
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    texts = [output.get("text") or output["data"].get("text/plain", "") for output in outputs]
    pictures = [output["data"]["image/svg+xml"] for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert pictures
    return [re.sub(r"0x[0-9a-f]+", "0x…", text) for text in texts + pictures]


def test_the_notebook_shows_what_it_was_committed_with() -> None:
    nbformat = pytest.importorskip("nbformat")
    client = pytest.importorskip("nbclient")
    committed = nbformat.read(NOTEBOOK, as_version=4)
    run = nbformat.read(NOTEBOOK, as_version=4)
    client.NotebookClient(run, timeout=300, resources={"metadata": {"path": str(NOTEBOOK.parent)}}).execute()
    for cell in run.cells:
        cell.metadata.clear()
    if os.environ.get("SIZELEAK_NOTEBOOK") == "write":
        run.metadata.pop("language_info", None)
        nbformat.write(run, NOTEBOOK)
        return
    assert shown(run) == shown(committed)
    assert len(shown(run)) >= len([cell for cell in run.cells if cell.cell_type == "code"]) - 1
