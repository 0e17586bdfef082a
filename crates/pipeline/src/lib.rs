//! Configures and runs pipelines of stages.
//!
//! A [`Pipeline`] says which stages run, in which order, with which options. It is read from `pipeline.toml` or starts
//! as the seven standard stages. [`Pipeline::prepare`] builds the stages, [`PreparedRun::run`] runs them and passes the
//! frames of the last one to a [`FrameSink`](sizeleak_frame::FrameSink):
//!
//! ```no_run
//! use sizeleak_frame::Frame;
//! use sizeleak_pipeline::Pipeline;
//! use sizeleak_platform::runtime::Interrupt;
//!
//! let mut pipeline = Pipeline::standard().until("record-sizer")?;
//! pipeline.read_captures(&["monday.pcap".into()])?;
//! pipeline.set("flow-filter", "gateway", vec!["192.168.1.20"])?;
//! let report = pipeline.prepare()?.run(&Interrupt::new(), &mut |frame: Frame| {
//!     if let Frame::Record(record) = frame {
//!         println!("{} bytes", record.length);
//!     }
//!     Ok(())
//! })?;
//! println!("{:?}", report.ending);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! One runner serves both modes: a stage runs on a thread of this process, which it may share with the stages before
//! it, or in its own process. Between two threads there is a bounded channel, everywhere else a pipe. The output of any
//! stage can be saved, and a run can continue from a [`SavedStream`].

mod cause;
mod checkpoint;
mod error;
mod input;
mod model_fit;
mod pipeline;
mod pipeline_file;
mod placement;
mod plan;
mod process;
pub mod recording;
pub mod registry;
mod run;
pub mod schema;
mod stage;
mod type_schema;

pub use cause::RunEnding;
pub use checkpoint::{Checkpoint, CheckpointError, MEANING, PendingCheckpoint};
pub use error::{ConfigError, InputError, RunError, did_you_mean};
pub use input::{InputPart, InputSource, PipelineInput};
pub use model_fit::{ModelFit, TrafficSeen};
pub use pipeline::{Pipeline, ResolvedStage};
pub use recording::SavedStream;
pub use run::{PreparedRun, RunReport};
pub use stage::{Mode, RunSettings};
