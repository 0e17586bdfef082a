//! Sizes from commands of which few or none are labelled.
//!
//! The commands that a pipeline finds without a model are taken apart by their sizes and single replies alone
//! ([`sizeleak_fit::blind`]). What that fit knows becomes a first model; the actions that it names for a command become
//! the command's label, where the user gave none. From these labels [`LearningRun`](crate::LearningRun) learns as from
//! any others: noise, the distribution of ε, replies and priors.

mod answers;
mod first_model;
mod observations;

use std::collections::BTreeMap;

use sizeleak_fit::blind::BlindFit;
use sizeleak_labels::{LabelFile, Tolerance};
use sizeleak_model::{Basis, Scope};
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput, RunError};
use toml::Value;

use crate::error::{LearningError, Result};
use crate::observed_commands::{
    ObservedCommands, OnNotice, SEGMENTER, command_times, observe_commands, patient, scope_of,
};
use crate::size_basis::{CipherSuite, is_in_blocks};
use answers::answers;
use first_model::{action_names, first_model};
use observations::ServiceObservations;

/// The first stage that needs a model of sizes.
const CORRECTOR: &str = "epsilon-corrector";

/// How messages call the labels that are answers.
const ANSWERS: &str = "the answers without labels";

/// Sizes that leave a greater share of the commands unexplained are in doubt.
const MAX_OUTLIERS: f64 = 0.25;

#[derive(Debug)]
pub struct UnlabelledRun<'a> {
    /// The captures, or streams saved from them.
    pub input: &'a PipelineInput,
    /// The labels that there are, if any, and how far a command may be from its label.
    pub labels: Option<(&'a LabelFile, Tolerance)>,
    /// The cipher suite of sessions whose handshake was not captured.
    pub cipher: Option<CipherSuite>,
}

/// What sizes and replies alone say about the commands of a capture.
#[derive(Debug)]
pub struct FoundSizes {
    pub fit: BlindFit,
    /// The names of the fit's actions, in its order: those of labels, else `action-1` and so on.
    pub names: Vec<String>,
    /// The commands that they explain, with their most probable actions, as labels.
    pub labels: LabelFile,
    pub commands: usize,
    /// How many of them have a true label.
    pub labelled: usize,
    /// What was left out or assumed, a sentence each.
    pub remarks: Vec<String>,
    /// What is wrong with the captures. Everything before the damage was learned from.
    pub damage: Option<RunError>,
}

impl FoundSizes {
    /// Why the sizes may be wrong, if the commands do not settle them.
    pub fn doubt(&self) -> Option<String> {
        let fit = &self.fit;
        if let Some(more) = fit.more_commands_needed {
            return Some(format!(
                "{} commands do not settle the sizes without labels, about {more} more would",
                fit.commands
            ));
        }
        (fit.outliers > MAX_OUTLIERS)
            .then(|| format!("nothing that was found explains {:.0} % of the commands", 100.0 * fit.outliers))
    }
}

impl UnlabelledRun<'_> {
    /// Finds sizes of the commands of a pipeline that ends with answers. Notices of its first run go to `on_notice`.
    ///
    /// # Errors
    /// If the pipeline does not run, or the commands do not tell the sizes.
    pub fn find(&self, pipeline: &Pipeline, on_notice: &mut OnNotice<'_>) -> Result<FoundSizes> {
        let algorithm = pipeline.option(SEGMENTER, "algorithm").and_then(Value::as_str);
        let is_free = pipeline.has(SEGMENTER) && algorithm.is_none_or(|algorithm| algorithm == "learned");
        let pipeline = if is_free { patient(pipeline)? } else { pipeline.clone() };
        let finding = pipeline.before(CORRECTOR);
        let mut observed = observe_commands(self.input, &finding, on_notice)?;
        let damage = observed.damage.take();
        let aligned = self.labels.map(|(labels, tolerance)| (observed.aligned(labels, tolerance), tolerance));
        let labels = aligned.as_ref().map(|(labels, tolerance)| (labels, *tolerance));
        let found = ServiceObservations::of_busiest(&observed, labels, self.cipher.clone())?;
        let Some(found) = found else {
            return Err(InputError::NoCommands(Box::new(observed.seen)).into());
        };
        if is_in_blocks(&found.basis) {
            return Err(LearningError::HiddenSizes);
        }
        let labelled_names = labels.map_or(&[][..], |(labels, _)| &labels.labels().actions);
        let fit = sizeleak_fit::blind::learn(&found.observations, labelled_names, found.basis == Basis::Wire)?;
        let names = action_names(&fit, labelled_names);
        let service = found.service.and_then(|at| observed.services.get(at));
        let scope = service.map_or_else(Scope::default, |service| scope_of(&[service]));
        let model = first_model(&fit, &names, &found.observations, found.basis.clone(), scope);
        let model = model.ok_or(LearningError::NoSizes)?;
        let others = names.iter().filter(|name| !labelled_names.contains(name));
        let all_names: Vec<String> = labelled_names.iter().chain(others).cloned().collect();
        let truth = true_counts(&observed, labels, all_names.len())?;
        let (labels, commands) = answers(self.input, &pipeline, model, &all_names, &truth)?;
        let mut remarks = found.remarks;
        if found.elsewhere > 0 {
            remarks.push(format!(
                "{} messages of other services look like commands, and are not learned from",
                found.elsewhere
            ));
        }
        let labels = LabelFile::of_answers(ANSWERS, labels)?;
        Ok(FoundSizes { fit, names, labels, commands, labelled: found.labelled, remarks, damage })
    }
}

/// The labels' counts of all actions, by the time of their commands.
fn true_counts(
    observed: &ObservedCommands,
    labels: Option<(&LabelFile, Tolerance)>,
    actions: usize,
) -> Result<BTreeMap<i64, Vec<u32>>> {
    let Some((labels, tolerance)) = labels else { return Ok(BTreeMap::new()) };
    let times = command_times(&observed.commands);
    let pairs = labels.matching(&times, tolerance)?.pairs;
    let counts = pairs.into_iter().filter_map(|(row, at)| {
        let mut counts = labels.labels().rows.get(row)?.counts.clone();
        counts.resize(actions, 0);
        Some((*times.get(at)?, counts))
    });
    Ok(counts.collect())
}
