//! How precision grows with the number of labels: models of the first labels only, tested on commands that none of them
//! was learned from.

use std::fs;
use std::str::FromStr;

use serde::Serialize;
use sizeleak_evaluation::statistics::Interval;
use sizeleak_evaluation::{Evaluation, Evaluator, LabelFile, PipelineInput, Score, ScoreIntervals, Tolerance};
use sizeleak_model::{FitMethod, Inventory, Model};
use sizeleak_pipeline::Pipeline;

use crate::error::LearningError;
use crate::size_basis::CipherSuite;
use crate::training_set::TrainingSet;

/// The version of the JSON keys.
const SCHEMA: u32 = 1;

/// The factor from one number of labels to the next, if the user names none.
const GROWTH: f64 = 1.4;

/// One in this many labels is held out if there are no captures to test on.
const HELD_OUT: usize = 3;

/// The numbers of labels to learn from.
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
        let all = match self {
            Self::Named(counts) => counts.clone(),
            Self::Growing => {
                let next = |count: &usize| Some((*count as f64 * GROWTH).ceil() as usize);
                std::iter::successors(Some(actions.max(2)), next).take_while(|count| *count < labels).collect()
            }
        };
        let mut counts: Vec<usize> = all.into_iter().filter(|count| *count < labels).collect();
        counts.push(labels);
        counts
    }
}

/// Labels to learn from, and labels to test on with the pipeline that finds their commands.
#[derive(Debug)]
pub struct CurveInput<'a> {
    /// The labels to learn from, with their commands.
    pub training_set: TrainingSet<'a>,
    /// How sizes are learned.
    pub method: FitMethod,
    /// The cipher suite of sessions whose handshake was not captured.
    pub cipher: Option<&'a CipherSuite>,
    /// The devices behind the gateway.
    pub inventory: Option<&'a Inventory>,
    /// The model of all labels: sizes are compared with its sizes, and its noise is used.
    pub model: &'a Model,
    /// The pipeline over the captures to test on.
    pub pipeline: Pipeline,
    /// The captures to test on.
    pub input: &'a PipelineInput,
    /// The labels to test on; `None` holds out the last of the labels to learn from.
    pub test: Option<LabelFile>,
    /// How far a command may be from its label, where it is tested.
    pub tolerance: Tolerance,
}

/// The precision by number of labels.
#[derive(Debug, PartialEq, Serialize)]
pub struct LearningCurve {
    schema: u32,
    /// How many labelled commands every model is tested on.
    pub tested: usize,
    /// In ascending order of labels.
    pub points: Vec<CurvePoint>,
}

/// The precision of a model that was learned from some of the labels.
#[derive(Debug, PartialEq, Serialize)]
pub struct CurvePoint {
    /// The number of labels.
    pub labels: usize,
    /// How many actions have the same size as in the model of all labels; `None` if nothing could be learned.
    pub sizes: Option<usize>,
    /// Why nothing could be learned.
    pub fault: Option<String>,
    /// The score of the model.
    #[serde(flatten)]
    pub score: Option<ModelScore>,
}

/// How often a model finds the truth.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelScore {
    /// Labelled commands.
    pub commands: u64,
    /// The score of the pruner's input; `None` if the pipeline has no pruner.
    pub before_pruning: Option<CandidateScore>,
    /// The score of the pipeline's output.
    pub after_pruning: CandidateScore,
}

/// The most important figures of a [`Score`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CandidateScore {
    /// The share of commands with the truth among the candidates.
    pub precision: f64,
    /// Commands whose first candidate is the truth.
    pub top_1: u64,
    /// Commands with the truth among the first five candidates.
    pub top_5: u64,
    /// The mean number of candidates.
    pub candidates: f64,
    /// The 95 % intervals of the shares.
    pub intervals: CandidateIntervals,
}

/// Wilson's 95 % intervals of shares of the labelled commands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CandidateIntervals {
    /// Of those with the truth among the candidates.
    pub precision: Interval,
    /// Of those whose first candidate is the truth.
    pub top_1: Interval,
    /// Of those with the truth among the first five candidates.
    pub top_5: Interval,
}

