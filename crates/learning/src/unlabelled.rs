//! Sizes from commands of which few or none are labelled.
//!
//! The commands that a pipeline finds without a model are taken apart by their sizes and single replies alone
//! ([`blind`](crate::fit::blind)). What that fit knows becomes a first model; the actions that it names for a command become
//! the command's label, where the user gave none. From these labels [`LearningRun`](crate::LearningRun) learns as from
//! any others: noise, the distribution of ε, replies and priors.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{Direction, Frame, Identification};
use sizeleak_model::{
    Action, Basis, EpsilonTuple, FitMethod, Model, ModelSet, Neighbours, Prior, Provenance, ReplyClass,
    ReplyCountModel, Scope, SingleReplies, Smoothing,
};
use sizeleak_pipeline::{InputError, Pipeline, PipelineInput, RunError};
use sizeleak_text::listed;
use toml::Value;

use crate::error::{LearningError, Result};
use crate::fit::blind::{BlindAction, BlindFit, Observation};
use crate::labels::{Label, LabelFile, LabelFileError, Labels, Tolerance};
use crate::learning_run::temporary_model;
use crate::observed_commands::{
    ObservedCommand, ObservedCommands, OnNotice, SEGMENTER, command_times, observe_commands, patient, scope_of,
};
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
        let fit = crate::fit::blind::learn(&found.observations, labelled_names, found.basis == Basis::Wire)?;
        let names = action_names(&fit, labelled_names);
        let service = found.service.and_then(|at| observed.services.get(at));
        let scope = service.map_or_else(Scope::default, |service| scope_of(&[service]));
        let model = first_model(&fit, &names, &found.observations, found.basis.clone(), scope);
        let model = model.ok_or(LearningError::NoSizes)?;
        let others = names.iter().filter(|name| !labelled_names.contains(name));
        let all_names: Vec<String> = labelled_names.iter().chain(others).cloned().collect();
        let truth = true_counts(&observed, labels, all_names.len())?;
        let (mut labels, commands) = answers(self.input, &pipeline, model, &all_names, &truth)?;
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
        Ok(FoundSizes { fit, names, labels, commands, labelled: found.labelled, remarks, damage })
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

/// Commands of a service as the blind fit takes them.
#[derive(Debug)]
struct ServiceObservations {
    /// Its index among those observed; `None` for flows of which no service is known.
    service: Option<usize>,
    basis: Basis,
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
            service,
            observations: observations.collect(),
            labelled,
            elsewhere: commands.len() - all,
            basis: chosen.basis,
            remarks: chosen.remarks,
        }))
    }
}

/// ε is estimated from its distribution over all sizes; the nearest sizes only say what length fields add.
const SMOOTHING: Smoothing = Smoothing { k: 3, strength: 1000.0 };

/// How many times a value of ε with the probability 1 is among the tuples of a size.
const TIMES: f64 = 50.0;

/// The most sizes that tuples are made for.
const MAX_SIZES: usize = 4096;

/// How little the shares of actions vary between commands: like those of devices that are used independently.
const CONCENTRATION: f64 = 30.0;

/// The least share: nothing is impossible.
const MIN_SHARE: f64 = 1e-3;

/// The most actions in a command, for its mean.
const MAX_ACTIONS: f64 = 64.0;

/// The names of the actions of a fit: those of labels, `action-1` and so on for the others, in the order of the fit.
fn action_names(fit: &BlindFit, labelled: &[String]) -> Vec<String> {
    let taken: BTreeSet<&str> = labelled.iter().map(String::as_str).collect();
    let mut numbers = (1_usize..).map(|number| format!("action-{number}")).filter(|name| !taken.contains(&**name));
    let mut name = |action: &BlindAction| action.name.clone().or_else(|| numbers.next()).unwrap_or_default();
    fit.actions.iter().map(&mut name).collect()
}

/// A model of what the blind fit knows, good enough to answer the commands that it came from; `None` if it has no
/// action.
fn first_model(
    fit: &BlindFit,
    names: &[String],
    observations: &[Observation],
    basis: Basis,
    scope: Scope,
) -> Option<Model> {
    let actions: Vec<Action> =
        names.iter().zip(&fit.actions).map(|(name, action)| Action::new(name, action.size)).collect();
    if actions.is_empty() {
        return None;
    }
    Some(Model {
        scope,
        overhead: fit.overhead,
        kinds: None,
        inventory: None,
        neighbours: neighbours(fit, observations)?,
        smoothing: SMOOTHING,
        prior: Some(prior(fit, observations)),
        replies: ReplyCountModel::uninformative(),
        reply_bytes: None,
        single_replies: single_replies(fit, observations),
        reply_windows: None,
        noise: None,
        learned: Provenance {
            method: FitMethod::Robust,
            commands: fit.commands as u64,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            basis,
            captures: Vec::new(),
            padding: None,
            block_rest: None,
            certainty: 1.0,
            warnings: Vec::new(),
            found_with: BTreeMap::new(),
            seen: Vec::new(),
        },
        actions,
    })
}

