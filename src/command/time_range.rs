//! `--since` and `--until`: of what time commands, answers and labels are.

use anyhow::{Result, anyhow};
use clap::Args;
use sizeleak_frame::Frame;
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::{TimeRange, parse_time};

use super::failure::usage;
use super::help::INPUT;

#[derive(Debug, Clone, Copy, Default, Args)]
pub(super) struct TimeRangeOption {
    /// Only commands, answers and labels of this time or later, or captures that end then or later: a date, which begins
    /// in UTC, or a time as in 2026-01-06T08:00:00+01:00
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = INPUT)]
    since: Option<i64>,

    /// Only what is, or captures that begin, before this time. `--since 2026-01-06 --until 2026-01-07` is one day.
    #[arg(long, value_name = "TIME", value_parser = time, help_heading = INPUT)]
    until: Option<i64>,
}

fn time(text: &str) -> Result<i64, String> {
    parse_time(text).ok_or_else(|| "write it like 2026-01-06 or 2026-01-06T08:00:00Z".to_owned())
}

impl TimeRangeOption {
    pub(super) fn range(&self) -> Result<TimeRange> {
        checked(self.since, self.until)
    }
}

pub(super) fn checked(since_ns: Option<i64>, until_ns: Option<i64>) -> Result<TimeRange> {
    if since_ns.zip(until_ns).is_some_and(|(since, until)| since >= until) {
        return Err(usage!("`--until` is not after `--since`: nothing is in that range"));
    }
    Ok(TimeRange { since_ns, until_ns })
}

/// Chooses frames by their time, and counts all but deviations, of which none is an answer, too.
#[derive(Debug, Default)]
pub(super) struct TimeCut {
    pub(super) range: TimeRange,
    all: u64,
    kept: u64,
}

impl TimeCut {
    pub(super) fn new(range: TimeRange) -> Self {
        Self { range, ..Self::default() }
    }

    pub(super) fn keeps(&mut self, frame: &Frame) -> bool {
        if self.range.is_everything() {
            return true;
        }
        let Some(time_ns) = frame.time_ns() else { return true };
        let is_within = self.range.contains(time_ns);
        let counts = u64::from(!matches!(frame, Frame::Deviation(_)));
        self.all += counts;
        self.kept += counts * u64::from(is_within);
        is_within
    }

    /// Says how many of all `what` are left.
    ///
    /// # Errors
    /// If none is left.
    pub(super) fn report(&self, what: &str) -> Result<()> {
        let Self { range, all, kept } = self;
        if *kept == 0 && *all > 0 {
            return Err(anyhow!("none of the {all} {what} is {range}"));
        }
        if !range.is_everything() {
            say("sizeleak", &format!("{kept} of {all} {what} are {range}"));
        }
        Ok(())
    }
}
