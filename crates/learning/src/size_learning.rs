//! From labelled commands to sizes: sums where labels separate the actions, kinds where not; and what is uncertain,
//! such as several messages in one record.

use sizeleak_model::{
    Action, EpsilonTuple, FitMethod, Kind, Kinds, LabelledCommand, LearnedPadding, Neighbours, Smoothing,
};
use sizeleak_text::listed;

use crate::fit::{Additivity, Fit, FitError, Separation, doubted_labels, learn_kinds, padding, size_dependence};
use crate::labels::{Label, Labels, Matching};
use crate::size_doubts::{CERTAIN, DOUBTFUL_SHARE, SHOWN, SIGNIFICANT, SizeFault, contradiction, doubts, varying};

/// If a greater share of commands is expected to be of kinds that were never labelled, the labels are too few.
const MAX_OTHER: f64 = 0.2;

/// With smaller mean deviations in bytes, nearly all sizes are sums.
const NO_DEVIATION: f64 = 0.1;

#[derive(Debug)]
pub(crate) struct LearnedSizes {
    /// The sums; their outliers are the indices of all commands left out, ascending. Without actions if all are kinds.
    pub(crate) fit: Fit,
    pub(crate) kinds: Option<Kinds>,
    pub(crate) padding: Option<LearnedPadding>,
    /// Whether sizes depend on labels, in sums where these separate them: else commands are probably not the labelled.
    pub(crate) follow_labels: bool,
    /// Whether what was learned holds: sizes add up and follow the labels.
    pub(crate) hold: bool,
    /// Why no sum of sizes holds, however many commands are labelled; `None` if sums may hold.
    pub(crate) without_sums: Option<String>,
    /// The commands that sums explain, with counts of the separate actions alone, without outliers.
    pub(crate) additive: Vec<LabelledCommand>,
    pub(crate) separation: Separation,
    /// What is not known, a sentence each.
    pub(crate) remarks: Vec<String>,
    /// What may be wrong, a sentence each.
    pub(crate) warnings: Vec<String>,
}

/// Learns sizes; `names` are the actions, in the order of the commands' counts.
///
/// # Errors
/// [`FitError`] if the commands are out of bounds, or lack an experiment of the paper's procedure.
pub(crate) fn learn_sizes(
    method: FitMethod,
    names: &[String],
    commands: &[LabelledCommand],
) -> Result<LearnedSizes, FitError> {
    if method == FitMethod::Paper {
        let fit = Fit::learn(method, names, commands)?;
        let separation = Separation { separate: (0..names.len()).collect(), ..Separation::default() };
        return Ok(LearnedSizes::of_fit(fit, commands.to_vec(), separation));
    }
    let separation = Separation::of(names.len(), commands);
    let mut learned = match SummedCommands::new(names, commands, &separation) {
        Some(summed) => match summed.learn() {
            Ok((fit, padding)) => LearnedSizes::of_summed(names, fit, padding, summed, separation),
            // A fitted size of 0 or less: the labels are true, but not in sums.
            Err(FitError::NoSize { action, size }) => {
                let tied = (0..names.len()).filter(|action| !separation.absent.contains(action)).collect();
                let all_tied = Separation { separate: Vec::new(), tied, ..separation };
                let mut learned = LearnedSizes::of_kinds(names, commands, all_tied)?;
                (learned.follow_labels, learned.hold) = (false, false);
                let fault = varying(commands);
                let cause = fault.as_ref().map_or_else(String::new, |fault| format!("; {}", fault.words));
                let words = format!(
                    "sizes do not add up: the fitted size of `{action}` is {size} bytes; every labelled command is \
                     learned as it is, and sums are not known{cause}"
                );
                learned.add_fault(SizeFault { words, is_lasting: fault.is_some_and(|fault| fault.is_lasting) });
                learned
            }
            Err(error) => return Err(error),
        },
        None => LearnedSizes::of_kinds(names, commands, separation)?,
    };
    learned.describe_kinds(names);
    learned.describe_equal_sizes();
    Ok(learned)
}

/// The labelled commands that sums may explain.
struct SummedCommands {
    names: Vec<String>,
    commands: Vec<LabelledCommand>,
    /// Their indices among all labelled commands.
    indices: Vec<usize>,
    rest: Vec<LabelledCommand>,
}

