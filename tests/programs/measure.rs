//! `sizeleak measure`: what it measures is what other programs measure on the same commands, what the
//! exact audit computes, and no more than labels can show.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use sizeleak_evaluation::measured_leak::left_out_before;
use sizeleak_learning::labels::{LabelFile, LabelTimes};
use sizeleak_learning::{LabelledCommands, LearningSettings};
use sizeleak_model::LabelledCommand;
use sizeleak_pipeline::{InputSource, Pipeline, PipelineInput};
use support::programs::{GATEWAY, example, root, sizeleak, stdout, write};

/// The measures of the bundled home's test.
fn measure(arguments: &[&str]) -> Command {
    let mut command =
        sizeleak("measure examples/home/test.pcap --labels examples/home/test.csv --gateway 192.168.1.20");
    command.args(arguments);
    command
}

fn json(command: &mut Command) -> Value {
    serde_json::from_slice(&stdout(command.arg("--format=json"))).unwrap()
}

fn text(command: &mut Command) -> String {
    String::from_utf8(stdout(command)).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// How many commands the nearest neighbours of F-BLEAU name, each learned from those before.
fn named_by_fbleau(rows: &[&str], folder: &Path) -> usize {
    let secret = |row: &str| row.split(',').next().unwrap().to_owned();
    let before = left_out_before(rows.len());
    let is_right = |at: &usize| {
        let learned: Vec<&str> = rows.iter().take(at.saturating_sub(before)).copied().collect();
        // F-BLEAU refuses secrets that it never learned; nobody can name them.
        if learned.iter().all(|row| secret(row) != secret(rows[*at])) {
            return false;
        }
        // Nor does it take one secret alone: another one, far from all, is always named.
        let far = if rows[*at].matches(',').count() > 1 { "999999,999999,0" } else { "999999,999999" };
        let [train, test] = [("train.csv", learned.join("\n")), ("test.csv", rows[*at].to_owned())]
            .map(|(name, rows)| write(folder, name, format!("{rows}\n{far}\n")));
        let log = folder.join("log.csv");
        let mut fbleau = Command::new("fbleau");
        stdout(fbleau.arg("nn").arg(format!("--logfile={}", log.display())).args([train, test]));
        // The errors after the last command that it learned from: it prints the fewest of all times.
        let log = fs::read_to_string(log).unwrap();
        log.lines().last().unwrap().split(", ").nth(1) == Some("0")
    };
    (0..rows.len()).filter(is_right).count()
}

/// The labelled commands of the bundled home's test as rows: the secret by a number, the size, and the replies that are seen.
fn labelled_rows(secret: &str, observer: &str) -> String {
    let mut pipeline = Pipeline::standard();
    pipeline.read_captures(&[root().join(example("test.pcap"))]).unwrap();
    pipeline.set_text(&format!("flow-filter.gateway={GATEWAY}")).unwrap();
    let labels = LabelFile::read(&root().join(example("test.csv")), &LabelTimes::default()).unwrap();
    let traffic = PipelineInput::new(InputSource::Captures);
    let (finding, tolerance) = (pipeline.before("epsilon-corrector"), labels.tolerance(None));
    let settings = LearningSettings::default();
    let found = LabelledCommands::find(&traffic, &finding, &labels, tolerance, &settings, &mut |_| {}).unwrap();
    let mut numbers: BTreeMap<Vec<u32>, usize> = BTreeMap::new();
    let row = |command: &LabelledCommand| {
        let counts = if secret == "number" { vec![command.counts.iter().sum()] } else { command.counts.clone() };
        let next = numbers.len();
        let number = *numbers.entry(counts).or_insert(next);
        let replies = match observer {
            "sizes" => String::new(),
            "reply-count" => format!(",{}", command.replies),
            _ => format!(",{}", command.reply_bytes),
        };
        format!("{number},{}{replies}\n", command.sizes[1])
    };
    found.commands.iter().map(row).collect()
}

#[test]
#[ignore = "second tier: needs fbleau"]
fn fbleau_names_as_many_of_the_commands() {
    let folder = tempfile::tempdir().unwrap();
    let figures = json(&mut measure(&[]));
    for (secret, observer, seen_by, equals) in
        [("command", "sizes", "by_size", 12), ("number", "replies", "with_reply_bytes", 0)]
    {
        let rows = labelled_rows(secret, observer);
        let rows: Vec<&str> = rows.lines().collect();
        let named = number(&figures[seen_by][secret]["named"]["share"]) * rows.len() as f64;
        let wanted = named_by_fbleau(&rows, folder.path());
        // Where several secrets are as frequent, each program has an order of its own.
        assert!((named - wanted as f64).abs() < f64::from(equals) + 1e-6, "{secret}: {named}, not {wanted}");
    }
}

/// Computes the information of files of rows with scikit-learn, corrected by the number of values.
const INFORMATION: &str = r#"
import csv, sys
from math import log
from sklearn.metrics import mutual_info_score

for path in sys.argv[1:]:
    rows = list(csv.reader(open(path)))
    secrets, outputs = [row[0] for row in rows], [",".join(row[1:]) for row in rows]
    values = len(set(zip(secrets, outputs))) + 1 - len(set(secrets)) - len(set(outputs))
    print((mutual_info_score(secrets, outputs) - values / (2 * len(rows))) / log(2))
"#;

#[test]
#[ignore = "second tier: needs python3 with scikit-learn"]
fn information_is_that_of_scikit_learn() {
    let folder = tempfile::tempdir().unwrap();
    let figures = json(&mut measure(&[]));
    let observers = [("sizes", "by_size"), ("reply-count", "with_reply_count"), ("replies", "with_reply_bytes")];
    let cases: Vec<_> =
        observers.into_iter().flat_map(|seen| ["command", "number"].map(|secret| (secret, seen))).collect();
    let export = |(secret, (observer, _)): &(&str, (&str, &str))| {
        write(folder.path(), &format!("{secret}-{observer}.csv"), labelled_rows(secret, observer))
    };
    let files: Vec<PathBuf> = cases.iter().map(export).collect();
    let all = text(Command::new("python3").args(["-c", INFORMATION]).args(files));
    assert_eq!(all.lines().count(), cases.len());
    for ((secret, (observer, seen_by)), bits) in cases.iter().zip(all.lines()) {
        let (found, wanted) = (number(&figures[seen_by][secret]["information"]["bits"]), bits.parse::<f64>().unwrap());
        assert!((found - wanted).abs() < 1e-9, "{secret} {observer}: {found}, not {wanted}");
    }
}
