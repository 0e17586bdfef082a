//! What `learn` says of labels and sizes that sums do not explain, and what its models answer: compressed bodies,
//! padding, two apps, equal sizes, wrong labels. Streams of records that a table gives, as `tests/answers/real_gateways` are.

use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use support::programs::{sizeleak, unbroken};
use support::size_table::SizeTable;
use tempfile::TempDir;

/// The bytes that a record of the suite in the tables adds to its plaintext.
const SUITE_BYTES: i64 = 17;

/// Labelled commands of the actions on, off and red on one connection, with replies.
struct Commands {
    folder: TempDir,
    labels: Vec<(i64, [u32; 3])>,
    table: String,
}

impl Commands {
    /// `count` commands of up to five actions, of the sizes that `size` gives.
    fn new(count: u32, size: impl Fn([u32; 3], u32) -> i64) -> Self {
        let counts = |at: u32| [at % 3, at / 3 % 3, u32::from(at.is_multiple_of(9) || at.is_multiple_of(5))];
        Self::of((0..count).map(|at| (counts(at), size(counts(at), at))))
    }

    fn of(commands: impl IntoIterator<Item = ([u32; 3], i64)>) -> Self {
        let mut table = "# Times are microseconds after 1767600000 since the epoch.\n\
                         flow,1,192.168.1.20,203.0.113.10:443,tcp\n\
                         session,0,1,hub.example,1.3,TLS_AES_128_GCM_SHA256\n"
            .to_owned();
        let mut labels = Vec::new();
        // At no fixed distance.
        let (mut time_us, mut state) = (0_i64, 7_u64);
        for (counts, size) in commands {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            time_us += 8_000_000 + i64::from((state >> 40) as u32);
            labels.push((time_us, counts));
            let mut record = |after_us: i64, direction: &str, size: i64| {
                let (time_us, length) = (time_us + after_us, size + SUITE_BYTES);
                writeln!(table, "record,{time_us},0,1,{direction},23,{length},{size},{size},0").unwrap();
            };
            record(0, "to", size);
            for reply in 0..counts.iter().sum::<u32>() {
                record(40_000 + i64::from(reply) * 20_000, "from", 45);
            }
        }
        Self { folder: tempfile::tempdir().unwrap(), labels, table }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Learns with other labels than these; the exit code, and all that is said.
    fn learn_with(&self, labels: &[(i64, [u32; 3])]) -> (Option<i32>, String) {
        fs::write(self.path("table.csv"), &self.table).unwrap();
        SizeTable::read(&self.path("table.csv")).write(fs::File::create(self.path("records.frames")).unwrap());
        self.write_labels(labels);
        let mut command = sizeleak("learn");
        command.arg(self.path("records.frames")).arg("--labels").arg(self.path("labels.csv"));
        let output = command.arg("-o").arg(self.path("model.toml")).output().unwrap();
        (output.status.code(), unbroken(&output) + &String::from_utf8(output.stdout).unwrap())
    }

    fn learn(&self) -> (Option<i32>, String) {
        self.learn_with(&self.labels)
    }

    fn write_labels(&self, labels: &[(i64, [u32; 3])]) {
        let mut text = "time,on,off,red\n".to_owned();
        for (time_us, [on, off, red]) in labels {
            writeln!(text, "{}.{:06},{on},{off},{red}", 1_767_600_000 + time_us / 1_000_000, time_us % 1_000_000)
                .unwrap();
        }
        fs::write(self.path("labels.csv"), text).unwrap();
    }

    /// The figures of the learned model, with the true labels.
    fn figures(&self) -> Value {
        self.write_labels(&self.labels);
        let mut command = sizeleak("evaluate --format=json");
        command.arg(self.path("records.frames")).arg("--labels").arg(self.path("labels.csv"));
        let output = command.arg("--model").arg(self.path("model.toml")).output().unwrap();
        assert!(output.status.success(), "{}", unbroken(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

fn additive([on, off, red]: [u32; 3]) -> i64 {
    60 + 28 * i64::from(on) + 31 * i64::from(off) + 40 * i64::from(red)
}

/// How often the first candidate is the truth, and the truth among the candidates, of all commands.
fn shares(figures: &Value) -> [f64; 2] {
    let after = &figures["after_pruning"];
    ["top_1", "among"].map(|key| after[key].as_f64().unwrap() / after["commands"].as_f64().unwrap())
}

#[test]
fn sizes_that_add_up_are_learned_without_a_warning() {
    let home = Commands::new(90, |counts, _| additive(counts));
    let (code, said) = home.learn();
    assert!(code == Some(0) && !said.contains("warning"), "{said}");
    assert!(shares(&home.figures())[0] > 0.9, "{said}");
}

#[test]
fn compressed_bodies_are_named() {
    let home = Commands::new(90, |counts, at| {
        let repeats: u32 = counts.iter().map(|n| n.saturating_sub(1)).sum();
        additive(counts) - 21 * i64::from(repeats) - i64::from(at % 8)
    });
    let (code, said) = home.learn();
    assert!(code == Some(0) && said.contains("warning: ") && said.contains("permessage-deflate"), "{said}");
}

#[test]
fn padded_messages_are_answered_by_ranges() {
    let home = Commands::new(90, |counts, _| (additive(counts) + 5 + 15) / 16 * 16 + 9);
    let (code, said) = home.learn();
    assert!(code == Some(0) && said.contains("ranges of 16 bytes"), "{said}");
    let [_, among] = shares(&home.figures());
    assert!(among >= 0.97, "{among} {said}");
}

#[test]
fn two_apps_on_one_connection_are_named() {
    let home = Commands::new(120, |counts, at| {
        let [on, off, red] = counts.map(i64::from);
        if at % 10 < 3 { 95 + 55 * on + 49 * off + 77 * red } else { additive(counts) }
    });
    let (code, said) = home.learn();
    assert!(code == Some(0) && said.contains("warning: ") && said.contains("two apps"), "{said}");
}

#[test]
fn labels_of_other_commands_are_doubted() {
    let home = Commands::new(90, |counts, _| additive(counts));
    let mut wrong = home.labels.clone();
    // Each command with the label of the one 37 later.
    for (at, label) in wrong.iter_mut().enumerate() {
        label.1 = home.labels[(at + 37) % 90].1;
    }
    let (code, said) = home.learn_with(&wrong);
    assert!(code == Some(1) || said.contains("warning: "), "{said}");
}

#[test]
fn a_fifth_of_wrong_labels_is_left_out_by_line() {
    let home = Commands::new(90, |counts, _| additive(counts));
    let mut wrong = home.labels.clone();
    for label in wrong.iter_mut().step_by(5) {
        label.1 = [label.1[0] + 2, 0, label.1[2]];
    }
    let (code, said) = home.learn_with(&wrong);
    assert!(code == Some(0) && said.contains("line 2 ("), "{said}");
    assert!(shares(&home.figures())[1] > 0.9, "{said}");
}

#[test]
fn single_actions_are_answered_as_whole_commands() {
    let home = Commands::of((0..40).map(|at| match at % 3 {
        0 => ([1, 0, 0], 163),
        1 => ([0, 1, 0], 163),
        _ => ([0, 0, 1], 201),
    }));
    let (code, said) = home.learn();
    assert!(code == Some(0) && said.contains("what other combinations weigh is not known"), "{said}");
    assert!(said.contains("`on` and `off` have the same sizes") && said.contains("neither do their replies"), "{said}");
    let [first, among] = shares(&home.figures());
    assert!(among >= 1.0 && (0.6..0.7).contains(&first), "{first} {among}");
}

#[test]
fn labels_of_whole_commands_that_belong_to_others_are_doubted() {
    let action = |at: u32| (at * 7 + at / 3) as usize % 3;
    let counts = |action: usize| std::array::from_fn(|at| u32::from(at == action));
    let home = Commands::of((0..90).map(|at| (counts(action(at)), [163, 184, 201][action(at)])));
    let (code, said) = home.learn();
    assert!(code == Some(0) && !said.contains("warning"), "{said}");
    let mut wrong = home.labels.clone();
    for (at, label) in (0_u32..).zip(&mut wrong) {
        label.1 = counts((at * at / 5 % 3) as usize);
    }
    let (code, said) = home.learn_with(&wrong);
    assert!(code == Some(0) && said.contains("sizes do not depend on the labels more than by chance"), "{said}");
}

#[test]
fn a_row_of_zeros_is_a_message_without_actions() {
    let counts = |at: u32| if at.is_multiple_of(7) { [0; 3] } else { [at % 3, at / 3 % 2, 1] };
    let home = Commands::of((0..80).map(|at| (counts(at), additive(counts(at)))));
    let (code, said) = home.learn();
    assert!(code == Some(0) && said.contains("no action"), "{said}");
    assert!(shares(&home.figures())[0] > 0.9, "{said}");
}
