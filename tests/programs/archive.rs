//! Archives: the answers of one run over the same captures, the same bytes whatever happens, and nothing read twice.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use support::archive_home::{Archive, OTHER_GATEWAY, answers, archive, describe_later, said, status};
use support::programs::{self, GATEWAY, example, sizeleak, stdout, write};
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

/// The answers of all parts of a point, sorted.
fn rows(out: &Path, point: &str) -> Vec<String> {
    let parts = answers(out)
        .into_iter()
        .filter(|(path, _)| path.file_name().unwrap().to_str() == Some(&format!("part-homes+{point}.ndjson")));
    let mut lines: Vec<String> = parts
        .flat_map(|(_, text)| String::from_utf8(text).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.sort();
    lines
}

#[test]
fn answers_are_those_of_one_run_over_the_same_captures() {
    let homes = Archive::new();
    damaged(&homes, "out", &["--format", "ndjson"]);
    let hall = ["home.pcap", "home.pcap.1", "b", "a", "old.gz", "oldest"];
    // Its third file is a link to one of the other point, which is read once.
    let attic = ["1.cap", "2.cap"];
    for (point, captures, commands) in [("hall", &hall[..], 307), ("attic", &attic[..], 120)] {
        let mut run = sizeleak("run --kind identification --format ndjson --quiet");
        run.args(captures.iter().map(|capture| homes.point(point).join(capture)));
        run.args(["--gateway", &gateways(), "--model", &example("model.toml")]);
        let text = String::from_utf8(run.output().unwrap().stdout).unwrap();
        let mut expected: Vec<String> = text.lines().map(str::to_owned).collect();
        expected.sort();
        let found = rows(&homes.out("out"), point);
        let different = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert!(found.len() == commands && found == expected, "{point}: {}: {different:?}", expected.len());
    }
    let days = fs::read_dir(homes.out("out").join("identifications/gateway=fd00%3A%3A20")).unwrap();
    assert_eq!(days.count(), 2, "before and after midnight");
}

#[test]
fn manifest_says_what_became_of_every_file() {
    let homes = Archive::new();
    let said = damaged(&homes, "out", &[]);
    assert!(said.contains("2.cap: is cut at byte") && said.contains("archive status"), "{said}");
    let status_of = status(&homes.out("out"));
    let files = status_of["files"].as_array().unwrap();
    let verdict = |name: &str| {
        let file = files.iter().find(|file| Path::new(file["path"].as_str().unwrap()).ends_with(name)).unwrap();
        file["verdict"].as_str().unwrap()
    };
    let names = ["a", "old.gz", "oldest", "2.cap", "README.txt", "rotated", "lost"];
    let verdicts = ["whole", "whole", "whole", "damaged", "no_capture", "no_capture", "no_capture"];
    assert_eq!(names.map(verdict), verdicts);
    assert_eq!(files.len(), 11, "links to files that are there are no files of their own");
    let damage = files.iter().find(|file| file["verdict"] == "damaged").unwrap();
    assert!(damage["damage"][0]["offset"].as_u64() > Some(24) && damage["blake3"].as_str().unwrap().len() == 64);
    let hall = status_of["points"].as_array().unwrap().iter().find(|point| point["point"] == "homes+hall").unwrap();
    assert_eq!([&hall["captures"], &hall["packets"], &hall["commands"], &hall["identifications"]], [6, 3480, 307, 307]);
    let table = String::from_utf8(stdout(sizeleak("archive status").arg(homes.out("out")))).unwrap();
    assert!(table.lines().all(|line| line.chars().count() <= 80) && table.contains("Failed:"), "{table}");
}

#[test]
fn a_second_call_reads_nothing_and_changes_nothing() {
    let homes = Archive::new();
    damaged(&homes, "out", &[]);
    let first = tree(&homes.out("out"));
    let records = homes.out("out/records/homes+hall");
    let made = || records.metadata().unwrap().modified().unwrap();
    let before = made();
    let again = damaged(&homes, "out", &["--jobs", "2"]);
    assert!(again.contains("no point is new or has changed"), "that files have settled is no change: {again}");
    assert!(tree(&homes.out("out")) == first && made() == before);
    for (jobs, out) in [("1", "one"), ("2", "two")] {
        damaged(&homes, out, &["--jobs", jobs]);
        assert!(tree(&homes.out(out)) == first, "{jobs} jobs");
    }
}

#[test]
fn another_model_reads_records_only_and_leaves_no_earlier_answer() {
    let homes = Archive::new();
    damaged(&homes, "out", &[]);
    let first = tree(&homes.out("out"));
    // Nothing was written in their folder.
    let records = homes.out("out/records/homes+hall");
    let before = records.metadata().unwrap().modified().unwrap();
    damaged(&homes, "out", &["--set", "pruner.keep=1", "--format", "ndjson"]);
    assert_eq!(records.metadata().unwrap().modified().unwrap(), before, "the records are as they were");
    let second = tree(&homes.out("out"));
    assert!(second.iter().all(|(path, _)| path.extension().is_none_or(|ending| ending != "parquet")));
    damaged(&homes, "fresh", &["--set", "pruner.keep=1", "--format", "ndjson"]);
    assert!(second == tree(&homes.out("fresh")));
    damaged(&homes, "out", &[]);
    assert!(tree(&homes.out("out")) == first, "and back");
}

/// Answers that are cut or gone are made again; a copy of the results is as good as they are.
#[test]
fn answers_that_are_cut_or_gone_are_made_again() {
    let homes = Archive::new();
    damaged(&homes, "out", &[]);
    let whole = tree(&homes.out("out"));
    let copied = Command::new("cp").arg("-r").arg(homes.out("out")).arg(homes.out("copy")).status().unwrap();
    assert!(copied.success());
    let (part, _) = whole.iter().find(|(path, _)| path.extension() == Some(OsStr::new("parquet"))).unwrap();
    for results in ["out", "copy"] {
        let path = homes.out(results).join(part);
        fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        damaged(&homes, results, &[]);
        assert!(tree(&homes.out(results)) == whole, "{results}");
        fs::remove_file(path).unwrap();
        damaged(&homes, results, &[]);
        assert!(tree(&homes.out(results)) == whole, "{results}");
    }
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
fn new_files_are_added_and_captures_that_are_gone_are_not_forgotten() {
    let homes = Archive::new();
    let late = homes.point("hall").join("home.pcap");
    let content = fs::read(&late).unwrap();
    fs::remove_file(&late).unwrap();
    damaged(&homes, "out", &[]);
    write(&homes.point("hall"), "home.pcap", &content);
    damaged(&homes, "out", &[]);
    damaged(&homes, "fresh", &[]);
    let all = tree(&homes.out("out"));
    assert!(all == tree(&homes.out("fresh")));
    // Rotation renames files.
    fs::rename(&late, homes.point("hall").join("home.pcap.2")).unwrap();
    let said = damaged(&homes, "out", &[]);
    assert!(!said.contains("gone"), "{said}");
    // A ring of files overwrites the oldest one.
    fs::copy(homes.point("hall").join("a"), homes.point("hall").join("home.pcap.2")).unwrap();
    let said = damaged(&homes, "out", &[]);
    assert!(said.contains("homes+hall: 1 of its captures is gone") && said.contains("--forget"), "{said}");
    let parts = |out: &str| answers(&homes.out(out));
    assert!(parts("out") == parts("fresh"), "its results are as they were");
    // A copy that was begun again is shorter, but begins as before.
    let part = content.get(..content.len() / 2).unwrap();
    write(&homes.point("hall"), "home.pcap.2", part);
    let said = damaged(&homes, "out", &[]);
    assert!(said.contains("homes+hall: 1 of its captures is shorter than before"), "{said}");
    assert!(said.contains("--forget"), "{said}");
    assert!(parts("out") == parts("fresh"), "its results are as they were");
    fs::remove_file(homes.point("hall").join("home.pcap.2")).unwrap();
    damaged(&homes, "out", &["--forget"]);
    assert!(parts("out") != parts("fresh"));
}

#[test]
fn answers_that_no_model_is_for_are_named() {
    let homes = Archive::new();
    let said = damaged(&homes, "out", &[]);
    assert!(said.contains("note: homes+attic: uncovered 1: `sizeleak run -v "), "{said}");
    assert!(!said.contains("note: homes+hall"), "{said}");
    let shown = String::from_utf8(stdout(sizeleak("archive status").arg(homes.out("out")))).unwrap();
    assert!(shown.contains("Doubtful or incomplete, by notices:\n  homes+attic: uncovered 1\n"), "{shown}");
}

#[test]
fn a_name_that_is_no_text_stops_no_other_file() {
    let homes = Archive::new();
    damaged(&homes, "fresh", &[]);
    let content = fs::read(homes.point("hall").join("home.pcap")).unwrap();
    for (name, content) in [(&b"odd\xff.pcap"[..], &*content), (b"notes\xff", b"of the hall")] {
        fs::write(homes.point("hall").join(OsStr::from_bytes(name)), content).unwrap();
    }
    for _ in 0..2 {
        let said = damaged(&homes, "out", &[]);
        assert!(said.contains("odd\u{fffd}.pcap: has a name that is not valid UTF-8: rename it"), "{said}");
        assert!(!said.contains("notes"), "{said}");
    }
    let parts = |out: &str| answers(&homes.out(out));
    assert!(parts("out") == parts("fresh"), "the others are processed");
}

#[test]
fn a_capture_with_two_names_is_read_once() {
    let homes = Archive::new();
    damaged(&homes, "fresh", &[]);
    let hall = homes.point("hall");
    fs::hard_link(hall.join("home.pcap.1"), hall.join("saved.pcap")).unwrap();
    damaged(&homes, "out", &[]);
    assert!(answers(&homes.out("out")) == answers(&homes.out("fresh")));
    let packets = |out: &str| status(&homes.out(out))["points"][1]["packets"].clone();
    assert_eq!(packets("out"), packets("fresh"));
}

#[test]
fn a_folder_by_another_name_is_not_counted_twice() {
    let homes = Archive::new();
    damaged(&homes, "out", &[]);
    let parts = answers(&homes.out("out"));
    let said = said(&mut archive(&homes.point("hall"), &homes.out("out"), GATEWAY), 1);
    assert!(said.contains("already, as a capture of the point `homes+hall`"), "{said}");
    assert!(answers(&homes.out("out")) == parts);
}

#[test]
fn connections_go_on_from_folder_to_folder_of_one_point() {
    let homes = Archive::new();
    // The second half of the hall, in a folder of its own.
    for name in ["home.pcap", "home.pcap.1"] {
        fs::rename(homes.point("hall").join(name), homes.point("hall/later").join(name)).unwrap();
    }
    fs::remove_file(homes.point("hall").join("latest")).unwrap();
    let answered = |out: &str, more: &[&str]| {
        stdout(archive(&homes.point("hall"), &homes.out(out), GATEWAY).args(more));
        let points = status(&homes.out(out))["points"].as_array().unwrap().clone();
        points.iter().map(|point| point["identifications"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(answered("one", &["--one-point"]), [307]);
    assert_eq!(answered("two", &[]).len(), 2);
}

#[test]
fn two_runs_into_one_folder_are_refused() {
    let homes = Archive::new();
    damaged(&homes, "out", &[]);
    let lock = File::open(homes.out("out/.lock")).unwrap();
    lock.lock().unwrap();
    let start = Instant::now();
    let said = damaged(&homes, "out", &[]);
    assert!(said.contains("another `sizeleak archive` is writing to"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(10));
    lock.unlock().unwrap();
    damaged(&homes, "out", &[]);
}

#[test]
fn dry_run_says_what_would_be_read_and_writes_nothing() {
    let homes = Archive::new();
    let plan = |more: &[&str]| {
        let mut command = archive(&homes.captures(), &homes.out("out"), &gateways());
        let text = String::from_utf8(stdout(command.arg("--dry-run").args(more))).unwrap();
        text.lines().skip(1).map(|line| line.rsplit("  ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ["read 2 files (", "read 6 files ("];
    assert!(plan(&[]).iter().zip(all).all(|(line, all)| line.starts_with(all)), "{:?}", plan(&[]));
    assert!(plan(&[]).last().is_some_and(|all| all.starts_with("In all: read 8 files (")), "{:?}", plan(&[]));
    assert!(!homes.out("out").exists());
    damaged(&homes, "out", &[]);
    describe_later(&homes.out("out"));
    assert_eq!(plan(&[]), ["up to date", "up to date"]);
    assert_eq!(plan(&["--set", "pruner.keep=1"]), ["read records", "read records"]);
    let others = plan(&["--set", "flow-filter.port=1"]);
    assert!(others.iter().zip(all).all(|(line, all)| line.starts_with(all)), "{others:?}");
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
