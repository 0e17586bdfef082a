//! Labelled captures, and the pipeline that finds commands in them, as several subcommands name them.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use jiff::SignedDuration;
use sizeleak_evaluation::{InputSource, LabelFile, LabelTimes, PipelineInput, Tolerance};
use sizeleak_model::LabelZone;
use sizeleak_pipeline::Pipeline;
use sizeleak_storage::RunFiles;
use sizeleak_telemetry::log::{LogFlags, say};

use super::cache_use::CacheUse;
use super::failure::Failure;
use super::stage_options::StageOptionArguments;

/// Labelled captures, and how commands are found in them.
#[derive(Debug, Args)]
#[command(mut_arg("gateway", |gateway| gateway.required_unless_present_any(["pipeline", "from"])))]
pub(super) struct LabelledCaptures {
    /// The captures (pcap or pcapng, also compressed)
    #[arg(long = "capture", value_name = "FILE", num_args = 1.., required_unless_present = "from")]
    captures: Vec<PathBuf>,

    /// Read these frame streams instead of captures: saved after any stage up to command-segmenter, also compressed; all
    /// gateways but those of `--gateway` are left out
    #[arg(long, value_name = "FILE", num_args = 1.., conflicts_with = "captures")]
    from: Vec<PathBuf>,

    #[command(flatten)]
    cache: CacheUse,

    /// The true actions of each command, as CSV: `time,<action>,<action>…` with a row for each command, or
    /// `time,action[,count]` with a row for each action
    #[arg(long, value_name = "FILE")]
    pub(super) labels: PathBuf,

    /// How far a command may be from its label [default: 2s; 90s if the labels' times have no seconds]
    #[arg(long, value_name = "TIME")]
    pub(super) tolerance: Option<Tolerance>,

    /// The time zone of labels whose times name none, such as Europe/Berlin, +01:00 or UTC
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    label_zone: Option<LabelZone>,

    /// What to add to the labels' times, such as 23s or -1h [default: what the commands show, if that is certain]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = offset)]
    label_offset: Option<i64>,

    /// A pipeline file to use instead of the standard pipeline
    #[arg(long, value_name = "FILE")]
    pipeline: Option<PathBuf>,

    #[command(flatten)]
    options: StageOptionArguments,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

/// A duration in nanoseconds.
fn offset(text: &str) -> Result<i64, String> {
    let duration: SignedDuration = text.parse().map_err(|_| "write it like 23s or -1h".to_owned())?;
    i64::try_from(duration.as_nanos()).map_err(|_| "it must be within 292 years".to_owned())
}

impl LabelledCaptures {
    /// The files that are read: the captures or streams, their labels, and what the pipeline reads.
    pub(super) fn files(&self, pipeline: &Pipeline) -> RunFiles {
        let mut files = RunFiles::new();
        files.reads("the labels", &self.labels);
        self.from.iter().for_each(|path| files.reads("the saved stream", path));
        files.extend(pipeline.files(None));
        files
    }

    /// The files with traffic that the user named.
    pub(super) fn named(&self) -> &[PathBuf] {
        if self.from.is_empty() { &self.captures } else { &self.from }
    }

    /// Reads the labels.
    pub(super) fn read_labels(&self) -> Result<LabelFile, Failure> {
        Ok(LabelFile::read(&self.labels, &self.label_times())?)
    }

    /// How the times of labels are read.
    pub(super) fn label_times(&self) -> LabelTimes {
        LabelTimes { zone: self.label_zone.clone(), offset_ns: self.label_offset }
    }

    /// What the pipelines read.
    pub(super) fn input(&self, pipeline: &Pipeline) -> Result<PipelineInput, Failure> {
        self.input_from(self.source(), pipeline)
    }

    /// The same of another source.
    pub(super) fn input_from(&self, source: InputSource, pipeline: &Pipeline) -> Result<PipelineInput, Failure> {
        let input = PipelineInput::new(source);
        let Some((folder, limit)) = self.cache.chosen(pipeline)? else { return Ok(input) };
        let is_quiet = self.log.is_quiet();
        Ok(input.with_cache(&folder, limit, move |text| {
            if !is_quiet {
                say("sizeleak", text);
            }
        }))
    }

    fn source(&self) -> InputSource {
        if self.from.is_empty() { InputSource::Captures } else { InputSource::Streams(self.from.clone()) }
    }

    /// The pipeline over these captures, of another file than the arguments' or with further options.
    pub(super) fn pipeline(&self, file: Option<&Path>, options: &[String]) -> Result<Pipeline, Failure> {
        let mut pipeline = match file.or(self.pipeline.as_deref()) {
            Some(file) => Pipeline::read(file)?,
            None => Pipeline::standard(),
        };
        if self.named().iter().any(|file| file.as_os_str() == "-") {
            return Err(Failure::usage(anyhow!("the input is read more than once: write stdin to a file first")));
        }
        if self.from.is_empty() {
            pipeline.read_captures(&self.captures)?;
        }
        self.options.set_gateway(&mut pipeline)?;
        self.options.set_others(&mut pipeline)?;
        options.iter().try_for_each(|option| pipeline.set_text(option))?;
        // Files that a pipeline writes belong to `sizeleak run`.
        pipeline.latency_log = None;
        Ok(pipeline.without_saves())
    }
}