/// What length fields add at each size, with every value of ε.
fn neighbours(fit: &BlindFit, observations: &[Observation]) -> Option<Neighbours> {
    let sizes: BTreeSet<i64> = observations.iter().map(|one| one.size).collect();
    let tuples = sizes.into_iter().take(MAX_SIZES).flat_map(|size| {
        let grown = fit.grown(size);
        fit.epsilons.iter().filter_map(move |(epsilon, probability)| {
            let times = (probability * TIMES).round() as u64;
            (times > 0).then_some(EpsilonTuple { size, epsilon: grown + epsilon, times })
        })
    });
    Neighbours::new(tuples)
}

/// Actions as frequent as in the fit, each independent of the others.
fn prior(fit: &BlindFit, observations: &[Observation]) -> Prior {
    let share = |action: &BlindAction| action.frequency.max(MIN_SHARE);
    let all: f64 = fit.actions.iter().map(share).sum();
    let shares: Vec<f64> = fit.actions.iter().map(|action| share(action) / all).collect();
    let mean_size: f64 = fit.actions.iter().zip(&shares).map(|(action, share)| action.size as f64 * share).sum();
    let of_actions = observations.iter().map(|one| one.size.saturating_sub(fit.overhead).max(0) as f64);
    let mean = of_actions.sum::<f64>() / observations.len().max(1) as f64 / mean_size.max(1.0);
    let decay = 1.0 - 1.0 / mean.clamp(1.0 + MIN_SHARE, MAX_ACTIONS);
    Prior { numbers: Vec::new(), decay, shares, concentration: CONCENTRATION, recurring: Vec::new() }
}

/// One reply of each action that sends one, by its size.
fn single_replies(fit: &BlindFit, observations: &[Observation]) -> Option<SingleReplies> {
    let sizes: BTreeSet<i64> = fit.actions.iter().filter_map(|action| action.reply).collect();
    if sizes.is_empty() {
        return None;
    }
    let mut times: BTreeMap<i64, u64> = BTreeMap::new();
    for size in observations.iter().flat_map(|one| one.replies.iter().flatten()) {
        *times.entry(*size).or_default() += 1;
    }
    let missing = fit.lost.clamp(MIN_SHARE, 0.5);
    let class = |size: &i64| {
        let seen = times.get(size).copied().unwrap_or(0).max(1);
        ReplyClass { missing, unseen: MIN_SHARE, sizes: vec![(*size, seen)] }
    };
    let of_action =
        |action: &BlindAction| sizes.iter().map(|size| u32::from(action.reply == Some(*size))).collect::<Vec<u32>>();
    Some(SingleReplies {
        merged: MIN_SHARE,
        shared: 0,
        foreign: fit.foreign.clamp(MIN_SHARE, 1.0),
        foreign_sizes: Vec::new(),
        per_command: vec![0; sizes.len()],
        per_action: fit.actions.iter().map(of_action).collect(),
        classes: sizes.iter().map(class).collect(),
    })
}

/// The fractional part of the golden ratio, whose multiples are spread evenly between 0 and 1.
const GOLDEN: f64 = 0.618_033_988_749_894_9;

/// An answer to each command that a whole pipeline finds with a model, and how many commands there were. Answers are
/// drawn from the candidates with their probabilities: the most probable ones alone would be those of small commands.
/// True labels, by the time of their command, replace them. `names` are all actions, those of true labels first.
///
/// # Errors
/// If the pipeline does not run.
fn answers(
    input: &PipelineInput,
    pipeline: &Pipeline,
    model: Model,
    names: &[String],
    truth: &BTreeMap<i64, Vec<u32>>,
) -> Result<(Labels, usize)> {
    let fault = |fault: String| LearningError::File { file: "the sizes found without labels".to_owned(), fault };
    let models = ModelSet::new(vec![model]).map_err(|error| fault(error.to_string()))?;
    let file = temporary_model(&models)?;
    let mut pipeline = pipeline.clone();
    pipeline.use_model(file.path())?;
    let mut rows = Vec::new();
    let mut commands: u32 = 0;
    input.observe(&pipeline, &mut |_| {}, |frame| {
        let Frame::Identification(answer) = frame else { return };
        commands = commands.saturating_add(1);
        let true_counts = truth.get(&answer.command.time_ns).cloned();
        let counts = true_counts.or_else(|| drawn_counts(&answer, names, (f64::from(commands) * GOLDEN).fract()));
        let line = rows.len() as u64 + 1;
        rows.extend(counts.map(|counts| Label { time_ns: answer.command.time_ns, counts, line }));
    })?;
    Ok((Labels { actions: names.to_vec(), rows, ..Labels::default() }, commands as usize))
}

/// How often each action occurs in the candidate at this place, from 0 to 1, of all that are listed, each of which is as
/// wide as its probability.
fn drawn_counts(answer: &Identification, names: &[String], place: f64) -> Option<Vec<u32>> {
    let all: f64 = answer.candidates.iter().map(|candidate| candidate.probability).sum();
    let mut left = place * all;
    let drawn = answer.candidates.iter().find(|candidate| {
        left -= candidate.probability;
        left < 0.0
    });
    let drawn = drawn.or(answer.candidates.first())?;
    Some(names.iter().map(|name| drawn.actions.count(name)).collect())
}
