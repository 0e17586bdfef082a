//! What a fit of sizes finds, or why there is none; and what remains of commands without actions of these sizes.

use std::collections::BTreeMap;

use sizeleak_model::statistics::middle;
use sizeleak_model::step_function::{Residual, StepFunction, step_cost};
use sizeleak_model::{
    Action, EpsilonTuple, LabelledCommand, MAX_ACTION_SIZE, MAX_COUNT_OF_ACTION, MAX_MESSAGE_SIZE, MAX_TUPLES,
    Neighbours, Smoothing,
};
use thiserror::Error;

pub const MAX_FITTED_ACTIONS: usize = 256;

#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum FitError {
    #[error("there is no labelled command to learn from")]
    NoCommands,
    #[error(
        "the paper's procedure needs `{action}` alone {}: record it, or use `--method robust`",
        if *devices == 1 { "on one device" } else { "on two devices" }
    )]
    MissingExperiment { action: String, devices: u32 },
    /// Some actions occur in no command, or only in fixed proportions to other actions.
    /// [`crate::fit::ExperimentDesign::missing`] says which commands to record.
    #[error("{}", unidentified(absent, entangled))]
    Unidentified {
        absent: Vec<String>,
        /// Actions that always occur in the same proportion to each other or to the number of commands.
        entangled: Vec<String>,
    },
    #[error(
        "the labels have {0} actions, the limit is {MAX_FITTED_ACTIONS}: split them by gateway, or drop actions you do \
         not need"
    )]
    TooManyActions(usize),
    #[error(
        "the labelled commands have {0} distinct pairs of a size and an ε, the limit of a model is {MAX_TUPLES}: learn \
         from fewer captures"
    )]
    TooManyTuples(usize),
    #[error(
        "labelled command {0} (from 0) is out of bounds: sizes must be at most {MAX_MESSAGE_SIZE} bytes, counts at most \
         {MAX_COUNT_OF_ACTION}, one for each action"
    )]
    OutOfBounds(usize),
    #[error("the fitted size of `{action}` is {size} bytes: check its labels, or record more commands with it")]
    NoSize { action: String, size: i64 },
}

fn unidentified(absent: &[String], entangled: &[String]) -> String {
    let listed = |names: &[String]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let mut parts = Vec::new();
    if !absent.is_empty() {
        parts.push(format!("no labelled command has {}", listed(absent)));
    }
    if !entangled.is_empty() {
        let listed = listed(entangled);
        parts.push(format!(
            "the labelled commands cannot separate the sizes of {listed}, which always occur in the same proportions"
        ));
    }
    parts.join("; ")
}

impl FitError {
    /// An error unless `unidentified`, a list of action indices, is empty.
    pub(crate) fn unless_identified(
        names: &[String],
        commands: &[LabelledCommand],
        unidentified: &[usize],
    ) -> Result<(), Self> {
        if unidentified.is_empty() {
            return Ok(());
        }
        let occurs = |at: usize| commands.iter().any(|command| command.counts.get(at).is_some_and(|count| *count > 0));
        let pick = |indices: &[usize]| indices.iter().filter_map(|at| names.get(*at)).cloned().collect();
        let (entangled, absent): (Vec<usize>, Vec<usize>) = unidentified.iter().partition(|at| occurs(**at));
        Err(Self::Unidentified { absent: pick(&absent), entangled: pick(&entangled) })
    }
}

/// Sizes learned from labelled commands.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// |ac| in bytes.
    pub overhead: i64,
    pub actions: Vec<Action>,
    /// The least and the greatest size of each action in bytes that a credible interval of 95 % holds. The paper's
    /// procedure has no intervals: its sizes stand alone.
    pub intervals: Vec<[i64; 2]>,
    /// The posterior probability that all actions have exactly these sizes; 1 with the paper's procedure.
    pub certainty: f64,
    /// The ε of each command, without the outliers.
    pub neighbours: Neighbours,
    pub smoothing: Smoothing,
    /// Indices of commands whose label does not explain their size: wrong labels, or not commands at all.
    pub outliers: Vec<usize>,
    /// Shifts in bytes by which the sizes of all actions could be wrong together and fit nearly as well, if a length
    /// field grows between the labelled commands. If there are any, record commands of three actions and more.
    pub ambiguous_shifts: Vec<i64>,
}

