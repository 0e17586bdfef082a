//! From labels and commands to a model.

use sizeleak_evaluation::{LabelFile, Tolerance};
use sizeleak_model::{
    Action, Basis, CaptureDigest, ExperimentDesign, Fit, FitError, FitMethod, Inventory, LabelledCommand, Limits,
    Matching, Model, Prior, Provenance, ReplyBytesModel, ReplyCountModel,
};

use crate::error::LearningError;
use crate::recording_plan::RecordingPlan;
use crate::size_basis::{self, CipherSuite, ObservedCommand};

/// Commands of more actions are not planned.
const MOST_ACTIONS: u32 = 16;

/// A size with at least this standard deviation, in bytes, is uncertain: it is wrong about as often as right.
const UNCERTAIN: f64 = 0.7;

/// Labels, and the commands found in their captures.
#[derive(Debug, Clone, Copy)]
pub struct TrainingSet<'a> {
    pub(crate) labels: &'a LabelFile,
    /// In the order of the captures.
    pub(crate) commands: &'a [ObservedCommand],
    pub(crate) tolerance: Tolerance,
    pub(crate) labels_are_complete: bool,
}

/// A model, with remarks for the user.
#[derive(Debug)]
pub struct LearnedModel {
    /// The model.
    pub model: Model,
    /// The number of labels.
    pub labels: usize,
    /// What was left out or assumed, a sentence each.
    pub remarks: Vec<String>,
    /// The indices of the commands it was learned from.
    pub(crate) learned_from: Vec<usize>,
    /// The indices of labelled commands that were left out.
    pub(crate) left_out: Vec<usize>,
    /// How many labels, or commands between the first label and the last, have no partner that fits.
    pub(crate) mismatches: usize,
    /// For each action, how many of the commands it was learned from contain the action.
    pub occurrences: Vec<usize>,
    /// What to record next for uncertain sizes.
    pub plan: RecordingPlan,
}

