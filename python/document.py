#!/usr/bin/env python3
"""Writes the last part of docs/reference.md from the docstrings of the package: document.py [--check]."""

import inspect
import re
import sys
import textwrap
from functools import partial
from pathlib import Path

import sizeleak

FILE = Path(__file__).resolve().parent.parent / "docs" / "reference.md"
COLUMNS = 120
PARTS = {
    "Streams": ("records", "commands", "identify", "Stream"),
    "Results": ("survey", "learn", "evaluate", "compare", "audit", "pad", "profile", "detect", "simulate", "plot"),
    "What results are": (
        *("Report", "Survey", "Model", "Evaluation", "Comparison", "Audit", "Padding"),
        *("Profile", "Deviations", "Simulation", "Figure"),
    ),
    "Stages": ("Stage", "Pipeline", "serve"),
    "Frames": ("Frame", "Record", "Command", "read_frames", "write_frames"),
    "Errors and warnings": ("Error", "UsageError", "CutError", "Notice"),
}
INTRODUCTION = """## Python

`pip install ./python`, on a machine with Rust and a C compiler, installs the package `sizeleak` for Python 3.10 and
newer, and the program; `python/wheels` makes wheels. [The notebook](../examples/notebook.ipynb) goes from a capture to
an audit. This part is made from the docstrings by `python/document.py`.

Streams and stages run in this process: Rust works without the interpreter's lock, and threads end with what they work
for. What the program reports runs in a process of its own, which Ctrl-C ends at any moment of a computation. Where
another library reads a stream, as `polars.DataFrame(stream)` does, its own error comes before the `KeyboardInterrupt`.

`benches/python.py CAPTURE` compares speeds. On a capture of 1 GB of which one packet in a hundred is the gateway's, on
two busy processors: the program 2.8 GB/s (frames) and 3.6 GB/s (Parquet), the package 4.1 GB/s in the same process,
nfstream 7 MB/s, pyshark 15 MB/s. Memory peaks at 69 MB for 1 GB and at 70 MB for 2 GB, pyarrow included.
"""


def described(name: str) -> str:
    """An item of a list: the call, the docstring, and below it the public methods of a class."""
    item = getattr(sizeleak, name)
    # What the package makes itself is shown without a call.
    made_here = inspect.isclass(item) and issubclass(
        item, (sizeleak.Frame, sizeleak.Report, sizeleak.Stream, sizeleak.Figure, Exception)
    )
    call = name if made_here else name + shortened(inspect.signature(item))
    lines = [entry("", call, inspect.getdoc(item) or "")]
    members = vars(item).items() if inspect.isclass(item) else []
    for member, value in members:
        text = inspect.getdoc(value) if not member.startswith("_") else None
        if text and (callable(value) or isinstance(value, (property, classmethod))):
            call = "" if isinstance(value, property) else "()"
            lines.append(entry("  ", member + call, text))
    return "\n".join(lines)


def entry(indent: str, call: str, text: str) -> str:
    """A call and what it does, in lines of at most 120 columns: in one line, or each begins one."""
    head, text = f"{indent}- `{call}`:", " ".join(text.split())
    if len(head) + 1 + len(text) <= COLUMNS:
        return f"{head} {text}"
    fill = partial(textwrap.fill, width=COLUMNS, break_on_hyphens=False, break_long_words=False)
    indent += "  "
    # Code in a text stays in one line.
    text = re.sub("`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    text = fill(text, initial_indent=indent, subsequent_indent=indent).replace("\0", " ")
    return fill(head, subsequent_indent=indent) + "\n" + text


def shortened(signature: inspect.Signature) -> str:
    """A signature without the folders of its types, and without those that say nothing."""
    text = re.sub(r"(: |-> )'([^']*)'", r"\1\2", str(signature))
    text = re.sub(r"sizeleak\._\w+\.", "", text)
    return text.replace(": Any = ", "=").replace(": Any", "").removesuffix(" -> None")


def page() -> str:
    """The whole page: what stands before the part, as it is, and the part."""
    before, _, _ = FILE.read_text(encoding="utf-8").partition(INTRODUCTION.splitlines()[0] + "\n")
    parts = [f"\n### {part}\n\n" + "\n".join(map(described, names)) + "\n" for part, names in PARTS.items()]
    return before + INTRODUCTION + "".join(parts)


def main() -> None:
    """Writes the page, or says whether it is as the docstrings are."""
    missing = set(sizeleak.__all__) - {name for names in PARTS.values() for name in names}
    if missing:
        sys.exit(f"not on the page: {', '.join(sorted(missing))}")
    if "--check" not in sys.argv:
        FILE.write_text(page(), encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != page():
        sys.exit(f"{FILE.name} is not what the docstrings say: run python/document.py")


if __name__ == "__main__":
    main()
