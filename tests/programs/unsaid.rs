//! What commands take where the command line does not say it: from pipelines, models and the working folder.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use support::programs::{example, root, sizeleak, stderr};

/// A folder with the bundled captures, labels and model, and a pipeline for each way of pruning that names all of them.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["test.pcap", "test.csv", "model.toml"] {
        fs::copy(root().join(example(name)), folder.path().join(name)).unwrap();
    }
    let pipeline = fs::read_to_string(root().join("pipeline.toml")).unwrap().replace("examples/home/", "");
    fs::write(folder.path().join("own.toml"), pipeline).unwrap();
    folder
}

fn within(folder: &Path, arguments: &str) -> Output {
    let mut command: Command = sizeleak(arguments);
    command.current_dir(folder).output().unwrap()
}

fn succeeded(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn captures_and_models_are_those_of_the_pipeline() {
    let folder = folder();
    let named = within(folder.path(), "evaluate test.pcap --model model.toml --labels test.csv --format=json");
    let of_pipeline = within(folder.path(), "evaluate own.toml --labels test.csv --format=json");
    assert_eq!(succeeded(&named), succeeded(&of_pipeline));
}

#[test]
fn pipelines_that_are_compared_keep_their_models() {
    let folder = folder();
    // A model that knows other sizes.
    let other = fs::read_to_string(folder.path().join("model.toml")).unwrap().replacen("size = 28", "size = 21", 1);
    fs::write(folder.path().join("other.toml"), other).unwrap();
    let pipeline = fs::read_to_string(folder.path().join("own.toml")).unwrap().replace("model.toml", "other.toml");
    fs::write(folder.path().join("of-other.toml"), pipeline).unwrap();
    let compare = "evaluate own.toml of-other.toml --labels test.csv --format=json";
    let kept = succeeded(&within(folder.path(), compare));
    let first_right =
        |report: &Value, at: usize| report["pipelines"][at]["evaluation"]["after_pruning"]["top_1"].clone();
    assert_ne!(first_right(&kept, 0), first_right(&kept, 1));
    let with_model = succeeded(&within(folder.path(), &format!("{compare} --model model.toml")));
    assert_eq!([0, 1].map(|at| first_right(&with_model, at)), [0, 1].map(|at| first_right(&kept, at)));
}

#[test]
fn commands_that_a_model_was_learned_from_are_no_test() {
    let folder = tempfile::tempdir().unwrap();
    let [capture, labels] = ["learn.pcap", "learn.csv"].map(|name| root().join(example(name)).display().to_string());
    let learned = within(folder.path(), &format!("learn {capture} --labels {labels} -q -o model.toml"));
    assert!(learned.status.success(), "{}", stderr(&learned));
    let same = within(folder.path(), &format!("evaluate {capture} --labels {labels} --model model.toml"));
    assert!(
        stderr(&same).contains("the model was learned from 192 of these 192 commands")
            && stderr(&same).contains("`--folds 5`")
    );
    let [capture, labels] = ["test.pcap", "test.csv"].map(|name| root().join(example(name)).display().to_string());
    let other = within(folder.path(), &format!("evaluate {capture} --labels {labels} --model model.toml"));
    assert!(other.status.success() && !stderr(&other).contains("the model was learned from"), "{}", stderr(&other));
}
