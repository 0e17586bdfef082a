//! From labels and commands to a model, and to the commands to record next.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_model::policies::PaddingPolicy;
use sizeleak_model::{
    Action, Basis, CaptureDigest, FitMethod, Inventory, Kind, LabelledCommand, LearnedPadding, Limits, MAX_SEEN, Model,
    Provenance, Scope, command_mark,
};
use sizeleak_text::{counted, listed};

use crate::error::{LearningError, Result};
use crate::fit::{
    ExperimentDesign, Fit, FitError, learn_prior, learn_reply_bytes, learn_reply_counts, learn_single_replies,
};
use crate::labels::{LabelFile, Matching, Tolerance};
use crate::observed_commands::{ObservedCommand, command_times};
use crate::size_basis::{self, CipherSuite};
use crate::size_doubts::CERTAIN;
use crate::size_learning::{LearnedSizes, before_padding, learn_sizes, merged_messages};

/// Commands of more actions are not planned.
const MAX_ACTIONS: u32 = 16;

/// Labels may belong to other messages in this share of cases before padding is doubted.
const MAX_NOT_AS_PADDED: f64 = 0.05;

/// How a model is learned, whatever the labels and commands.
#[derive(Debug, Clone, Default)]
pub struct LearningSettings {
    /// Whether every command between the first label and the last has a label: then what has none is no command.
    pub labels_are_complete: bool,
    pub method: FitMethod,
    /// The cipher suite of sessions whose handshake was not captured.
    pub cipher: Option<CipherSuite>,
    /// How commands are padded; `None` if they are not, or that is not known.
    pub padding: Option<PaddingPolicy>,
    pub inventory: Option<Inventory>,
    /// The captures, as the model names them.
    pub captures: Vec<CaptureDigest>,
}

#[derive(Debug, Clone, Copy)]
pub struct TrainingSet<'a> {
    pub labels: &'a LabelFile,
    /// The commands, in the order of the captures.
    pub commands: &'a [ObservedCommand],
    pub tolerance: Tolerance,
    pub settings: &'a LearningSettings,
}

