//! What may be wrong with sums of sizes, and why.

use std::collections::BTreeMap;

use sizeleak_model::{Action, FitMethod, LabelledCommand};
use sizeleak_text::{counted, listed, rough_percent};

use crate::fit::{Additivity, Fit, Separation};

/// With a smaller posterior probability the sizes found are not separated from others that fit nearly as well.
pub(crate) const CERTAIN: f64 = 0.9;

/// Fewer labelled commands than this tell sizes, but not how probable answers are.
pub const MIN_COMMANDS: usize = 50;

/// How many names a sentence lists; the others are counted.
pub(crate) const SHOWN: usize = 8;

/// Where so great a share of the labels does not fit, the model is doubted, not the labels.
pub(crate) const DOUBTFUL_SHARE: f64 = 0.15;

/// The p-value below which sizes are said not to add up.
pub(crate) const SIGNIFICANT: f64 = 0.01;

/// Smaller mean deviations in bytes are ε.
const USUAL_DEVIATION: f64 = 1.0;

/// With fewer commands that have the actions of others, how much they vary is not known…
const MIN_ALIKE: usize = 6;

/// …and more than this share of them differ from each other where messages hold texts: wrong labels are fewer.
const VARYING_SHARE: f64 = 1.0 / 3.0;

/// The shortest JSON of a device and a state, `{"d":1,"s":1}`, in bytes.
const SHORTEST_PLAIN: f64 = 13.0;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SizeFault {
    pub(crate) words: String,
    /// Whether no sum of sizes holds, however many commands are labelled.
    pub(crate) is_lasting: bool,
}

impl SizeFault {
    /// More labels, or other ones, may mend it.
    fn passing(cause: String) -> Self {
        Self { words: cause, is_lasting: false }
    }

    fn lasting(cause: &str) -> Self {
        Self { words: format!("{cause}: sums of sizes do not hold for them"), is_lasting: true }
    }

    fn behind(self, finding: &str) -> Self {
        Self { words: format!("{finding}{}", self.words), ..self }
    }
}

/// What more labels would tell of sums.
pub(crate) fn doubts(fit: &Fit, commands: &[LabelledCommand]) -> Vec<String> {
    let open = fit.actions.iter().zip(&fit.intervals).filter(|(_, [least, most])| least < most);
    let open = listed(open.map(|(action, [least, most])| format!("`{}` {least} to {most}", action.name)), SHOWN);
    let open = if open.is_empty() { "all sizes".to_owned() } else { format!("{open} bytes") };
    let open = format!(
        "the labels leave sizes open: {open} (95 % credible), and these sizes together are right with a probability of \
         {}; label more commands of several actions",
        rough_percent(fit.certainty)
    );
    let count = commands.len();
    let few = format!(
        "only {} learned from: how much sizes vary (ε) and what is usual are known roughly, and probabilities may be off \
         by a tenth; label {MIN_COMMANDS} commands or more",
        counted(count, "command was", "commands were")
    );
    let doubts = [(fit.certainty < CERTAIN, open), (count < MIN_COMMANDS, few)];
    doubts.into_iter().filter(|(is_true, _)| *is_true).map(|(_, words)| words).collect()
}

/// That sizes do not add up, and why.
pub(crate) fn contradiction(fit: &Fit, commands: &[LabelledCommand]) -> Option<SizeFault> {
    let (count, left_out) = (commands.len(), fit.outliers.len());
    let share = left_out as f64 / count.max(1) as f64;
    let found = Additivity::of(fit, commands);
    let is_significant = found.p_value < SIGNIFICANT && found.mean_deviation > USUAL_DEVIATION;
    if share <= DOUBTFUL_SHARE && !is_significant {
        return None;
    }
    let cause = if let Some(sizes) = grouped_sizes(fit, commands) {
        SizeFault::lasting(&format!(
            "an action that occurs again costs less than the first time ({sizes}), as where devices are grouped by their \
             action"
        ))
    } else if let Some(shorter) = found.repeated_shorter {
        SizeFault::lasting(&format!(
            "an action that occurs again is {shorter:.0} bytes shorter than the first time, as in compressed bodies \
             (permessage-deflate, gzip)"
        ))
    } else if let Some((apart, upper)) = found.forms {
        SizeFault::passing(format!(
            "there are two forms of message, {:.0} % of them {apart} bytes longer, as of two apps: learn each from its \
             own captures",
            100.0 * upper
        ))
    } else if let Some(other) = other_sizes(fit, commands) {
        SizeFault::passing(format!(
            "those that do not fit agree on other sizes ({other}), as of two apps: learn each from its own captures"
        ))
    } else {
        let unknown = "the cause is not recognised: messages may hold texts of varying length, or labels may be wrong";
        varying(commands).unwrap_or_else(|| SizeFault::passing(unknown.to_owned()))
    };
    Some(cause.behind(&format!(
        "the sizes of labelled commands do not add up: {left_out} of {count} deviate by more than 8 bytes, all by \
         {:.1} on average; residuals depend on the actions with p = {:.3}; ",
        found.mean_deviation, found.p_value
    )))
}

