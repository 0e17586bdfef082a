//! From labels and commands to a model.

use anyhow::{Context, anyhow};
use sizeleak_model::{
    Action, Basis, CaptureDigest, ExperimentDesign, Fit, FitError, FitMethod, Inventory, LabelledCommand, Limits,
    Matching, Model, Prior, Provenance, ReplyBytesModel, ReplyCountModel,
};

use super::advice::Advice;
use super::basis::{self, Cipher, Observed};
use crate::command::labelled::{LabelFile, Tolerance};

/// Commands of more actions are not asked for.
const MOST_ACTIONS: u32 = 16;

/// A size is uncertain from this standard deviation on, in bytes: then it is wrong as often as not.
const UNCERTAIN: f64 = 0.7;

/// What there is to learn from.
#[derive(Debug, Clone, Copy)]
pub(super) struct TrainingSet<'a> {
    pub(super) labels: &'a LabelFile,
    /// In the order of the captures.
    pub(super) commands: &'a [Observed],
    pub(super) tolerance: Tolerance,
}

/// A model, and what a person should know about it.
#[derive(Debug)]
pub(super) struct LearnedModel {
    pub(super) model: Model,
    /// How many labels there are.
    pub(super) labels: usize,
    /// What was left out or assumed, a sentence each.
    pub(super) remarks: Vec<String>,
    /// The places of the commands it was learned from.
    pub(super) learned_from: Vec<usize>,
    /// The places of labelled commands that were left out.
    pub(super) left_out: Vec<usize>,
    /// How many labels, or commands between the first label and the last, have no partner or none that fits.
    pub(super) mismatches: usize,
    /// Of each action: in how many of the commands learned from it occurs.
    pub(super) occurrences: Vec<usize>,
    /// What to record next for sizes that are in doubt.
    pub(super) advice: Advice,
}

