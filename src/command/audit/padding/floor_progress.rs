//! Progress of the floor of all padding policies on stderr, where it takes longer than seconds.

use std::time::{Duration, Instant};

use sizeleak_platform::telemetry::log::{LogFlags, say};

/// How long nothing is said.
const INTERVAL: Duration = Duration::from_secs(5);

/// Says now and then how far the floor is.
#[derive(Debug)]
pub(super) struct FloorProgress {
    is_quiet: bool,
    sizes: usize,
    said: Instant,
}

impl FloorProgress {
    /// Begins with the floor of so many sizes.
    pub(super) fn begin(sizes: usize, log: &LogFlags) -> Self {
        Self { is_quiet: log.is_quiet(), sizes, said: Instant::now() }
    }

    /// Takes steps until one says that there is none left.
    pub(super) fn run(&mut self, mut step: impl FnMut() -> bool) {
        let mut steps = 0;
        while step() {
            steps += 1;
            if self.said.elapsed() >= INTERVAL && !self.is_quiet {
                say(
                    "note",
                    &format!("the floor of {} sizes: prices of bytes tried: {steps} of at most 64", self.sizes),
                );
                self.said = Instant::now();
            }
        }
    }
}
