//! `docs/evaluation.sh` prints the tables of `docs/figures.md`, here for a few commands.

use std::process::{Command, Output};

use serde_json::Value;

/// Runs a part of the script, with this many test commands a home.
fn script(part: &str, commands: &str, json: &str) -> Output {
    let mut command = Command::new("sh");
    command.arg("docs/evaluation.sh").arg(part).current_dir(env!("CARGO_MANIFEST_DIR"));
    command.env("SIZELEAK", env!("CARGO_BIN_EXE_sizeleak")).env("COMMANDS", commands).env("JSON", json);
    command.output().unwrap()
}

#[test]
#[ignore = "second tier: needs jq"]
fn table_has_a_line_for_each_setting() {
    let output = script("procedures", "30", "");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
    let lines: Vec<&str> = text.trim_end().lines().collect();
    assert_eq!(lines.len(), 5, "{text}");
    assert!(lines.iter().all(|line| line.matches('|').count() == 16), "{text}");
    assert!(lines[4].starts_with("| all as the paper | "), "{text}");
    // What is possible is known of this home.
    assert!(lines[2..].iter().all(|line| line.split('|').nth(5).unwrap().trim().parse::<f64>().is_ok()), "{text}");
}

/// The truth is the first candidate more often with all labels than with the first few.
#[test]
#[ignore = "second tier: needs jq"]
fn right_answers_grow_with_the_labels() {
    // A third of all labels is tested on, so that 192 are left to learn from.
    let output = script("curve", "96", "1");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.last().unwrap()["name"], "192");
    let right = |line: &Value| line["after_pruning"]["top_1"]["median"].as_f64().unwrap();
    assert!(lines.len() > 3 && right(&lines[0]) < right(lines.last().unwrap()), "{text}");
}

#[test]
#[ignore = "second tier: needs jq"]
fn unknown_part_is_an_error() {
    let output = script("tabel", "30", "");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`tabel`"));
}
