//! Runs a pipeline over labelled captures for a command that looks at its frames: what `learn` and `evaluate` share.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::Args;
use sizeleak_frame::{Frame, Notice, what};
use sizeleak_runtime::Interrupt;
use sizeleak_telemetry::log::{self, LogFlags, say};

use super::Failure;
use super::labelled::Tolerance;
use sizeleak_pipeline::{Pipeline, RunEnding};

/// Labelled captures, and how commands are found in them.
#[derive(Debug, Args)]
pub(super) struct Observation {
    /// The captures (pcap or pcapng, also compressed)
    #[arg(long = "capture", value_name = "FILE", num_args = 1.., required = true)]
    pub(super) captures: Vec<PathBuf>,

    /// When which actions were really commanded: CSV, `time,<action>,<action>…`, a row a command
    #[arg(long, value_name = "FILE")]
    pub(super) labels: PathBuf,

    /// The gateway's address or network; several may be given
    #[arg(long, value_name = "IP|CIDR", num_args = 1.., value_delimiter = ',', required_unless_present = "pipeline")]
    gateway: Vec<String>,

    /// How far a command may be from its label
    #[arg(long, value_name = "TIME", default_value = "2s")]
    pub(super) tolerance: Tolerance,

    /// A pipeline file whose stages and options to use instead of the standard ones
    #[arg(long, value_name = "FILE")]
    pipeline: Option<PathBuf>,

    /// An option of a stage, such as `command-segmenter.gap=80ms`
    #[arg(long, value_name = "STAGE.KEY=VALUE")]
    set: Vec<String>,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

impl Observation {
    /// The pipeline that reads these captures.
    pub(super) fn pipeline(&self) -> Result<Pipeline, Failure> {
        self.pipeline_with(None, &[])
    }

    /// The same of another pipeline file, or with further options.
    pub(super) fn pipeline_with(&self, file: Option<&Path>, options: &[String]) -> Result<Pipeline, Failure> {
        let mut pipeline = match file.or(self.pipeline.as_deref()) {
            Some(file) => Pipeline::read(file)?,
            None => Pipeline::standard(),
        };
        if self.captures.iter().any(|capture| capture.as_os_str() == "-") {
            return Err(Failure::usage(anyhow!("the captures are read more than once: write stdin to a file first")));
        }
        pipeline.read_captures(&self.captures)?;
        if !self.gateway.is_empty() {
            pipeline.set("flow-filter", "gateway", self.gateway.clone())?;
        }
        for option in self.set.iter().chain(options) {
            pipeline.set_text(option)?;
        }
        // Its files are those of its own run.
        Ok(pipeline.without_saves())
    }

    /// What the user wants to hear of notices.
    pub(super) fn telling(&self) -> Telling {
        match (self.log.is_quiet(), self.log.is_verbose()) {
            (true, _) => Telling::Nothing,
            (false, true) => Telling::Each,
            (false, false) => Telling::Kinds,
        }
    }
}

/// What is told of the stages' notices on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Telling {
    /// Nothing.
    Nothing,
    /// How many there were of each stage and kind, and what the first one says.
    Kinds,
    /// Each, as it comes.
    Each,
}

/// Runs a pipeline and shows every frame of its last stage. Gives back what was wrong with the captures, if anything was:
/// the frames of what was whole were shown all the same, and it is for the caller to say what it made of them.
///
/// # Errors
/// Where it could not run, or the user stopped it.
pub(super) fn watch(
    pipeline: &Pipeline,
    telling: Telling,
    mut show: impl FnMut(Frame) + Send,
) -> Result<Option<Failure>, Failure> {
    let mut notices = Notices::default();
    let mut sink = |frame: Frame| -> io::Result<()> {
        match &frame {
            Frame::Notice(notice) if telling == Telling::Each => log::notice(notice),
            Frame::Notice(notice) => notices.count(notice),
            _ => show(frame),
        }
        Ok(())
    };
    // A run that fails sets it, so that each has its own.
    let interrupt = Interrupt::on_signals().context("signals cannot be caught")?;
    let damage = match pipeline.prepare()?.run(&interrupt, &mut sink) {
        Ok(report) if report.ending == RunEnding::Interrupted => {
            return Err(Failure::with_code(130, anyhow!("stopped before the captures were read to their end")));
        }
        Ok(_) => None,
        Err(error) => Some(Failure::from(error)),
    };
    if telling == Telling::Kinds {
        notices.tell(damage.as_ref());
    }
    Ok(damage)
}

/// Why there is nothing to work on: what is wrong with the captures, if anything is.
pub(super) fn nothing(damage: Option<Failure>) -> Failure {
    damage.unwrap_or_else(|| anyhow!("there is no command in the captures").into())
}

/// Notices by stage and kind: how many, and what the first one said.
#[derive(Debug, Default)]
struct Notices(BTreeMap<(String, String), (u64, Option<String>)>);

impl Notices {
    fn count(&mut self, notice: &Notice) {
        // How a run ended is told once, by what it came to.
        if [what::CUT, what::FAILED].contains(&&*notice.what) {
            return;
        }
        let kind = (notice.stage.to_string(), notice.what.to_string());
        let (times, _) = self.0.entry(kind).or_insert_with(|| (0, notice.detail.clone()));
        *times += 1;
    }

    /// What is told as damage is not told twice.
    fn tell(&self, damage: Option<&Failure>) {
        let damage = damage.map_or_else(String::new, Failure::to_string);
        for ((stage, what), (times, detail)) in &self.0 {
            let detail = detail.as_deref().unwrap_or_default();
            if !detail.is_empty() && damage.contains(detail) {
                continue;
            }
            let times = if *times > 1 { format!(" ({times} times)") } else { String::new() };
            let colon = if detail.is_empty() { "" } else { ": " };
            say("note", &format!("{stage}: {what}{times}{colon}{detail}"));
        }
    }
}
