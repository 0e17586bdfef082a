//! How precision grows with the number of labels: models of samples of the labels, tested on commands that none of them
//! was learned from, and how good those of the same number of labels are, over several draws.

use std::cmp::Reverse;
use std::str::FromStr;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
use sizeleak_learning::{LearningOutcome, LearningRun};
use sizeleak_model::statistics::times;
use sizeleak_pipeline::Pipeline;

use crate::evaluation::Evaluation;
use crate::evaluator::judge_model;
use crate::judged_run::EvaluationError;
use crate::score::Score;
use crate::statistics::{Interval, median};

const SCHEMA: u32 = 2;

/// One in this many labels is held out, the last ones: models are tested on them.
const HELD_OUT: usize = 3;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
pub struct LearningCurve {
    schema: u32,
    /// How many labels the samples were drawn from.
    pub drawn_from: usize,
    /// How many labelled commands every model is tested on.
    pub tested: usize,
    /// In ascending order of labels.
    pub points: Vec<CurvePoint>,
}

impl LearningCurve {
    /// Learns from more and more labels, each time from several samples of them. `outcome` is what all labels teach.
    ///
    /// # Errors
    /// If there are too few labels, nothing is learned from all, or a pipeline does not run. A sample that no model can
    /// be learned from is a refusal of its point.
    pub fn measure(
        learning: &LearningRun<'_>,
        pipeline: &Pipeline,
        outcome: LearningOutcome,
        counts: &LabelCounts,
    ) -> Result<Self, EvaluationError> {
        if let Err(error) = outcome.learned {
            return Err(error.into());
        }
        let known = outcome.learned.iter().flatten().flat_map(|section| &section.model.actions);
        let known: Vec<(&str, i64)> = known.map(|action| (action.name.as_str(), action.size)).collect();
        let labels = &outcome.labels;
        let rows = labels.order_by_time();
        let (learned, held_out) = rows.split_at(rows.len() - rows.len() / HELD_OUT);
        if held_out.is_empty() {
            let fault = format!("too few labels to hold some out: label at least {HELD_OUT} commands");
            return Err(labels.fault(fault).into());
        }
        let tested = labels.subset(held_out);
        let tried = |rows: Vec<usize>| {
            let models = match learning.learn_from(&labels.subset(&rows), &outcome) {
                Ok(models) => models,
                Err(error) => return Ok(Err(error.cause())),
            };
            let run = judge_model(&models, pipeline, &tested, learning.tolerance, 1.0, learning.input)?;
            let actions = || models.sections().iter().flat_map(|model| &model.actions);
            let warnings = models.sections().iter().flat_map(|model| &model.learned.warnings);
            Ok(Ok(TestedModel {
                sizes: actions().filter(|action| known.contains(&(&*action.name, action.size))).count(),
                is_of_kinds: actions().next().is_none(),
                warnings: warnings.cloned().collect(),
                evaluation: Evaluation::new(&run, None),
            }))
        };
        let point = |count: usize| {
            let tried = draws(learned, count).into_iter().map(tried).collect::<Result<Vec<_>, EvaluationError>>()?;
            Ok(CurvePoint::new(count, &tried))
        };
        let counts = counts.up_to(labels.labels().actions.len(), learned.len());
        let points = counts.into_iter().map(point).collect::<Result<_, EvaluationError>>()?;
        Ok(Self { schema: SCHEMA, drawn_from: learned.len(), tested: held_out.len(), points })
    }
}

/// The factor from one number of labels to the next, if the user names none.
const GROWTH: f64 = 2.0;

/// A number of labels that is not smaller than all of them by this factor shows nothing new, if the user names none.
const MIN_GROWTH: f64 = 1.4;

/// How many samples of the same number of labels are drawn.
const DRAWS: u64 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LabelCounts {
    /// From the number of actions to all labels, growing by a constant factor.
    Growing,
    /// These, in ascending order.
    Named(Vec<usize>),
}

