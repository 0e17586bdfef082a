//! The commands that are measured are those that are learned from: whole ones, however many records each has.

use std::fmt::Write;

use sizeleak_learning::labels::{LabelFile, LabelTimes};
use sizeleak_learning::{LabelledCommands, LearningSettings};
use sizeleak_pipeline::{InputSource, Pipeline, PipelineInput};
use support::size_table::SizeTable;

const COMMANDS: u64 = 80;

/// Between two commands, in microseconds.
const APART: u64 = 1_800_000;

/// What a record has beside its plaintext, in bytes.
const OVERHEAD: u64 = 17;

/// How often two actions occur in a command.
fn counts(command: u64) -> [u64; 2] {
    let mixed = command.wrapping_mul(2_654_435_761) >> 7;
    [1 + mixed % 3, mixed / 3 % 3]
}

/// The sizes of the commands that belong to labels, and those that the gateway's commands have, each of which is `parts`
/// bytes and then its actions, a record each; every `late`th was sent three seconds after its label.
fn measured(parts: &[u64], late: u64) -> (Vec<i64>, Vec<i64>) {
    let folder = tempfile::tempdir().unwrap();
    let [table, stream, labels] = ["sizes.csv", "sizes.frames", "labels.csv"].map(|name| folder.path().join(name));
    let mut text = "# Times are microseconds after 1700000000 s since the epoch.\n".to_owned();
    text += "flow,1,192.0.2.1,198.51.100.7:443,tcp\nsession,0,1,cloud.example,TLS 1.3,TLS_AES_128_GCM_SHA256\n";
    let mut labelled = "time,on,off\n".to_owned();
    let mut sizes = Vec::new();
    for command in 0..COMMANDS {
        let at = (10 + command) * APART;
        let [on, off] = counts(command);
        let body = 263 + 136 * on + 137 * off;
        for (part, plaintext) in (0..).zip(parts.iter().copied().chain([body])) {
            let (time, length) = (at + 90 * part, plaintext + OVERHEAD);
            writeln!(text, "record,{time},0,1,to,23,{length},{plaintext},{plaintext},0").unwrap();
        }
        writeln!(text, "record,{},0,1,from,23,119,102,102,0", at + 30_000).unwrap();
        let label = if command % late == late - 1 { at - 3_000_000 } else { at - 5_000 };
        writeln!(labelled, "{}.{:06},{on},{off}", 1_700_000_000 + label / 1_000_000, label % 1_000_000).unwrap();
        sizes.push((parts.iter().sum::<u64>() + body).cast_signed());
    }
    std::fs::write(&table, text).unwrap();
    std::fs::write(&labels, labelled).unwrap();
    SizeTable::read(&table).write(std::fs::File::create(&stream).unwrap());
    let labels = LabelFile::read(&labels, &LabelTimes::default()).unwrap();
    let (input, finding) =
        (PipelineInput::new(InputSource::Streams(vec![stream])), Pipeline::standard().before("epsilon-corrector"));
    let (tolerance, settings) = (labels.tolerance(None), LearningSettings::default());
    let found = LabelledCommands::find(&input, &finding, &labels, tolerance, &settings, &mut |_| {}).unwrap();
    (found.commands.iter().map(|command| command.sizes[1]).collect(), sizes)
}

#[test]
fn commands_of_a_header_and_a_body_are_measured_whole() {
    for (parts, late) in [(&[192][..], 30), (&[192], 1000), (&[192, 44], 30), (&[], 30)] {
        let (found, all) = measured(parts, late);
        let whole = found.iter().filter(|size| all.contains(size)).count();
        assert_eq!(whole, found.len(), "{parts:?} and a body: {found:?}");
        assert!(found.len() + 2 >= all.len(), "{parts:?} and a body: {} of {COMMANDS}", found.len());
    }
}
