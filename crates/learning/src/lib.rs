//! Learns a model of a gateway from captures whose commands are labelled.
//!
//! A [`LearningRun`] finds the commands with a pipeline, matches them with the labels and fits a model. What labels are and
//! which commands they are about is in [`labels`], what labelled commands teach in [`fit`]: both know neither frames nor
//! captures.
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
mod error;
pub mod fit;
mod labelled_commands;
pub mod labels;
mod learning_run;
mod observed_commands;
mod sections;
mod size_basis;
mod size_doubts;
mod size_learning;
mod training_set;
mod unlabelled;

pub use adaptation::{Adaptation, AdaptationRun, AdaptedSection};
pub use error::LearningError;
pub use labelled_commands::LabelledCommands;
pub use learning_run::{LearningOutcome, LearningRun, digest_capture, digest_captures, temporary_model};
pub use observed_commands::{ObservedCommand, ObservedService, command_times};
pub use size_basis::CipherSuite;
pub use size_doubts::MIN_COMMANDS;
pub use training_set::{LearnedModel, LearningSettings, RecordingPlan, TrainingSet};
pub use unlabelled::{FoundSizes, UnlabelledRun};