impl FromStr for LabelCounts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Ok(Self::Growing);
        }
        let count = |part: &str| part.trim().parse().ok().filter(|count| *count > 0);
        let counts: Option<Vec<usize>> = text.split(',').map(count).collect();
        let mut counts = counts.ok_or("write numbers of labels separated by commas, such as 20,60,100")?;
        counts.sort_unstable();
        counts.dedup();
        Ok(Self::Named(counts))
    }
}

impl LabelCounts {
    /// The counts below `labels`, and `labels` itself.
    fn up_to(&self, actions: usize, labels: usize) -> Vec<usize> {
        let mut counts: Vec<usize> = match self {
            Self::Named(counts) => counts.iter().copied().filter(|count| *count < labels).collect(),
            Self::Growing => {
                let next = |count: &usize| Some((*count as f64 * GROWTH).ceil() as usize);
                let is_fewer = |count: &usize| *count as f64 * MIN_GROWTH < labels as f64;
                std::iter::successors(Some(actions.max(2)), next).take_while(is_fewer).collect()
            }
        };
        counts.push(labels);
        counts
    }
}

/// Samples of `count` of these rows, without repetition and in the order of the rows: several, or the only one if it is
/// all of them. The same every time; each sample contains those of smaller counts with its number.
fn draws(rows: &[usize], count: usize) -> Vec<Vec<usize>> {
    if count >= rows.len() {
        return vec![rows.to_vec()];
    }
    let draw = |seed: u64| {
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        // Of the rows that are left, one at a time goes to the end of those drawn (Fisher and Yates).
        let mut order: Vec<usize> = (0..rows.len()).collect();
        for drawn in 0..count {
            let other = random.random_range(drawn as u64..order.len() as u64) as usize;
            order.swap(drawn, other);
        }
        order.truncate(count);
        order.sort_unstable();
        order.into_iter().filter_map(|at| rows.get(at).copied()).collect()
    };
    (0..DRAWS).map(draw).collect()
}

/// At most this many different sentences of a point are kept.
const MAX_REMARKS: usize = 8;

/// How good models of the same number of labels are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// The number of labels that each model was to be learned from.
    pub labels: usize,
    /// How many samples of that many labels were drawn.
    pub draws: usize,
    /// Those that gave a model. All figures are of these.
    pub learned: usize,
    /// Those whose model has no sizes of actions: it answers only the kinds of command that were labelled.
    pub of_kinds: usize,
    /// Those whose model was learned with a warning.
    pub warned: usize,
    /// How many actions have the same size as in the model of all labels: the median; `None` without a model.
    pub sizes: Option<f64>,
    /// Why other samples gave none; the most frequent reasons first.
    pub refusals: Vec<DrawRemark>,
    /// What models were learned with; the most frequent warnings first.
    pub warnings: Vec<DrawRemark>,
    /// The score of the pruner's input; `None` without a model, and if the pipeline has no pruner.
    pub before_pruning: Option<MedianScore>,
    /// The score of the pipeline's output; `None` without a model.
    pub after_pruning: Option<MedianScore>,
}

/// A sentence about some of the draws.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrawRemark {
    pub sentence: String,
    pub draws: usize,
}

/// The most important figures of the models of a point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MedianScore {
    /// The share of commands with the truth among the candidates.
    pub precision: MedianShare,
    /// The share of commands whose first candidate is the truth.
    pub top_1: MedianShare,
    /// The share of commands with the truth among the first five candidates.
    pub top_5: MedianShare,
    /// The mean number of candidates: the median of the models.
    pub candidates: f64,
}

/// A share of commands, over several models.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct MedianShare {
    pub median: f64,
    /// From the lowest to the highest end of their intervals (Wilson, 95 %).
    pub interval: Interval,
}

/// A model of a draw, and how good it is.
#[derive(Debug)]
struct TestedModel {
    sizes: usize,
    is_of_kinds: bool,
    warnings: Vec<String>,
    evaluation: Evaluation,
}

