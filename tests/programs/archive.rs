//! Archives: the answers of one run over the same captures, the same bytes whatever happens, and nothing read twice.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use support::programs;
use support::tool;

use serde_json::Value;
use support::archive_home::{Archive, OTHER_GATEWAY, describe_later};
use support::programs::{GATEWAY, example, sizeleak, stderr, stdout, write};
use support::rotation::tree;

/// Both gateways of the home, as one list.
fn gateways() -> String {
    [GATEWAY, OTHER_GATEWAY].join(",")
}

fn archive(archive: &Archive, out: &str, more: &[&str]) -> Command {
    let mut command = sizeleak("archive");
    command.arg(archive.captures()).arg("-o").arg(archive.out(out)).args(["--gateway", &gateways()]);
    command.args(["--model", &example("model.toml")]).args(more);
    command
}

/// Runs a command that says that a capture is damaged.
fn damaged(mut command: Command) -> Output {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    output
}

/// The answers of all parts of a point, sorted.
fn answers(out: &Path, point: &str) -> Vec<String> {
    let parts = tree(&out.join("identifications"))
        .into_iter()
        .filter(|(path, _)| path.file_name().unwrap().to_str() == Some(&format!("part-homes+{point}.ndjson")));
    let mut lines: Vec<String> = parts
        .flat_map(|(_, text)| String::from_utf8(text).unwrap().lines().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    lines.sort();
    lines
}

fn status(out: &Path) -> Value {
    serde_json::from_slice(&stdout(sizeleak("archive status --format=json").arg(out))).unwrap()
}

#[test]
fn answers_are_those_of_one_run_over_the_same_captures() {
    let homes = Archive::new();
    damaged(archive(&homes, "out", &["--format", "ndjson"]));
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
        let found = answers(&homes.out("out"), point);
        let different = found.iter().zip(&expected).find(|(found, expected)| found != expected);
        assert!(found.len() == commands && found == expected, "{point}: {}: {different:?}", expected.len());
    }
    let days = fs::read_dir(homes.out("out").join("identifications/gateway=fd00%3A%3A20")).unwrap();
    assert_eq!(days.count(), 2, "before and after midnight");
}

#[test]
fn manifest_says_what_became_of_every_file() {
    let homes = Archive::new();
    let said = stderr(&damaged(archive(&homes, "out", &[])));
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
    damaged(archive(&homes, "out", &[]));
    let first = tree(&homes.out("out"));
    let records = homes.out("out/records/homes+hall");
    let made = || records.metadata().unwrap().modified().unwrap();
    let before = made();
    damaged(archive(&homes, "out", &["--jobs", "2"]));
    assert!(tree(&homes.out("out")) == first && made() == before);
    for (jobs, out) in [("1", "one"), ("2", "two")] {
        damaged(archive(&homes, out, &["--jobs", jobs]));
        assert!(tree(&homes.out(out)) == first, "{jobs} jobs");
    }
}

#[test]
fn another_model_reads_records_only_and_leaves_no_earlier_answer() {
    let homes = Archive::new();
    damaged(archive(&homes, "out", &[]));
    let first = tree(&homes.out("out"));
    // Nothing was written in their folder.
    let records = homes.out("out/records/homes+hall");
    let before = records.metadata().unwrap().modified().unwrap();
    damaged(archive(&homes, "out", &["--set", "pruner.keep=1", "--format", "ndjson"]));
    assert_eq!(records.metadata().unwrap().modified().unwrap(), before, "the records are as they were");
    let second = tree(&homes.out("out"));
    assert!(second.iter().all(|(path, _)| path.extension().is_none_or(|ending| ending != "parquet")));
    damaged(archive(&homes, "fresh", &["--set", "pruner.keep=1", "--format", "ndjson"]));
    assert!(second == tree(&homes.out("fresh")));
    damaged(archive(&homes, "out", &[]));
    assert!(tree(&homes.out("out")) == first, "and back");
}

