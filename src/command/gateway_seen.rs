//! The options for how text looks that several subcommands have.

use std::fs::File;

use anstream::{AutoStream, ColorChoice};
use clap::{Args, ValueEnum};

use super::Failure;
use sizeleak_output::{Clock, Colours, HexLength, TextStyle, TimeFormat};

#[derive(Debug, Args)]
pub(super) struct GatewaySeen {
    /// Which clock the times of a table are by; JSON and CSV have nanoseconds since 1970 whatever is said here
    #[arg(long, value_name = "CLOCK", value_enum, default_value_t)]
    time: Clock,

    /// When a table has colours
    #[arg(long, value_name = "WHEN", value_enum, default_value_t)]
    color: When,
}

/// When a table has colours.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum When {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Wherever it is written to, and whatever `NO_COLOR` says
    Always,
    /// Not at all
    Never,
}

impl GatewaySeen {
    /// How text is to look that is written to `output`.
    pub(super) fn look(&self, binary: HexLength, output: &File) -> Result<TextStyle, Failure> {
        let choice = match self.color {
            When::Auto => AutoStream::choice(output),
            When::Always => ColorChoice::Always,
            When::Never => ColorChoice::Never,
        };
        let colours = if choice == ColorChoice::Never { Colours::Off } else { Colours::On };
        Ok(TextStyle { binary, times: times(self.time)?, colours })
    }
}

/// Times by this clock.
pub(super) fn times(clock: Clock) -> Result<TimeFormat, Failure> {
    TimeFormat::new(clock).map_err(|error| {
        let advice = "set TZ to a zone such as Europe/Berlin, or leave `--time local` out";
        Failure::usage(anyhow::anyhow!("the local time zone is not known: {error}; {advice}"))
    })
}
