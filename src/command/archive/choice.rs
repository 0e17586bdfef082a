//! Which captures are processed: those that are there or those that arrive, and of what time.

use std::time::Duration;

use clap::Args;
use sizeleak_text::TimeRange;

use super::times;
use crate::command::failure::Failure;
use crate::command::help::INPUT;
use crate::command::time_range::TimeRangeOption;

/// How long files have been left alone before `--watch` reads them.
const WATCHED_SETTLE: Duration = Duration::from_secs(30);

/// The options that choose captures.
#[derive(Debug, Clone, Args)]
pub(super) struct CaptureChoice {
    /// Stay, and process new captures as they arrive
    ///
    /// Files are looked for by their names, sizes and times, which works on network drives, too. SIGINT and SIGTERM end it;
    /// then the exit code is 1 if files are damaged, else 130.
    #[arg(long, conflicts_with = "dry_run", help_heading = INPUT)]
    watch: bool,

    /// How often `--watch` looks for new files
    #[arg(long, value_name = "TIME", value_parser = times::interval, default_value = "10s", hide_short_help = true,
        requires = "watch", help_heading = INPUT)]
    every: Duration,

    /// Leave files for a later call that were modified within this time [default: 30s with --watch, else 0s]
    ///
    /// They may still be growing. `status` lists them.
    #[arg(long, value_name = "TIME", value_parser = times::duration, hide_short_help = true, help_heading = INPUT)]
    settle: Option<Duration>,

    #[command(flatten)]
    range: TimeRangeOption,
}

impl CaptureChoice {
    /// How often new captures are looked for; `None` for one call.
    pub(super) fn watched_every(&self) -> Option<Duration> {
        self.watch.then_some(self.every)
    }

    /// How long files have been left alone before they are read.
    pub(super) fn settle(&self) -> Duration {
        self.settle.unwrap_or(if self.watch { WATCHED_SETTLE } else { Duration::ZERO })
    }

    /// The range of time.
    pub(super) fn range(&self) -> Result<TimeRange, Failure> {
        self.range.range()
    }
}
