//! All figures of one evaluated pipeline.

use serde::Serialize;
use sizeleak_learning::labels::{LabelClock, LabelFile, Labels, MatchCounts, Matching};
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
        let rows: Vec<usize> = (0..run.labels.labels().rows.len()).collect();
        Self::pooled(&run.labels, &run.after.matching, &[(&rows, run)], prior_bits)
    }

    /// The figures of labels that were judged by several models: the rows of each part by one of them; of others nothing
    /// is found out. `matching` says which commands the labels belong to.
    pub(crate) fn pooled(
        labels: &LabelFile,
        matching: &Matching,
        parts: &[(&[usize], &JudgedRun)],
        prior_bits: Option<f64>,
    ) -> Self {
        let Labels { rows, actions, .. } = labels.labels();
        let judged = |commands_of: &dyn Fn(&JudgedRun) -> Option<&MatchedCommands>| {
            let mut all: Vec<JudgedLabel<'_>> =
                rows.iter().map(|row| JudgedLabel { truth: &row.counts, judgement: None }).collect();
            let mut is_judged = false;
            for (rows, run) in parts {
                let Some(commands) = commands_of(run) else { continue };
                is_judged = true;
                for at in *rows {
                    let Some(label) = all.get_mut(*at) else { continue };
                    label.judgement = commands.judgement(*at);
                }
            }
            is_judged.then_some(all)
        };
        let runs = || parts.iter().map(|(_, run)| *run);
        let before = judged(&|run| run.before.as_ref());
        let after = judged(&|run| Some(&run.after)).unwrap_or_default();
        let fit = runs().map(|run| run.fit).reduce(ModelFit::or).unwrap_or(ModelFit::All);
        let subject = runs().next().map_or("", |run| run.subject.as_str());
        let (matches, after_pruning) = (MatchCounts::new(matching), Score::new(&after, prior_bits));
        Self {
            schema: SCHEMA,
            conclusion: Conclusion::new(labels.labels(), &after_pruning, &matches, fit, subject),
            commands: rows.len(),
            matches,
            before_pruning: before.map(|before| Score::new(&before, prior_bits)),
            after_pruning,
            actions: ActionScore::of_each(actions, &after),
            confusion: Confusion::new(actions.len(), &after),
            clock: ClockCorrection::of(labels),
        }
    }
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
