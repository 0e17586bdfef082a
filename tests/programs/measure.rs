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
use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout, write};

/// The measures of captures of this gateway.
fn measure_of(capture: &str, labels: &str, gateway: &str, arguments: &[&str]) -> Command {
    let mut command = sizeleak("measure");
    command.args([capture, "--labels", labels, "--gateway", gateway]).args(arguments);
    command
}

/// Those of the bundled home's test with these labels.
fn measure_with(labels: &str, arguments: &[&str]) -> Command {
    measure_of(&example("test.pcap"), labels, GATEWAY, arguments)
}

fn measure(arguments: &[&str]) -> Command {
    measure_with(&example("test.csv"), arguments)
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

/// Whether a figure lies in an interval.
fn is_within(figure: f64, interval: &Value) -> bool {
    number(&interval["low"]) <= figure && figure <= number(&interval["high"])
}

/// The labels of the bundled home's test: their head, and their rows.
fn labels() -> (String, Vec<String>) {
    let text = fs::read_to_string(root().join(example("test.csv"))).unwrap();
    let (head, rows) = text.split_once('\n').unwrap();
    (head.to_owned(), rows.lines().map(str::to_owned).collect())
}

fn write_labels(folder: &Path, name: &str, head: &str, rows: &[String]) -> String {
    let path = write(folder, name, format!("{head}\n{}\n", rows.join("\n")));
    path.to_str().unwrap().to_owned()
}

#[test]
fn intervals_measured_hold_the_figures_of_the_exact_audit() {
    let model = example("model.toml");
    let premises = ["--prior", "devices", "--decay", "0.75"];
    let exact = json(sizeleak("audit --model").arg(&model).args(premises));
    let measured = json(measure(&["--model", &model]).args(premises));
    let figures = &measured["model"]["figures"];
    for secret in ["command", "number"] {
        let (of_model, named) = (&figures[secret], number(&exact["by_size"][secret]["named"]));
        assert!(is_within(named, &measured["by_size"][secret]["vulnerability"]), "{secret}: {named}");
        // The home was simulated with this prior, so that its labels are a sample of all commands.
        assert!(is_within(named, &of_model["named"]["interval"]), "{secret}: {named}");
        assert!(is_within(number(&of_model["expected"]), &of_model["named"]["interval"]));
        assert_eq!(of_model["agrees"], true);
        assert!((number(&of_model["over_all_commands"]) - named).abs() < 1e-12);
    }
    assert_eq!((&measured["model"]["commands"], &measured["labels"]["matched"]), (&307.into(), &307.into()));
}

#[test]
fn another_home_is_measured_as_its_simulator_limits_it_and_a_model_that_is_wrong_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = "[network]\ngateway = \"fd00::20\"\nservice = \"2001:db8::10\"\n[tls]\nversion = \"1.3\"\n\
        [session]\nframing = \"mqtt\"\n[command]\ninterval = { min = \"2s\", max = \"6s\" }\nmost-actions = 4\n\
        decay = 0.5\n[command.message-id]\ndraw = \"digits\"\n[[device]]\nname = \"blind\"\ncount = 3\n\
        actions = [\"open\", \"close\", \"on\"]\n[[device]]\nname = \"siren\"\ncount = 1\nactions = [\"on\", \"off\"]\n\
        [[action]]\nname = \"open\"\nset = { position = 100 }\n[[action]]\nname = \"close\"\nset = { position = 0 }\n\
        parameter = { name = [\"a\", \"salon\"] }\n[learn]\nrandom = 100\n[test]\ncommands = 1200\n\
        [replies]\nmode = \"per-command\"\n";
    let scenario = write(folder.path(), "odd.toml", scenario);
    let simulated =
        sizeleak("simulate --seed 3 --scenario").arg(&scenario).arg("-o").arg(folder.path()).output().unwrap();
    let said = stderr(&simulated);
    let (_, limit) = said.split_once("right in ").unwrap();
    let limit = limit.split(' ').next().unwrap().parse::<f64>().unwrap() / 100.0;
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let model = file("model.toml");
    let mut learn = sizeleak("learn --gateway fd00::20");
    learn.args([
        &file("learn.pcap"),
        "--labels",
        &file("learn.csv"),
        "--inventory",
        &file("inventory.toml"),
        "-o",
        &model,
    ]);
    stdout(&mut learn);
    let measured = json(&mut measure_of(&file("test.pcap"), &file("test.csv"), "fd00::20", &["--model", &model]));
    let command = &measured["by_size"]["command"];
    assert!(
        is_within(limit, &command["vulnerability"]) && is_within(limit, &command["from_others"]["interval"]),
        "{command}"
    );
    // An action whose size varies was learned as one of a single size: that is refused, and does not agree.
    let fault = measured["model"]["fault"].as_str().unwrap();
    assert!(fault.starts_with("sizes are not known well enough for a figure"), "{fault}");
    assert!(measured["model"]["figures"].is_null() && measured["model_sentence"].is_null(), "{measured}");
    let learned = fs::read_to_string(&model).unwrap();
    let trusted: Vec<&str> = learned.lines().filter(|line| !line.starts_with("certainty = ")).collect();
    fs::write(&model, trusted.join("\n")).unwrap();
    let measured = json(&mut measure_of(&file("test.pcap"), &file("test.csv"), "fd00::20", &["--model", &model]));
    assert_eq!(measured["model"]["figures"]["command"]["agrees"], false);
    let sentence = measured["model_sentence"].as_str().unwrap();
    assert!(sentence.contains("lies outside what was measured") && sentence.contains("not as the model"), "{sentence}");
    // Blinds alone open and close, a siren alone goes off; both go on.
    let kinds = &measured["by_size"]["kinds"];
    assert_eq!((&kinds["commands"], &kinds["secrets"]), (&594.into(), &3.into()));
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

#[test]
fn labels_of_other_commands_are_not_said_to_be_given_away() {
    let folder = tempfile::tempdir().unwrap();
    let (head, rows) = labels();
    // The actions of each label at the time of another one, far away.
    let part = |row: &String| row.split_once(',').map(|(time, actions)| (time.to_owned(), actions.to_owned())).unwrap();
    let dealt = |at: usize| format!("{},{}", part(&rows[at]).0, part(&rows[(at + 150) % rows.len()]).1);
    let dealt: Vec<String> = (0..rows.len()).map(dealt).collect();
    let labels = write_labels(folder.path(), "dealt.csv", &head, &dealt);
    let measured = json(&mut measure_with(&labels, &[]));
    let sentence = measured["sentence"].as_str().unwrap();
    assert!(sentence.ends_with("which is not certainly better than guessing."), "{sentence}");
    let leak = &measured["by_size"]["command"];
    assert!(number(&leak["independence"]["p_value"]) > 0.05, "{leak}");
    assert!(number(&leak["times_guessing"]["interval"]["low"]) <= 1.0, "{leak}");
}

#[test]
fn a_model_is_judged_by_the_commands_that_it_knows_and_not_by_those_it_was_learned_from() {
    let folder = tempfile::tempdir().unwrap();
    let (head, rows) = labels();
    let renamed = write_labels(folder.path(), "renamed.csv", &head.replace("on,off", "an,aus"), &rows);
    let measured = json(&mut measure_with(&renamed, &["--model", &example("model.toml")]));
    let model = &measured["model"];
    assert_eq!((&model["commands"], &model["unknown_commands"]), (&68.into(), &239.into()));
    let sentence = measured["model_sentence"].as_str().unwrap();
    assert!(sentence.contains("of the 68 that it knows"), "{sentence}");
    let none = write_labels(folder.path(), "none.csv", "time,a,b,c,d,e,f,g", &rows);
    let none = json(&mut measure_with(&none, &["--model", &example("model.toml")]));
    assert_eq!(none["model"]["fault"], "it knows none of the labelled commands");
    assert!(none["model_sentence"].is_null() && number(&none["by_size"]["command"]["named"]["share"]) > 0.3);
    // The bundled model was learned from the other capture.
    let mut own =
        measure_of(&example("learn.pcap"), &example("learn.csv"), GATEWAY, &["--model", &example("model.toml")]);
    let own = json(&mut own);
    assert_eq!(own["model"]["learned_from"], serde_json::json!(["learn.pcap"]));
    assert!(own["remarks"].to_string().contains("the model was learned from learn.pcap"), "{own}");
}

#[test]
fn the_same_input_gives_the_same_bytes_and_saved_records_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let [first, again] = [(); 2].map(|()| stdout(measure(&["--format=json"]).arg("-q")));
    assert_eq!(first, again);
    let saved: PathBuf = folder.path().join("records.frames");
    let mut save = sizeleak("run");
    save.args([&example("test.pcap"), "--gateway", GATEWAY, "--model", &example("model.toml"), "--set"]);
    stdout(save.arg(format!("record-sizer.save={}", saved.display())));
    let from = stdout(sizeleak("measure --format=json -q --labels").arg(example("test.csv")).arg(&saved));
    assert_eq!(String::from_utf8_lossy(&from), String::from_utf8_lossy(&first));
}
