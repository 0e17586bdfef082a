//! What a decomposition finds, or why it finds nothing.

use sizeleak_inference::search::SumTooLarge;
use thiserror::Error;

use crate::candidate_list::FoundCandidates;

/// What explains a size, for some values of ε.
#[derive(Debug, Clone)]
pub(crate) struct Decomposition {
    pub(crate) candidates: Result<FoundCandidates, Unexplained>,
    pub(crate) unused_epsilons: u64,
    /// The probability of the size, 0 if nothing explains it; `None` where the model does not say.
    pub(crate) size_probability: Option<f64>,
}

/// Why nothing explains a command, as its notice says.
#[derive(Debug, Clone, Copy, Error)]
pub(crate) enum Unexplained {
    #[error("no message of {0} to {1} bytes comes out of this cipher: it is not decomposed")]
    InvalidRange(i64, i64),
    #[error("no actions add up to the {0} bytes of this message: another kind of message, or another gateway")]
    NoSolution(i64),
    #[error("no actions add up to the {0} to {1} bytes of this message: another kind of message, or another gateway")]
    NoSolutionInRange(i64, i64),
    #[error(
        "no labelled kind of command has {0} bytes, and what other commands weigh is not known: another kind of \
         message, another gateway, or a command to label"
    )]
    NoKind(i64),
    #[error(transparent)]
    TooLarge(#[from] SumTooLarge),
}
