//! Text from outside (names in frames, labels and files, messages of foreign stages) steers neither a terminal nor a
//! spreadsheet, and may be as long as it likes.

use std::fs;
use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use roxmltree::Document;
use sizeleak::frame::{Actions, Candidate, Command, Frame, Hello, Identification, Notice, Session, Summary};
use support::home::Home;
use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout, with, write};
use support::streams::stream_of;

/// What a terminal would obey: clear the screen, turn the text around, go back, begin a new line.
const HOSTILE: &str = "\u{1b}[2J\u{9b}31m\u{202e}\u{2066}\r\0\nsizeleak: forged\u{2028}";

/// Checks that a text holds nothing that steers a terminal, and no line of its own.
fn assert_harmless(text: &str, why: &str) {
    let steers = |character: char| {
        character != '\n' && character.is_control()
            || matches!(character, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(steers), "{why}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("sizeleak: forged")), "{why}: {text:?}");
}

fn hostile_stream(folder: &Path) -> String {
    let text = || format!("=HYPERLINK({HOSTILE})");
    let hello = Hello { schema: 1, stage: text(), version: text(), upstream: vec![text()] };
    let session = Session {
        time_ns: -5,
        flow: 1,
        tls_version: None,
        cipher_suite: Some(text()),
        server_name: Some(text()),
        protocol: None,
    };
    let notice = Notice {
        time_ns: None,
        stage: text().into(),
        flow: None,
        what: text().into(),
        bytes: None,
        detail: Some(text()),
    };
    let command = Command {
        time_ns: 1,
        end_ns: 2,
        flow: 1,
        size: 4,
        records: 1,
        replies: 1,
        reply_bytes: 1,
        ..Command::default()
    };
    let actions = Actions::from(vec![(Arc::from(text()), 2)]);
    let candidates = vec![Candidate { actions, epsilon: -1, probability: 0.5, likelihood: None }].into();
    let identification =
        Identification { candidates, candidate_count: 1, listed: 1, ..Identification::unanswered(command) };
    let frames: [Frame; 5] =
        [hello.into(), session.into(), notice.into(), identification.into(), Summary::default().into()];
    write(folder, "hostile.frames", stream_of(&frames)).display().to_string()
}

#[test]
fn every_format_shows_hostile_frames_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let stream = hostile_stream(folder.path());
    for options in [
        "",
        "--kind hello,summary,session,notice,identification",
        "--format ndjson",
        "--format csv --kind session",
        "--format csv --kind notice",
        "--format csv --kind identification",
        "--format csv --kind hello",
        "--format zeek --kind session",
        "--format zeek --kind notice",
        "--format zeek --kind identification",
    ] {
        let shown = String::from_utf8(stdout(&mut sizeleak(&format!("frames {stream} {options}")))).unwrap();
        assert!(shown.contains("forged"), "{options}: {shown}");
        // Zeek's separator.
        assert_harmless(&shown.replace('\t', " "), options);
    }
    let json = stdout(&mut sizeleak(&format!("frames {stream} --format ndjson --kind session")));
    let value: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(value["session"]["server_name"], format!("=HYPERLINK({HOSTILE})"), "JSON has the name itself");
}

#[test]
fn texts_in_csv_are_no_formulas() {
    let folder = tempfile::tempdir().unwrap();
    let stream = hostile_stream(folder.path());
    let csv = stdout(&mut sizeleak(&format!("frames {stream} --format csv --kind session")));
    let mut rows = csv::Reader::from_reader(&*csv);
    let row = rows.records().next().unwrap().unwrap();
    let cells: Vec<&str> = row.iter().collect();
    assert!(
        cells[1] == "-5" && cells[3].starts_with("'=HYPERLINK(") && cells[5].starts_with("'=HYPERLINK("),
        "{row:?}"
    );
}

#[test]
fn messages_about_hostile_names_are_one_line_of_text() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("a{}.pcap", HOSTILE.replace('\0', ""));
    let capture = fs::read(root().join(example("test.pcap"))).unwrap();
    let path = write(folder.path(), &name, &capture[..100_000]);
    let missing = format!("{}.missing", path.display());
    let run = |arguments: &[&str], of: &Path| -> Output {
        sizeleak("run pipeline.toml -v").arg(of).args(arguments).output().unwrap()
    };
    let outputs = [
        run(&[], &path),
        run(&["--log-format", "json"], &path),
        run(&[], Path::new(&missing)),
        run(&["-o", "/no/such/folder\u{1b}[2J/x"], &path),
        sizeleak("run").arg(format!("--{HOSTILE}").replace('\0', "")).output().unwrap(),
        sizeleak("run --mode").arg(&missing).output().unwrap(),
        sizeleak("frames").arg(&missing).output().unwrap(),
        sizeleak("simulate --scenario").arg(&missing).args(["-o", "x"]).output().unwrap(),
        with("capture", "").arg(&missing).output().unwrap(),
        with("pruner", "--mode").arg(&missing).output().unwrap(),
    ];
    for output in outputs {
        assert!(!output.status.success(), "{}", stderr(&output));
        let said = stderr(&output);
        assert!(said.contains(r"\u{1b}") || said.contains(r"\\u{1b}") || said.contains(r"\u001b"), "{said}");
        assert_harmless(&said, &said);
        assert_harmless(&String::from_utf8_lossy(&output.stdout), "stdout");
    }
}

#[test]
fn stderr_of_foreign_stages_is_shown_as_text() {
    let folder = tempfile::tempdir().unwrap();
    let hostile = HOSTILE.replace('\0', "").replace('\n', "\\n");
    let text = format!(
        "[[stage]]\nrun = \"capture\"\nfiles = [\"{}\"]\n[[stage]]\nname = 'mi\u{9b}ne'\ncommand = [\"sh\", \"mine.sh\"]\n\
         [[stage]]\nrun = \"flow-filter\"\ngateway = [\"{GATEWAY}\"]\n",
        root().join(example("test.pcap")).display()
    );
    let file = write(folder.path(), "p.toml", text);
    write(folder.path(), "mine.sh", format!("printf '{hostile} and more\\n' >&2; exec cat"));
    for format in ["text", "json"] {
        let run = sizeleak("run --format csv --log-format").arg(format).arg(&file).output().unwrap();
        assert!(run.status.success(), "{}", stderr(&run));
        assert!(stderr(&run).contains("forged"), "{}", stderr(&run));
        assert_harmless(&stderr(&run), format);
    }
}

#[test]
fn pictures_are_whole_whatever_the_names_in_them() {
    let home = Home::bundled();
    hostile_stream(home.folder());
    let name = format!("</text><script>alert(1)</script>&{HOSTILE}");
    let report = serde_json::json!({
        "schema": 1, "commands": 9,
        "after_pruning": {"commands": 9, "calibration": {"expected_error": null, "by_chance": null, "bins": []}},
        "actions": [{"action": name}, {"action": "off"}],
        "confusion": {"taken": [[2.0, 1.0], [1e6, 4.0]], "missed": [0.0, 0.0], "invented": [0.0, 0.0]},
    });
    write(home.folder(), "report.json", report.to_string());
    home.text("run pipeline.toml -q -o answers.frames");
    for drawn in ["hostile.frames", "report.json --kind confusion", "answers.frames", "answers.frames --kind latency"] {
        let picture = home.text(&format!("plot {drawn}"));
        let parsed = Document::parse(&picture).unwrap();
        assert!(!parsed.descendants().any(|node| node.has_tag_name("script")), "{drawn}: {picture}");
        assert_harmless(&picture, drawn);
    }
}
