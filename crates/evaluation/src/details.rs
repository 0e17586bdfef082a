//! The outcome of every single command, as rows of a table.

use serde::Serialize;

use crate::judge::TruthRank;
use crate::judged_run::{JudgedCommand, JudgedRun};

/// The outcome of a label or command; the fields are the columns.
#[derive(Debug, Default, Serialize)]
pub struct CommandDetails {
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
    /// The rank of the truth before pruning: `listed`, `unlisted`, `absent` or `undecided`.
    before: &'static str,
    before_candidates: Option<u64>,
    after: &'static str,
    after_candidates: Option<u64>,
    first: String,
    /// The position of the truth in the list, from 1.
    rank: Option<u64>,
}

/// A row for each label, in the order of the file, then one for each command without a label.
pub fn details(run: &JudgedRun) -> Vec<CommandDetails> {
    let labels = (0..run.labels.labels().rows.len()).map(|row| label_details(run, row));
    let spurious = run.after.matching.spurious.iter().map(|command| {
        let details = CommandDetails { outcome: "spurious", ..CommandDetails::default() };
        details.with_command(run.after.commands.get(*command))
    });
    labels.chain(spurious).collect()
}

fn label_details(run: &JudgedRun, row: usize) -> CommandDetails {
    let labels = run.labels.labels();
    let label = labels.rows.get(row);
    let actions = |counts: &[u32]| {
        let named = labels.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
        named.map(|(action, count)| format!("{action}={count}")).collect::<Vec<_>>().join(" ")
    };
    let details = CommandDetails {
        line: label.map(|label| label.line),
        label_time_ns: label.map(|label| label.time_ns),
        truth: label.map_or_else(String::new, |label| actions(&label.counts)),
        ..CommandDetails::default()
    };
    let Some(command) = run.after.command(row) else {
        let is_missed = run.after.matching.missed.binary_search(&row).is_ok();
        return CommandDetails { outcome: if is_missed { "missed" } else { "ambiguous" }, ..details };
    };
    let before = run.before.as_ref().and_then(|before| before.judgement(row));
    let after = command.judgement(row);
    let judged = CommandDetails {
        outcome: "found",
        before: before.map_or("", |before| word(before.rank)),
        before_candidates: before.map(|before| before.candidates),
        after: after.map_or("", |after| word(after.rank)),
        after_candidates: after.map(|after| after.candidates),
        first: after.and_then(|after| after.first.as_ref()).map_or_else(String::new, |first| actions(first)),
        rank: after.and_then(|after| after.rank.position()),
        ..details
    };
    judged.with_command(Some(command))
}

impl CommandDetails {
    fn with_command(self, command: Option<&JudgedCommand>) -> Self {
        let Some(JudgedCommand { time_ns, size, replies, .. }) = command else { return self };
        Self { command_time_ns: Some(*time_ns), size: Some(*size), replies: Some(*replies), ..self }
    }
}

fn word(rank: TruthRank) -> &'static str {
    match rank {
        TruthRank::Listed(_) => "listed",
        TruthRank::Unlisted => "unlisted",
        TruthRank::Absent => "absent",
        TruthRank::Undecided => "undecided",
    }
}