impl SummedCommands {
    /// `None` if no action is separate.
    fn new(names: &[String], commands: &[LabelledCommand], separation: &Separation) -> Option<Self> {
        let names: Vec<String> = separation.separate.iter().filter_map(|at| names.get(*at)).cloned().collect();
        let projected = |(at, command)| separation.project(command).map(|summed| (at, summed));
        let (indices, summed) = commands.iter().enumerate().filter_map(projected).unzip();
        let rest = commands.iter().filter(|command| separation.project(command).is_none()).cloned().collect();
        (!names.is_empty()).then_some(Self { names, commands: summed, indices, rest })
    }

    /// Fits sizes; if exact sizes do not add up and are all alike modulo a number of bytes, as ranges before padding.
    fn learn(&self) -> Result<(Fit, Option<u32>), FitError> {
        let exact = Fit::learn(FitMethod::Robust, &self.names, &self.commands);
        let padding = padding(self.commands.iter().map(|command| command.sizes[1]));
        let is_exact = self.commands.iter().all(|command| command.sizes[0] == command.sizes[1]);
        let Some(padding) = padding.and_then(|bytes| u32::try_from(bytes).ok()).filter(|_| is_exact) else {
            return Ok((self.varied(exact?), None));
        };
        // Sizes that are alike modulo a number of bytes deviate by that number or not at all.
        let adds_up = |fit: &Fit| Additivity::of(fit, &self.commands).mean_deviation <= NO_DEVIATION;
        if exact.as_ref().is_ok_and(adds_up) {
            return Ok((exact?, None));
        }
        let in_ranges = before_padding(&self.commands, &LearnedPadding::Modulo(padding));
        match Fit::learn(FitMethod::Robust, &self.names, &in_ranges) {
            Ok(fit) => Ok((fit, Some(padding))),
            Err(_) => Ok((exact?, None)),
        }
    }

    /// The fit with sizes that vary where the commands ask for it. Compressed bodies are no sums of any sizes, and two
    /// forms of message are no sizes that vary.
    fn varied(&self, fit: Fit) -> Fit {
        let varied = fit.with_varying_sizes(&self.commands);
        let has_other_cause = || {
            let found = Additivity::of(&fit, &self.commands);
            found.repeated_shorter.is_some() || found.forms.is_some()
        };
        varied.filter(|_| !has_other_cause()).unwrap_or(fit)
    }
}

/// The commands with the sizes that they may have had before they were padded.
pub(crate) fn before_padding(commands: &[LabelledCommand], padding: &LearnedPadding) -> Vec<LabelledCommand> {
    let sizes = |command: &LabelledCommand| padding.sizes_before(command.sizes);
    commands.iter().map(|command| LabelledCommand { sizes: sizes(command), ..command.clone() }).collect()
}

impl LearnedSizes {
    fn of_fit(fit: Fit, commands: Vec<LabelledCommand>, separation: Separation) -> Self {
        let kept = commands.into_iter().zip(0..).filter(|(_, at)| fit.outliers.binary_search(at).is_err());
        let additive = kept.map(|(command, _)| command).collect();
        Self {
            fit,
            kinds: None,
            padding: None,
            follow_labels: true,
            hold: true,
            without_sums: None,
            additive,
            separation,
            remarks: Vec::new(),
            warnings: Vec::new(),
        }
    }

    fn of_summed(
        names: &[String],
        fit: Fit,
        padding: Option<u32>,
        summed: SummedCommands,
        separation: Separation,
    ) -> Self {
        let SummedCommands { mut commands, indices, rest, .. } = summed;
        let mut remarks = Vec::new();
        if let Some(padding) = padding {
            commands = before_padding(&commands, &LearnedPadding::Modulo(padding));
            remarks.push(format!(
                "all sizes are alike modulo {padding} bytes and do not add up otherwise: messages are taken to be \
                 padded, and sizes are learned from ranges of {padding} bytes"
            ));
        }
        let contradiction = contradiction(&fit, &commands);
        let is_refuted = contradiction.is_some();
        // Where sizes are refuted, the refutation has the cause.
        let fault = contradiction.or_else(|| varying(&commands).filter(|_| fit.certainty < CERTAIN));
        // Where no sum holds, more labels tell nothing.
        let is_lasting = fault.as_ref().is_some_and(|fault| fault.is_lasting);
        let warnings = if is_lasting { Vec::new() } else { doubts(&fit, &commands) };
        let outliers = fit.outliers.iter().filter_map(|at| indices.get(*at)).copied().collect();
        let learned = Self::of_fit(fit, commands, separation);
        let kinds = learn_kinds(names, rest.iter(), indices.len());
        let padding = padding.map(LearnedPadding::Modulo);
        let hold = !is_refuted && !is_lasting;
        let mut learned = Self { kinds, padding, hold, remarks, warnings, ..learned };
        learned.fit.outliers = outliers;
        if let Some(fault) = fault {
            learned.add_fault(fault);
        }
        learned
    }