#[derive(Debug)]
pub struct LearnedModel {
    pub model: Model,
    pub labels: usize,
    /// What was left out or assumed, a sentence each.
    pub remarks: Vec<String>,
    /// Whether the labels leave sizes, or sums of them, open.
    pub leaves_sizes_open: bool,
    /// For each action with a size, the credible interval (95 %) of that size in bytes.
    pub intervals: Vec<[i64; 2]>,
    /// Why no sum of sizes holds, however many commands are recorded; `None` if sums may hold.
    pub without_sums: Option<String>,
    /// The services it was learned on, by their indices among those observed.
    pub(crate) services: Vec<usize>,
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

/// The marks of commands, in ascending order, unless there are too many.
fn marks(commands: &[ObservedCommand]) -> Vec<u32> {
    let marks: BTreeSet<u32> = commands.iter().map(|one| command_mark(one.command.time_ns)).collect();
    if marks.len() > MAX_SEEN { Vec::new() } else { marks.into_iter().collect() }
}

/// Says how many commands have a size that the policy does not pad to, if these are too many for chance.
fn not_as_padded(commands: &[LabelledCommand], padding: &LearnedPadding) -> Option<String> {
    let others = commands.iter().filter(|command| !padding.pads_to(command.sizes)).count();
    (others as f64 > MAX_NOT_AS_PADDED * commands.len() as f64).then(|| {
        format!(
            "{others} of {} labelled commands have a size that `--padding` does not pad to: they are padded by another \
             policy, or each record of a command is padded by itself",
            commands.len()
        )
    })
}

impl TrainingSet<'_> {
    /// Learns a model.
    ///
    /// # Errors
    /// If the labels fit no command, contradict the inventory, or do not determine every size.
    pub fn learn(self) -> Result<LearnedModel> {
        let LearningSettings { method, cipher, padding, inventory, captures, .. } = self.settings.clone();
        let times = command_times(self.commands);
        let matching = self.labels.matching(&times, self.tolerance)?;
        let mut remarks = self.labels.unmatched(&matching, &times, self.tolerance);
        let matched: Vec<ObservedCommand> =
            matching.pairs.iter().filter_map(|(_, command)| self.commands.get(*command)).cloned().collect();
        let chosen = size_basis::choose_basis(&matched, cipher);
        remarks.extend(chosen.remarks);

        let names = &self.labels.labels().actions;
        let commands = self.labelled(&matching, &chosen.basis);
        let padding = padding.map(LearnedPadding::Policy);
        let unpadded = padding.as_ref().map(|padding| before_padding(&commands, padding));
        let unpadded = unpadded.unwrap_or_else(|| commands.clone());
        let mut sizes = learn_sizes(method, names, &unpadded).map_err(|error| self.explain(error, &matching))?;
        sizes.padding = padding.or(sizes.padding);
        let plan = self.recording_plan(&sizes, &matching)?;
        remarks.extend(sizes.remarks.iter().cloned().chain(self.left_out(&sizes, &matching)));
        let warnings = self.warnings(&sizes, &plan, &matching, &commands);
        let pairs = matching.pairs.iter().map(|(_, command)| *command).enumerate();
        let is_outlier = |pair: &usize| sizes.fit.outliers.binary_search(pair).is_ok();
        let (left_out, learned_from): (Vec<_>, Vec<_>) = pairs.partition(|(pair, _)| is_outlier(pair));
        let [left_out, learned_from] =
            [left_out, learned_from].map(|pairs| pairs.into_iter().map(|(_, command)| command).collect());
        // Labels that match commands whose sizes say nothing of them match something else, such as headers.
        let without_size = if sizes.follow_labels { sizes.fit.outliers.len() } else { self.labels.labels().rows.len() };
        let mismatches = self.mismatches(&matching, &times) + without_size;
        let leaves_sizes_open = sizes.kinds.is_some() || sizes.fit.certainty < CERTAIN;
        let LearnedSizes { fit, kinds, additive, .. } = sizes;
        let Fit { overhead, actions, intervals, certainty, neighbours, smoothing, .. } = fit;
        let has =
            |command: &&LabelledCommand, action: usize| command.counts.get(action).is_some_and(|count| *count > 0);
        let occurrences = |action: usize| additive.iter().filter(|command| has(command, action)).count();
        let occurrences = (0..actions.len()).map(occurrences).collect();
        let of_kinds = kinds.iter().flat_map(|kinds| &kinds.list).map(Kind::commands).sum::<u64>();
        let mut learned = Provenance {
            method,
            commands: additive.len() as u64 + of_kinds,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            basis: chosen.basis,
            captures,
            padding: sizes.padding,
            block_rest: None,
            certainty: if sizes.hold { (1e4 * certainty).round() / 1e4 } else { 0.0 },
            warnings,
            found_with: BTreeMap::new(),
            seen: marks(&matched),
        };
        learned.observe_blocks(size_basis::greatest_in_blocks(&learned, &matched));
        let with_own_replies: Vec<LabelledCommand> =
            additive.iter().filter(|command| command.has_own_replies).cloned().collect();
        let replies = learn_reply_counts(&with_own_replies);
        // The paper uses only the number of replies.
        let of_robust = if method == FitMethod::Robust { &with_own_replies[..] } else { &[] };
        let single_replies = learn_single_replies(of_robust, actions.len());
        let of_robust = if single_replies.is_none() { of_robust } else { &[] };
        let reply_bytes = learn_reply_bytes(of_robust, actions.len());
        let mut model = Model {
            scope: Scope::default(),
            overhead,
            actions,
            kinds,
            inventory,
            neighbours,
            smoothing,
            prior: None,
            replies,
            reply_bytes,
            single_replies,
            reply_windows: None,
            noise: None,
            learned,
        };
        remarks.extend(unlabelled_actions(&model, names));
        let limits = model.limits().map_err(|error| self.fault(error.to_string()))?;
        if method == FitMethod::Robust && !model.actions.is_empty() {
            // The paper takes every multiset of actions to be equally likely.
            model.prior = learn_prior(&additive, &model.actions, model.inventory.as_ref(), &limits);
        }
        let labels = self.labels.labels().rows.len();
        Ok(LearnedModel {
            model,
            labels,
            remarks,
            leaves_sizes_open,
            intervals,
            without_sums: sizes.without_sums,
            services: Vec::new(),
            learned_from,
            left_out,
            mismatches,
            occurrences,
            plan,
        })
    }

    /// What may be wrong with what was learned from these commands, a sentence each.
    fn warnings(
        &self,
        sizes: &LearnedSizes,
        plan: &RecordingPlan,
        matching: &Matching,
        commands: &[LabelledCommand],
    ) -> Vec<String> {
        let mut warnings = sizes.warnings.clone();
        if sizes.without_sums.is_some() {
            // No other command would tell sums.
            return warnings;
        }
        warnings.extend(sizes.padding.as_ref().and_then(|padding| not_as_padded(commands, padding)));
        warnings.extend(growing_length_fields(sizes, plan));
        let sizes_of: Vec<i64> = commands.iter().map(|command| command.sizes[1]).collect();
        let within_ns = self.tolerance.nanoseconds();
        warnings.extend(merged_messages(self.labels.labels(), matching, sizes, &sizes_of, within_ns));
        warnings
    }

