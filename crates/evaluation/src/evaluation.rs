//! All figures of one evaluated pipeline.

use serde::Serialize;
use sizeleak_learning::labels::{LabelClock, LabelFile, MatchCounts, Matching};
use sizeleak_pipeline::ModelFit;

use crate::conclusion::Conclusion;
use crate::confusion::Confusion;
use crate::judge::JudgedLabel;
use crate::judged_run::{JudgedRun, MatchedCommands};
use crate::score::{ActionScore, Score};

const SCHEMA: u32 = 1;

#[derive(Debug, PartialEq, Serialize)]
pub struct Evaluation {
    schema: u32,
    pub conclusion: Conclusion,
    pub commands: usize,
    #[serde(flatten)]
    pub matches: MatchCounts,
    /// The score of the pruner's input; `None` if the pipeline has no pruner.
    pub before_pruning: Option<Score>,
    pub after_pruning: Score,
    /// The score of the pipeline's output by action.
    pub actions: Vec<ActionScore>,
    pub confusion: Confusion,
    /// What is known of the labels' clock, if it was corrected.
    pub clock: Option<ClockCorrection>,
}

impl Evaluation {
    /// The figures of a run; `prior_bits` is the entropy of commands before their sizes are seen, in bits.
    pub fn new(run: &JudgedRun, prior_bits: Option<f64>) -> Self {
        let before = run.before.as_ref().map(|before| run.judged(before));
        let answers = (run.fit, Some(&*run.subject));
        Self::of_labels(
            &run.labels,
            &run.after.matching,
            before.as_deref(),
            &run.judged(&run.after),
            answers,
            prior_bits,
        )
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
        let runs = || parts.iter().filter_map(|part| part.run.as_ref());
        let before = judged(&|run| run.before.as_ref());
        let after = judged(&|run| Some(&run.after)).unwrap_or_default();
        let fit = runs().map(|run| run.fit).reduce(ModelFit::or).unwrap_or(ModelFit::All);
        let subject = runs().map(|run| &*run.subject).next();
        Self::of_labels(labels, matching, before.as_deref(), &after, (fit, subject), None)
    }

    /// The figures of judged labels, without those `before` a pruner where there is none; `subject` says who answered,
    /// if anybody did.
    fn of_labels(
        labels: &LabelFile,
        matching: &Matching,
        before: Option<&[JudgedLabel<'_>]>,
        after: &[JudgedLabel<'_>],
        (fit, subject): (ModelFit, Option<&str>),
        prior_bits: Option<f64>,
    ) -> Self {
        let (matches, after_pruning) = (MatchCounts::new(matching), Score::new(after, prior_bits));
        let actions = &labels.labels().actions;
        Self {
            schema: SCHEMA,
            conclusion: Conclusion::new(labels.labels(), &after_pruning, &matches, fit, subject),
            commands: labels.labels().rows.len(),
            matches,
            before_pruning: before.map(|before| Score::new(before, prior_bits)),
            after_pruning,
            actions: ActionScore::of_each(actions, after),
            confusion: Confusion::new(actions.len(), after),
            clock: ClockCorrection::of(labels),
        }
    }
}

/// Rows of a label file, and how a model answered for their commands.
#[derive(Debug)]
pub struct JudgedPart {
    pub rows: Vec<usize>,
    /// The answers of their model to all commands; `None` if there is no model, so that nothing is found out.
    pub run: Option<JudgedRun>,
}

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