/// Answers that are cut or gone are made again; a copy of the results is as good as they are.
#[test]
fn answers_that_are_cut_or_gone_are_made_again() {
    let homes = Archive::new();
    damaged(archive(&homes, "out", &[]));
    let whole = tree(&homes.out("out"));
    let copied = Command::new("cp").arg("-r").arg(homes.out("out")).arg(homes.out("copy")).status().unwrap();
    assert!(copied.success());
    let (part, _) = whole.iter().find(|(path, _)| path.extension() == Some(OsStr::new("parquet"))).unwrap();
    for results in ["out", "copy"] {
        let path = homes.out(results).join(part);
        fs::File::options().write(true).open(&path).unwrap().set_len(100).unwrap();
        damaged(archive(&homes, results, &[]));
        assert!(tree(&homes.out(results)) == whole, "{results}");
        fs::remove_file(path).unwrap();
        damaged(archive(&homes, results, &[]));
        assert!(tree(&homes.out(results)) == whole, "{results}");
    }
}

#[test]
fn a_killed_run_is_completed_with_the_same_bytes() {
    let homes = Archive::new();
    let start = Instant::now();
    damaged(archive(&homes, "whole", &[]));
    let (whole, took) = (tree(&homes.out("whole")), start.elapsed());
    let mut killed = 0;
    for at in 1..=8 {
        let mut child = archive(&homes, "out", &[]).stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(took * at / 9);
        child.kill().unwrap();
        killed += u32::from(child.wait().unwrap().code().is_none());
        if at % 2 == 0 {
            damaged(archive(&homes, "out", &[]));
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
    damaged(archive(&homes, "out", &[]));
    write(&homes.point("hall"), "home.pcap", &content);
    damaged(archive(&homes, "out", &[]));
    damaged(archive(&homes, "fresh", &[]));
    let all = tree(&homes.out("out"));
    assert!(all == tree(&homes.out("fresh")));
    // Rotation renames files.
    fs::rename(&late, homes.point("hall").join("home.pcap.2")).unwrap();
    let said = stderr(&damaged(archive(&homes, "out", &[])));
    assert!(!said.contains("gone"), "{said}");
    // A ring of files overwrites the oldest one.
    fs::copy(homes.point("hall").join("a"), homes.point("hall").join("home.pcap.2")).unwrap();
    let said = stderr(&damaged(archive(&homes, "out", &[])));
    assert!(said.contains("homes+hall: 1 of its captures is gone") && said.contains("--forget"), "{said}");
    let parts = |out: &str| tree(&homes.out(out).join("identifications"));
    assert!(parts("out") == parts("fresh"), "its results are as they were");
    // A copy that was begun again is shorter, but begins as before.
    let part = content.get(..content.len() / 2).unwrap();
    write(&homes.point("hall"), "home.pcap.2", part);
    let said = stderr(&damaged(archive(&homes, "out", &[])));
    assert!(said.contains("homes+hall: 1 of its captures is shorter than before"), "{said}");
    assert!(said.contains("--forget"), "{said}");
    assert!(parts("out") == parts("fresh"), "its results are as they were");
    fs::remove_file(homes.point("hall").join("home.pcap.2")).unwrap();
    damaged(archive(&homes, "out", &["--forget"]));
    assert!(parts("out") != parts("fresh"));
}

/// A folder of a home, one capture in each of two days.
fn two_days() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (day, capture) in [("day1", "test.pcap"), ("day2", "learn.pcap")] {
        let day = folder.path().join("home").join(day);
        fs::create_dir_all(&day).unwrap();
        fs::copy(programs::root().join(example(capture)), day.join(capture)).unwrap();
    }
    folder
}

fn archive_days(folder: &Path, more: &[&str]) -> Command {
    let mut command = sizeleak("archive home -o out --format ndjson --quiet");
    let model = programs::root().join(example("model.toml"));
    command.current_dir(folder).args(["--gateway", GATEWAY, "--model"]).arg(model).args(more);
    command
}

/// All files of the results that name a point, by their paths.
fn of_point(out: &Path, point: &str) -> usize {
    tree(out).into_iter().filter(|(path, _)| path.to_string_lossy().contains(point)).count()
}

#[test]
fn results_of_an_emptied_folder_are_kept_and_forgotten_when_asked() {
    let days = two_days();
    let out = days.path().join("out");
    stdout(&mut archive_days(days.path(), &[]));
    let before = tree(&out);
    fs::remove_file(days.path().join("home/day1/test.pcap")).unwrap();
    let said = stderr(&damaged(archive_days(days.path(), &[])));
    assert!(said.contains("home+day1: 1 of its captures is gone") && said.contains("--forget"), "{said}");
    assert_eq!(
        of_point(&out, "home+day1"),
        before.iter().filter(|(path, _)| path.to_string_lossy().contains("day1")).count()
    );
    stdout(&mut archive_days(days.path(), &["--forget"]));
    assert_eq!(of_point(&out, "home+day1"), 0);
    assert!(of_point(&out, "home+day2") > 3);
    let points: Vec<Value> = status(&out)["points"].as_array().unwrap().clone();
    assert_eq!(points.iter().map(|point| &point["point"]).collect::<Vec<_>>(), ["home+day2"]);
    // Nothing is left to say.
    stdout(&mut archive_days(days.path(), &[]));
}

#[test]
fn a_point_whose_folder_is_gone_stays_until_it_is_forgotten_by_name() {
    let days = two_days();
    let out = days.path().join("out");
    stdout(&mut archive_days(days.path(), &[]));
    let answers = || tree(&out.join("identifications"));
    let before = answers();
    fs::remove_dir_all(days.path().join("home/day1")).unwrap();
    stdout(&mut archive_days(days.path(), &[]));
    assert!(answers() == before && of_point(&out, "home+day1") > 3);
    // Answers of another model are not kept under this one: the records are there.
    stdout(&mut archive_days(days.path(), &["--set", "decomposer.limit=3"]));
    let made: Vec<_> = answers().into_iter().filter(|(path, _)| path.to_string_lossy().contains("day1")).collect();
    assert!(!made.is_empty() && made.iter().all(|part| !before.contains(part)));
    stdout(&mut archive_days(days.path(), &[]));
    assert!(answers() == before);
    let forget = |point: &str| sizeleak("archive forget").arg(&out).arg(point).output().unwrap();
    let unknown = forget("home+day9");
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("holds no point `home+day9`: `sizeleak archive status"), "{}", stderr(&unknown));
    assert!(forget("home+day1").status.success());
    assert_eq!(of_point(&out, "home+day1"), 0);
    let manifest = fs::read_to_string(out.join("manifest.ndjson")).unwrap();
    assert!(!manifest.contains("day1") && manifest.contains("day2"), "{manifest}");
}

