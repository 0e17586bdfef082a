//! Archives: the same bytes whenever a call was killed, which other programs read.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use serde_json::Value;
use support::archive_home::{Archive, OTHER_GATEWAY, archive, said, status};
use support::programs::{self, GATEWAY};
use support::rotation::tree;
use support::tool;

/// Both gateways of the home, as one list.
fn gateways() -> String {
    [GATEWAY, OTHER_GATEWAY].join(",")
}

/// A call that says that a capture is damaged.
fn damaged(homes: &Archive, out: &str, more: &[&str]) -> String {
    said(archive(&homes.captures(), &homes.out(out), &gateways()).args(more), 1)
}

#[test]
fn a_killed_run_is_completed_with_the_same_bytes() {
    let homes = Archive::new();
    let start = Instant::now();
    damaged(&homes, "whole", &[]);
    let (whole, took) = (tree(&homes.out("whole")), start.elapsed());
    let mut killed = 0;
    for at in 1..=8 {
        let mut child =
            archive(&homes.captures(), &homes.out("out"), &gateways()).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(took * at / 9);
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        if at % 2 == 0 {
            damaged(&homes, "out", &[]);
            assert!(tree(&homes.out("out")) == whole, "killed after {:?}", took * at / 9);
            fs::remove_dir_all(homes.out("out")).unwrap();
        }
    }
    assert!(killed >= 4, "most were killed before their end: {killed}");
}

#[test]
#[ignore = "second tier: needs python3 with duckdb and polars"]
fn duckdb_and_polars_read_the_partitions() {
    let homes = Archive::new();
    damaged(&homes, "out", &[]);
    let script = programs::root().join("tests/programs/archive/read_parts.py");
    let counted = tool::output(Command::new("python3").arg(script).arg(homes.out("out"))).unwrap();
    let counted: Value = serde_json::from_slice(&counted).unwrap();
    assert_eq!(counted["duck"], counted["polars"]);
    let rows: Vec<(String, String, u64)> = serde_json::from_value(counted["duck"].clone()).unwrap();
    let places: Vec<_> = rows.iter().map(|(gateway, day, _)| (gateway.as_str(), day.as_str())).collect();
    let days = ["2026-01-06", "2026-01-07"];
    assert_eq!(places, [(GATEWAY, days[0]), (OTHER_GATEWAY, days[0]), (OTHER_GATEWAY, days[1])]);
    let points = status(&homes.out("out"))["points"].as_array().unwrap().clone();
    let answers: u64 = points.iter().map(|point| point["identifications"].as_u64().unwrap()).sum();
    assert_eq!((rows[0].2, rows.iter().map(|row| row.2).sum::<u64>()), (307, answers));
}

#[test]
#[ignore = "second tier: needs python3 with duckdb and polars"]
fn examples_of_the_documentation_find_answers() {
    let homes = Archive::new();
    damaged(&homes, "results", &[]);
    let root = programs::root();
    let mut python = Command::new("python3");
    python.arg(root.join("tests/programs/archive/run_examples.py")).arg(root.join("docs/archives.md"));
    let rows = tool::output(python.current_dir(homes.out("."))).unwrap();
    let rows: Vec<u64> = serde_json::from_slice(&rows).unwrap();
    assert!(rows.len() == 3 && rows[0] == 3 && rows.iter().all(|rows| *rows > 2), "{rows:?}");
}
