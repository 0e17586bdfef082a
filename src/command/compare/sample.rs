//! What one pipeline came to: its evaluation, and of each labelled command what goes into the figures.

use crate::command::evaluate::{Evaluation, Findings, Judgement, TruthRank};

/// What one pipeline came to.
pub(super) struct Sample {
    /// The pipeline as it was given.
    pub(super) name: String,
    pub(super) counts: Counts,
    /// `None` where the pipeline ends before candidates are made.
    pub(super) evaluation: Option<Evaluation>,
    /// What was said of each label's command, in the order of the file.
    pub(super) said: Vec<Said>,
    /// The first and the last command.
    pub(super) span: Option<(i64, i64)>,
}

/// How labels and commands went together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counts {
    pub(super) matched: u64,
    pub(super) missed: u64,
    pub(super) ambiguous: u64,
    pub(super) spurious: u64,
}

/// What was said of a labelled command.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Said {
    pub(super) is_found: bool,
    pub(super) is_among_before: bool,
    pub(super) is_credible: bool,
    /// Where the truth stands; `None`, as all that follows, where no command was found.
    standing: Option<TruthRank>,
    /// How many candidates there are, and in the credible set.
    pub(super) candidates: Option<u64>,
    pub(super) credible: Option<u64>,
    /// The probability of the first candidate.
    pub(super) first: Option<f64>,
    /// What is given away of it, in bits, where that can be said; nothing of what was not found.
    pub(super) leaked_bits: Option<f64>,
}

impl Said {
    /// Whether the truth is among the candidates.
    pub(super) fn is_among(&self) -> bool {
        self.standing.is_some_and(TruthRank::is_among)
    }

    /// The truth's place in the list, from 1.
    pub(super) fn place(&self) -> Option<u64> {
        self.standing.and_then(TruthRank::place)
    }

    /// What was said of a row's command; `prior_bits` is the entropy of what is known without sizes.
    fn of(findings: &Findings<'_>, row: usize, prior_bits: Option<f64>) -> Self {
        let judgement = findings.said(row);
        // As `Information` counts it: of what is not explained, all is left.
        let left =
            judgement.filter(|judgement| judgement.candidates > 0).map(|judgement| judgement.belief.entropy_bits);
        Self {
            is_found: findings.matching.pairs.binary_search_by_key(&row, |(label, _)| *label).is_ok(),
            is_among_before: findings.said_before(row).is_some_and(|before| before.standing.is_among()),
            is_credible: judgement.is_some_and(Judgement::is_credible),
            standing: judgement.map(|judgement| judgement.standing),
            candidates: judgement.map(|judgement| judgement.candidates),
            credible: judgement.map(|judgement| judgement.belief.credible),
            first: judgement.and_then(|judgement| judgement.belief.first),
            leaked_bits: prior_bits.map(|prior| prior - left.unwrap_or(prior)),
        }
    }
}

impl Sample {
    /// What a pipeline found; `evaluation` is `None` where it ends before candidates are made.
    pub(super) fn new(name: String, findings: &Findings<'_>, times: &[i64], evaluation: Option<Evaluation>) -> Self {
        let matching = &findings.matching;
        let prior_bits = evaluation.as_ref().and_then(|evaluation| evaluation.after_pruning.information.prior_bits);
        let counts = Counts {
            matched: matching.pairs.len() as u64,
            missed: matching.missed.len() as u64,
            ambiguous: matching.ambiguous.len() as u64,
            spurious: matching.spurious.len() as u64,
        };
        Self {
            name,
            counts,
            evaluation,
            said: (0..findings.rows()).map(|row| Said::of(findings, row, prior_bits)).collect(),
            span: times.iter().min().zip(times.iter().max()).map(|(first, last)| (*first, *last)),
        }
    }
}