    pub(crate) fn span(self) -> [i64; 2] {
        let times = || self.labels.labels().rows.iter().map(|row| row.time_ns);
        [times().min().unwrap_or(i64::MAX), times().max().unwrap_or(i64::MIN)]
    }

    /// What to record next for the labels to determine every size, also if no model can be learned.
    ///
    /// # Errors
    /// If the labels fit no command or contradict the inventory.
    pub fn plan(&self) -> Result<RecordingPlan> {
        let matching = self.labels.matching(&command_times(self.commands), self.tolerance)?;
        Ok(self.missing_commands(&matching, &self.limits()?).0)
    }

    fn fault(&self, fault: String) -> LearningError {
        self.labels.fault(fault).into()
    }

    /// The number of labels, or of commands between the first label and the last, without a partner, whichever is
    /// greater: with inexact labels and commands close together, an unmatched label also leaves a command unmatched.
    fn mismatches(self, matching: &Matching, times: &[i64]) -> usize {
        let unmatched = matching.unmatched();
        if !self.settings.labels_are_complete {
            // A command without a label is no fault.
            return unmatched;
        }
        let [first, last] = self.span();
        let spurious = matching.spurious.iter().filter_map(|at| times.get(*at));
        let spurious = spurious.filter(|time| (first..=last).contains(*time)).count();
        unmatched.max(spurious)
    }

    /// The commands that are missing, and the actions whose size no command can determine.
    fn missing_commands(&self, matching: &Matching, limits: &Limits) -> (RecordingPlan, String) {
        let actions = &self.labels.labels().actions;
        let rows = matching.pairs.iter().filter_map(|(row, _)| self.labels.labels().rows.get(*row));
        let design = ExperimentDesign::missing(actions.len(), rows.map(|row| &row.counts[..]), limits);
        let hidden = design.undeterminable.iter().filter_map(|at| actions.get(*at)).map(|name| format!("`{name}`"));
        let hidden = listed(hidden, usize::MAX);
        (RecordingPlan::new(actions, design.commands), hidden)
    }

    /// Commands that would separate what the labels do not; else longer ones, if the fit cannot determine what length
    /// fields add.
    fn recording_plan(&self, sizes: &LearnedSizes, matching: &Matching) -> Result<RecordingPlan> {
        let actions = &self.labels.labels().actions;
        if sizes.separation.separate.len() < actions.len() {
            return Ok(self.missing_commands(matching, &self.limits()?).0);
        }
        if sizes.fit.ambiguous_shifts.is_empty() {
            return Ok(RecordingPlan::new(actions, Vec::new()));
        }
        let long = ExperimentDesign::long_commands(actions.len(), &self.limits()?, MAX_ACTIONS);
        Ok(RecordingPlan::new(actions, long.commands))
    }

    fn limits(&self) -> Result<Limits> {
        let actions = &self.labels.labels().actions;
        let Some(inventory) = &self.settings.inventory else { return Ok(Limits::free(actions.len())) };
        let actions: Vec<Action> = actions.iter().map(|name| Action::new(name, 1)).collect();
        inventory.limits(&actions).map_err(|error| self.fault(error.to_string()))
    }

    /// The labelled commands, in the order of the matching's pairs.
    fn labelled(&self, matching: &Matching, basis: &Basis) -> Vec<LabelledCommand> {
        let rows = &self.labels.labels().rows;
        let pairs = matching.pairs.iter().filter_map(|(row, at)| Some((rows.get(*row)?, self.commands.get(*at)?)));
        pairs.map(|(row, observed)| size_basis::labelled(basis, &observed.command, &row.counts)).collect()
    }

    /// An error of the fit in terms of the label file.
    fn explain(&self, error: FitError, matching: &Matching) -> LearningError {
        match error {
            FitError::OutOfBounds(at) => {
                let line = self.labels.lines(&rows(&[at], matching));
                self.fault(format!("{line}: no message has such counts or a command of such a size"))
            }
            error @ FitError::Unidentified { .. } => match self.limits() {
                Ok(limits) => {
                    // Which commands would determine the sizes that the labels do not.
                    let (plan, hidden) = self.missing_commands(matching, &limits);
                    let remedy = if plan.is_empty() { String::new() } else { format!("; {}", plan.in_words()) };
                    let never = "; the inventory allows no command that would determine the size of ";
                    let never = if hidden.is_empty() { String::new() } else { format!("{never}{hidden}") };
                    self.fault(format!("{error}{remedy}{never}"))
                }
                Err(error) => error,
            },
            error => self.fault(error.to_string()),
        }
    }

