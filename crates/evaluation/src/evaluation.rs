//! All figures of one evaluated pipeline.

use serde::Serialize;
use sizeleak_model::Matching;
use sizeleak_simulator::BayesLimit;

use crate::bayes_limit::LimitComparison;
use crate::conclusion::Conclusion;
use crate::confusion::Confusion;
use crate::judge::JudgedLabel;
use crate::judged_run::{JudgedRun, MatchCounts, MatchedCommands};
use crate::label_clock::LabelClock;
use crate::label_file::LabelFile;
use crate::model_fit::ModelFit;
use crate::score::{ActionScore, Score};

/// The version of the JSON keys.
const SCHEMA: u32 = 1;

/// The figures of an evaluation.
#[derive(Debug, PartialEq, Serialize)]
pub struct Evaluation {
    schema: u32,
    /// What the figures say.
    pub conclusion: Conclusion,
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
    /// What is known of the labels' clock, if it was corrected.
    pub clock: Option<ClockCorrection>,
    /// The figures that the paper published in 2019, where they are asked for.
    pub paper: Option<PaperFigures>,
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

impl PaperFigures {
    /// As published.
    pub const PUBLISHED: Self = Self { commands: 307, precision_before_pruning: 0.984, precision_after_pruning: 0.912 };
}

impl Evaluation {
    /// The figures of a run; `prior_bits` is the entropy of commands before their sizes are seen, in bits, and `limit`
    /// the best result that any method can reach.
    pub fn new(run: &JudgedRun, prior_bits: Option<f64>, limit: Option<BayesLimit>) -> Self {
        let after = run.judged(&run.after);
        let before_pruning = run.before.as_ref().map(|before| Score::new(&run.judged(before), prior_bits));
        let after_pruning = Score::new(&after, prior_bits);
        let labels = &run.labels;
        let matches = MatchCounts::new(&run.after.matching);
        Self {
            schema: SCHEMA,
            conclusion: Conclusion::new(labels.labels(), &after_pruning, &matches, run.fit, Some(run.kind)),
            commands: labels.labels().rows.len(),
            matches,
            bayes_limit: limit.map(|limit| LimitComparison::new(limit, before_pruning.as_ref(), &after_pruning)),
            before_pruning,
            after_pruning,
            actions: ActionScore::of_each(&labels.labels().actions, &after),
            confusion: Confusion::new(labels.labels().actions.len(), &after),
            clock: ClockCorrection::of(labels),
            paper: None,
        }
    }

    /// The figures of labels that were judged by several models: each row by one of them. `matching` says which
    /// commands the labels belong to.
    pub fn pooled(labels: &LabelFile, matching: &Matching, parts: &[JudgedPart]) -> Self {
        let rows = &labels.labels().rows;
        let judged = |commands_of: &dyn Fn(&JudgedRun) -> Option<&MatchedCommands>| {
            let mut all: Vec<JudgedLabel<'_>> =
                rows.iter().map(|row| JudgedLabel { truth: &row.counts, judgement: None }).collect();
            let mut is_judged = false;
            for part in parts {
                let Some(commands) = part.run.as_ref().and_then(commands_of) else { continue };
                is_judged = true;
                for at in &part.rows {
                    let Some(label) = all.get_mut(*at) else { continue };
                    label.judgement = commands.judgement(*at);
                }
            }
            is_judged.then_some(all)
        };
        let after = judged(&|run| Some(&run.after)).unwrap_or_default();
        let before = judged(&|run| run.before.as_ref());
        let (after_pruning, matches) = (Score::new(&after, None), MatchCounts::new(matching));
        let runs = || parts.iter().filter_map(|part| part.run.as_ref());
        let fit = runs().map(|run| run.fit).reduce(ModelFit::or).unwrap_or(ModelFit::All);
        let kind = runs().map(|run| run.kind).next();
        Self {
            schema: SCHEMA,
            conclusion: Conclusion::new(labels.labels(), &after_pruning, &matches, fit, kind),
            commands: rows.len(),
            matches,
            bayes_limit: None,
            before_pruning: before.map(|before| Score::new(&before, None)),
            after_pruning,
            actions: ActionScore::of_each(&labels.labels().actions, &after),
            confusion: Confusion::new(labels.labels().actions.len(), &after),
            clock: ClockCorrection::of(labels),
            paper: None,
        }
    }

    /// The same with the figures that the paper published.
    #[must_use]
    pub fn with_published(self) -> Self {
        Self { paper: Some(PaperFigures::PUBLISHED), ..self }
    }
}

/// Rows of a label file, and how a model answered for their commands.
#[derive(Debug)]
pub struct JudgedPart {
    /// The rows.
    pub rows: Vec<usize>,
    /// The answers of their model to all commands; `None` if there is no model, so that nothing is found out.
    pub run: Option<JudgedRun>,
}

/// How the labels' clock was corrected.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClockCorrection {
    /// What was added to the times of the labels, in seconds; at the middle of the labels, if it drifts.
    pub offset_seconds: f64,
    /// What was added besides for each second from there on.
    pub drift: f64,
    /// Labels with a command by this correction; null if the user set it.
    pub matched: Option<usize>,
    /// Labels with a command without it.
    pub matched_without: Option<usize>,
    /// The probability that chance finds one as good.
    pub by_chance: Option<f64>,
}

impl ClockCorrection {
    fn of(labels: &LabelFile) -> Option<Self> {
        let clock = labels.clock()?;
        let shift = clock.shift()?;
        let fit = match clock {
            LabelClock::Differs(fit) => Some(fit),
            _ => None,
        };
        Some(Self {
            offset_seconds: shift.offset_ns as f64 / 1e9,
            drift: shift.drift,
            matched: fit.map(|fit| fit.matched),
            matched_without: fit.map(|fit| fit.matched_without),
            by_chance: fit.map(|fit| fit.by_chance),
        })
    }
}