impl Fit {
    /// A fit of sizes that stand alone. `remainders`: of each command without its actions, of a range one value.
    pub(crate) fn of(
        names: &[String],
        actions: &[i64],
        overhead: i64,
        commands: &[LabelledCommand],
        remainders: &[i64],
        outliers: Vec<usize>,
    ) -> Result<Self, FitError> {
        let mut sizes = names.iter().zip(actions);
        if let Some((action, &size)) = sizes.find(|(_, size)| !(1..=MAX_ACTION_SIZE).contains(*size)) {
            return Err(FitError::NoSize { action: action.clone(), size });
        }
        let tuple = |(command, remainder): (&LabelledCommand, &i64)| {
            let size = action_bytes(actions, &command.counts).saturating_add(*remainder);
            EpsilonTuple::new(size, remainder.saturating_sub(overhead))
        };
        let kept = commands.iter().zip(remainders).enumerate();
        let kept = kept.filter(|(at, _)| outliers.binary_search(at).is_err()).map(|(_, command)| tuple(command));
        let neighbours = Neighbours::new(kept).ok_or(FitError::NoCommands)?;
        if neighbours.tuples().len() > MAX_TUPLES {
            return Err(FitError::TooManyTuples(neighbours.tuples().len()));
        }
        Ok(Self {
            overhead,
            actions: names.iter().zip(actions).map(|(name, size)| Action::new(name, *size)).collect(),
            intervals: actions.iter().map(|size| [*size; 2]).collect(),
            certainty: 1.0,
            neighbours,
            smoothing: Smoothing::NEAREST,
            outliers,
            ambiguous_shifts: Vec::new(),
        })
    }
}

/// The median, the lower one of two; 0 for no values.
pub(crate) fn median(values: &mut [i64]) -> i64 {
    middle(values, i64::cmp).map_or(0, |[lower, _]| lower)
}

/// Bytes of the actions of a command: Σ |aᵢ|·nbᵢ.
pub(crate) fn action_bytes(sizes: &[i64], counts: &[u32]) -> i64 {
    let products = sizes.iter().zip(counts).map(|(size, count)| size.saturating_mul(i64::from(*count)));
    products.fold(0, i64::saturating_add)
}

/// A remainder and the level of the step function at its command.
#[derive(Clone, Copy)]
pub(crate) struct Remainder {
    /// The remainder; of a range, the value nearest to the level.
    pub(crate) value: i64,
    pub(crate) level: i64,
}

/// What remains of commands without actions of these sizes, in their order; and what a step costs, in bytes: more where
/// remainders deviate much. Steps are along the actions' bytes: along sizes, noise would look like steps.
pub(crate) fn fitted(actions: &[i64], commands: &[LabelledCommand]) -> (Vec<Remainder>, i64) {
    let bytes = |command: &LabelledCommand| action_bytes(actions, &command.counts);
    let mut order: Vec<(i64, usize)> = commands.iter().map(bytes).zip(0..).collect();
    order.sort_unstable();
    let range = |(bytes, at): &(i64, usize)| commands[*at].sizes.map(|size| size.saturating_sub(*bytes));
    let ranges: Vec<[i64; 2]> = order.iter().map(range).collect();
    let (bytes, order): (Vec<i64>, Vec<usize>) = order.into_iter().unzip();
    let StepFunction { levels, step_bytes, .. } = StepFunction::fit(&bytes, &ranges);
    let mut fitted = vec![Remainder { value: 0, level: 0 }; commands.len()];
    for ((at, [least, most]), level) in order.into_iter().zip(ranges).zip(levels) {
        fitted[at] = Remainder { value: level.clamp(least, most.max(least)), level };
    }
    (fitted, step_bytes)
}

/// Labelled commands, those with the same actions together: there are few different ones.
pub(crate) struct EqualCommands<'a> {
    of_actions: Vec<(&'a [u32], SizesSeen)>,
}

/// The ranges of sizes that some commands have, in order, each with how often.
type SizesSeen = Vec<([i64; 2], u32)>;

impl<'a> EqualCommands<'a> {
    pub(crate) fn new(commands: &'a [LabelledCommand]) -> Self {
        let mut of_actions: BTreeMap<&[u32], BTreeMap<[i64; 2], u32>> = BTreeMap::new();
        for LabelledCommand { counts, sizes, .. } in commands {
            *of_actions.entry(counts).or_default().entry(*sizes).or_default() += 1;
        }
        Self { of_actions: of_actions.into_iter().map(|(counts, seen)| (counts, seen.into_iter().collect())).collect() }
    }

    /// The cost of the best step function for these sizes, in bytes of deviation; `None` if it is not below a limit.
    pub(crate) fn cost(&self, actions: &[i64], step_bytes: i64, limit: f64) -> Option<f64> {
        let bytes = self.of_actions.iter().map(|(counts, _)| action_bytes(actions, counts));
        let mut ordered: Vec<(i64, usize)> = bytes.zip(0..).collect();
        ordered.sort_unstable();
        let mut residuals: Vec<Residual> = Vec::with_capacity(ordered.len());
        for (size, at) in ordered {
            let without = |end: i64| end.saturating_sub(size);
            let (_, seen) = &self.of_actions[at];
            residuals.extend(seen.iter().map(|(range, times)| Residual {
                size,
                range: range.map(without),
                times: *times,
            }));
        }
        step_cost(&residuals, step_bytes, limit)
    }
}
