//! Shows what the sizes of encrypted messages give away about the people behind an `IoT` gateway.
//!
//! This library is the facade for programs that embed sizeleak. A [`Pipeline`] of stages finds commands in captures and
//! says which actions they may be. [`learning`] makes the model that it needs, [`evaluation`] judges its answers,
//! [`audit`] computes what a model's sizes give away, [`archive`] keeps the answers of many captures.
//!
//! ```
//! use sizeleak::frame::Frame;
//! use sizeleak::stages::flow_filter;
//! use sizeleak::{Interrupt, Pipeline};
//!
//! let mut pipeline = Pipeline::standard().until("record-sizer")?;
//! pipeline.read_captures(&["examples/home/test.pcap".into()])?;
//! let gateway = vec!["192.168.1.20".to_owned()];
//! pipeline.configure(&flow_filter::Options { gateway, ..Default::default() })?;
//! let mut bytes = 0;
//! pipeline.prepare()?.run(&Interrupt::new(), &mut |frame: Frame| {
//!     if let Frame::Record(record) = frame {
//!         bytes += u64::from(record.length);
//!     }
//!     Ok(())
//! })?;
//! assert!(bytes > 100_000);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Pipeline::replace`] puts a stage of the embedding program into a pipeline; `examples/embed.rs` shows how.
//!
//! Parquet, and the simulator with its TLS, are Cargo features (`parquet`, `simulator`), which are on by default.

/// Archives of rotated captures: an [`ArchiveRun`](archive::ArchiveRun) reads what is new, and keeps answers by gateway and
/// day.
///
/// ```
/// use sizeleak::archive::{ArchiveRun, PartFormat};
/// use sizeleak::{Pipeline, Progress};
///
/// let results = tempfile::tempdir()?;
/// let mut pipeline = Pipeline::standard();
/// pipeline.set("flow-filter", "gateway", vec!["192.168.1.20"])?;
/// pipeline.use_model("examples/home/model.toml".as_ref())?;
/// let out = results.path().join("answers");
/// let run = ArchiveRun::new(vec!["examples/home/test.pcap".into()], pipeline, out);
/// let run = ArchiveRun { format: PartFormat::Ndjson, ..run };
/// let manifest = run.run(&Progress::new())?.manifest;
/// assert_eq!(manifest.points[0].identifications, Some(307));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub use sizeleak_traffic::archive;

/// What the sizes of a model's commands give away, and what padding costs and takes back.
///
/// ```
/// use sizeleak::audit::leakage::Audit;
/// use sizeleak::model::ModelSet;
///
/// let models = ModelSet::read(&["examples/home/model.toml"])?;
/// let audit = Audit::new(&models.sections()[0], &Default::default())?;
/// println!("{}", audit.sentence());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub use sizeleak_audit as audit;

/// The command line of the program `sizeleak`, for packages that carry it. It reads and writes files, stdin and stdout,
/// handles signals and may confine its process: call it in a process of its own.
pub mod command;

#[cfg(feature = "simulator")]
pub mod conformance;

/// Pipelines judged by labels: an [`Evaluator`](evaluation::Evaluator) runs them, an
/// [`Evaluation`](evaluation::Evaluation) has the figures.
pub use sizeleak_evaluation as evaluation;

/// What flows between the stages: a [`Frame`](frame::Frame) of each kind, and readers and writers of streams.
pub use sizeleak_frame as frame;

/// Labels: when which actions were sent, on a clock that is compared with that of the captures.
pub use sizeleak_learning::labels;

/// From labelled captures to a model: a [`LearningRun`](learning::LearningRun) finds the commands and fits their sizes.
pub use sizeleak_learning as learning;

/// What was learned about a gateway: a [`ModelSet`](model::ModelSet) is a file, a [`Model`](model::Model) one section of it.
///
/// ```
/// use sizeleak::model::ModelSet;
///
/// let models = ModelSet::read(&["examples/home/model.toml"])?;
/// for action in &models.sections()[0].actions {
///     println!("{}: {} bytes", action.name, action.size);
/// }
/// assert_eq!(ModelSet::from_toml(&models.to_toml())?.to_toml(), models.to_toml());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub use sizeleak_model as model;

/// Frames for people and other programs: an [`OutputWriter`](output::OutputWriter) writes them as a table, JSON, CSV,
/// Parquet or a log.
pub use sizeleak_output as output;

/// Pipelines, and what runs and keeps them: [`Pipeline`], and its recordings.
///
/// A run can continue from the frames that another one has saved:
///
/// ```
/// use sizeleak::frame::Frame;
/// use sizeleak::pipeline::SavedStream;
/// use sizeleak::{Interrupt, Pipeline};
///
/// let folder = tempfile::tempdir()?;
/// let records = folder.path().join("records.frames.zst");
/// let mut first = Pipeline::standard().until("record-sizer")?;
/// first.read_captures(&["examples/home/test.pcap".into()])?;
/// first.set("flow-filter", "gateway", vec!["192.168.1.20"])?;
/// first.set("record-sizer", "save", records.display().to_string())?;
/// first.prepare()?.run(&Interrupt::new(), &mut |_: Frame| Ok(()))?;
///
/// let pipeline = Pipeline::standard().until("command-segmenter")?;
/// let stream = SavedStream::open(&records, &Interrupt::new())?;
/// let from = Some((pipeline.index_of(&stream)?, stream));
/// let mut commands = 0;
/// pipeline.prepare_from(from)?.run(&Interrupt::new(), &mut |frame: Frame| {
///     commands += usize::from(matches!(frame, Frame::Command(_)));
///     Ok(())
/// })?;
/// assert!(commands >= 307);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub use sizeleak_pipeline as pipeline;
pub use sizeleak_pipeline::{ConfigError, Pipeline, RunError, recording, registry};

/// What a stage is made of: a [`Stage`](runtime::Stage) sees frames and emits frames, as the one of `examples/embed.rs`
/// does. [`Interrupt`] ends a run.
pub use sizeleak_platform::runtime;
pub use sizeleak_platform::runtime::Interrupt;
pub use sizeleak_platform::telemetry::Progress;

/// Labelled captures with real TLS, of a home that a [`Scenario`](simulator::Scenario) describes.
#[cfg(feature = "simulator")]
pub use sizeleak_simulator as simulator;

/// The standard stages, each with its `Options`, which [`Pipeline::configure`] takes and a stage's program, too.
///
/// ```
/// use sizeleak::stages::{decomposer, pruner};
///
/// let mut pipeline = sizeleak::Pipeline::standard();
/// let model = vec!["examples/home/model.toml".into()];
/// pipeline.configure(&decomposer::Options { model: model.clone(), limit: 20, ..Default::default() })?;
/// pipeline.configure(&pruner::Options { model, keep: 0.99, ..Default::default() })?;
/// assert_eq!(pipeline.option("decomposer", "limit").and_then(|limit| limit.as_integer()), Some(20));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub mod stages {
    pub use sizeleak_capture as capture;
    pub use sizeleak_command_segmenter as command_segmenter;
    pub use sizeleak_decomposer as decomposer;
    pub use sizeleak_detector as detector;
    pub use sizeleak_epsilon_corrector as epsilon_corrector;
    pub use sizeleak_flow_filter as flow_filter;
    pub use sizeleak_pruner as pruner;
    pub use sizeleak_record_sizer as record_sizer;
}