/// States hold segments with their content. A pipe in place of a description is passed over, not waited for.
#[test]
fn states_are_private_and_pipes_are_not_waited_for() {
    let days = two_days();
    let out = days.path().join("out");
    stdout(&mut archive_days(days.path(), &[]));
    let states: Vec<_> =
        tree(&out).into_iter().filter(|(path, _)| path.extension() == Some("state".as_ref())).collect();
    assert!(!states.is_empty());
    for (state, _) in states {
        assert_eq!(out.join(&state).metadata().unwrap().permissions().mode() & 0o777, 0o600, "{}", state.display());
    }
    let description = out.join("points/home+day1.json");
    fs::remove_file(&description).unwrap();
    assert!(Command::new("mkfifo").arg(&description).status().unwrap().success());
    stdout(&mut archive_days(days.path(), &[]));
    assert!(description.metadata().unwrap().is_file());
}

#[test]
fn answers_that_no_model_is_for_are_named() {
    let homes = Archive::new();
    let said = stderr(&damaged(archive(&homes, "out", &[])));
    assert!(said.contains("note: homes+attic: uncovered 1: `sizeleak run -v "), "{said}");
    assert!(!said.contains("note: homes+hall"), "{said}");
    let shown = String::from_utf8(stdout(sizeleak("archive status").arg(homes.out("out")))).unwrap();
    assert!(shown.contains("Doubtful or incomplete, by notices:\n  homes+attic: uncovered 1\n"), "{shown}");
}

