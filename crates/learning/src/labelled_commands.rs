//! Labelled commands with their sizes, as an observer sees them, without a model of their gateway.

use sizeleak_frame::Command;
use sizeleak_model::{Basis, LabelledCommand};
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput, RunError};
use toml::Value;

use crate::error::Result;
use crate::labels::{LabelFile, MatchCounts, Tolerance};
use crate::learning_run::{LearningOutcome, LearningRun};
use crate::observed_commands::{ObservedCommand, OnNotice, SEGMENTER, command_times, patient};
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

    /// Finds the commands of labels, as a model that is learned from the labels does, unless a model is said. Notices of
    /// the first run go to `on_notice`.
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
        let run = LearningRun { labels, input, tolerance, settings };
        let is_said = |key: &str| pipeline.option(SEGMENTER, key).is_some_and(Value::is_str);
        if is_said("model") {
            return Self::of(run.learn_without_noise(pipeline, on_notice)?, tolerance);
        }
        let mut outcome = run.learn(pipeline, on_notice)?;
        if outcome.needs_more(settings) && pipeline.has(SEGMENTER) && !is_said("algorithm") {
            // So few labels do not tell noise.
            outcome = run.learn_without_noise(&patient(pipeline)?, &mut |_| {})?;
        }
        Self::of(outcome, tolerance)
    }

    /// The commands of the services that a model was learned from, or all without a model.
    fn of(outcome: LearningOutcome, tolerance: Tolerance) -> Result<Self> {
        let LearningOutcome { learned, mut commands, labels, damage, .. } = outcome;
        match learned {
            Ok(sections) => {
                let is_own = |service| sections.iter().any(|section| section.services.contains(&service));
                commands.retain(|observed| observed.service.is_none_or(is_own));
            }
            Err(error) if commands.is_empty() => {
                return Err(damage.map_or(error, |damage| InputError::from(damage).into()));
            }
            Err(_) => {}
        }
        let times = command_times(&commands);
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