impl TrainingSet<'_> {
    /// Learns a model.
    pub(super) fn learn(
        self,
        method: FitMethod,
        assumed: Option<Cipher>,
        inventory: Option<Inventory>,
        captures: Vec<CaptureDigest>,
    ) -> anyhow::Result<LearnedModel> {
        let times: Vec<i64> = self.commands.iter().map(|observed| observed.command.time_ns).collect();
        let matching = self.labels.matching(&times, self.tolerance)?;
        let mut remarks = self.labels.unmatched(&matching, &times, self.tolerance);
        let matched: Vec<Observed> =
            matching.pairs.iter().filter_map(|(_, command)| self.commands.get(*command)).cloned().collect();
        let chosen = basis::choose(&matched, assumed);
        remarks.extend(chosen.remarks);

        let actions = &self.labels.labels().actions;
        let mut commands = self.labelled(&matching, &chosen.basis);
        let fit = Fit::learn(method, actions, &commands);
        let fit = fit.map_err(|error| self.explain(error, &matching, inventory.as_ref()))?;
        let advice = self.long(&fit, inventory.as_ref())?;
        remarks.extend(self.doubts(&fit, &matching, &advice));
        for outlier in fit.outliers.iter().rev() {
            commands.remove(*outlier);
        }
        let places = matching.pairs.iter().zip(0..);
        let (left_out, learned_from): (Vec<_>, Vec<_>) =
            places.map(|((_, command), pair)| (*command, pair)).partition(|(_, pair)| fit.outliers.contains(pair));
        let [left_out, learned_from] =
            [left_out, learned_from].map(|list| list.into_iter().map(|(at, _)| at).collect());
        let mismatches = self.mismatches(&matching, &times) + fit.outliers.len();
        let occurrences = (0..actions.len())
            .map(|at| commands.iter().filter(|command| command.counts.get(at).is_some_and(|count| *count > 0)).count());
        let occurrences = occurrences.collect();
        remarks.extend(inventory.as_ref().and_then(|inventory| unlearned(inventory, &fit)));
        let replies = ReplyCountModel::learn(&commands);
        // The paper takes their number alone.
        let reply_bytes =
            (method == FitMethod::Robust).then(|| ReplyBytesModel::learn(&commands, actions.len())).flatten();
        let learned = Provenance {
            method,
            commands: commands.len() as u64,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            basis: chosen.basis,
            captures,
        };
        let Fit { overhead, actions, neighbours, smoothing, .. } = fit;
        let mut model = Model {
            overhead,
            actions,
            inventory,
            neighbours,
            smoothing,
            prior: None,
            replies,
            reply_bytes,
            noise: None,
            learned,
        };
        let limits = model.limits().with_context(|| self.labels.path().display().to_string())?;
        if method == FitMethod::Robust {
            // The paper's procedure takes every multiset of actions to be as likely as any other.
            model.prior = Prior::learn(&commands, &model.actions, model.inventory.as_ref(), &limits);
        }
        let labels = self.labels.labels().rows.len();
        Ok(LearnedModel { model, labels, remarks, learned_from, left_out, mismatches, occurrences, advice })
    }

    /// From the first label to the last.
    pub(super) fn span(self) -> [i64; 2] {
        let times = || self.labels.labels().rows.iter().map(|row| row.time_ns);
        [times().min().unwrap_or(i64::MAX), times().max().unwrap_or(i64::MIN)]
    }

    /// How many labels, or commands between the first label and the last, have no partner, whichever are more: where labels
    /// are inexact and commands close together, one label that goes to none leaves a command over too.
    fn mismatches(self, matching: &Matching, times: &[i64]) -> usize {
        let [first, last] = self.span();
        let spurious = matching.spurious.iter().filter_map(|at| times.get(*at));
        let spurious = spurious.filter(|time| (first..=last).contains(*time)).count();
        (matching.missed.len() + matching.ambiguous.len()).max(spurious)
    }

    /// What to record next for the labels to determine every size; also what to record where they do not let a model be
    /// learned at all.
    pub(super) fn advice(&self, inventory: Option<&Inventory>) -> anyhow::Result<Advice> {
        let times: Vec<i64> = self.commands.iter().map(|observed| observed.command.time_ns).collect();
        let matching = self.labels.matching(&times, self.tolerance)?;
        Ok(self.lacking(&matching, &self.limits(inventory)?).0)
    }

    /// The commands that are lacking, and the actions that none can tell.
    fn lacking(&self, matching: &Matching, limits: &Limits) -> (Advice, Vec<String>) {
        let actions = &self.labels.labels().actions;
        // Which commands there are decides, not how large they came out.
        let design = ExperimentDesign::missing(actions.len(), &self.labelled(matching, &Basis::Wire), limits);
        let hidden =
            design.undeterminable.iter().filter_map(|at| actions.get(*at)).map(|name| format!("`{name}`")).collect();
        (Advice::new(actions, design.commands), hidden)
    }

    /// Longer commands, where the fit cannot tell what length fields add to them.
    fn long(&self, fit: &Fit, inventory: Option<&Inventory>) -> anyhow::Result<Advice> {
        let actions = &self.labels.labels().actions;
        if fit.ambiguous_shifts.is_empty() {
            return Ok(Advice::new(actions, Vec::new()));
        }
        let design = ExperimentDesign::long_commands(actions.len(), &self.limits(inventory)?, MOST_ACTIONS);
        Ok(Advice::new(actions, design.commands))
    }

    /// What the inventory allows.
    fn limits(&self, inventory: Option<&Inventory>) -> anyhow::Result<Limits> {
        let actions = &self.labels.labels().actions;
        let Some(inventory) = inventory else { return Ok(Limits::free(actions.len())) };
        let actions: Vec<Action> = actions.iter().map(|name| Action { name: name.clone(), size: 1 }).collect();
        inventory.limits(&actions).with_context(|| self.labels.path().display().to_string())
    }

    /// The labelled commands, in the order of the matching's pairs.
    fn labelled(&self, matching: &Matching, basis: &Basis) -> Vec<LabelledCommand> {
        let rows = &self.labels.labels().rows;
        let pairs = matching.pairs.iter().filter_map(|(row, at)| Some((rows.get(*row)?, self.commands.get(*at)?)));
        let command = pairs.map(|(row, observed)| LabelledCommand {
            sizes: basis::sizes(basis, &observed.command),
            counts: row.counts.clone(),
            replies: observed.command.replies,
            reply_bytes: basis::reply_bytes(basis, &observed.command),
        });
        command.collect()
    }

    /// An error of the fit in words of the label file.
    fn explain(&self, error: FitError, matching: &Matching, inventory: Option<&Inventory>) -> anyhow::Error {
        let file = self.labels.path().display();
        match error {
            FitError::OutOfBounds(at) => {
                let rows = rows(&[at], matching);
                anyhow!(
                    "{file}: {}: its counts or its command's size are none that a message has",
                    self.labels.lines(&rows)
                )
            }
            error @ FitError::Unidentified { .. } => match self.limits(inventory) {
                Ok(limits) => anyhow!("{error}{}", self.how(matching, &limits)).context(file.to_string()),
                Err(error) => error,
            },
            error => anyhow::Error::new(error).context(file.to_string()),
        }
    }

    /// How sizes can be told that the labels do not tell, if they can.
    fn how(&self, matching: &Matching, limits: &Limits) -> String {
        let (advice, hidden) = self.lacking(matching, limits);
        let mut how = String::new();
        if !advice.is_empty() {
            how = format!("; {}", advice.in_words());
        }
        if !hidden.is_empty() {
            how = format!("{how}; of {} the inventory allows no command that would tell them", hidden.join(", "));
        }
        how
    }

    /// What the fit is not sure of.
    fn doubts(&self, fit: &Fit, matching: &Matching, advice: &Advice) -> Vec<String> {
        let mut doubts = Vec::new();
        if !fit.outliers.is_empty() {
            let lines = self.labels.lines(&rows(&fit.outliers, matching));
            let (file, count) = (self.labels.path().display(), fit.outliers.len());
            doubts.push(format!(
                "{file}: {count} labels do not explain the size of their command, and were left out (a wrong count, or a \
                 command that is none): {lines}"
            ));
        }
        let uncertain = fit.actions.iter().zip(&fit.deviations).filter(|(_, deviation)| **deviation >= UNCERTAIN);
        let uncertain: Vec<String> =
            uncertain.map(|(action, deviation)| format!("`{}` by {deviation:.1}", action.name)).collect();
        if !uncertain.is_empty() {
            let uncertain = uncertain.join(", ");
            doubts.push(format!(
                "ranges of sizes leave sizes of actions uncertain: {uncertain} bytes (standard deviations); label more \
                 commands with them"
            ));
        }
        if !fit.ambiguous_shifts.is_empty() {
            let shifts: Vec<String> = fit.ambiguous_shifts.iter().map(|shift| format!("{shift:+}")).collect();
            doubts.push(format!(
                "the sizes of all actions may be off together, by {} bytes: a length field may grow between these commands; {}",
                shifts.join(" or "),
                if advice.is_empty() { "no longer ones are possible".to_owned() } else { advice.in_words() },
            ));
        }
        doubts
    }
}

/// The label rows of some pairs.
fn rows(pairs: &[usize], matching: &Matching) -> Vec<usize> {
    pairs.iter().filter_map(|at| matching.pairs.get(*at)).map(|(row, _)| *row).collect()
}

fn unlearned(inventory: &Inventory, fit: &Fit) -> Option<String> {
    let names: Vec<String> = inventory.unlearned(&fit.actions).iter().map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("the labels have no column for {names} of the inventory: commands with them will not be recognised")
    })
}
