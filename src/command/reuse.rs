//! What `sizeleak run` has of earlier runs, and what it leaves for later ones.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::Args;
use sizeleak_runtime::Interrupt;
use sizeleak_telemetry::log::say;

use super::Failure;
use super::observation::Telling;
use sizeleak_pipeline::cache::{CacheSession, CacheStore, cache_folder};
use sizeleak_pipeline::{Pipeline, PreparedRun, RunEnding, RunOptions, RunReport, SavedStream};

/// Where a run begins.
#[derive(Debug, Args)]
pub(super) struct Reuse {
    /// Go on from this frame stream, saved or `tee`d behind any stage, also compressed, and leave out all stages up to that;
    /// `-` is stdin
    #[arg(long, value_name = "FILE", conflicts_with = "input")]
    from: Option<PathBuf>,

    /// Begin behind the last stage that has not changed since an earlier run, and keep what the stages put out for later ones
    #[arg(long, conflicts_with = "from")]
    cache: bool,

    /// Do not use the cache, whatever the pipeline file says
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,

    /// The folder of the cache [default: `$SIZELEAK_CACHE_DIR`, else `sizeleak` in the user's folder for caches]
    #[arg(long, value_name = "DIR")]
    cache_dir: Option<PathBuf>,

    /// What all that is kept may take on disk; what was not used for the longest goes first
    #[arg(long, value_name = "SIZE", default_value = "4GB")]
    cache_size: ByteSize,
}

/// What is to be told or done when a run has ended.
pub(super) struct Kept {
    saves: Vec<PathBuf>,
    session: Option<CacheSession>,
    telling: Telling,
}

impl Reuse {
    /// The pipeline, ready to run from where it begins.
    pub(super) fn begin(
        &self,
        pipeline: &Pipeline,
        interrupt: &Interrupt,
        telling: Telling,
    ) -> Result<(PreparedRun, Kept), Failure> {
        let (session, arrangement) = match &self.from {
            Some(file) => {
                let replay = SavedStream::open(file, interrupt).map_err(|error| {
                    if interrupt.is_set() {
                        Failure::with_code(130, anyhow::anyhow!("stopped before the first frame"))
                    } else {
                        error.into()
                    }
                })?;
                let place = pipeline.index_of(&replay)?;
                tell(telling, &format!("{} from {}", pipeline.output_of(place), replay.name()));
                (None, RunOptions { from: Some((place, replay)), recorders: Vec::new() })
            }
            None if self.cache || pipeline.cache && !self.no_cache => {
                let store = CacheStore::new(cache_folder(self.cache_dir.as_deref())?, self.cache_size.as_u64());
                let begun = CacheSession::begin(store, pipeline, |text| tell(telling, &text));
                begun.map_or_else(Default::default, |(session, arrangement)| (Some(session), arrangement))
            }
            None => Default::default(),
        };
        let prepared = pipeline.prepare_with(arrangement)?;
        let saves = prepared.saves();
        Ok((prepared, Kept { saves, session, telling }))
    }
}

impl Kept {
    /// Ends it with what came of the run; `None` where it failed.
    pub(super) fn end(self, report: Option<&RunReport>) {
        let saved = report.map_or(&[][..], |report| &report.saved);
        let ending = report.map(|report| report.ending);
        let why = match ending {
            None => "the run failed",
            Some(RunEnding::Interrupted) => "the run was stopped",
            Some(RunEnding::Closed) => "nobody read the output to its end",
            Some(RunEnding::Done) => "the stage behind did not read to its end",
        };
        for path in self.saves.iter().filter(|path| !saved.contains(path)) {
            tell(self.telling, &format!("{} is not written: {why}", path.display()));
        }
        if let Some(session) = self.session.filter(|_| ending == Some(RunEnding::Done)) {
            session.end(|text| tell(self.telling, &text));
        }
    }
}

fn tell(telling: Telling, text: &str) {
    if telling != Telling::Nothing {
        say("sizeleak", text);
    }
}
