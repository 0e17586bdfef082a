//! What came of every single command, as CSV.

use std::io::Write;

use serde::Serialize;
use sizeleak_model::{Labels, Matching};

use super::judge::{Judgement, TruthRank};
use super::judged_command::JudgedCommand;

/// The commands of an evaluation. A label that has no command, and a command that has no label, have rows too.
#[derive(Debug)]
pub(super) struct Details<'a> {
    pub(super) labels: &'a Labels,
    pub(super) matching: &'a Matching,
    /// At the end of the pipeline.
    pub(super) sightings: &'a [JudgedCommand],
    /// What was said of each label's command before pruning, where there is such a thing.
    pub(super) before: &'a [Option<&'a Judgement>],
}

/// A row; its fields are the columns.
#[derive(Debug, Default, Serialize)]
struct Row {
    /// Of the label in its file.
    line: Option<u64>,
    label_time_ns: Option<i64>,
    /// The true actions, like `on=2 off=1`.
    truth: String,
    /// `found`, `missed`, `ambiguous` or `spurious`.
    outcome: &'static str,
    command_time_ns: Option<i64>,
    /// On the wire, in bytes.
    size: Option<u64>,
    replies: Option<u32>,
    /// Where the truth stands before pruning: `listed`, `unlisted`, `absent` or `undecided`.
    before: &'static str,
    before_candidates: Option<u64>,
    after: &'static str,
    after_candidates: Option<u64>,
    /// The first candidate.
    first: String,
    /// The truth's place in the list, from 1.
    rank: Option<u64>,
}

impl Details<'_> {
    /// Writes a row a label in the order of the file, then a row for each command without a label.
    pub(super) fn write(&self, output: impl Write) -> csv::Result<()> {
        let mut writer = csv::Writer::from_writer(output);
        for row in 0..self.labels.rows.len() {
            writer.serialize(self.label(row))?;
        }
        for command in &self.matching.spurious {
            writer.serialize(self.with_command(*command, Row { outcome: "spurious", ..Row::default() }))?;
        }
        writer.flush()?;
        Ok(())
    }

    fn label(&self, row: usize) -> Row {
        let label = self.labels.rows.get(row);
        let named = Row {
            line: label.map(|label| label.line),
            label_time_ns: label.map(|label| label.time_ns),
            truth: label.map_or_else(String::new, |label| self.actions(&label.counts)),
            ..Row::default()
        };
        let pair = self.matching.pairs.binary_search_by_key(&row, |(label, _)| *label);
        let Some((_, command)) = pair.ok().and_then(|at| self.matching.pairs.get(at)) else {
            let is_missed = self.matching.missed.binary_search(&row).is_ok();
            return Row { outcome: if is_missed { "missed" } else { "ambiguous" }, ..named };
        };
        let before = self.before.get(row).copied().flatten();
        let after = self.sightings.get(*command).and_then(|sighting| sighting.judgement(row));
        let judged = Row {
            outcome: "found",
            before: before.map_or("", |before| word(before.standing)),
            before_candidates: before.map(|before| before.candidates),
            after: after.map_or("", |after| word(after.standing)),
            after_candidates: after.map(|after| after.candidates),
            first: after.and_then(|after| after.first.as_ref()).map_or_else(String::new, |first| self.actions(first)),
            rank: after.and_then(|after| after.standing.place()),
            ..named
        };
        self.with_command(*command, judged)
    }

    fn with_command(&self, command: usize, row: Row) -> Row {
        let Some(sighting) = self.sightings.get(command) else { return row };
        let JudgedCommand { time_ns, size, replies, .. } = sighting;
        Row { command_time_ns: Some(*time_ns), size: Some(*size), replies: Some(*replies), ..row }
    }

    /// Actions like `on=2 off=1`.
    fn actions(&self, counts: &[u32]) -> String {
        let named = self.labels.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
        named.map(|(action, count)| format!("{action}={count}")).collect::<Vec<_>>().join(" ")
    }
}

fn word(standing: TruthRank) -> &'static str {
    match standing {
        TruthRank::Listed(_) => "listed",
        TruthRank::Unlisted => "unlisted",
        TruthRank::Absent => "absent",
        TruthRank::Undecided => "undecided",
    }
}