#[test]
fn a_name_that_is_no_text_stops_no_other_file() {
    let homes = Archive::new();
    damaged(archive(&homes, "fresh", &[]));
    let content = fs::read(homes.point("hall").join("home.pcap")).unwrap();
    for (name, content) in [(&b"odd\xff.pcap"[..], &*content), (b"notes\xff", b"of the hall")] {
        fs::write(homes.point("hall").join(OsStr::from_bytes(name)), content).unwrap();
    }
    for _ in 0..2 {
        let said = stderr(&damaged(archive(&homes, "out", &[])));
        assert!(said.contains("odd\u{fffd}.pcap: has a name that is not valid UTF-8: rename it"), "{said}");
        assert!(!said.contains("notes"), "{said}");
    }
    let parts = |out: &str| tree(&homes.out(out).join("identifications"));
    assert!(parts("out") == parts("fresh"), "the others are processed");
}

#[test]
fn a_folder_without_captures_is_said() {
    let homes = Archive::new();
    let said = |folder: &str, out: &str| {
        let mut command = sizeleak("archive");
        command.arg(homes.point("none").join(folder)).arg("-o").arg(homes.out(out)).args(["--gateway", GATEWAY]);
        let output = command.args(["--model", &example("model.toml")]).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stderr(&output)
    };
    fs::create_dir(homes.point("none").join("empty")).unwrap();
    assert!(said("empty", "one").contains("note: there is no file in what was named\n"));
    fs::create_dir(homes.point("none").join("texts")).unwrap();
    write(&homes.point("none").join("texts"), "notes", "of the hall");
    let texts = said("texts", "two");
    assert!(texts.contains("note: no file is a capture: `sizeleak archive status "), "{texts}");
}

#[test]
fn a_capture_with_two_names_is_read_once() {
    let homes = Archive::new();
    damaged(archive(&homes, "fresh", &[]));
    let hall = homes.point("hall");
    fs::hard_link(hall.join("home.pcap.1"), hall.join("saved.pcap")).unwrap();
    damaged(archive(&homes, "out", &[]));
    let [out, fresh] = ["out", "fresh"].map(|name| tree(&homes.out(name).join("identifications")));
    assert!(out == fresh);
    let packets = |out: &str| status(&homes.out(out))["points"][1]["packets"].clone();
    assert_eq!(packets("out"), packets("fresh"));
}

