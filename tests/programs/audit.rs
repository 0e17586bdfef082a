//! `sizeleak audit` as a user runs it: its figures are those that other programs compute from the same probabilities.

use std::path::Path;
use std::process::Command;
use support::programs;

use serde_json::Value;
use sizeleak_audit::leakage::with_inventory;
use sizeleak_inference::channel::{EpsilonKnowledge, Observer, Output};
use sizeleak_inference::space::{CommandSpace, Premises};
use sizeleak_model::{Inventory, Model, ModelSet};
use support::joint::{Joint, Secret};
use support::programs::{example, sizeleak, stderr, stdout, write};

/// Computes measures from an exported joint distribution with libqif.
const ORACLE: &str = r#"
import csv, json, sys
import numpy as np
from qif import measure, metric

rows = list(csv.DictReader(open(sys.argv[1])))
secrets = {name: at for at, name in enumerate(dict.fromkeys(row["secret"] for row in rows))}
outputs = {name: at for at, name in enumerate(dict.fromkeys(row["observable"] for row in rows))}
joint = np.zeros((len(secrets), len(outputs)))
for row in rows:
    joint[secrets[row["secret"]], outputs[row["observable"]]] += float(row["probability"])
prior = joint.sum(axis=1)
channel = joint / prior[:, None]
distance = metric.total_variation()
print(json.dumps({
    "guessing": measure.bayes_vuln.prior(prior),
    "named": measure.bayes_vuln.posterior(prior, channel),
    "times_guessing": measure.bayes_vuln.mult_leakage(prior, channel),
    "above_guessing": measure.bayes_vuln.add_leakage(prior, channel),
    "min_entropy_bits": measure.bayes_vuln.min_entropy_leakage(prior, channel),
    "capacity": measure.bayes_vuln.mult_capacity(channel),
    "prior_bits": measure.shannon.prior(prior),
    "remaining_bits": measure.shannon.posterior(prior, channel),
    "information_bits": measure.shannon.add_leakage(prior, channel),
    "security": measure.bayes_risk.posterior(prior, channel) / measure.bayes_risk.prior(prior),
    "least_security": 1 - max(distance(one, two) for one in channel for two in channel),
}))
"#;

/// Two plugs and two lamps.
const SMALL: &str = "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\", \"off\"]\n\n\
    [[device]]\nname = \"lamp\"\ncount = 2\nactions = [\"on\", \"off\", \"dim\", \"colour\"]\n";

fn audit(arguments: &[&str]) -> Command {
    let mut command = sizeleak("audit --model");
    command.arg(example("model.toml")).args(arguments);
    command
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_slice(&stdout(audit(arguments).arg("--format=json"))).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

fn small(folder: &Path) -> String {
    write(folder, "small.toml", SMALL).to_str().unwrap().to_owned()
}

/// The bundled model.
fn bundled() -> Model {
    let model = programs::root().join(example("model.toml"));
    ModelSet::read(&[model]).unwrap().into_sections().into_iter().next().unwrap()
}

/// A joint distribution as rows for the oracle.
fn listed(joint: &Joint) -> String {
    let row = |(secret, Output { size, replies }, probability): &(u32, Output, f64)| {
        let replies: Vec<String> = replies.iter().map(u32::to_string).collect();
        format!("{secret},{size} {},{probability:e}\n", replies.join(" "))
    };
    "secret,observable,probability\n".to_owned() + &joint.entries.iter().map(row).collect::<String>()
}

#[test]
#[ignore = "second tier: needs python3 with qif"]
fn figures_equal_those_of_libqif() {
    let folder = tempfile::tempdir().unwrap();
    let figures = json(&["--inventory", &small(folder.path())]);
    let (model, _) = with_inventory(bundled(), Inventory::from_toml(SMALL).unwrap()).unwrap();
    let space = CommandSpace::new(&model, &Premises::default()).unwrap();
    for (observer, learned) in
        [(Observer::Sizes, "by_size"), (Observer::ReplyCount, "with_reply_count"), (Observer::Replies, "with_replies")]
    {
        for (secret, key) in [(Secret::Command, "command"), (Secret::Number, "number"), (Secret::Kinds, "kinds")] {
            let joint = Joint::new(&space, &model, secret, observer, EpsilonKnowledge::Distribution);
            let listed = write(folder.path(), "joint.csv", listed(&joint.unwrap().unwrap()));
            let output = Command::new("python3").args(["-c", ORACLE]).arg(&listed).output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            let wanted: Value = serde_json::from_slice(&output.stdout).unwrap();
            for (measure, wanted) in wanted.as_object().unwrap() {
                let (found, wanted) = (number(&figures[learned][key][measure]), number(wanted));
                let is_near = (found - wanted).abs() < 1e-9 * wanted.abs().max(1.0);
                assert!(is_near, "{learned} {key} {measure}: {found}, not {wanted}");
            }
        }
    }
}

#[test]
#[ignore = "second tier: needs fbleau"]
fn fbleau_estimates_from_samples_what_is_computed() {
    let folder = tempfile::tempdir().unwrap();
    let figures = json(&[]);
    let model = bundled();
    let space = CommandSpace::new(&model, &Premises::default()).unwrap();
    for (secret, key) in [(Secret::Number, "number"), (Secret::Kinds, "kinds")] {
        let joint = Joint::new(&space, &model, secret, Observer::Sizes, EpsilonKnowledge::Distribution);
        let joint = joint.unwrap().unwrap();
        let samples = |name: &str, seed: u64, count: u32| {
            let row = |(secret, output): (u32, &Output)| format!("{secret},{}\n", output.size);
            write(folder.path(), name, joint.samples(count, seed).into_iter().map(row).collect::<String>())
        };
        let (train, test) = (samples("train.csv", 1, 20_000), samples("test.csv", 2, 5000));
        let output = Command::new("fbleau").arg("nn").args([train, test]).output().unwrap();
        let report = String::from_utf8(output.stdout).unwrap();
        let error = report.lines().find_map(|line| line.strip_prefix("Minimum estimate: ")).unwrap();
        let (estimate, named) = (1.0 - error.parse::<f64>().unwrap(), number(&figures["by_size"][key]["named"]));
        // Three standard errors of 5000 samples.
        assert!((estimate - named).abs() < 3.0 * (named * (1.0 - named) / 5000.0).sqrt(), "{estimate}, not {named}");
    }
}
