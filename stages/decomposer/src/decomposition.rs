//! What a decomposition finds, or why it finds nothing; and the mixture of several.

use std::collections::BTreeMap;

use sizeleak_frame::Candidate;
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

/// The answer by several models, each with its share; the first one's reason where none has an answer.
pub(crate) fn mixture(own: Decomposition, others: Vec<(f64, Option<Decomposition>)>, limit: usize) -> Decomposition {
    let rest = 1.0 - others.iter().map(|(share, _)| share).sum::<f64>();
    let unused_epsilons = own.unused_epsilons;
    let reason = own.candidates.as_ref().err().copied();
    let answers =
        std::iter::once((rest.max(0.0), own)).chain(others.into_iter().filter_map(|(share, own)| Some((share, own?))));
    let (mut size_probability, mut parts) = (0.0, Vec::new());
    for (share, answer) in answers {
        let joint = share * answer.size_probability.unwrap_or(0.0);
        size_probability += joint;
        parts.extend(answer.candidates.ok().filter(|_| joint > 0.0).map(|found| (joint, found)));
    }
    let candidates = match reason {
        Some(reason) if parts.is_empty() => Err(reason),
        _ => Ok(joined(&parts, limit)),
    };
    Decomposition { candidates, unused_epsilons, size_probability: Some(size_probability) }
}

/// The candidates of several answers, with the probability of each together with the size.
fn joined(parts: &[(f64, FoundCandidates)], limit: usize) -> FoundCandidates {
    let all: f64 = parts.iter().map(|(joint, _)| joint).sum();
    let mut places: BTreeMap<_, usize> = BTreeMap::new();
    let mut listed: Vec<Candidate> = Vec::new();
    for (joint, found) in parts {
        for candidate in &*found.listed {
            let key = (candidate.actions.indexed_counts(), candidate.epsilon);
            let at = *places.entry(key).or_insert_with(|| {
                listed.push(Candidate { probability: 0.0, ..candidate.clone() });
                listed.len() - 1
            });
            listed[at].probability += joint / all * candidate.probability;
        }
    }
    // Equal ones stay in their order.
    listed.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let most = parts.iter().map(|(_, found)| found.count).max().unwrap_or(0);
    let count = most.max(listed.len() as u64);
    listed.truncate(limit);
    let of_replies = |(joint, found): &(f64, FoundCandidates)| Some(joint / all * found.reply_probability?);
    FoundCandidates {
        listed: listed.into(),
        count,
        probability: Some(all),
        reply_probability: parts.iter().map(of_replies).sum(),
        with_replies: None,
    }
}
