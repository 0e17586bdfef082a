"""What the program reports: every key of its JSON is an attribute of a result here.

Each function takes the options of the program's command of the same name, with `_` for `-`:
`evaluate(…, what_if="padme")` is `sizeleak evaluate … --what-if padme`. A capture that is damaged, or a model that does
not fit, is an `Error` whose `report` has the result of what was read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import Any, TypeVar

from ._errors import Error
from ._files import Model, Profile, model_files
from ._html import page
from ._program import Call, Output, listed
from ._stages import Path, Pipeline
from ._streams import Stream

Made = TypeVar("Made", bound="Report")


@dataclass(frozen=True, repr=False)
class Report:
    """A result of the program. `values` is its JSON, and each key an attribute."""

    values: dict[str, Any]

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["values"][name]
        except KeyError:
            known = ", ".join(self.__dict__.get("values", {}))
            raise AttributeError(f"{type(self).__name__} has no {name}; it has {known}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.values]

    def to_dict(self) -> dict[str, Any]:
        """The values as they are in the program's JSON."""
        return deepcopy(self.values)

    @property
    def sentence(self) -> str:
        """The result in one sentence, if it has one."""
        conclusion = self.values.get("conclusion") or {}
        return str(self.values.get("sentence") or conclusion.get("sentence") or "")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.sentence or ', '.join(self.values)}>"

    def _repr_html_(self) -> str:
        return page(self.values, self.sentence)


class Survey(Report):
    """Addresses in captures and what they send and receive; `addresses` is a list, the most likely gateway first."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The addresses as a capsule of Arrow's C stream interface, through pyarrow."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.addresses).__arrow_c_stream__(requested_schema)


class Evaluation(Report):
    """A model's answers against labels: shares are of the labelled commands, intervals are of 95 %."""


class Comparison(Report):
    """Pipelines by the same figures on the same captures, with intervals of their differences."""


class Audit(Report):
    """What the sizes of a gateway's commands give away, over all commands of its inventory."""


class Padding(Report):
    """What padding or other countermeasures cost and hide."""


class Deviations(Report):
    """What a home did that it does not usually do: `deviations` is a list, in order of time."""


@dataclass(frozen=True)
class Simulation:
    """The files of a simulated home: captures to learn from and to test on, their labels, and the inventory."""

    learn: FilePath
    learn_labels: FilePath
    test: FilePath
    test_labels: FilePath
    inventory: FilePath


class Figure:
    """A picture, which a notebook shows."""

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def write(self, path: Path) -> None:
        """Writes it as a file."""
        FilePath(path).write_text(self.svg, encoding="utf-8")

    def __repr__(self) -> str:
        return f"<Figure of {len(self.svg)} bytes>"

    def _repr_svg_(self) -> str:
        return self.svg


def survey(captures: Any, *, gateway: Any = None, recursive: bool = False) -> Survey:
    """What captures hold, for somebody who knows nothing of them yet: addresses that look like gateways, and why."""
    with Call("survey") as call:
        call.add(gateway=gateway, recursive=recursive)
        return _report(call, Survey, listed(captures))


def learn(
    captures: Any,
    labels: Any = None,
    *,
    gateway: Any = None,
    inventory: Path | None = None,
    pipeline: Pipeline | Path | None = None,
    **options: Any,
) -> Model:
    """Learns a gateway's sizes from captures, with labels or without.

    `labels` is a path or a table in memory (of pandas, Polars or Arrow, or a list of dicts): a row for each command
    with its time and a column with a count for each action.
    """
    with Call("learn") as call:
        _add_labelled(call, labels, gateway, pipeline)
        call.add(inventory=inventory, output="-", **options)
        output = _run(call, listed(captures), Model)
        return Model(output.text, output.shown)


def evaluate(
    captures: Any,
    labels: Any = None,
    *,
    model: Any = None,
    gateway: Any = None,
    pipeline: Pipeline | Path | None = None,
    **options: Any,
) -> Evaluation:
    """Compares the answers of a model with labels that it was not learned from; `labels` are as those of `learn`."""
    with Call("evaluate") as call:
        _add_labelled(call, labels, gateway, pipeline)
        _add_models(call, model=model)
        call.add(**options)
        return _report(call, Evaluation, listed(captures))


