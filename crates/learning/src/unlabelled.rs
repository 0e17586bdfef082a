//! Sizes from commands of which few or none are labelled.
//!
//! The commands that a pipeline finds without a model are taken apart by their sizes and single replies alone
//! ([`blind`](crate::fit::blind)). The actions that the fit draws for a command become the command's label, where the user
//! gave none. From these labels [`LearningRun`](crate::LearningRun) learns as from any others: noise, the distribution of
//! ε, replies and priors.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::Direction;
use sizeleak_model::Basis;
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput, RunError};
use sizeleak_text::listed;
use toml::Value;

use crate::error::{LearningError, Result};
use crate::fit::blind::{BlindAction, BlindFit, Observation};
use crate::labels::{Label, LabelFile, LabelFileError, Labels, Tolerance};
use crate::observed_commands::{ObservedCommand, ObservedCommands, OnNotice, SEGMENTER, observe_commands, patient};
use crate::size_basis::{self, CipherSuite, is_in_blocks};

/// The first stage that needs a model of sizes.
const CORRECTOR: &str = "epsilon-corrector";

/// How messages call the labels that are answers.
const ANSWERS: &str = "the answers without labels";

/// How many names a sentence has; the others are counted.
const SHOWN: usize = 12;

/// Sizes that leave a greater share of the commands unexplained are in doubt.
const MAX_OUTLIERS: f64 = 0.25;

#[derive(Debug)]
pub struct UnlabelledRun<'a> {
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
        let fit = crate::fit::blind::learn(&found.observations, labelled_names, found.basis == Basis::Wire)?;
        let names = action_names(&fit, labelled_names);
        let mut labels = found.answers(&fit, &names, labelled_names);
        let mut remarks = found.remarks;
        if fit.actions.iter().any(|action| action.name.is_none()) {
            let unnamed = without_unlabelled(&mut labels);
            if let Some(last) = unnamed.len().checked_sub(1) {
                let names = listed(unnamed.iter().map(|name| format!("`{name}`")), SHOWN);
                let may_be = if last == 0 { "it may be one of" } else { "they may be among" };
                remarks.push(format!("no labelled command has {names}: {may_be} the actions without a name"));
            }
        }
        if found.elsewhere > 0 {
            remarks.push(format!(
                "{} messages of other services look like commands, and are not learned from",
                found.elsewhere
            ));
        }
        let labels = LabelFile::of_answers(ANSWERS, labels)?;
        let (commands, labelled) = (found.observations.len(), found.labelled);
        Ok(FoundSizes { fit, names, labels, commands, labelled, remarks, damage })
    }
}

/// Leaves out the actions that no command has, and names them.
fn without_unlabelled(labels: &mut Labels) -> Vec<String> {
    let has = |at: usize| labels.rows.iter().any(|row| row.counts.get(at).is_some_and(|count| *count > 0));
    let kept: Vec<bool> = (0..labels.actions.len()).map(has).collect();
    for row in &mut labels.rows {
        let mut kept = kept.iter();
        row.counts.retain(|_| *kept.next().unwrap_or(&true));
    }
    let (kept, left_out): (Vec<_>, Vec<_>) =
        std::mem::take(&mut labels.actions).into_iter().zip(kept).partition(|(_, is_kept)| *is_kept);
    labels.actions = kept.into_iter().map(|(name, _)| name).collect();
    left_out.into_iter().map(|(name, _)| name).collect()
}

/// Commands of a service as the blind fit takes them.
#[derive(Debug)]
struct ServiceObservations {
    basis: Basis,
    /// When each command was, in nanoseconds since 1970.
    times: Vec<i64>,
    observations: Vec<Observation>,
    labelled: usize,
    /// How many commands of other services there are.
    elsewhere: usize,
    /// What had to be assumed, a sentence each.
    remarks: Vec<String>,
}

