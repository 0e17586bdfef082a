//! What a fit of sizes finds, or why there is none.

use sizeleak_model::statistics::middle;
use sizeleak_model::{LabelledCommand, MAX_COUNT_OF_ACTION, MAX_MESSAGE_SIZE, MAX_TUPLES};
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
    /// [`crate::ExperimentDesign::missing`] says which commands to record.
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

/// |ac|, every |aᵢ|, and the commands that do not fit them.
pub(crate) struct FittedSizes {
    pub(crate) overhead: i64,
    pub(crate) actions: Vec<i64>,
    pub(crate) intervals: Vec<[i64; 2]>,
    pub(crate) certainty: f64,
    /// Size of each command without its actions; one possible value if the size is a range.
    pub(crate) remainders: Vec<i64>,
    /// Indices of commands, in ascending order.
    pub(crate) outliers: Vec<usize>,
    pub(crate) ambiguous_shifts: Vec<i64>,
}

/// The median, the lower one of two; 0 for no values.
pub(crate) fn median(values: &mut [i64]) -> i64 {
    middle(values, i64::cmp).map_or(0, |[lower, _]| lower)
}
