//! One of the pipelines that are compared: its evaluation, and the outcome of each labelled command.

use crate::evaluation::Evaluation;
use crate::judge::{Judgement, TruthRank};
use crate::judged_run::{JudgedRun, MatchCounts};

/// One of the pipelines that are compared.
pub struct ComparedRun {
    /// The pipeline, as the user named it.
    pub(super) name: String,
    pub(super) matches: MatchCounts,
    /// `None` if the pipeline ends before candidates are made.
    pub(super) evaluation: Option<Evaluation>,
    /// The outcome of each label's command, in the order of the file.
    pub(super) outcomes: Vec<CommandOutcome>,
    /// The times of the first and the last command.
    pub(super) span: Option<(i64, i64)>,
}

impl ComparedRun {
    /// A run with its evaluation, which is `None` if the pipeline ends before candidates are made.
    pub fn new(name: String, run: &JudgedRun, evaluation: Option<Evaluation>) -> Self {
        let prior_bits = evaluation.as_ref().and_then(|evaluation| evaluation.after_pruning.information.prior_bits);
        let times = run.after.times();
        Self {
            name,
            matches: MatchCounts::new(&run.after.matching),
            evaluation,
            outcomes: (0..run.labels.labels().rows.len())
                .map(|row| CommandOutcome::new(run, row, prior_bits))
                .collect(),
            span: times.iter().min().zip(times.iter().max()).map(|(first, last)| (*first, *last)),
        }
    }
}

/// What a pipeline answered for a labelled command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CommandOutcome {
    pub(super) is_found: bool,
    pub(super) is_candidate_before: bool,
    pub(super) is_credible: bool,
    /// `None`, like all fields below, if no command was found.
    rank: Option<TruthRank>,
    /// How many candidates there are.
    pub(super) candidates: Option<u64>,
    /// How many candidates the credible set holds.
    pub(super) credible_size: Option<u64>,
    /// The probability of the first candidate.
    pub(super) probability: Option<f64>,
    /// The bits given away, if they are known; `None` for a command that was not found.
    pub(super) leaked_bits: Option<f64>,
}

impl CommandOutcome {
    /// Whether the truth is among the candidates.
    pub(super) fn is_candidate(&self) -> bool {
        self.rank.is_some_and(TruthRank::is_candidate)
    }

    /// The position of the truth in the list, from 1.
    pub(super) fn position(&self) -> Option<u64> {
        self.rank.and_then(TruthRank::position)
    }

    /// The outcome of a row's command; `prior_bits` is the entropy of what is known without sizes.
    fn new(run: &JudgedRun, row: usize, prior_bits: Option<f64>) -> Self {
        let judgement = run.after.judgement(row);
        // As in `Information`: an unexplained command gives nothing away.
        let explained = judgement.filter(|judgement| judgement.candidates > 0);
        let remaining = explained.map(|judgement| judgement.probabilities.entropy_bits);
        let before = run.before.as_ref().and_then(|before| before.judgement(row));
        Self {
            is_found: run.after.command(row).is_some(),
            is_candidate_before: before.is_some_and(|before| before.rank.is_candidate()),
            is_credible: judgement.is_some_and(Judgement::is_credible),
            rank: judgement.map(|judgement| judgement.rank),
            candidates: judgement.map(|judgement| judgement.candidates),
            credible_size: judgement.map(|judgement| judgement.probabilities.credible_size),
            probability: judgement.and_then(|judgement| judgement.probabilities.first),
            leaked_bits: prior_bits.map(|prior| prior - remaining.unwrap_or(prior)),
        }
    }
}
