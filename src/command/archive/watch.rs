//! `sizeleak archive --watch`: processes captures as they arrive, until it is stopped.

use std::process::ExitCode;
use std::time::Duration;

use sizeleak_archive::{ArchiveError, ArchiveRun, ArchiveWatch, RoundResults, RunResults};
use sizeleak_platform::telemetry::Progress;
use sizeleak_platform::telemetry::log::{Screen, complain, say};

use super::locked::WhenLocked;
use super::results;
use crate::command::failure::Failure;
use crate::command::progress::ProgressFlags;

/// What is watched, and how.
pub(super) struct WatchedArchive<'a> {
    pub(super) run: &'a ArchiveRun,
    /// The time between two looks.
    pub(super) every: Duration,
    pub(super) progress: &'a ProgressFlags,
    pub(super) screen: &'a Screen,
}

/// Which round it is: what is there at first is no news.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Round {
    First,
    Later,
}

pub(super) fn run(archive: &WatchedArchive<'_>, when_locked: WhenLocked) -> Result<ExitCode, Failure> {
    let (run, every) = (archive.run, archive.every);
    let mut watch = when_locked.attempt(&run.interrupt, || ArchiveWatch::begin(run))?;
    let mut last = RunResults::default();
    // Of a round as a whole: a folder may come back, a disk may get room.
    let mut fault: Option<String> = None;
    let mut which = Round::First;
    loop {
        match archive.round(&mut watch) {
            Ok(round) => {
                if let Some(round) = round {
                    report(&round, which);
                    last = round.results;
                }
                fault = None;
            }
            Err(error) if which == Round::First => return Err(error.into()),
            Err(error) => {
                let again = fault.replace(error.to_string());
                if again != fault {
                    complain("archive", &format!("{error}; tried again every {every:?}"));
                }
            }
        }
        if which == Round::First && !run.interrupt.is_set() {
            say("sizeleak", &format!("looks for new captures every {every:?}, until it is stopped"));
        }
        which = Round::Later;
        if run.interrupt.wait(every) {
            break;
        }
    }
    fault.map_or(Ok(()), |fault| Err(Failure::from(anyhow::anyhow!(fault))))?;
    results::check(&last.failures(), &last.manifest, &run.out)?;
    Err(results::stopped())
}

impl WatchedArchive<'_> {
    /// One look, and what it leads to; `None` if nothing has changed.
    fn round(&self, watch: &mut ArchiveWatch<'_>) -> Result<Option<RoundResults>, ArchiveError> {
        let Some(round) = watch.look()? else { return Ok(None) };
        let progress = Progress::new();
        let _bar = self.progress.begin_alone(&progress, self.screen);
        watch.process(round, &progress).map(Some)
    }
}

/// Says what a round has changed, if it has changed something.
fn report(round: &RoundResults, which: Round) {
    let changed = match round.changed_files {
        _ if which == Round::First => String::new(),
        1 => "1 file changed; ".to_owned(),
        files => format!("{files} files changed; "),
    };
    if which == Round::First || round.changed_files > 0 {
        let manifest = &round.results.manifest;
        say("sizeleak", &format!("{changed}{}", results::counts(manifest)));
        if let Some(silence) = results::silence(manifest) {
            say("note", &silence);
        }
    }
    results::name(&round.new_failures);
}
