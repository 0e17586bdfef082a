"""Frames as objects, and files of them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

from . import _native


class Frame(SimpleNamespace):
    """One value of a stream: the fields of its body are attributes, `kind` is its kind.

    docs/frames.md lists the fields: times (`…_ns`) are nanoseconds since the epoch, lengths are bytes, `flow` is a
    number. The body of `packets` and `segments` is the list `rows`.
    """

    kind: ClassVar[str]


class Record(Frame):
    """A TLS record: time_ns, start_ns, flow, direction, content_type, length (on the wire), plaintext, handshake."""

    kind = "record"


class Command(Frame):
    """A command: time_ns, end_ns, flow, size (bytes on the wire), and plaintext, records, replies, reply_bytes.

    The last four are None, 1, 0 and 0 unless they are given.
    """

    kind = "command"

    def __init__(self, **fields: Any) -> None:
        super().__init__(**{"plaintext": None, "records": 1, "replies": 0, "reply_bytes": 0, **fields})


_CLASSES: dict[str, type[Frame]] = {"record": Record, "command": Command}


def frame_of(kind: str, body: Any) -> Frame:
    """The frame of a kind with the body that MessagePack has: a dict of fields, or a list of rows."""
    made = _CLASSES.get(kind)
    if made is None:
        made = _CLASSES.setdefault(kind, type(kind.capitalize(), (Frame,), {"kind": kind}))
    return made(**body) if isinstance(body, dict) else made(rows=body)


def read_frames(path: str | os.PathLike[str]) -> Iterator[Frame]:
    """The frames of a file, one after another: what `sizeleak run -o FILE.frames` wrote, also compressed."""
    return _native.FrameIterator(os.fspath(path))


def write_frames(frames: Iterable[Frame], path: str | os.PathLike[str]) -> int:
    """Writes frames to a file, whole or not at all, and returns how many there are.

    A stream begins with `hello` and ends with `summary`; both are added where they are missing.
    """
    return _native.write_frames(frames, os.fspath(path))
