//! Learns a model of a gateway from captures whose commands are labelled.
//!
//! A [`LearningRun`] finds the commands with a pipeline, matches them with the labels and fits a model; a
//! [`LearningCurve`] shows how precision grows with the number of labels.
//!
//! ```
//! use std::path::Path;
//! use sizeleak_learning::{CipherSuite, digest_capture};
//!
//! // Every record of this suite carries an explicit nonce of 8 bytes and a tag of 16.
//! let suite = CipherSuite::named("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256")?;
//! assert_eq!(suite.record_overhead(), [24, 24]);
//! assert!(digest_capture(Path::new("no-such.pcap")).is_err());
//! # Ok::<(), sizeleak_learning::LearningError>(())
//! ```

mod adaptation;
mod capture_digest;
mod curve;
mod curve_point;
mod error;
mod folds;
mod label_counts;
mod labelled_commands;
mod learning_run;
mod merged_messages;
mod observed_commands;
mod observed_service;
mod recording_plan;
mod sections;
mod size_basis;
mod size_learning;
mod training_set;
mod unlabelled;

pub use adaptation::{Adaptation, AdaptationRun, AdaptedSection};
pub use capture_digest::{digest_capture, digest_captures};
pub use curve::{CurveInput, LearningCurve};
pub use curve_point::{CurvePoint, DrawRemark, MedianScore, MedianShare};
pub use error::LearningError;
pub use folds::{Fold, FoldCount, FoldOrder, FoldedEvaluation};
pub use label_counts::LabelCounts;
pub use labelled_commands::{LabelledCommands, SeenCommand};
pub use learning_run::{LearningOutcome, LearningRun};
pub use observed_service::ObservedService;
pub use recording_plan::RecordingPlan;
pub use size_basis::{CipherSuite, ObservedCommand};
pub use size_learning::FEWEST_COMMANDS;
pub use training_set::{LearnedModel, TrainingSet};
pub use unlabelled::{FoundSizes, UnlabelledRun};
