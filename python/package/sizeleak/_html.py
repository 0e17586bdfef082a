"""Results as HTML: a table for what has several entries, a list of names and values for the rest."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

# More rows than fit a screen are counted instead.
MAX_ROWS = 20


def page(values: Mapping[str, Any], sentence: str) -> str:
    """The sentence of a result, and its values."""
    opening = f"<p>{html.escape(sentence)}</p>" if sentence else ""
    return opening + _object({name: value for name, value in values.items() if name not in ("schema", "sentence")})


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _list(value)
    if isinstance(value, float):
        return f"{value:.4g}"
    return "" if value is None else html.escape(str(value))


def _object(values: Mapping[str, Any]) -> str:
    rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{_value(value)}</td></tr>" for name, value in values.items())
    return f"<table>{rows}</table>"


def _list(values: Sequence[Any]) -> str:
    if not values or not all(isinstance(value, Mapping) for value in values):
        return ", ".join(_value(value) for value in values[:MAX_ROWS]) + _rest(len(values))
    names = list(dict.fromkeys(name for value in values for name in value))
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    rows = "".join(
        f"<tr>{''.join(f'<td>{_value(value.get(name))}</td>' for name in names)}</tr>" for value in values[:MAX_ROWS]
    )
    return f"<table><tr>{head}</tr>{rows}</table>{_rest(len(values))}"


def _rest(count: int) -> str:
    return f"<p>… {count - MAX_ROWS} more</p>" if count > MAX_ROWS else ""
