//! What the sizes of a model are: plaintext if the captures show the cipher suite, else lengths on the wire; and
//! labelled commands with such sizes, as an observer sees them, without a model of their gateway.

use std::collections::BTreeMap;

use sizeleak_frame::Command;
use sizeleak_model::{Basis, LabelledCommand, LearnedPadding, Provenance, WireSize};
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput, RunError};
use sizeleak_record_sizer::record_overhead;
use toml::Value;

use crate::error::{LearningError, Result};
use crate::labels::{LabelFile, MatchCounts, Tolerance};
use crate::observed_commands::{
    ObservedCommand, ObservedCommands, OnNotice, SEGMENTER, by_best_algorithm, command_times, observe_commands,
};

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

/// The commands that labels belong to, in order of time.
#[derive(Debug)]
pub struct LabelledCommands {
    pub actions: Vec<String>,
    /// The commands, with sizes of plaintext where the captures show the cipher, else on the wire.
    pub commands: Vec<LabelledCommand>,
    /// The same commands as they were found.
    found: Vec<Command>,
    pub matches: MatchCounts,
    /// What is to be said of labels and sizes, a sentence each.
    pub remarks: Vec<String>,
    /// What is wrong with the captures; commands are those before the damage.
    pub damage: Option<RunError>,
}

impl LabelledCommands {
    /// When each command began, in nanoseconds since 1970, and its size on the wire in bytes.
    pub fn seen(&self) -> impl Iterator<Item = (i64, u64)> {
        self.found.iter().map(|command| (command.time_ns, command.size))
    }

    /// The greatest size in bytes that each command may have in the basis of a model; `None` if the model is of sizes on
    /// the wire under a cipher that it does not know, while this session's is known.
    pub fn sizes_in(&self, basis: &Basis) -> Vec<Option<u64>> {
        let size = |command: &Command| basis.sizes(command.size, command.records, command.plaintext).ok();
        self.found.iter().map(|command| size(command).map(|[_, most]| u64::try_from(most).unwrap_or(0))).collect()
    }

    /// Finds the commands of labels. Where nothing says how, the algorithm is used that leaves the fewest labels without a
    /// command: it does not look at sizes, so that it makes them say no more than they do. Notices of the first run go to
    /// `on_notice`.
    ///
    /// # Errors
    /// If the pipeline does not run, or most labels belong to no command.
    pub fn find(
        input: &PipelineInput,
        pipeline: &Pipeline,
        labels: &LabelFile,
        tolerance: Tolerance,
        on_notice: &mut OnNotice<'_>,
    ) -> Result<Self> {
        let find = |pipeline: &Pipeline, on_notice: &mut OnNotice<'_>| {
            let observed = observe_commands(input, pipeline, on_notice)?;
            let labels = observed.aligned(labels, tolerance);
            Ok((observed, labels))
        };
        let is_set = |key: &str| pipeline.option(SEGMENTER, key).and_then(Value::as_str).is_some();
        let is_said = is_set("algorithm") || is_set("model") || !pipeline.has(SEGMENTER);
        let (observed, labels) = if is_said || !input.has_records(pipeline)? {
            find(pipeline, on_notice)?
        } else {
            // All, where none is near a command.
            let unmatched = |(observed, labels): &(ObservedCommands, LabelFile)| {
                let matching = labels.matching(&command_times(&observed.commands), tolerance);
                matching.map_or(usize::MAX, |matching| matching.unmatched())
            };
            by_best_algorithm(pipeline, on_notice, unmatched, find)?
        };
        Self::of(observed, &labels, tolerance)
    }

    /// The commands of one run, with the labels on their clock.
    fn of(observed: ObservedCommands, labels: &LabelFile, tolerance: Tolerance) -> Result<Self> {
        let ObservedCommands { commands, seen, damage, .. } = observed;
        let times = command_times(&commands);
        if commands.is_empty() {
            return Err(InputError::no_commands(damage, seen).into());
        }
        let matching = labels.matching(&times, tolerance)?;
        if damage.is_none() {
            // Before the damage there need not be commands of all labels.
            labels.check_use(&matching, &times, tolerance)?;
        }
        let mut remarks = labels.unmatched(&matching, &times, tolerance);
        let rows = &labels.labels().rows;
        let pairs = matching.pairs.iter();
        let pairs = pairs.filter_map(|(row, at)| Some((&*rows.get(*row)?.counts, commands.get(*at)?)));
        let mut pairs: Vec<(&[u32], &ObservedCommand)> = pairs.collect();
        pairs.sort_by_key(|(_, observed)| observed.command.time_ns);
        let matched: Vec<ObservedCommand> = pairs.iter().map(|(_, observed)| (*observed).clone()).collect();
        let chosen = choose_basis(&matched, None);
        let mixed = matched.iter().filter(|observed| observed.command.plaintext.is_none()).count();
        if mixed > 0 && mixed < matched.len() {
            remarks.extend(chosen.remarks);
        }
        let seen = |(counts, observed): &(&[u32], &ObservedCommand)| {
            let mut seen = labelled(&chosen.basis, &observed.command, counts);
            if chosen.basis == Basis::Wire {
                // Whatever some of the sessions show.
                seen.sizes = [i64::try_from(observed.command.size).unwrap_or(i64::MAX); 2];
            }
            seen
        };
        Ok(Self {
            actions: labels.labels().actions.clone(),
            commands: pairs.iter().map(seen).collect(),
            found: matched.into_iter().map(|observed| observed.command).collect(),
            matches: MatchCounts::new(&matching),
            remarks,
            damage,
        })
    }
}

#[cfg(test)]
mod tests;