/// That commands with the same actions differ in size: by texts, or by what compression makes of them.
pub(crate) fn varying(commands: &[LabelledCommand]) -> Option<SizeFault> {
    let mut alike: BTreeMap<&[u32], Vec<i64>> = BTreeMap::new();
    for command in commands {
        alike.entry(&command.counts).or_default().push(command.sizes[1]);
    }
    let (mut others, mut differ) = (0, 0);
    for sizes in alike.values_mut() {
        sizes.sort_unstable();
        let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
        others += sizes.len() - 1;
        differ += sizes.iter().filter(|size| size.abs_diff(median) as f64 > USUAL_DEVIATION).count();
    }
    let totals = || commands.iter().map(|command| command.total() as f64);
    let mean_total = totals().sum::<f64>() / commands.len() as f64;
    let above = || totals().map(|total| total - mean_total);
    let product = above().zip(commands).map(|(above, command)| above * command.sizes[1] as f64).sum::<f64>();
    let each = product / above().map(|above| above * above).sum::<f64>();
    let is_compressed = each < SHORTEST_PLAIN;
    let share = if is_compressed { DOUBTFUL_SHARE } else { VARYING_SHARE };
    if others < MIN_ALIKE || differ as f64 <= share * others as f64 {
        return None;
    }
    let cause = if is_compressed {
        SizeFault::lasting(&format!(
            "and one action more takes {each:.0} bytes, as in compressed messages (zlib, gzip)"
        ))
    } else {
        SizeFault::passing(
            "so messages hold texts of varying length (names, identifiers): give such devices types of their own"
                .into(),
        )
    };
    Some(cause.behind(&format!(
        "{differ} of {others} commands differ by more than a byte from others with the same actions, "
    )))
}

/// What each action costs the first time and each further time, if sizes add up then.
fn grouped_sizes(fit: &Fit, commands: &[LabelledCommand]) -> Option<String> {
    let again = fit.actions.iter().map(|action| format!("{} again", action.name));
    let names: Vec<String> = fit.actions.iter().map(|action| action.name.clone()).chain(again).collect();
    let split = |command: &LabelledCommand| {
        let first = command.counts.iter().map(|count| (*count).min(1));
        let further = command.counts.iter().map(|count| count.saturating_sub(1));
        LabelledCommand { counts: first.chain(further).collect(), ..command.clone() }
    };
    let split: Vec<LabelledCommand> = commands.iter().map(split).collect();
    let grouped = fit_of_separate(&names, &split).filter(|(fit, commands)| agrees(fit, commands))?.0;
    let size = |name: &str| grouped.actions.iter().find(|action| action.name == name).map(|action| action.size);
    let cheaper = fit.actions.iter().filter_map(|Action { name, .. }| {
        let (first, further) = size(name).zip(size(&format!("{name} again")))?;
        (further < first).then(|| format!("`{name}` {first} and {further} bytes"))
    });
    Some(listed(cheaper, SHOWN)).filter(|sizes| !sizes.is_empty())
}

/// A fit of the actions that commands separate, to the commands of these alone; `None` if there are fewer commands than
/// sizes, as any would fit then, or if most have other actions, too.
pub(crate) fn fit_of_separate(names: &[String], commands: &[LabelledCommand]) -> Option<(Fit, Vec<LabelledCommand>)> {
    let separation = Separation::of(names.len(), commands);
    let kept: Vec<LabelledCommand> = commands.iter().filter_map(|command| separation.project(command)).collect();
    let separate: Vec<String> = separation.separate.iter().filter_map(|at| names.get(*at)).cloned().collect();
    if separate.is_empty() || kept.len() < 2 * (separate.len() + 1) || kept.len() * 10 < commands.len() * 9 {
        return None;
    }
    Some((Fit::learn(FitMethod::Robust, &separate, &kept).ok()?, kept))
}

/// Whether nearly all commands are what a fit says.
pub(crate) fn agrees(fit: &Fit, commands: &[LabelledCommand]) -> bool {
    // One gross outlier, such as a wrong label, is no deviation of all.
    let kept = commands.iter().enumerate().filter(|(at, _)| !fit.outliers.contains(at));
    let kept: Vec<LabelledCommand> = kept.map(|(_, command)| command.clone()).collect();
    fit.outliers.len() * 10 <= commands.len() && Additivity::of(fit, &kept).mean_deviation <= USUAL_DEVIATION
}

/// The sizes that the outliers of a fit agree on among themselves.
fn other_sizes(fit: &Fit, commands: &[LabelledCommand]) -> Option<String> {
    let outliers: Vec<LabelledCommand> = fit.outliers.iter().filter_map(|at| commands.get(*at)).cloned().collect();
    let names: Vec<String> = fit.actions.iter().map(|action| action.name.clone()).collect();
    let (other, _) = fit_of_separate(&names, &outliers).filter(|(fit, commands)| agrees(fit, commands))?;
    let size = |name: &str| fit.actions.iter().find(|action| action.name == name).map_or(0, |action| action.size);
    let differ = other
        .actions
        .iter()
        .map(|action| format!("`{}` {} instead of {} bytes", action.name, action.size, size(&action.name)));
    Some(listed(differ, SHOWN))
}