    fn add_fault(&mut self, fault: SizeFault) {
        self.without_sums = fault.is_lasting.then(|| fault.words.clone());
        self.warnings.push(fault.words);
    }

    /// Every labelled command as it is.
    fn of_kinds(names: &[String], commands: &[LabelledCommand], separation: Separation) -> Result<Self, FitError> {
        let all = learn_kinds(names, commands.iter(), 0).ok_or(FitError::NoCommands)?;
        let doubted = doubted_labels(&all, names, commands);
        let is_kept = |(at, _): &(usize, &LabelledCommand)| doubted.binary_search(at).is_err();
        let kept = commands.iter().enumerate().filter(is_kept).map(|(_, command)| command);
        let kinds = learn_kinds(names, kept, 0).ok_or(FitError::NoCommands)?;
        let mut warnings = Vec::new();
        if doubted.len() as f64 > DOUBTFUL_SHARE * commands.len() as f64 {
            warnings.push(format!(
                "the commands of {} of {} labels have the size of another kind: labels may be wrong, or shifted in time",
                doubted.len(),
                commands.len()
            ));
        }
        // Of all labels: what is left without those doubted by their size depends on size.
        let independent = size_dependence(&all).filter(|p_value| *p_value > SIGNIFICANT);
        if let Some(p_value) = independent {
            let but = if kinds.replies.is_some() { "; but replies do" } else { "" };
            warnings.push(format!(
                "sizes do not depend on the labels more than by chance (p = {p_value:.3}): the labels may be those of \
                 other commands, or of another gateway{but}"
            ));
        }
        let seen = kinds.list.iter().flat_map(|kind| &kind.seen);
        let tuples = seen.map(|seen| EpsilonTuple { size: seen.size, epsilon: 0, times: seen.times });
        let fit = Fit {
            overhead: 0,
            actions: Vec::new(),
            intervals: Vec::new(),
            certainty: 1.0,
            neighbours: Neighbours::new(tuples).ok_or(FitError::NoCommands)?,
            smoothing: Smoothing::NEAREST,
            outliers: doubted,
            ambiguous_shifts: Vec::new(),
        };
        let (follow_labels, hold) = (independent.is_none(), independent.is_none());
        let learned = Self::of_fit(fit, Vec::new(), separation);
        Ok(Self { kinds: Some(kinds), follow_labels, hold, warnings, ..learned })
    }

    /// What the kinds say, and what nothing says.
    fn describe_kinds(&mut self, names: &[String]) {
        let listed_names = |indices: &[usize]| {
            listed(indices.iter().filter_map(|at| names.get(*at)).map(|name| format!("`{name}`")), SHOWN)
        };
        if !self.separation.absent.is_empty() {
            let absent = listed_names(&self.separation.absent);
            self.warnings.push(format!(
                "no labelled command has {absent}: commands with {} will not be recognised",
                them(&self.separation.absent)
            ));
        }
        let Some(kinds) = &self.kinds else { return };
        let count = kinds.list.len();
        if self.fit.actions.is_empty() {
            let known = match count {
                1 => "the one kind of command that was labelled, as it is".to_owned(),
                _ => format!("the {count} kinds of command that were labelled, as they are"),
            };
            self.remarks.push(format!(
                "the labels do not tell the parts of a command apart (each has the same number of actions, or always \
                 the same ones together): the model answers {known}, and what other combinations weigh is not known"
            ));
        } else if !self.separation.tied.is_empty() {
            let (tied, as_labelled) =
                (listed_names(&self.separation.tied), listed(kinds.list.iter().map(Kind::in_words), SHOWN));
            self.remarks.push(format!(
                "the sizes of {tied} stay tied to each other: commands with them are answered only as they were \
                 labelled ({as_labelled})"
            ));
        }
        let once = kinds.list.iter().filter(|kind| kind.commands() == 1).count();
        if kinds.other > MAX_OTHER {
            let kinds = match once {
                _ if once == count => "each kind of command was".to_owned(),
                1 => format!("one of the {count} kinds of command was"),
                _ => format!("{once} of the {count} kinds of command were"),
            };
            self.warnings.push(format!(
                "{kinds} labelled only once: how much their sizes vary, and which other commands there are, is not \
                 known; label each kind several times"
            ));
        }
    }