    fn left_out(&self, sizes: &LearnedSizes, matching: &Matching) -> Option<String> {
        let count = sizes.fit.outliers.len();
        (count > 0).then(|| {
            let (file, lines) = (self.labels.path().display(), self.labels.lines(&rows(&sizes.fit.outliers, matching)));
            format!(
                "{file}: {} left out (a wrong count, noise taken for a command, or a message of another form): {lines}",
                counted(
                    count,
                    "label does not explain the size of its command, and was",
                    "labels do not explain the size of their command, and were"
                )
            )
        })
    }
}

/// Whether the sizes of all actions may be off together.
fn growing_length_fields(sizes: &LearnedSizes, plan: &RecordingPlan) -> Option<String> {
    if sizes.fit.ambiguous_shifts.is_empty() {
        return None;
    }
    let shifts: Vec<String> = sizes.fit.ambiguous_shifts.iter().map(|shift| format!("{shift:+}")).collect();
    let remedy = if plan.is_empty() { "no longer commands are possible".to_owned() } else { plan.in_words() };
    Some(format!(
        "the sizes of all actions may be off together, by {} {}: a length field may grow between these commands; {remedy}",
        shifts.join(" or "),
        if matches!(sizes.fit.ambiguous_shifts[..], [-1 | 1]) { "byte" } else { "bytes" },
    ))
}

fn rows(pairs: &[usize], matching: &Matching) -> Vec<usize> {
    pairs.iter().filter_map(|at| matching.pairs.get(*at)).map(|(row, _)| *row).collect()
}

/// A remark on actions of the inventory that no label has.
fn unlabelled_actions(model: &Model, labels: &[String]) -> Option<String> {
    let names = model.inventory.as_ref()?.action_names().into_iter();
    let unlabelled = names.filter(|name| labels.iter().all(|known| known != name)).map(|name| format!("`{name}`"));
    let names = listed(unlabelled, usize::MAX);
    (!names.is_empty()).then(|| {
        format!(
            "its labels have no {names}, which the inventory has: commands with such actions will not be recognised"
        )
    })
}

/// Each command is to be recorded this many times, to outvote a wrong label or a rare number's width.
const TIMES: usize = 3;

/// How many commands a sentence names; the others are counted.
const SHOWN: usize = 12;

/// Commands to record, by how often each action occurs in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingPlan {
    actions: Vec<String>,
    commands: Vec<Vec<u32>>,
}

impl RecordingPlan {
    pub(crate) fn new(actions: &[String], commands: Vec<Vec<u32>>) -> Self {
        Self { actions: actions.to_vec(), commands }
    }

    pub fn commands(&self) -> &[Vec<u32>] {
        &self.commands
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The commands with their counts, in words.
    pub(crate) fn in_words(&self) -> String {
        let shown: Vec<String> = self.commands.iter().take(SHOWN).map(|counts| self.command(counts)).collect();
        let more = self.commands.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more (`--suggest` writes them all)") } else { String::new() };
        format!("record next, three times each: {}{more}", shown.join("; "))
    }

    fn command(&self, counts: &[u32]) -> String {
        let counts = self.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
        counts.map(|(action, count)| format!("{action}={count}")).collect::<Vec<_>>().join(", ")
    }

    /// A label file without times, with a row for each time a command is to be recorded.
    pub fn label_template(&self) -> csv::Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut writer = csv::Writer::from_writer(&mut text);
        writer.write_record(std::iter::once("time").chain(self.actions.iter().map(String::as_str)))?;
        for counts in &self.commands {
            for _ in 0..TIMES {
                writer.write_record(std::iter::once(String::new()).chain(counts.iter().map(ToString::to_string)))?;
            }
        }
        writer.flush()?;
        drop(writer);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_listed_in_words_and_as_labels() {
        let plan = RecordingPlan::new(&["on".into(), "a,b".into()], vec![vec![1, 0], vec![2, 1]]);
        assert_eq!(plan.in_words(), "record next, three times each: on=1; on=2, a,b=1");
        let template = String::from_utf8(plan.label_template().unwrap()).unwrap();
        assert_eq!(template, "time,on,\"a,b\"\n,1,0\n,1,0\n,1,0\n,2,1\n,2,1\n,2,1\n");
        let many = RecordingPlan::new(&["on".into()], (1..=14).map(|count| vec![count]).collect());
        assert!(many.in_words().ends_with("; on=12 and 2 more (`--suggest` writes them all)"), "{}", many.in_words());
    }
}
