//! The options for how text looks that several subcommands have.

use clap::Args;

use super::Failure;
use crate::output::{Binary, Clock, Look, Times};

#[derive(Debug, Args)]
pub(super) struct Appearance {
    /// Which clock the times of a table are by; JSON and CSV have nanoseconds since 1970 whatever is said here
    #[arg(long, value_name = "CLOCK", value_enum, default_value_t)]
    time: Clock,
}

impl Appearance {
    /// How text is to look.
    pub(super) fn look(&self, binary: Binary) -> Result<Look, Failure> {
        Ok(Look { binary, times: times(self.time)? })
    }
}

/// Times by this clock.
pub(super) fn times(clock: Clock) -> Result<Times, Failure> {
    Times::new(clock).map_err(|error| {
        let advice = "set TZ to a zone such as Europe/Berlin, or leave `--time local` out";
        Failure::usage(anyhow::anyhow!("the local time zone is not known: {error}; {advice}"))
    })
}