    /// Names actions and kinds whose sizes do not tell them apart.
    fn describe_equal_sizes(&mut self) {
        let mut of_size: Vec<(i64, Vec<String>)> = Vec::new();
        for Action { name, size, .. } in &self.fit.actions {
            let known = of_size.iter().position(|(known, _)| known == size).unwrap_or(of_size.len());
            of_size.resize(of_size.len().max(known + 1), (*size, Vec::new()));
            of_size[known].1.push(format!("`{name}`"));
        }
        for (size, names) in of_size.into_iter().filter(|(_, names)| names.len() > 1) {
            let names = listed(names, SHOWN);
            self.remarks.push(format!(
                "{names} have the same size ({size} bytes): sizes do not tell them apart, replies do as far as they differ"
            ));
        }
        let Some(kinds) = &self.kinds else { return };
        let replies = match kinds.replies {
            Some(_) => "their replies do, as far as they differ",
            None => "and neither do their replies",
        };
        let is_once = kinds.list.iter().any(|kind| kind.commands() == 1);
        let have = if is_once { "may have" } else { "have" };
        let replies = match &kinds.replies {
            None if is_once => "and whether their replies do is not known",
            _ => replies,
        };
        let words = |at: usize| kinds.list[at].in_words();
        let pairs = kinds.of_equal_size().into_iter();
        let pairs = listed(pairs.map(|[one, other]| format!("`{}` and `{}`", words(one), words(other))), SHOWN);
        if !pairs.is_empty() {
            self.remarks.push(format!("{pairs} {have} the same sizes: sizes do not tell them apart, {replies}"));
        }
    }
}

/// One thing or several, where a sentence has named them.
fn them<T>(named: &[T]) -> &'static str {
    if named.len() == 1 { "it" } else { "them" }
}

/// How far the size of a record may be from the sum of two commands, in bytes.
const NEAR_BYTES: u64 = 8;

/// At least this many records must be as long as two commands, since one may be so by chance…
const MIN_RECORDS: usize = 2;

/// …and this share of those that do not fit.
const MIN_SHARE: f64 = 0.3;

/// A sentence if commands that were left out hold the messages of two labels each. `sizes_of` is the size of the
/// command of each pair of the matching, in bytes.
pub(crate) fn merged_messages(
    labels: &Labels,
    matching: &Matching,
    sizes: &LearnedSizes,
    sizes_of: &[i64],
    within_ns: i64,
) -> Option<String> {
    let expected = |label: &Label| {
        let mut sum = sizes.fit.overhead;
        for (name, count) in labels.actions.iter().zip(&label.counts).filter(|(_, count)| **count > 0) {
            let action = sizes.fit.actions.iter().find(|action| action.name == *name)?;
            sum = sum.saturating_add(action.size.saturating_mul((*count).into()));
        }
        Some(sum)
    };
    let without_command: Vec<&Label> =
        matching.missed.iter().chain(&matching.ambiguous).filter_map(|row| labels.rows.get(*row)).collect();
    let holds_two = |pair: &&usize| {
        let (own, size) = (&labels.rows[matching.pairs[**pair].0], sizes_of[**pair]);
        let Some(own_bytes) = expected(own) else { return false };
        without_command.iter().any(|other| {
            let is_near = other.time_ns.abs_diff(own.time_ns) <= within_ns.unsigned_abs().saturating_mul(2);
            // A second message has its own overhead; a merged body has one for both.
            let both = expected(other).map(|bytes| own_bytes.saturating_add(bytes));
            let is_sum = |sum: i64| sum.abs_diff(size) <= NEAR_BYTES;
            is_near && both.is_some_and(|sum| is_sum(sum) || is_sum(sum.saturating_sub(sizes.fit.overhead)))
        })
    };
    let records = sizes.fit.outliers.iter().filter(holds_two).count();
    let is_usual = records as f64 >= MIN_SHARE * sizes.fit.outliers.len() as f64;
    (records >= MIN_RECORDS && is_usual).then(|| {
        format!(
            "{records} commands are as long as two labelled ones together, and the second label has none: several \
             messages travel in one record; leave more time between commands, or label both as one command"
        )
    })
}

#[cfg(test)]
mod tests;
