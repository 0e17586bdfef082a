//! `sizeleak evaluate` of several pipelines as a user runs it: its figures are those of `evaluate`, its intervals and tests those of SciPy.

use std::fs;
use std::process::{Command, Output};
use support::segmenters;

use serde_json::Value;
use support::home::{Home, run, small};
use support::programs::{GATEWAY, example, sizeleak, stderr};

/// Recomputes from the single commands the intervals and tests of a pipeline, and of its difference from the first.
const ORACLE: &str = r#"
import csv, json, sys
import numpy as np
from scipy import stats

def rows(path):
    with open(path) as file:
        return list(csv.DictReader(file))

first, own = [rows(path) for path in sys.argv[1:3]]
spurious = [sum(row["outcome"] == "spurious" for row in rows) for rows in (first, own)]
first, own = [[row for row in rows if row["outcome"] != "spurious"] for rows in (first, own)]
first, own = [sorted(rows, key=lambda row: int(row["line"])) for rows in (first, own)]
all = len(first)
answer = {}
holds = {
    "missed": lambda row: row["outcome"] != "found",
    "among": lambda row: row["after"] in ("listed", "unlisted"),
    "among_before_pruning": lambda row: row["before"] in ("listed", "unlisted"),
    "top_1": lambda row: row["rank"] == "1",
    "top_5": lambda row: row["rank"] != "" and int(row["rank"]) <= 5,
}
for figure, test in holds.items():
    one, two = [np.array([test(row) for row in rows]) for rows in (first, own)]
    interval = stats.binomtest(int(two.sum()), all).proportion_ci(0.95, method="wilson")
    only_one, only_two = int((one & ~two).sum()), int((two & ~one).sum())
    differ = only_one + only_two
    p_value = stats.binomtest(only_one, differ).pvalue if differ else 1.0
    answer[figure] = [two.mean(), interval.low, interval.high, (two.mean() - one.mean()), p_value]

low = stats.chi2.ppf(0.025, 2 * spurious[1]) / 2 if spurious[1] else 0.0
high = stats.chi2.ppf(0.975, 2 * spurious[1] + 2) / 2
both = sum(spurious)
p_value = stats.binomtest(spurious[0], both).pvalue if both else 1.0
answer["spurious"] = [spurious[1], low, high, spurious[1] - spurious[0], p_value]

# The commands are independent, so SciPy's bootstrap, which draws single commands, varies like ours.
one, two = [np.array([float(row["after_candidates"] or "nan") for row in rows]) for rows in (first, own)]
keep = ~np.isnan(one) & ~np.isnan(two)
drawn = stats.bootstrap((one[keep], two[keep]), lambda one, two, axis: np.mean(two - one, axis=axis), paired=True,
    vectorized=True, n_resamples=4000, method="percentile", confidence_level=0.95, rng=np.random.default_rng(1))
interval = drawn.confidence_interval
answer["candidates_mean"] = [two[keep].mean(), two[keep].mean() - one[keep].mean(), interval.low, interval.high]
print(json.dumps(answer))
"#;

fn compare(home: &Home, settings: &[&str], more: &[&str]) -> Output {
    let mut command = sizeleak("evaluate");
    command.args(settings).arg("--model").arg(home.path("model.toml")).args(["--gateway", GATEWAY]);
    command.arg(home.path("test.pcap")).arg("--labels").arg(home.path("test.csv"));
    run(command.arg("--quiet").args(more))
}

fn json(output: &Output) -> Value {
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn figure<'a>(compared: &'a Value, key: &str) -> &'a Value {
    compared["figures"].as_array().unwrap().iter().find(|figure| figure["figure"] == key).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

