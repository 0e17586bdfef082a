//! What `sizeleak run` has of earlier runs, and what it leaves for later ones.

use std::path::PathBuf;

use clap::Args;
use sizeleak_stage::Interrupt;
use sizeleak_stage::log::say;

use super::Failure;
use super::observation::Telling;
use crate::pipeline::{Arrangement, Ending, Pipeline, Prepared, Replay, Report};

/// Where a run begins.
#[derive(Debug, Args)]
pub(super) struct Reuse {
    /// Go on from this frame stream, saved or `tee`d behind any stage, also compressed, and leave out all stages up to that;
    /// `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    from: Option<PathBuf>,
}

/// What is to be told or done when a run has ended.
pub(super) struct Kept {
    saves: Vec<PathBuf>,
    telling: Telling,
}

impl Reuse {
    /// The pipeline, ready to run from where it begins.
    pub(super) fn begin(
        &self,
        pipeline: &Pipeline,
        interrupt: &Interrupt,
        telling: Telling,
    ) -> Result<(Prepared, Kept), Failure> {
        let mut arrangement = Arrangement::default();
        if let Some(file) = &self.from {
            let replay = Replay::open(file, interrupt).map_err(|error| match interrupt.is_set() {
                true => Failure::with_code(130, anyhow::anyhow!("stopped before the first frame")),
                false => error.into(),
            })?;
            let place = pipeline.place_of(&replay)?;
            if telling != Telling::Nothing {
                say("sizeleak", &format!("{} from {}", pipeline.output_of(place), replay.name()));
            }
            arrangement.from = Some((place, replay));
        }
        let prepared = pipeline.prepare_with(arrangement)?;
        let saves = prepared.saves();
        Ok((prepared, Kept { saves, telling }))
    }
}

impl Kept {
    /// Ends it with what came of the run; `None` where it failed.
    pub(super) fn end(self, report: Option<&Report>) {
        let saved = report.map_or(&[][..], |report| &report.saved);
        let why = match report.map(|report| report.ending) {
            None => "the run failed",
            Some(Ending::Interrupted) => "the run was stopped",
            Some(Ending::Closed) => "nobody read the output to its end",
            Some(Ending::Done) => "the stage behind did not read to its end",
        };
        for path in self.saves.iter().filter(|path| self.telling != Telling::Nothing && !saved.contains(path)) {
            say("sizeleak", &format!("{} is not written: {why}", path.display()));
        }
    }
}