impl ServiceObservations {
    /// The commands of the service with the most of them, or the most labels if there are any. `None` without commands.
    ///
    /// # Errors
    /// If there are labels and none is near a command.
    fn of_busiest(
        observed: &ObservedCommands,
        labels: Option<(&LabelFile, Tolerance)>,
        assumed: Option<CipherSuite>,
    ) -> Result<Option<Self>, LabelFileError> {
        let commands: Vec<&ObservedCommand> =
            observed.commands.iter().filter(|one| one.command.direction == Direction::ToGateway).collect();
        if commands.is_empty() {
            return Ok(None);
        }
        let times: Vec<i64> = commands.iter().map(|one| one.command.time_ns).collect();
        let mut counts: Vec<Option<Vec<u32>>> = vec![None; commands.len()];
        if let Some((labels, tolerance)) = labels {
            for (row, at) in labels.matching(&times, tolerance)?.pairs {
                counts[at] = labels.labels().rows.get(row).map(|row| row.counts.clone());
            }
        }
        let mut by_service: BTreeMap<Option<usize>, (usize, usize)> = BTreeMap::new();
        for (one, counts) in commands.iter().zip(&counts) {
            let (labelled, all) = by_service.entry(one.service).or_default();
            *labelled += usize::from(counts.is_some());
            *all += 1;
        }
        // Among equals, the first.
        let busiest = by_service.into_iter().rev().max_by_key(|(_, numbers)| *numbers);
        let Some((service, (labelled, all))) = busiest else { return Ok(None) };
        let own: Vec<ObservedCommand> =
            commands.iter().filter(|one| one.service == service).map(|one| (*one).clone()).collect();
        let chosen = size_basis::choose_basis(&own, assumed);
        let of_service = commands.iter().zip(counts).filter(|(one, _)| one.service == service);
        let observations = of_service.map(|(one, counts)| Observation {
            // A block cipher leaves a range; its greatest size is that without padding.
            size: size_basis::sizes(&chosen.basis, &one.command)[1],
            replies: size_basis::single_replies(&chosen.basis, &one.command),
            counts,
        });
        Ok(Some(Self {
            times: own.iter().map(|one| one.command.time_ns).collect(),
            observations: observations.collect(),
            labelled,
            elsewhere: commands.len() - all,
            basis: chosen.basis,
            remarks: chosen.remarks,
        }))
    }

    /// The labels of commands, where there are none those that the fit draws. `names` are those of the fit's actions;
    /// those of true labels come first.
    fn answers(&self, fit: &BlindFit, names: &[String], labelled_names: &[String]) -> Labels {
        let others = names.iter().filter(|name| !labelled_names.contains(name));
        let actions: Vec<String> = labelled_names.iter().chain(others).cloned().collect();
        let drawn = |drawn: &Vec<u32>| {
            let times = |name: &String| {
                names.iter().zip(drawn).filter(|(own, _)| *own == name).map(|(_, count)| *count).sum::<u32>()
            };
            actions.iter().map(times).collect::<Vec<u32>>()
        };
        let mut rows = Vec::new();
        for ((time_ns, observation), found) in self.times.iter().zip(&self.observations).zip(&fit.drawn) {
            let counts = observation.counts.clone().or_else(|| found.as_ref().map(drawn));
            let Some(mut counts) = counts else { continue };
            counts.resize(actions.len(), 0);
            rows.push(Label { time_ns: *time_ns, counts, line: rows.len() as u64 + 1 });
        }
        Labels { actions, rows, ..Labels::default() }
    }
}

/// The names of the actions of a fit: those of labels, `action-1` and so on for the others, in the order of the fit.
fn action_names(fit: &BlindFit, labelled: &[String]) -> Vec<String> {
    let taken: BTreeSet<&str> = labelled.iter().map(String::as_str).collect();
    let mut numbers = (1_usize..).map(|number| format!("action-{number}")).filter(|name| !taken.contains(&**name));
    let mut name = |action: &BlindAction| action.name.clone().or_else(|| numbers.next()).unwrap_or_default();
    fit.actions.iter().map(&mut name).collect()
}