#[test]
fn figures_equal_those_of_evaluate() {
    let home = Home::learned(&small(), 4);
    let pipeline = home.path("own.toml");
    let stages = ["capture", "flow-filter", "record-sizer", "command-segmenter", "epsilon-corrector", "decomposer"];
    fs::write(&pipeline, stages.map(|stage| format!("[[stage]]\nrun = \"{stage}\"\n")).concat()).unwrap();
    let file = pipeline.to_str().unwrap();
    let settings = ["standard", "decomposer.limit=20,pruner.mode=paper", file];
    let comparison = json(&compare(&home, &settings, &["--format", "json"]));
    let pipelines = comparison["pipelines"].as_array().unwrap();
    assert_eq!(pipelines.iter().map(|one| one["pipeline"].as_str().unwrap()).collect::<Vec<_>>(), settings);
    let alone = [
        home.figures("model.toml", &[]),
        home.figures("model.toml", &["--set", "decomposer.limit=20", "--set", "pruner.mode=paper", "--quiet"]),
        home.figures("model.toml", &["--pipeline", file]),
    ];
    for (compared, evaluation) in pipelines.iter().zip(&alone) {
        assert_eq!(compared["evaluation"], *evaluation);
        let after = &evaluation["after_pruning"];
        for (key, wanted) in [
            ("among", &after["precision"]),
            ("credible_coverage", &after["credible_set"]["coverage"]),
            ("credible_size", &after["credible_set"]["size"]["mean"]),
            ("candidates_mean", &after["candidates"]["mean"]),
            ("candidates_median", &after["candidates"]["median"]),
            ("calibration_error", &after["calibration"]["expected_error"]),
            ("leaked_bits", &after["information"]["leaked_bits"]),
            ("spurious", &evaluation["spurious"]),
        ] {
            let found = figure(compared, key);
            assert!((number(&found["value"]) - number(wanted)).abs() < 1e-12, "{key}: {found}, not {wanted}");
            assert!(number(&found["low"]) <= number(&found["high"]), "{key}: {found}");
        }
        let top_1 = number(&after["top_1"]) / 40.0;
        assert!((number(&figure(compared, "top_1")["value"]) - top_1).abs() < 1e-12);
    }
    let without_pruner = figure(&pipelines[2], "among_before_pruning");
    assert!(without_pruner["value"].is_null() && without_pruner["difference"].is_null(), "{without_pruner}");
    assert!(pipelines[0]["figures"].as_array().unwrap().iter().all(|figure| figure["difference"].is_null()));
}

#[test]
#[ignore = "second tier: needs python3 with scipy"]
fn intervals_and_tests_equal_those_of_scipy() {
    let mut scenario = small();
    scenario.test.commands = 300;
    let home = Home::learned(&scenario, 5);
    let settings = ["pruner.mode=learned", "pruner.mode=paper,command-segmenter.algorithm=gap"];
    let details = [home.path("first.csv"), home.path("own.csv")];
    for (setting, details) in settings.iter().zip(&details) {
        let set = setting.split(',').flat_map(|option| ["--set", option]);
        let arguments: Vec<&str> = set.chain(["--quiet", "--details", details.to_str().unwrap()]).collect();
        assert!(home.evaluate("model.toml", &arguments).status.success());
    }
    let output = Command::new("python3").args(["-c", ORACLE]).args(&details).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let wanted: Value = serde_json::from_slice(&output.stdout).unwrap();
    let comparison = json(&compare(&home, &settings, &["--format", "json"]));
    let own = &comparison["pipelines"][1];
    for key in ["missed", "among", "among_before_pruning", "top_1", "top_5", "spurious"] {
        let (found, wanted) = (figure(own, key), &wanted[key]);
        let difference = &found["difference"];
        let found = [&found["value"], &found["low"], &found["high"], &difference["value"], &difference["p_value"]];
        for (found, wanted) in found.into_iter().zip(wanted.as_array().unwrap()) {
            let (found, wanted) = (number(found), number(wanted));
            assert!((found - wanted).abs() < 1e-6 * wanted.abs().max(1.0), "{key}: {found}, not {wanted}");
        }
    }
    let (found, wanted) = (&figure(own, "candidates_mean")["difference"], &wanted["candidates_mean"]);
    let scatter = number(&wanted[3]) - number(&wanted[2]);
    for (found, wanted) in [("value", 1), ("low", 2), ("high", 3)].map(|(key, at)| (&found[key], &wanted[at])) {
        assert!((number(found) - number(wanted)).abs() < 0.2 * scatter, "{found}, not {wanted}");
    }
    assert!(figure(own, "among")["difference"]["p_value"].as_f64().unwrap() < 0.05, "the difference is significant");
}

