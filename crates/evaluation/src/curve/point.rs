//! A point of a learning curve: how good models of the same number of labels are, over several draws.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::evaluation::Evaluation;
use crate::score::Score;
use crate::statistics::{Interval, median};

/// At most this many different sentences of a point are kept.
const MAX_REMARKS: usize = 8;

/// How good models of the same number of labels are.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DrawRemark {
    pub sentence: String,
    pub draws: usize,
}

/// The most important figures of the models of a point.
#[derive(Debug, Clone, PartialEq, Serialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MedianShare {
    pub median: f64,
    /// From the lowest to the highest end of their intervals (Wilson, 95 %).
    pub interval: Interval,
}

/// A model of a draw, and how good it is.
#[derive(Debug)]
pub(crate) struct TestedModel {
    pub(crate) sizes: usize,
    pub(crate) is_of_kinds: bool,
    pub(crate) warnings: Vec<String>,
    pub(crate) evaluation: Evaluation,
}

impl CurvePoint {
    /// The point of some draws, from which a model was learned, or nothing could be for a reason.
    pub(crate) fn new(labels: usize, draws: &[Result<TestedModel, String>]) -> Self {
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
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for sentence in sentences {
        *times.entry(sentence).or_default() += 1;
    }
    let mut remarks: Vec<DrawRemark> =
        times.into_iter().map(|(sentence, draws)| DrawRemark { sentence: sentence.to_owned(), draws }).collect();
    remarks.sort_by_key(|remark| Reverse(remark.draws));
    remarks.truncate(MAX_REMARKS);
    remarks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_without_a_model_give_a_point_without_figures() {
        let refused = ["none has `on`", "too few", "none has `on`"].map(|reason| Err(reason.to_owned()));
        let point = CurvePoint::new(7, &refused);
        assert_eq!((point.draws, point.learned, point.sizes, &point.after_pruning), (3, 0, None, &None));
        let reasons: Vec<_> = point.refusals.iter().map(|refusal| (&*refusal.sentence, refusal.draws)).collect();
        assert_eq!(reasons, [("none has `on`", 2), ("too few", 1)]);
    }
}
