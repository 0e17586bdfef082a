"""What is kept as TOML: models and profiles."""

from __future__ import annotations

import html
import os
from pathlib import Path
from typing import Any, TypeVar

from . import _native
from ._errors import failure

Kept = TypeVar("Kept", bound="TomlFile")


class TomlFile:
    """The text of a file of the program, as an object. Wherever a function takes its path, it takes the object, too."""

    def __init__(self, source: str | os.PathLike[str], summary: str = "") -> None:
        """`source` is the path of a file, or the text of one; `summary` is what the program said of it to people."""
        is_text = isinstance(source, str) and "\n" in source
        self.text = str(source) if is_text else _read(source)
        self.summary = summary

    @classmethod
    def read(cls: type[Kept], path: str | os.PathLike[str]) -> Kept:
        """Reads a file."""
        return cls(Path(path))

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, which the program reads."""
        Path(path).write_text(self.text, encoding="utf-8")

    def to_dict(self) -> dict[str, Any]:
        """Its keys, as the file has them."""
        return _native.read_toml(self.text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(self.summary or self.text)}</pre>"


def _read(path: str | os.PathLike[str]) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise failure(f"{os.fspath(path)}: {error.strerror}", 1) from error


class Model(TomlFile):
    """What was learned about a gateway: made by `learn`, or read from the file that `sizeleak learn` writes."""

    @property
    def sizes(self) -> dict[str, int]:
        """The size of each action of its first section, in bytes."""
        content = self.to_dict()
        actions = content.get("action") or content["model"][0]["action"]
        return {action["name"]: action["size"] for action in actions}


class Profile(TomlFile):
    """What a home usually does and when: made by `profile`."""


def model_files(models: Any, folder: Path) -> list[str]:
    """The paths of models, of which those in memory are written into a folder."""
    if models is None:
        return []
    if isinstance(models, TomlFile):
        path = folder / f"{type(models).__name__.lower()}-{len(list(folder.iterdir()))}.toml"
        models.write(path)
        return [str(path)]
    if isinstance(models, (str, os.PathLike)):
        return [os.fspath(models)]
    return [path for model in models for path in model_files(model, folder)]