impl From<&Score> for CandidateScore {
    fn from(score: &Score) -> Self {
        let Score { precision, top_1, top_5, candidates, intervals, .. } = score;
        let ScoreIntervals { precision: of_precision, top_1: of_top_1, top_5: of_top_5, .. } = *intervals;
        let intervals = CandidateIntervals { precision: of_precision, top_1: of_top_1, top_5: of_top_5 };
        Self { precision: *precision, top_1: *top_1, top_5: *top_5, candidates: candidates.mean, intervals }
    }
}

impl LearningCurve {
    /// Learns from more and more labels, in order of time.
    ///
    /// # Errors
    /// If there are too few labels, or a pipeline does not run. A model that cannot be learned is a point with a fault.
    pub fn measure(input: &CurveInput<'_>, counts: &LabelCounts) -> Result<Self, LearningError> {
        let labels = input.training_set.labels;
        let rows = labels.order_by_time();
        let held_out = if input.test.is_some() { 0 } else { rows.len() / HELD_OUT };
        let (learned, tested) = rows.split_at(rows.len() - held_out);
        let held = labels.subset(tested);
        let test = input.test.as_ref().unwrap_or(&held);
        if test.labels().rows.is_empty() {
            let fault = format!(
                "too few labels to hold some out: label at least {HELD_OUT} commands, or test on others \
                (`--test-input`, `--test-labels`)"
            );
            return Err(LearningError::File { file: labels.path().display().to_string(), fault });
        }
        let counts = counts.up_to(labels.labels().actions.len(), learned.len());
        let points = counts.into_iter().map(|count| input.point(learned.get(..count).unwrap_or(learned), test));
        Ok(Self { schema: SCHEMA, tested: test.labels().rows.len(), points: points.collect::<Result<_, _>>()? })
    }
}

impl CurveInput<'_> {
    /// A model learned from some of the labels, tested on others.
    fn point(&self, rows: &[usize], test: &LabelFile) -> Result<CurvePoint, LearningError> {
        let labels = self.training_set.labels.subset(rows);
        let training_set = TrainingSet { labels: &labels, ..self.training_set };
        let learned = training_set.learn(self.method, self.cipher.cloned(), self.inventory.cloned(), Vec::new());
        let model = match learned {
            // The commands were found with the noise of all labels.
            Ok(learned) => Model { noise: self.model.noise.clone(), ..learned.model },
            Err(error) => {
                return Ok(CurvePoint { labels: rows.len(), sizes: None, fault: Some(error.cause()), score: None });
            }
        };
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("model.toml");
        fs::write(&path, model.to_toml())?;
        let mut pipeline = self.pipeline.clone();
        pipeline.use_model(&path)?;
        let evaluator = Evaluator::new(std::slice::from_ref(&model), test, self.tolerance, 1.0, self.input)?;
        let run = evaluator.judge(&pipeline, &mut |_| {})?.with_candidates()?;
        let Evaluation { before_pruning, after_pruning, .. } = Evaluation::new(&run, None, None);
        let score = ModelScore {
            commands: after_pruning.commands,
            before_pruning: before_pruning.as_ref().map(CandidateScore::from),
            after_pruning: (&after_pruning).into(),
        };
        let same = model.actions.iter().zip(&self.model.actions).filter(|(some, all)| some.size == all.size).count();
        Ok(CurvePoint { labels: rows.len(), sizes: Some(same), fault: None, score: Some(score) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_counts_are_parsed_and_end_with_all_labels() {
        assert_eq!("".parse(), Ok(LabelCounts::Growing));
        assert_eq!("60, 20,20".parse(), Ok(LabelCounts::Named(vec![20, 60])));
        assert!("20,".parse::<LabelCounts>().is_err() && "0".parse::<LabelCounts>().is_err());
        assert_eq!(LabelCounts::Growing.up_to(7, 30), [7, 10, 14, 20, 28, 30]);
        assert_eq!(LabelCounts::Growing.up_to(7, 3), [3]);
        assert_eq!(LabelCounts::Named(vec![5, 30, 99]).up_to(7, 30), [5, 30]);
    }
}
