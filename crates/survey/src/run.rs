//! Reads captures, and says what they hold.

use std::fmt::Display;
use std::path::PathBuf;

use sizeleak_frame::Notice;
use sizeleak_pipeline::{ConfigError, InputError, Pipeline, RunEnding, RunError};
use sizeleak_platform::runtime::Interrupt;

use crate::report::SurveyReport;
use crate::state::SurveyState;

/// With these networks as gateways, the side of a private network counts as the gateway of a connection, else the side
/// that opens it.
const EVERY_ADDRESS: [&str; 2] = ["0.0.0.0/0", "::/0"];

#[derive(Debug, Clone, Default)]
pub struct SurveyRun {
    /// The captures; `-` is stdin. They are read once.
    pub captures: Vec<PathBuf>,
    /// Whether to read all captures below the folders among them.
    pub recursive: bool,
    /// The addresses and networks to survey; all of them if there are none.
    pub gateways: Vec<String>,
}

/// What was found, and whether that is all.
#[derive(Debug)]
pub struct SurveyOutcome {
    /// What the captures hold, as far as they were read.
    pub report: SurveyReport,
    pub coverage: Coverage,
}

/// How far captures were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Coverage {
    Whole,
    /// To where they are damaged.
    UntilDamage(RunError),
    /// Until SIGINT or SIGTERM came.
    UntilStopped,
}

impl SurveyRun {
    /// The pipeline that reads the captures.
    pub fn pipeline(&self) -> Result<Pipeline, ConfigError> {
        let mut pipeline = Pipeline::standard().until("record-sizer")?;
        pipeline.read_captures(&self.captures)?;
        pipeline.set("capture", "recursive", self.recursive)?;
        // Connections without TLS have messages too, and are said to have none.
        pipeline.set("record-sizer", "plain-tcp", true)?;
        if self.gateways.is_empty() {
            pipeline.set("flow-filter", "gateway", EVERY_ADDRESS.map(str::to_owned).to_vec())?;
            pipeline.set("flow-filter", "allow-absent", true)?;
        } else {
            pipeline.set("flow-filter", "gateway", self.gateways.clone())?;
        }
        Ok(pipeline)
    }

    /// Reads the captures to their end, to their damage, or until it is interrupted; notices of the stages go to `on_notice`.
    pub fn survey(
        &self,
        interrupt: &Interrupt,
        on_notice: &mut (dyn FnMut(&Notice) + Send),
    ) -> Result<SurveyOutcome, InputError> {
        let of_segmenter = |error: &dyn Display| ConfigError::input(format!("command-segmenter: {error}"));
        let prepared = self.pipeline()?.prepare()?;
        let mut state = SurveyState::new(on_notice).map_err(|error| of_segmenter(&error))?;
        let ended = prepared.run(interrupt, &mut state);
        let report = state.finish().map_err(|error| of_segmenter(&error))?;
        let coverage = match ended {
            Ok(run) if run.ending == RunEnding::Interrupted => Coverage::UntilStopped,
            Ok(_) => Coverage::Whole,
            Err(error) if report.span_ns.is_none() => return Err(error.into()),
            Err(error) => Coverage::UntilDamage(error),
        };
        Ok(SurveyOutcome { report, coverage })
    }
}