/// CSV and JSON hold the same values; the table has a star where the interval excludes 0.
#[test]
fn all_formats_agree() {
    let home = Home::learned(&small(), 3);
    let settings = ["standard", "pruner.mode=paper", "command-segmenter.algorithm=gap"];
    let whole = json(&compare(&home, &settings, &["--format", "json"]));
    let file = home.path("figures.csv");
    let written = compare(&home, &settings, &["--format", "csv", "-o", file.to_str().unwrap()]);
    assert!(written.status.success() && written.stdout.is_empty(), "{}", stderr(&written));
    let mut reader = csv::Reader::from_path(file).unwrap();
    let header = "pipeline,figure,value,low,high,difference,difference_low,difference_high,p_value";
    assert_eq!(reader.headers().unwrap().iter().collect::<Vec<_>>().join(","), header);
    let mut rows = reader.records().map(Result::unwrap);
    let table = String::from_utf8(compare(&home, &settings, &[]).stdout).unwrap();
    let mut stars = 0;
    for compared in whole["pipelines"].as_array().unwrap() {
        for figure in compared["figures"].as_array().unwrap() {
            let difference = &figure["difference"];
            let [low, high] = ["low", "high"].map(|end| &difference[end]);
            let values = [&figure["value"], &figure["low"], &figure["high"], &difference["value"], low, high];
            let row = rows.next().unwrap();
            assert_eq!(
                [&row[0], &row[1]],
                [&compared["pipeline"], &figure["figure"]].map(|text| text.as_str().unwrap())
            );
            for (cell, value) in row.iter().skip(2).zip(values.into_iter().chain([&difference["p_value"]])) {
                assert_eq!(cell.parse::<f64>().ok(), value.as_f64(), "{figure}");
            }
            let excludes = low.as_f64().is_some_and(|low| low > 0.0) || high.as_f64().is_some_and(|high| high < 0.0);
            assert_eq!(difference["excludes_zero"].as_bool().unwrap_or(false), excludes);
            stars += usize::from(excludes);
        }
    }
    assert!(rows.next().is_none() && stars > 0);
    assert_eq!(
        table.lines().filter(|line| line.contains(" * ") && !line.contains("labelled")).count(),
        stars,
        "{table}"
    );
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
}

#[test]
#[ignore = "second tier: needs python3 with msgpack"]
fn segmenter_in_python_is_compared() {
    let burst = segmenters::folder().join("burst.toml").display().to_string();
    let mut command = sizeleak("evaluate pipeline.toml");
    command.arg(&burst).args(["--model", &example("model.toml"), "--labels", &example("test.csv")]);
    let output = run(command.args([&example("test.pcap"), "--format", "json"]));
    assert!(stderr(&output).contains("note: [2] 4 of 311 commands have no label"), "{}", stderr(&output));
    let comparison: Value = serde_json::from_slice(&output.stdout).unwrap();
    let count = |at: usize, key: &str| comparison["pipelines"][at][key].as_u64().unwrap();
    assert_eq!([count(0, "matched"), count(1, "matched"), count(1, "spurious")], [307, 307, 4]);
    let per_day = number(&figure(&comparison["pipelines"][1], "spurious_per_day")["value"]);
    assert!((per_day * number(&comparison["days"]) - 4.0).abs() < 1e-9);
}