impl CurvePoint {
    /// The point of some draws, from which a model was learned, or nothing could be for a reason.
    fn new(labels: usize, draws: &[Result<TestedModel, String>]) -> Self {
        let models = || draws.iter().flatten();
        let before: Vec<&Score> = models().filter_map(|model| model.evaluation.before_pruning.as_ref()).collect();
        let after: Vec<&Score> = models().map(|model| &model.evaluation.after_pruning).collect();
        Self {
            labels,
            draws: draws.len(),
            learned: models().count(),
            of_kinds: models().filter(|model| model.is_of_kinds).count(),
            warned: models().filter(|model| !model.warnings.is_empty()).count(),
            sizes: median(models().map(|model| model.sizes as f64)),
            refusals: counted(draws.iter().filter_map(|draw| Some(draw.as_ref().err()?.as_str()))),
            warnings: counted(models().flat_map(|model| &model.warnings).map(String::as_str)),
            before_pruning: MedianScore::of(&before),
            after_pruning: MedianScore::of(&after),
        }
    }
}

impl MedianScore {
    fn of(scores: &[&Score]) -> Option<Self> {
        let share = |count: fn(&Score) -> u64, interval: fn(&Score) -> Interval| {
            let shares = scores.iter().map(|score| count(score) as f64 / score.commands.max(1) as f64);
            let interval = scores.iter().map(|score| interval(score)).reduce(Interval::hull)?;
            Some(MedianShare { median: median(shares)?, interval })
        };
        Some(Self {
            precision: share(|score| score.among, |score| score.intervals.precision)?,
            top_1: share(|score| score.top_1, |score| score.intervals.top_1)?,
            top_5: share(|score| score.top_5, |score| score.intervals.top_5)?,
            candidates: median(scores.iter().map(|score| score.candidates.mean))?,
        })
    }
}

/// Sentences with how often each occurs, the most frequent first.
fn counted<'a>(sentences: impl Iterator<Item = &'a str>) -> Vec<DrawRemark> {
    let remark = |(sentence, draws): (&str, usize)| DrawRemark { sentence: sentence.to_owned(), draws };
    let mut remarks: Vec<DrawRemark> = times(sentences).into_iter().map(remark).collect();
    remarks.sort_by_key(|remark| Reverse(remark.draws));
    remarks.truncate(MAX_REMARKS);
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_grow_to_all_labels() {
        assert_eq!(LabelCounts::Growing.up_to(7, 128), [7, 14, 28, 56, 128]);
        assert_eq!(LabelCounts::Growing.up_to(7, 64), [7, 14, 28, 64]);
        assert_eq!(LabelCounts::Growing.up_to(9, 5), [5]);
        assert_eq!("100,999,60,60".parse::<LabelCounts>().unwrap().up_to(7, 120), [60, 100, 120]);
        assert!("20,0".parse::<LabelCounts>().is_err() && "x".parse::<LabelCounts>().is_err());
    }

    #[test]
    fn draws_differ_hold_no_row_twice_and_contain_those_of_fewer_labels() {
        let rows: Vec<usize> = (100..200).collect();
        let [few, many] = [10, 40].map(|count| draws(&rows, count));
        assert_eq!(few, draws(&rows, 10), "the same every time");
        for (few, many) in few.iter().zip(&many) {
            assert!(few.len() == 10 && many.len() == 40);
            assert!(many.is_sorted_by(|one, next| one < next) && many.iter().all(|row| rows.contains(row)));
            assert!(few.iter().all(|row| many.contains(row)), "{few:?} {many:?}");
        }
        assert!(few.len() == 5 && few.iter().all(|draw| few.iter().filter(|other| draw == *other).count() == 1));
        assert_eq!(draws(&rows, 100), [rows]);
    }

    #[test]
    fn draws_without_a_model_give_a_point_without_figures() {
        let refused = ["none has `on`", "too few", "none has `on`"].map(|reason| Err(reason.to_owned()));
        let point = CurvePoint::new(7, &refused);
        assert_eq!((point.draws, point.learned, point.sizes, &point.after_pruning), (3, 0, None, &None));
        let reasons: Vec<_> = point.refusals.iter().map(|refusal| (&*refusal.sentence, refusal.draws)).collect();
        assert_eq!(reasons, [("none has `on`", 2), ("too few", 1)]);
    }
}
