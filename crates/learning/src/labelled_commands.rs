//! Labelled commands as an observer sees them, without a model of their gateway.

use sizeleak_frame::Command;
use sizeleak_labels::{LabelFile, MatchCounts, Matching, Tolerance};
use sizeleak_model::{Basis, LabelledCommand};
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput, RunError};
use toml::Value;

use crate::error::Result;
use crate::observed_commands::{
    ObservedCommand, ObservedCommands, OnNotice, SEGMENTER, by_best_algorithm, command_times, observe_commands,
};
use crate::size_basis::{self, choose_basis};

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
            let times = command_times(&observed.commands);
            let labels = observed.aligned(labels, tolerance);
            let matching = labels.matching(&times, tolerance).ok();
            Ok(Found { observed, labels, times, matching })
        };
        let is_set = |key: &str| pipeline.option(SEGMENTER, key).and_then(Value::as_str).is_some();
        if is_set("algorithm") || is_set("model") || !pipeline.has(SEGMENTER) || !input.has_records(pipeline)? {
            return find(pipeline, on_notice)?.labelled(tolerance);
        }
        by_best_algorithm(pipeline, on_notice, Found::unmatched, find)?.labelled(tolerance)
    }
}

/// The commands of one run, with the labels on their clock.
struct Found {
    observed: ObservedCommands,
    labels: LabelFile,
    times: Vec<i64>,
    /// `None` if no label is near a command.
    matching: Option<Matching>,
}

impl Found {
    /// How many labels have no command.
    fn unmatched(&self) -> usize {
        self.matching.as_ref().map_or(usize::MAX, Matching::unmatched)
    }

    fn labelled(self, tolerance: Tolerance) -> Result<LabelledCommands> {
        let Self { observed, labels, times, .. } = self;
        let ObservedCommands { commands, seen, damage, .. } = observed;
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
            let mut seen = size_basis::labelled(&chosen.basis, &observed.command, counts);
            if chosen.basis == Basis::Wire {
                // Whatever some of the sessions show.
                seen.sizes = [i64::try_from(observed.command.size).unwrap_or(i64::MAX); 2];
            }
            seen
        };
        Ok(LabelledCommands {
            actions: labels.labels().actions.clone(),
            commands: pairs.iter().map(seen).collect(),
            found: matched.into_iter().map(|observed| observed.command).collect(),
            matches: MatchCounts::new(&matching),
            remarks,
            damage,
        })
    }
}
