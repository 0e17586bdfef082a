//! Judges the answers of a pipeline by labelled captures: scores, calibration, confusion, information, and how certain
//! differences between pipelines are.
//!
//! An [`Evaluator`] runs a pipeline over labelled captures and returns a [`JudgedRun`]; [`Evaluation`] computes the
//! figures of one run, [`Comparison`] the differences between several. [`measured_leak`] says how much labelled commands show
//! that sizes give away, without a model. [`statistics`] knows nothing of commands.
//!
//! ```
//! use sizeleak_evaluation::statistics::{Confidence, share::wilson};
//!
//! // 305 of 307 commands have the truth among their candidates.
//! let interval = wilson(305, 307, "0.95".parse::<Confidence>()?);
//! assert!(interval.low > 0.976 && interval.high < 0.999);
//! # Ok::<(), sizeleak_evaluation::statistics::ConfidenceError>(())
//! ```

mod answer_kind;
mod bayes_limit;
mod calibration;
mod capture_names;
mod comparison;
mod conclusion;
mod confusion;
mod details;
mod error;
mod evaluation;
mod evaluator;
mod information;
mod input;
mod judge;
mod judged_command;
mod judged_run;
mod label_clock;
mod label_file;
mod label_remarks;
pub mod measured_leak;
mod model_fit;
mod padded_input;
mod probability;
mod score;
pub mod statistics;
mod tolerance;
mod traffic_seen;

pub use bayes_limit::LimitComparison;
pub use calibration::{Calibration, CalibrationBin};
pub use capture_names::NameRule;
pub use comparison::figure::{FIGURES, Figure, Unit};
pub use comparison::run::ComparedRun;
pub use comparison::value::{FigureDifference, FigureValue};
pub use comparison::{Comparison, ComparisonOptions, PipelineFigures};
pub use conclusion::{Baseline, Conclusion, GuessedAction};
pub use confusion::{Confusion, Misattribution};
pub use details::write_details;
pub use error::{EvaluationError, LabelFileError};
pub use evaluation::{ClockCorrection, Evaluation, JudgedPart, PaperFigures};
pub use evaluator::Evaluator;
pub use information::Information;
pub use input::{InputPart, InputSource, Overlap, PipelineInput};
pub use judged_run::{JudgedRun, MatchCounts};
pub use label_clock::{ClockFit, ClockShift, LabelClock};
pub use label_file::{LabelFile, LabelTimes};
pub use model_fit::ModelFit;
pub use padded_input::{PaddedInput, PaddingOverhead};
pub use score::{ActionIntervals, ActionScore, CandidateCounts, CredibleSet, Score, ScoreIntervals};
pub use tolerance::Tolerance;
pub use traffic_seen::TrafficSeen;