#[test]
fn a_folder_by_another_name_is_not_counted_twice() {
    let homes = Archive::new();
    damaged(archive(&homes, "out", &[]));
    let parts = tree(&homes.out("out/identifications"));
    let mut command = sizeleak("archive");
    command.arg(homes.point("hall")).arg("-o").arg(homes.out("out")).args(["--gateway", GATEWAY]);
    command.args(["--model", &example("model.toml")]);
    let said = stderr(&damaged(command));
    assert!(said.contains("already, as a capture of the point `homes+hall`"), "{said}");
    assert!(tree(&homes.out("out/identifications")) == parts);
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
        let mut command = sizeleak("archive");
        command.arg(homes.point("hall")).arg("-o").arg(homes.out(out)).args(["--gateway", GATEWAY]);
        stdout(command.args(["--model", &example("model.toml")]).args(more));
        let points = status(&homes.out(out))["points"].as_array().unwrap().clone();
        points.iter().map(|point| point["identifications"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(answered("one", &["--one-point"]), [307]);
    assert_eq!(answered("two", &[]).len(), 2);
}

#[test]
fn two_runs_into_one_folder_are_refused() {
    let homes = Archive::new();
    damaged(archive(&homes, "out", &[]));
    let lock = File::open(homes.out("out/.lock")).unwrap();
    lock.lock().unwrap();
    let start = Instant::now();
    let said = stderr(&damaged(archive(&homes, "out", &[])));
    assert!(said.contains("another `sizeleak archive` is writing to"), "{said}");
    assert!(start.elapsed() < Duration::from_secs(10));
    lock.unlock().unwrap();
    damaged(archive(&homes, "out", &[]));
}

#[test]
fn folders_that_cannot_be_results_are_refused() {
    let homes = Archive::new();
    for (out, words) in [("homes/out", "lie inside each other"), ("foreign", "was not made by")] {
        fs::create_dir_all(homes.out("foreign")).unwrap();
        write(&homes.out("foreign"), "thesis.tex", "mine");
        let output = archive(&homes, out, &[]).output().unwrap();
        assert_eq!((output.status.code(), stderr(&output).contains(words)), (Some(2), true), "{}", stderr(&output));
    }
    assert_eq!(tree(&homes.out("foreign")).len(), 1);
    let output = archive(&homes, "foreign/thesis.tex", &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let mut unknown = sizeleak("archive");
    unknown.arg(homes.captures()).arg("-o").arg(homes.out("out")).args(["--gateway", GATEWAY, "--pipeline"]);
    let sizer = "[[stage]]\nrun = \"capture\"\n[[stage]]\nrun = \"flow-filter\"\n[[stage]]\ncommand = [\"cat\"]\n";
    let output = unknown.arg(write(&homes.out("foreign"), "p.toml", sizer)).output().unwrap();
    let is_named = stderr(&output).contains("an archive keeps the records of `record-sizer`");
    assert!(output.status.code() == Some(2) && is_named && !homes.out("out").exists(), "{}", stderr(&output));
    let mut command = sizeleak("archive none");
    let output = command.arg("-o").arg(homes.out("out")).args(["--gateway", GATEWAY]).output().unwrap();
    assert!(output.status.code() == Some(1) && !homes.out("out").exists(), "{}", stderr(&output));
    let output = sizeleak("archive status").arg(homes.captures()).output().unwrap();
    assert!(stderr(&output).contains("has no manifest.ndjson"), "{}", stderr(&output));
}

#[test]
fn dry_run_says_what_would_be_read_and_writes_nothing() {
    let homes = Archive::new();
    let plan = |more: &[&str]| {
        let text = String::from_utf8(stdout(&mut archive(&homes, "out", &[&["--dry-run"], more].concat()))).unwrap();
        text.lines().skip(1).map(|line| line.rsplit("  ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let all = ["read 2 files (", "read 6 files ("];
    assert!(plan(&[]).iter().zip(all).all(|(line, all)| line.starts_with(all)), "{:?}", plan(&[]));
    assert!(plan(&[]).last().is_some_and(|all| all.starts_with("In all: read 8 files (")), "{:?}", plan(&[]));
    assert!(!homes.out("out").exists());
    damaged(archive(&homes, "out", &[]));
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
    damaged(archive(&homes, "out", &[]));
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
    damaged(archive(&homes, "results", &[]));
    let root = programs::root();
    let mut python = Command::new("python3");
    python.arg(root.join("tests/programs/archive/run_examples.py")).arg(root.join("docs/archives.md"));
    let rows = tool::output(python.current_dir(homes.out("."))).unwrap();
    let rows: Vec<u64> = serde_json::from_slice(&rows).unwrap();
    assert!(rows.len() == 3 && rows[0] == 3 && rows.iter().all(|rows| *rows > 2), "{rows:?}");
}