impl TrainingSet<'_> {
    /// Learns a model; `assumed` is the suite of sessions whose handshake was not captured.
    ///
    /// # Errors
    /// If the labels fit no command, contradict the inventory, or do not determine every size.
    pub fn learn(
        self,
        method: FitMethod,
        assumed: Option<CipherSuite>,
        inventory: Option<Inventory>,
        captures: Vec<CaptureDigest>,
    ) -> Result<LearnedModel, LearningError> {
        let times = self.times();
        let matching = self.labels.matching(&times, self.tolerance)?;
        let mut remarks = self.labels.unmatched(&matching, &times, self.tolerance);
        let matched: Vec<ObservedCommand> =
            matching.pairs.iter().filter_map(|(_, command)| self.commands.get(*command)).cloned().collect();
        let chosen = size_basis::choose_basis(&matched, assumed);
        remarks.extend(chosen.remarks);

        let actions = &self.labels.labels().actions;
        let mut commands = self.labelled(&matching, &chosen.basis);
        let fit = Fit::learn(method, actions, &commands);
        let fit = fit.map_err(|error| self.explain(error, &matching, inventory.as_ref()))?;
        let plan = self.plan_longer_commands(&fit, inventory.as_ref())?;
        remarks.extend(self.uncertainties(&fit, &matching, &plan));
        for outlier in fit.outliers.iter().rev() {
            commands.remove(*outlier);
        }
        let pairs = matching.pairs.iter().map(|(_, command)| *command).enumerate();
        let is_outlier = |pair: &usize| fit.outliers.contains(pair);
        let (left_out, learned_from): (Vec<_>, Vec<_>) = pairs.partition(|(pair, _)| is_outlier(pair));
        let [left_out, learned_from] =
            [left_out, learned_from].map(|pairs| pairs.into_iter().map(|(_, command)| command).collect());
        let mismatches = self.mismatches(&matching, &times) + fit.outliers.len();
        let occurrences = (0..actions.len())
            .map(|at| commands.iter().filter(|command| command.counts.get(at).is_some_and(|count| *count > 0)).count())
            .collect();
        remarks.extend(inventory.as_ref().and_then(|inventory| unlabelled_actions(inventory, &fit)));
        let replies = ReplyCountModel::learn(&commands);
        // The paper uses only the number of replies.
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
        let limits = model.limits().map_err(|error| self.fault(error.to_string()))?;
        if method == FitMethod::Robust {
            // The paper takes every multiset of actions to be equally likely.
            model.prior = Prior::learn(&commands, &model.actions, model.inventory.as_ref(), &limits);
        }
        let labels = self.labels.labels().rows.len();
        Ok(LearnedModel { model, labels, remarks, learned_from, left_out, mismatches, occurrences, plan })
    }

    /// The times of the first and the last label.
    pub(crate) fn span(self) -> [i64; 2] {
        let times = || self.labels.labels().rows.iter().map(|row| row.time_ns);
        [times().min().unwrap_or(i64::MAX), times().max().unwrap_or(i64::MIN)]
    }

    /// What to record next for the labels to determine every size, also if no model can be learned.
    ///
    /// # Errors
    /// If the labels fit no command or contradict the inventory.
    pub fn plan(&self, inventory: Option<&Inventory>) -> Result<RecordingPlan, LearningError> {
        let matching = self.labels.matching(&self.times(), self.tolerance)?;
        Ok(self.missing_commands(&matching, &self.limits(inventory)?).0)
    }

    fn times(&self) -> Vec<i64> {
        self.commands.iter().map(|observed| observed.command.time_ns).collect()
    }

    /// An error that names the label file.
    fn fault(&self, fault: String) -> LearningError {
        LearningError::File { file: self.labels.path().display().to_string(), fault }
    }

    /// The number of labels, or of commands between the first label and the last, without a partner, whichever is
    /// greater: with inexact labels and commands close together, an unmatched label also leaves a command unmatched.
    fn mismatches(self, matching: &Matching, times: &[i64]) -> usize {
        let unmatched = matching.missed.len() + matching.ambiguous.len();
        if !self.labels_are_complete {
            // A command without a label is no fault.
            return unmatched;
        }
        let [first, last] = self.span();
        let spurious = matching.spurious.iter().filter_map(|at| times.get(*at));
        let spurious = spurious.filter(|time| (first..=last).contains(*time)).count();
        unmatched.max(spurious)
    }

    /// The commands that are missing, and the actions whose size no command can determine.
    fn missing_commands(&self, matching: &Matching, limits: &Limits) -> (RecordingPlan, Vec<String>) {
        let actions = &self.labels.labels().actions;
        // The design depends on which commands there are, not on their sizes.
        let design = ExperimentDesign::missing(actions.len(), &self.labelled(matching, &Basis::Wire), limits);
        let hidden =
            design.undeterminable.iter().filter_map(|at| actions.get(*at)).map(|name| format!("`{name}`")).collect();
        (RecordingPlan::new(actions, design.commands), hidden)
    }

    /// Longer commands, if the fit cannot determine what length fields add.
    fn plan_longer_commands(&self, fit: &Fit, inventory: Option<&Inventory>) -> Result<RecordingPlan, LearningError> {
        let actions = &self.labels.labels().actions;
        let commands = if fit.ambiguous_shifts.is_empty() {
            Vec::new()
        } else {
            ExperimentDesign::long_commands(actions.len(), &self.limits(inventory)?, MOST_ACTIONS).commands
        };
        Ok(RecordingPlan::new(actions, commands))
    }

    /// What the inventory allows.
    fn limits(&self, inventory: Option<&Inventory>) -> Result<Limits, LearningError> {
        let actions = &self.labels.labels().actions;
        let Some(inventory) = inventory else { return Ok(Limits::free(actions.len())) };
        let actions: Vec<Action> = actions.iter().map(|name| Action { name: name.clone(), size: 1 }).collect();
        inventory.limits(&actions).map_err(|error| self.fault(error.to_string()))
    }

    /// The labelled commands, in the order of the matching's pairs.
    fn labelled(&self, matching: &Matching, basis: &Basis) -> Vec<LabelledCommand> {
        let rows = &self.labels.labels().rows;
        let pairs = matching.pairs.iter().filter_map(|(row, at)| Some((rows.get(*row)?, self.commands.get(*at)?)));
        let command = pairs.map(|(row, observed)| LabelledCommand {
            sizes: size_basis::sizes(basis, &observed.command),
            counts: row.counts.clone(),
            replies: observed.command.replies,
            reply_bytes: size_basis::reply_bytes(basis, &observed.command),
        });
        command.collect()
    }

    /// An error of the fit in terms of the label file.
    fn explain(&self, error: FitError, matching: &Matching, inventory: Option<&Inventory>) -> LearningError {
        match error {
            FitError::OutOfBounds(at) => {
                let line = self.labels.lines(&rows(&[at], matching));
                self.fault(format!("{line}: no message has such counts or a command of such a size"))
            }
            error @ FitError::Unidentified { .. } => match self.limits(inventory) {
                Ok(limits) => self.fault(format!("{error}{}", self.remedy(matching, &limits))),
                Err(error) => error,
            },
            error => self.fault(error.to_string()),
        }
    }

    /// Which commands would determine the sizes that the labels do not.
    fn remedy(&self, matching: &Matching, limits: &Limits) -> String {
        let (plan, hidden) = self.missing_commands(matching, limits);
        let mut remedy = if plan.is_empty() { String::new() } else { format!("; {}", plan.in_words()) };
        if !hidden.is_empty() {
            let hidden = hidden.join(", ");
            remedy = format!("{remedy}; the inventory allows no command that would determine the size of {hidden}");
        }
        remedy
    }

    /// What the fit is uncertain about.
    fn uncertainties(&self, fit: &Fit, matching: &Matching, plan: &RecordingPlan) -> Vec<String> {
        let mut remarks = Vec::new();
        if !fit.outliers.is_empty() {
            let lines = self.labels.lines(&rows(&fit.outliers, matching));
            let (file, count) = (self.labels.path().display(), fit.outliers.len());
            remarks.push(format!(
                "{file}: {count} labels do not explain the size of their command, and were left out (a wrong count, or \
                 noise taken for a command): {lines}"
            ));
        }
        let uncertain = fit.actions.iter().zip(&fit.deviations).filter(|(_, deviation)| **deviation >= UNCERTAIN);
        let uncertain: Vec<String> =
            uncertain.map(|(action, deviation)| format!("`{}` by {deviation:.1}", action.name)).collect();
        if !uncertain.is_empty() {
            let uncertain = uncertain.join(", ");
            remarks.push(format!(
                "ranges of sizes leave the sizes of actions uncertain: {uncertain} bytes (standard deviations); \
                label more commands with them"
            ));
        }
        if !fit.ambiguous_shifts.is_empty() {
            let shifts: Vec<String> = fit.ambiguous_shifts.iter().map(|shift| format!("{shift:+}")).collect();
            let remedy = if plan.is_empty() { "no longer commands are possible".to_owned() } else { plan.in_words() };
            remarks.push(format!(
                "the sizes of all actions may be off together, by {} bytes: a length field may grow between these \
                 commands; {remedy}",
                shifts.join(" or "),
            ));
        }
        remarks
    }
}

/// The label rows of some pairs.
fn rows(pairs: &[usize], matching: &Matching) -> Vec<usize> {
    pairs.iter().filter_map(|at| matching.pairs.get(*at)).map(|(row, _)| *row).collect()
}

/// A remark on actions of the inventory that the labels lack.
fn unlabelled_actions(inventory: &Inventory, fit: &Fit) -> Option<String> {
    let names: Vec<String> = inventory.unlearned(&fit.actions).iter().map(|name| format!("`{name}`")).collect();
    (!names.is_empty()).then(|| {
        let names = names.join(", ");
        format!("the labels have no column for {names} of the inventory: commands with them will not be recognised")
    })
}
