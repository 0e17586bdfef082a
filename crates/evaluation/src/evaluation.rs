//! All figures of one evaluated pipeline.

use serde::Serialize;
use sizeleak_simulator::BayesLimit;

use crate::bayes_limit::LimitComparison;
use crate::confusion::Confusion;
use crate::judged_run::{JudgedRun, MatchCounts};
use crate::score::{ActionScore, Score};

/// The version of the JSON keys.
const SCHEMA: u32 = 1;

/// The figures of an evaluation.
#[derive(Debug, PartialEq, Serialize)]
pub struct Evaluation {
    schema: u32,
    /// Labelled commands.
    pub commands: usize,
    /// How labels and commands match.
    #[serde(flatten)]
    pub matches: MatchCounts,
    /// The score of the pruner's input; `None` if the pipeline has no pruner.
    pub before_pruning: Option<Score>,
    /// The score of the pipeline's output.
    pub after_pruning: Score,
    /// The score of the pipeline's output by action.
    pub actions: Vec<ActionScore>,
    /// Which action is mistaken for which.
    pub confusion: Confusion,
    /// The best that any method can do; `None` without a scenario.
    pub bayes_limit: Option<LimitComparison>,
    /// The paper's own figures.
    pub paper: PaperFigures,
}

/// The paper's own figures: 12 plugs with 4 actions and 4 lamps with 7, behind one gateway.
#[derive(Debug, PartialEq, Serialize)]
pub struct PaperFigures {
    /// Labelled commands.
    pub commands: u64,
    /// The share of commands with the truth among the candidates, before pruning.
    pub precision_before_pruning: f64,
    /// The same after pruning.
    pub precision_after_pruning: f64,
}

const PAPER: PaperFigures =
    PaperFigures { commands: 307, precision_before_pruning: 0.984, precision_after_pruning: 0.912 };

impl Evaluation {
    /// The figures of a run; `prior_bits` is the entropy of commands before their sizes are seen, in bits, and `limit`
    /// the best result that any method can reach.
    pub fn new(run: &JudgedRun, prior_bits: Option<f64>, limit: Option<BayesLimit>) -> Self {
        let after = run.judged(&run.after);
        let before_pruning = run.before.as_ref().map(|before| Score::new(&run.judged(before), prior_bits));
        let after_pruning = Score::new(&after, prior_bits);
        let labels = run.labels.labels();
        Self {
            schema: SCHEMA,
            commands: labels.rows.len(),
            matches: MatchCounts::new(&run.after.matching),
            bayes_limit: limit.map(|limit| LimitComparison::new(limit, before_pruning.as_ref(), &after_pruning)),
            before_pruning,
            after_pruning,
            actions: ActionScore::of_each(&labels.actions, &after),
            confusion: Confusion::new(labels.actions.len(), &after),
            paper: PAPER,
        }
    }
}
