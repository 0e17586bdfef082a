"""The captures of an archive, grouped into points as `sizeleak archive` does it: a folder is a point."""

import glob
import os
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

from program import Fault

# How captures begin: pcap in both byte orders, with microseconds and nanoseconds, pcapng, and what compresses them.
MAGIC = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\xa1\xb2\xcd\x34",
    b"\x34\xcd\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
    b"\x1f\x8b",
    b"\x28\xb5\x2f\xfd",
    b"\xfd7zXZ\x00",
    b"\x04\x22\x4d\x18",
)

# The longest name of a point; it is part of the names of files.
LONGEST_NAME = 120


@dataclass(frozen=True)
class Capture:
    """A file that is read."""

    path: str
    point: str


def find_captures(operands, one_point):
    """The captures of folders, files and globs, and the files that are passed over as none, both by path."""
    files, links = {}, {}
    for operand in matches(operands):
        for path, folder, root in files_below(operand, one_point):
            found = links if path.is_symlink() else files
            found.setdefault(path, (folder, root))
    captures, others, real, points = [], [], set(), {}
    # A file that links lead to is read once, where it is.
    for path, (folder, root) in [*sorted(files.items()), *sorted(links.items())]:
        target = path.resolve()
        if target in real:
            continue
        real.add(target)
        if not is_capture(path):
            others.append(str(path))
            continue
        point = point_name(folder, root)
        other = points.setdefault(point, folder)
        if other != folder:
            raise Fault(f"{other} and {folder} are both the point `{point}`: name a folder above them")
        captures.append(Capture(checked_text(path), point))
    return captures, others


def matches(operands):
    """The files and folders that operands name or match."""
    for operand in operands:
        found = [operand] if os.path.lexists(operand) else sorted(glob.glob(operand, recursive=True))
        if not found:
            raise Fault(f"{operand} does not exist, and matches nothing")
        yield from (Path(os.path.abspath(path)) for path in found)


def files_below(operand, one_point):
    """The files of an operand, each with the folder that is its point, and the folder that the name begins with."""
    if not operand.is_dir():
        folder = operand.resolve().parent
        yield operand, folder, folder
        return
    root = operand.resolve()
    for folder, _, names in os.walk(operand, onerror=refuse_folder):
        point = root if one_point else root / Path(folder).relative_to(operand)
        for name in names:
            path = Path(folder) / name
            # Pipes and devices may never end.
            if path.is_file() or path.is_symlink() and not path.exists():
                yield path, point, root


def refuse_folder(error):
    """Ends the search: captures that cannot be listed would be missing."""
    raise Fault(f"{error.filename}: {error.strerror}") from error


def is_capture(path):
    """Whether a file is a capture by its content, or should be one by its name."""
    if ".pcap" in path.name.lower():
        return True
    try:
        with open(path, "rb") as file:
            return file.read(6).startswith(MAGIC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise Fault(f"{path}: {error.strerror}") from error


def point_name(folder, root):
    """The path of a point from the folder that was named, that one included, with `+` for `/`."""
    parts = folder.relative_to(root.parent).parts
    # `~` is the only character that is never quoted here and is there.
    name = "+".join(urllib.parse.quote(part, safe="").replace("~", "%7E") for part in parts) or "root"
    if len(name) > LONGEST_NAME:
        raise Fault(f"{folder}: the name of a point is longer than {LONGEST_NAME} characters: name a folder below")
    return name


def checked_text(path):
    """A path as text; names that are no text cannot be columns of a table."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise Fault(f"{str(path)!a} has a name that is not valid UTF-8: rename it") from error
    return str(path)
