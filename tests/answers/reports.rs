//! Devices that report: events of which only the gateway's report is seen, beside events with a command and its
//! report. Streams of records that a table gives.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;
use std::process::Output;

use serde_json::Value;
use support::programs::{sizeleak, stderr};
use support::size_table::SizeTable;
use tempfile::TempDir;

/// Sizes of commands and of reports of the actions open, close and ring.
const SIZES: [[i64; 2]; 3] = [[140, 310], [163, 322], [201, 341]];

/// A hub with labelled events; of every third one only the report is seen.
struct Hub {
    folder: TempDir,
}

impl Hub {
    fn new() -> Self {
        let hub = Self { folder: tempfile::tempdir().unwrap() };
        let mut table = "# Times are microseconds after 1767600000 since the epoch.\n\
                         flow,1,192.168.1.20,203.0.113.10:443,tcp\n\
                         session,0,1,hub.example,1.3,TLS_AES_128_GCM_SHA256\n"
            .to_owned();
        let mut labels = "time,open,close,ring\n".to_owned();
        let (mut time_us, mut state) = (0_i64, 7_u64);
        for at in 0..90_usize {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            time_us += 20_000_000 + i64::from((state >> 40) as u32);
            let action = (state >> 33) as usize % 3;
            let [command, report] = SIZES[action];
            let mut record = |after_us: i64, direction: &str, size: i64| {
                let (time_us, length) = (time_us + after_us, size + 17);
                writeln!(table, "record,{time_us},0,1,{direction},23,{length},{size},{size},0").unwrap();
            };
            if !at.is_multiple_of(3) {
                record(0, "to", command);
            }
            record(60_000, "from", report);
            let mut counts = [0; 3];
            counts[action] = 1;
            let [open, close, ring] = counts;
            let (seconds, rest) = (1_767_600_000 + time_us / 1_000_000, time_us % 1_000_000);
            writeln!(labels, "{seconds}.{rest:06},{open},{close},{ring}").unwrap();
        }
        fs::write(hub.path("table.csv"), table).unwrap();
        SizeTable::read(&hub.path("table.csv")).write(fs::File::create(hub.path("records.frames")).unwrap());
        fs::write(hub.path("labels.csv"), labels).unwrap();
        hub
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn learn(&self, more: &str) -> Output {
        let mut command = sizeleak(&format!("learn {more}"));
        command.arg(self.path("records.frames")).arg("--labels").arg(self.path("labels.csv"));
        command.arg("-o").arg(self.path("model.toml")).output().unwrap()
    }

    fn evaluate(&self, more: &str) -> (Value, String) {
        let mut command = sizeleak(&format!("evaluate --format=json {more}"));
        command.arg(self.path("records.frames")).arg("--labels").arg(self.path("labels.csv"));
        let output = command.arg("--model").arg(self.path("model.toml")).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        (serde_json::from_slice(&output.stdout).unwrap(), stderr(&output))
    }
}

/// Whether the events have a command or a report, but for one report at most that is taken for a poll.
fn found(figures: &Value) -> bool {
    figures["matched"].as_u64().unwrap() >= 89
}

#[test]
fn commands_and_reports_have_sections_and_every_event_one_answer() {
    let hub = Hub::new();
    let learned = hub.learn("--set command-segmenter.direction=both");
    assert!(learned.status.success(), "{}", stderr(&learned));
    let model = fs::read_to_string(hub.path("model.toml")).unwrap();
    assert_eq!((model.matches("[[model]]").count(), model.matches("reports = true").count()), (2, 1), "{model}");
    // The model says that there are reports: no option is needed.
    let (figures, said) = hub.evaluate("");
    assert_eq!((found(&figures), &figures["spurious"]), (true, &0.into()), "{said}");
    assert_eq!(figures["after_pruning"]["top_1"], figures["matched"], "{said}");
}

#[test]
fn with_commands_alone_events_without_one_are_missed() {
    let hub = Hub::new();
    let learned = hub.learn("");
    let said = stderr(&learned);
    assert!(learned.status.success() && said.contains("30 of 90 labels have no command"), "{said}");
    let (figures, _) = hub.evaluate("");
    assert_eq!((&figures["matched"], &figures["missed"]), (&60.into(), &30.into()));
    assert_eq!(figures["after_pruning"]["top_1"], 60);
}

#[test]
fn reports_are_not_answered_by_a_model_of_commands() {
    let hub = Hub::new();
    assert!(hub.learn("").status.success());
    let (figures, said) = hub.evaluate("--set command-segmenter.direction=both");
    assert!(said.contains("uncovered") && said.contains("the other direction, commands or reports"), "{said}");
    assert_eq!((found(&figures), &figures["after_pruning"]["top_1"]), (true, &60.into()), "{said}");
}
