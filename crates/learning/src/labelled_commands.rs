//! Labelled commands with their sizes, as an observer sees them, without a model of their gateway.

use std::collections::BTreeSet;

use sizeleak_frame::Command;
use sizeleak_model::{Basis, LabelledCommand};
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput, RunError};
use sizeleak_text::counted;
use toml::Value;

use crate::error::Result;
use crate::labels::{LabelFile, MatchCounts, Tolerance};
use crate::learning_run::LearningRun;
use crate::observed_commands::{
    ObservedCommand, ObservedCommands, OnNotice, SEGMENTER, by_best_algorithm, command_times, observe_commands,
};
use crate::size_basis::{choose_basis, labelled};
use crate::training_set::LearningSettings;

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
    /// command: it does not look at sizes, so that it makes them say no more than they do. What then has no label, and
    /// would be noise to a model that is learned so, is no command. Notices of the first run go to `on_notice`.
    ///
    /// # Errors
    /// If the pipeline does not run, or most labels belong to no command.
    pub fn find(
        input: &PipelineInput,
        pipeline: &Pipeline,
        labels: &LabelFile,
        tolerance: Tolerance,
        settings: &LearningSettings,
        on_notice: &mut OnNotice<'_>,
    ) -> Result<Self> {
        let find = |pipeline: &Pipeline, on_notice: &mut OnNotice<'_>| {
            let observed = observe_commands(input, pipeline, on_notice)?;
            let labels = observed.aligned(labels, tolerance);
            Ok((observed, labels))
        };
        let is_set = |key: &str| pipeline.option(SEGMENTER, key).and_then(Value::as_str).is_some();
        let is_said = is_set("algorithm") || is_set("model") || !pipeline.has(SEGMENTER);
        if is_said || !input.has_records(pipeline)? {
            let (observed, labels) = find(pipeline, on_notice)?;
            return Self::of(observed, &labels, tolerance);
        }
        // All, where none is near a command.
        let unmatched = |(observed, labels): &(ObservedCommands, LabelFile)| {
            let matching = labels.matching(&command_times(&observed.commands), tolerance);
            matching.map_or(usize::MAX, |matching| matching.unmatched())
        };
        let (mut observed, labels) = by_best_algorithm(pipeline, on_notice, unmatched, find)?;
        let run = LearningRun { labels: &labels, input, tolerance, settings };
        let noise = leave_out_noise(&mut observed, &run, pipeline);
        let mut found = Self::of(observed, &labels, tolerance)?;
        found.remarks.extend(noise);
        Ok(found)
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

/// Leaves out what has no label and is no command to a model that is learned by `run`, and returns a sentence about it.
fn leave_out_noise(observed: &mut ObservedCommands, run: &LearningRun<'_>, pipeline: &Pipeline) -> Option<String> {
    let matching = run.labels.matching(&command_times(&observed.commands), run.tolerance).ok()?;
    if matching.spurious.is_empty() {
        return None;
    }
    // What keeps a model from being learned is said where one is.
    let outcome = run.learn(pipeline, &mut |_| {}).ok().filter(|outcome| !outcome.needs_more(run.settings))?;
    let sections = outcome.learned.as_ref().ok()?;
    let services: BTreeSet<usize> = sections.iter().flat_map(|section| section.services.iter().copied()).collect();
    let place = |observed: &ObservedCommand| (observed.command.flow, observed.command.time_ns);
    let own = outcome.commands.iter().filter(|one| one.service.is_none_or(|service| services.contains(&service)));
    let commands: BTreeSet<(u64, i64)> = own.map(place).collect();
    let is_noise = |at: &usize| observed.commands.get(*at).is_some_and(|one| !commands.contains(&place(one)));
    let noise: BTreeSet<usize> = matching.spurious.into_iter().filter(is_noise).collect();
    let mut places = 0..;
    observed.commands.retain(|_| places.next().is_none_or(|at| !noise.contains(&at)));
    (!noise.is_empty()).then(|| {
        let are = if noise.len() == 1 { "is no command" } else { "are no commands" };
        let messages = counted(noise.len(), "message", "messages");
        format!("{messages} without a label {are}: of another service, periodic, an answer, or of a size of no actions")
    })
}
