"""Results have what the program's JSON has, whatever form their inputs come in."""

import csv
import json
from importlib import metadata
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import sizeleak
from conftest import GATEWAY, HOME, program

LEARN, TEST, MODEL, INVENTORY = (HOME / name for name in ("learn.pcap", "test.pcap", "model.toml", "inventory.toml"))
LABELS, TEST_LABELS = HOME / "learn.csv", HOME / "test.csv"
LABELLED = ["--labels", TEST_LABELS, "--model", MODEL, "--gateway", GATEWAY]


def test_results_equal_the_programs_json() -> None:
    given: dict[str, Any] = {"model": MODEL, "gateway": GATEWAY}
    for result, arguments in [
        (sizeleak.survey(TEST), ["survey", TEST]),
        (
            sizeleak.evaluate(TEST, TEST_LABELS, **given, what_if="padme"),
            ["evaluate", TEST, *LABELLED, "--what-if=padme"],
        ),
        (
            sizeleak.compare(TEST, TEST_LABELS, ["standard", sizeleak.Pipeline().set("pruner", mode="paper")], **given),
            ["evaluate", TEST, "standard", "pruner.mode=paper", *LABELLED],
        ),
        (sizeleak.audit(MODEL), ["audit", "--model", MODEL]),
        (sizeleak.pad(MODEL, policy="padme"), ["pad", "--model", MODEL, "--policy", "padme"]),
    ]:
        assert result.to_dict() == json.loads(program(*arguments, "--format", "json", "-q"))


def test_keys_are_attributes_and_html_has_them() -> None:
    audit = sizeleak.audit(MODEL)
    assert audit.commands == audit.to_dict()["commands"]
    assert "sentence" in dir(audit) and audit.sentence in repr(audit)
    html = audit._repr_html_()
    assert html.startswith("<p>") and "<th>by_size</th>" in html
    with pytest.raises(AttributeError, match="Audit has no nothing"):
        _ = audit.nothing
    hostile = sizeleak.Report({"name": "<script>"})
    assert "<script>" not in hostile._repr_html_()


def test_a_model_is_the_file_that_the_program_writes(tmp_path: Path) -> None:
    file = tmp_path / "model.toml"
    options = {"gateway": GATEWAY, "inventory": INVENTORY}
    program("learn", LEARN, "--labels", LABELS, "--gateway", GATEWAY, "--inventory", INVENTORY, "-q", "-o", file)
    model = sizeleak.learn(LEARN, LABELS, **options)
    assert model == sizeleak.Model.read(file)
    assert model.sizes["on"] == 28 and "28" in model._repr_html_()
    model.write(tmp_path / "again.toml")
    assert (tmp_path / "again.toml").read_bytes() == file.read_bytes()
    for labels in [
        pd.read_csv(LABELS),
        pl.read_csv(LABELS),
        pl.read_csv(LABELS).to_arrow(),
        list(csv.DictReader(LABELS.open())),
    ]:
        assert sizeleak.learn(LEARN, labels, **options) == model, type(labels)
    times = pd.read_csv(LABELS, parse_dates=["time"])
    assert sizeleak.learn(LEARN, times, **options) == model
    found = sizeleak.identify(TEST, model=model, gateway=GATEWAY).read_all()
    assert found == sizeleak.identify(TEST, model=file, gateway=GATEWAY).read_all()


def test_a_pipeline_is_a_file_or_has_options_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "pipeline.toml"
    stages = ["capture", "flow-filter", "record-sizer", "command-segmenter"]
    file.write_text("".join(f'[[stage]]\nrun = "{stage}"\n' for stage in stages))
    sizes = sizeleak.learn(LEARN, LABELS, gateway=GATEWAY).sizes
    for pipeline in [file, sizeleak.Pipeline(file), sizeleak.Pipeline(file).set("command-segmenter", algorithm="gap")]:
        assert sizeleak.learn(LEARN, LABELS, gateway=GATEWAY, pipeline=pipeline).sizes == sizes


def test_a_model_is_read_from_its_path() -> None:
    assert sizeleak.Model(HOME / "model.toml") == sizeleak.Model(str(HOME / "model.toml"))
    assert sizeleak.Model((HOME / "model.toml").read_text()) == sizeleak.Model.read(HOME / "model.toml")
    with pytest.raises(sizeleak.Error, match=r"none\.toml: No such file"):
        sizeleak.Model("none.toml")
    assert sizeleak.__version__ == metadata.version("sizeleak")


def test_errors_and_messages_are_the_programs(tmp_path: Path) -> None:
    with pytest.raises(sizeleak.UsageError, match="the model has no section 5, only 1"):
        sizeleak.audit(MODEL, section=5)
    with pytest.raises(sizeleak.UsageError, match="unexpected argument '--nonsense'"):
        sizeleak.audit(MODEL, nonsense=1)
    with pytest.raises(sizeleak.Error, match=r"none\.toml"):
        sizeleak.audit(tmp_path / "none.toml")
    damaged = tmp_path / "damaged.pcap"
    damaged.write_bytes(TEST.read_bytes()[:-5])
    with pytest.raises(sizeleak.Error, match="the figures cover everything before the damage") as error:
        sizeleak.evaluate(damaged, TEST_LABELS, model=MODEL, gateway=GATEWAY)
    assert error.value.report.matched > 300
    with pytest.warns(sizeleak.Notice):
        sizeleak.evaluate(TEST, TEST_LABELS, model=MODEL, gateway=GATEWAY)


def test_habits_are_learned_and_deviations_found(tmp_path: Path) -> None:
    answers = sizeleak.identify(TEST, model=MODEL, gateway=GATEWAY)
    profile = sizeleak.profile(answers, time_zone="UTC")
    assert isinstance(profile, sizeleak.Profile) and GATEWAY in profile.text
    file = tmp_path / "answers.frames"
    answers.write(file)
    assert sizeleak.profile(file, time_zone="UTC") == profile
    deviations = sizeleak.detect(file, profile)
    assert deviations.deviations == []


def test_simulated_homes_are_the_programs(tmp_path: Path) -> None:
    scenario = tmp_path / "scenario.toml"
    scenario.write_text("[test]\ncommands = 20\n")
    home = sizeleak.simulate(tmp_path / "ours", scenario=scenario, seed=7)
    program("simulate", "--scenario", scenario, "--seed", "7", "-q", "-o", tmp_path / "theirs")
    for file in (home.learn, home.learn_labels, home.test, home.test_labels, home.inventory):
        assert file.read_bytes() == (tmp_path / "theirs" / file.name).read_bytes()


def test_figures_are_pictures() -> None:
    figure = sizeleak.plot(sizeleak.identify(TEST, model=MODEL, gateway=GATEWAY), labels=TEST_LABELS)
    assert figure._repr_svg_().startswith("<svg") or "<svg" in figure.svg[:200]
