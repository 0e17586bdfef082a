//! What a call does while another one is writing to the same folder of results.

use std::time::Duration;

use sizeleak_archive::ArchiveError;
use sizeleak_runtime::Interrupt;
use sizeleak_telemetry::log::{LogFlags, say};

use super::results::stopped;
use crate::command::failure::Failure;

/// How often a call that waits looks whether the other one has ended.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

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
    pub(super) fn of(waits: bool, log: &LogFlags) -> Self {
        match (waits, log.is_quiet()) {
            (false, _) => Self::Refuse,
            (true, false) => Self::Wait,
            (true, true) => Self::WaitQuietly,
        }
    }

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
