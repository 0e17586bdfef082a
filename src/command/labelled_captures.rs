//! Labelled captures, and the pipeline that finds commands in them, as several subcommands name them.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use sizeleak_evaluation::Tolerance;
use sizeleak_pipeline::Pipeline;
use sizeleak_storage::RunFiles;
use sizeleak_telemetry::log::LogFlags;

use super::failure::Failure;
use super::stage_options::StageOptionArguments;

/// Labelled captures, and how commands are found in them.
#[derive(Debug, Args)]
#[command(mut_arg("gateway", |gateway| gateway.required_unless_present("pipeline")))]
pub(super) struct LabelledCaptures {
    /// The captures (pcap or pcapng, also compressed)
    #[arg(long = "capture", value_name = "FILE", num_args = 1.., required = true)]
    pub(super) captures: Vec<PathBuf>,

    /// The true actions of each command: CSV, `time,<action>,<action>…`, a row for each command
    #[arg(long, value_name = "FILE")]
    pub(super) labels: PathBuf,

    /// How far a command may be from its label
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(super) tolerance: Tolerance,

    /// A pipeline file to use instead of the standard pipeline
    #[arg(long, value_name = "FILE")]
    pipeline: Option<PathBuf>,

    #[command(flatten)]
    options: StageOptionArguments,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

impl LabelledCaptures {
    /// The files that are read: the captures, their labels, and what the pipeline reads.
    pub(super) fn files(&self, pipeline: &Pipeline) -> RunFiles {
        let mut files = RunFiles::new();
        files.reads("the labels", &self.labels);
        files.extend(pipeline.files(None));
        files
    }

    /// The pipeline over these captures, of another file than the arguments' or with further options.
    pub(super) fn pipeline(&self, file: Option<&Path>, options: &[String]) -> Result<Pipeline, Failure> {
        let mut pipeline = match file.or(self.pipeline.as_deref()) {
            Some(file) => Pipeline::read(file)?,
            None => Pipeline::standard(),
        };
        if self.captures.iter().any(|capture| capture.as_os_str() == "-") {
            return Err(Failure::usage(anyhow!("the captures are read more than once: write stdin to a file first")));
        }
        pipeline.read_captures(&self.captures)?;
        self.options.set_gateway(&mut pipeline)?;
        self.options.set_others(&mut pipeline)?;
        options.iter().try_for_each(|option| pipeline.set_text(option))?;
        // Files that a pipeline writes belong to `sizeleak run`.
        pipeline.latency_log = None;
        Ok(pipeline.without_saves())
    }
}
