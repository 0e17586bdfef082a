//! What a call does while another one is writing to the same folder of results.

use std::time::Duration;

use clap::Args;
use sizeleak_archive::ArchiveError;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::log::say;

use super::results::stopped;
use crate::command::failure::Failure;
use crate::command::help::OUTPUT;

/// How often a call that waits looks whether the other one has ended.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

/// The flag of calls that wait.
#[derive(Debug, Clone, Args)]
pub(super) struct LockFlags {
    /// Wait if another call is writing to OUT
    ///
    /// By default the call ends with an error, so that calls of a timer do not pile up.
    #[arg(long, conflicts_with = "dry_run", hide_short_help = true, help_heading = OUTPUT)]
    wait: bool,
}

impl LockFlags {
    /// What a call does while another one has the lock.
    pub(super) fn when_locked(&self) -> WhenLocked {
        if self.wait { WhenLocked::Wait } else { WhenLocked::Refuse }
    }
}

/// What a call does while another one has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenLocked {
    /// It ends with an error.
    Refuse,
    /// It waits, and says so.
    Wait,
    /// It waits.
    WaitQuietly,
}

impl WhenLocked {
    /// Does what needs the folder of results, again and again until no other call is writing to it.
    pub(super) fn attempt<T>(
        mut self,
        interrupt: &Interrupt,
        mut attempt: impl FnMut() -> Result<T, ArchiveError>,
    ) -> Result<T, Failure> {
        loop {
            match attempt() {
                Err(ArchiveError::Locked(out)) if self != Self::Refuse => {
                    if self == Self::Wait {
                        let out = out.display();
                        say("sizeleak", &format!("waits for another `sizeleak archive`, which is writing to {out}"));
                        self = Self::WaitQuietly;
                    }
                    if interrupt.wait(BETWEEN_ATTEMPTS) {
                        return Err(stopped());
                    }
                }
                outcome => return Ok(outcome?),
            }
        }
    }
}
