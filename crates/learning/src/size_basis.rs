//! What the sizes of a model are: plaintext if the captures show the cipher suite, else lengths on the wire.

use std::collections::BTreeMap;

use sizeleak_frame::Command;
use sizeleak_model::{Basis, LabelledCommand, LearnedPadding, Provenance, WireSize};
use sizeleak_record_sizer::record_overhead;

use crate::error::LearningError;
use crate::observed_commands::ObservedCommand;

/// A cipher suite and the bytes it adds to a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CipherSuite {
    name: String,
    record_overhead: [u32; 2],
}

impl CipherSuite {
    /// A suite by its IANA name.
    pub fn named(name: &str) -> Result<Self, LearningError> {
        let unknown = || LearningError::UnknownCipherSuite(name.to_owned());
        Ok(Self { name: name.to_owned(), record_overhead: record_overhead(name).ok_or_else(unknown)? })
    }

    /// The least and the most bytes it adds to a record.
    pub fn record_overhead(&self) -> [u32; 2] {
        self.record_overhead
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChosenBasis {
    pub(crate) basis: Basis,
    pub(crate) remarks: Vec<String>,
}

/// Chooses the basis for these commands. `assumed` is the suite of sessions whose handshake was not captured.
///
/// Sizes are plaintext as soon as one session shows its suite or a suite is assumed; the overhead of that suite is then
/// subtracted for sessions that do not show theirs. Otherwise sizes are those on the wire.
pub(crate) fn choose_basis(commands: &[ObservedCommand], assumed: Option<CipherSuite>) -> ChosenBasis {
    let mut remarks = Vec::new();
    let unseen = commands.iter().filter(|observed| observed.command.plaintext.is_none()).count();
    let most_frequent = most_frequent_suite(commands);
    if unseen == 0
        && let Some(suite) = &assumed
    {
        remarks.push(format!("`--cipher {}` was not needed: all sessions show their own cipher suite", suite.name));
    }
    let assumed = assumed.filter(|_| unseen > 0);
    let Some(suite) = assumed.or(most_frequent) else {
        remarks.push(
            "no session shows its cipher suite: sizes are learned as they are on the wire, and hold for this unknown \
             suite only; capture a handshake (restart the gateway), or name the suite with `--cipher`"
                .to_owned(),
        );
        return ChosenBasis { basis: Basis::Wire, remarks };
    };
    if unseen > 0 {
        let (all, name) = (commands.len(), &suite.name);
        remarks.push(format!(
            "{unseen} of {all} commands belong to sessions that do not show their cipher suite: assumed to be {name}"
        ));
    }
    let has_ranges = commands.iter().any(|observed| is_range(&observed.command));
    let [least, most] = suite.record_overhead;
    if has_ranges || (unseen > 0 && least < most) {
        remarks.push(
            "sizes are known between bounds (a block cipher, or QUIC): they are learned from ranges, and may be off by a \
             few bytes"
                .to_owned(),
        );
    }
    let CipherSuite { name: cipher_suite, record_overhead } = suite;
    ChosenBasis { basis: Basis::Plaintext { cipher_suite, record_overhead }, remarks }
}

/// The least and the greatest possible size of a command in a basis.
pub(crate) fn sizes(basis: &Basis, command: &Command) -> [i64; 2] {
    // A wire basis is chosen only if no command has a plaintext size, so it accepts all of them.
    basis.sizes(command.size, command.records, command.plaintext).unwrap_or([i64::MAX; 2])
}

fn wire_size(command: &Command) -> WireSize {
    WireSize { wire: command.size, records: command.records, plaintext: command.plaintext }
}

/// Whether sizes are known only as ranges, those of a block cipher.
pub(crate) fn is_in_blocks(basis: &Basis) -> bool {
    matches!(basis, Basis::Plaintext { record_overhead: [least, most], .. } if least < most)
}

/// The greatest sizes that commands may have had, of those whose sizes are in blocks. Each of several records ends in a
/// block of its own.
pub(crate) fn greatest_in_blocks(learned: &Provenance, commands: &[ObservedCommand]) -> Vec<i64> {
    let is_padded = matches!(learned.padding, Some(LearnedPadding::Modulo(_)));
    let commands = commands.iter().map(|observed| &observed.command);
    let of_one_record = commands.filter(|command| is_padded || command.records == 1);
    let ranges = of_one_record.map(|command| sizes(&learned.basis, command));
    ranges.filter(|[least, most]| is_padded || least < most).map(|[_, most]| most).collect()
}

/// The size of each reply to a command in a basis, where all of them are listed; under a block cipher, the greatest that
/// it may have: replies with as many blocks look alike. `None` for the exact sizes of a session beside others in blocks.
pub(crate) fn single_replies(basis: &Basis, command: &Command) -> Option<Vec<i64>> {
    if is_in_blocks(basis) && command.plaintext.is_some() && !is_range(command) {
        return None;
    }
    let replies = command.all_single_replies()?;
    Some(replies.iter().map(|reply| basis.reply_sizes(reply.length, wire_size(command))[1]).collect())
}

/// A command whose actions are known from a label, with its sizes in a basis.
pub(crate) fn labelled(basis: &Basis, command: &Command, counts: &[u32]) -> LabelledCommand {
    LabelledCommand {
        sizes: sizes(basis, command),
        counts: counts.to_vec(),
        replies: command.replies,
        reply_bytes: basis.reply_bytes(command.reply_bytes, command.replies, wire_size(command)),
        single_replies: single_replies(basis, command),
        has_own_replies: command.has_own_replies(),
    }
}

/// The suite of most commands (among equals the first by name), with the bytes it adds to a record.
fn most_frequent_suite(commands: &[ObservedCommand]) -> Option<CipherSuite> {
    let mut suites: BTreeMap<&str, (u64, [u32; 2])> = BTreeMap::new();
    for observed in commands {
        let overhead = observed_overhead(&observed.command);
        if let (Some(suite), Some([least, most])) = (&observed.cipher_suite, overhead) {
            let (times, range) = suites.entry(suite).or_insert((0, [least, most]));
            *times += 1;
            *range = [range[0].min(least), range[1].max(most)];
        }
    }
    let most = suites.values().map(|(times, _)| *times).max()?;
    let (name, (_, record_overhead)) = suites.into_iter().find(|(_, (times, _))| *times == most)?;
    Some(CipherSuite { name: name.to_owned(), record_overhead })
}

/// The least and the most bytes that were added to each of a command's records.
fn observed_overhead(command: &Command) -> Option<[u32; 2]> {
    let [least, most] = command.plaintext?;
    let records = u64::from(command.records.max(1));
    let least_added = command.size.saturating_sub(most) / records;
    let most_added = command.size.saturating_sub(least).div_ceil(records);
    Some([u32::try_from(least_added).ok()?, u32::try_from(most_added).ok()?])
}

fn is_range(command: &Command) -> bool {
    command.plaintext.is_some_and(|[least, most]| least < most)
}

#[cfg(test)]
mod tests;