def compare(
    captures: Any,
    labels: Any,
    pipelines: Sequence[Pipeline | str],
    *,
    model: Any,
    gateway: Any = None,
    **options: Any,
) -> Comparison:
    """Compares pipelines by the same figures on the same labelled captures.

    Each pipeline is a `Pipeline`, the path of a pipeline file, or text such as "standard" and "pruner.mode=paper".
    """
    if len(pipelines) <= 1:
        raise ValueError("name two pipelines or more")
    with Call("evaluate") as call:
        _add_labelled(call, labels, gateway, None)
        _add_models(call, model=model)
        call.add(**options)
        variants = [_variant(call, pipeline) for pipeline in pipelines]
        comparison = _report(call, Comparison, [*listed(captures), *variants])
    for compared, pipeline in zip(comparison.pipelines, pipelines, strict=True):
        compared["pipeline"] = str(pipeline)
    return comparison


def audit(model: Any, *, inventory: Path | None = None, **options: Any) -> Audit:
    """Computes what the sizes of a gateway's commands give away, from its model alone."""
    with Call("audit") as call:
        _add_models(call, model=model)
        call.add(inventory=inventory, **options)
        return _report(call, Audit, [])


def pad(model: Any, *, inventory: Path | None = None, **options: Any) -> Padding:
    """What hides commands and what it costs: all policies, or as asked: `policy="padme"`, `budget="20%"`."""
    with Call("pad") as call:
        _add_models(call, model=model)
        call.add(inventory=inventory, **options)
        return _report(call, Padding, [])


def profile(answers: Any, *, time_zone: str | None = None, add: Profile | Path | None = None) -> Profile:
    """Learns what a home usually does and when, from some weeks of answers: streams of `identify`, or files of them."""
    with Call("profile") as call:
        _add_models(call, add=add)
        call.add(time_zone=time_zone, output="-")
        output = _run(call, _answers(call, answers), Profile)
        return Profile(output.text, output.shown)


def detect(answers: Any, profile: Profile | Path, **options: Any) -> Deviations:
    """Finds what a home does not usually do, in answers that are later than those of its profile."""
    with Call("detect") as call:
        _add_models(call, profile=profile)
        call.add(**options, format="ndjson")
        output = _run(call, _answers(call, answers), Deviations)
        return Deviations({"deviations": [json.loads(line)["deviation"] for line in output.text.splitlines()]})


def simulate(folder: Path, *, scenario: Path | None = None, seed: int = 1, **options: Any) -> Simulation:
    """Writes captures of a simulated home with real TLS, their labels and its inventory into a folder."""
    with Call("simulate") as call:
        call.add(scenario=scenario, seed=seed, output=folder, quiet=True, **options)
        call.run(has_messages=False)
    test = "test.frames" if options.get("frames") else "test.pcap"
    return Simulation(
        *(FilePath(folder, name) for name in ("learn.pcap", "learn.csv", test, "test.csv", "inventory.toml"))
    )


def plot(answers: Any, *, labels: Any = None, **options: Any) -> Figure:
    """Draws the commands of a home on a timeline, with the true actions over the answers where labels are given."""
    with Call("plot") as call:
        figure = call.file("figure.svg")
        call.add(labels=call.labels(labels), output=figure, **options)
        call.arguments += _answers(call, answers)
        call.run()
        return Figure(figure.read_text(encoding="utf-8"))


def _variant(call: Call, pipeline: Pipeline | str) -> str:
    """A pipeline as the program names one to compare."""
    if not isinstance(pipeline, Pipeline):
        return os.fspath(pipeline)
    is_changed = pipeline._replaced or (pipeline._file and pipeline._options)
    return call.pipeline_file(pipeline) if is_changed else str(pipeline)


def _add_labelled(call: Call, labels: Any, gateway: Any, pipeline: Pipeline | Path | None) -> None:
    call.add(gateway=gateway, labels=call.labels(labels))
    call.add_pipeline(pipeline)


def _add_models(call: Call, **models: Any) -> None:
    """Adds models or profiles by options, from memory or from files."""
    for name, given in models.items():
        call.add(**{name: model_files(given, call.file("").parent) if given is not None else None})


def _answers(call: Call, answers: Any) -> list[str]:
    if isinstance(answers, Stream):
        file = call.file("answers.frames")
        answers.write(file)
        return [os.fspath(file)]
    return listed(answers)


def _run(call: Call, operands: list[str], made: type[Any]) -> Output:
    """Runs the program; of a result that an error comes with, the error gets the object."""
    call.arguments += operands
    try:
        return call.run()
    except Error as error:
        if isinstance(error.report, str):
            error.report = made(json.loads(error.report)) if issubclass(made, Report) else made(error.report)
        raise


def _report(call: Call, made: type[Made], operands: list[str]) -> Made:
    call.add(format="json")
    return made(json.loads(_run(call, operands, made).text))
