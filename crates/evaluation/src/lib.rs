//! Judges the answers of a pipeline by labelled captures: scores, calibration, confusion, information, and how certain
//! differences between pipelines are.
//!
//! An [`Evaluator`] runs a pipeline over labelled captures and returns a [`JudgedRun`]; [`Evaluation`] computes the
//! figures of one run, [`Comparison`] the differences between several. [`measured_leak`] says how much labelled commands show
//! that sizes give away, without a model. An [`experiment`] records commands until their model explains others well enough.
//! [`statistics`] knows nothing of commands.
//!
//! ```
//! use sizeleak_evaluation::statistics::{Confidence, wilson};
//!
//! // 305 of 307 commands have the truth among their candidates.
//! let interval = wilson(305, 307, Confidence::USUAL);
//! assert!(interval.low > 0.976 && interval.high < 0.999);
//! ```

mod calibration;
mod comparison;
mod conclusion;
mod confusion;
mod cross_validation;
mod curve;
mod evaluation;
mod evaluator;
pub mod experiment;
mod judge;
mod judged_run;
mod labelled_gateways;
pub mod measured_leak;
mod score;
pub mod statistics;

pub use calibration::{Calibration, CalibrationBin};
pub use comparison::{ComparedRun, Comparison, FIGURES, Figure, FigureDifference, FigureValue, PipelineFigures, Unit};
pub use conclusion::{Baseline, Conclusion, GuessedAction};
pub use confusion::{Confusion, Misattribution};
pub use cross_validation::{Fold, FoldCount, FoldedEvaluation};
pub use curve::{CurvePoint, DrawRemark, LabelCounts, LearningCurve, MedianScore, MedianShare};
pub use evaluation::{ClockCorrection, Evaluation};
pub use evaluator::{Evaluator, PaddingOverhead};
pub use judged_run::{EvaluationError, JudgedRun, details};
pub use labelled_gateways::{gateways_of_labels, with_labelled_gateways};
pub use score::{ActionIntervals, ActionScore, CandidateCounts, CredibleSet, Information, Score, ScoreIntervals};
