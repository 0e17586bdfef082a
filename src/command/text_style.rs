//! Options for times and colours in text.

use std::fs::File;

use anstream::{AutoStream, ColorChoice};
use anyhow::Result;
use clap::Args;
use sizeleak_output::{Clock, Colours, HexLength, TextStyle, TimeFormat};

use super::failure::usage;
use super::help::OUTPUT;

#[derive(Debug, Args)]
pub(super) struct ClockOption {
    /// The clock of times in tables and pictures, utc or local; JSON and CSV have nanoseconds since 1970, Parquet and Zeek UTC
    #[arg(long, value_name = "CLOCK", value_enum, default_value_t, hide_possible_values = true, hide_default_value = true, help_heading = OUTPUT)]
    time: Clock,
}

impl ClockOption {
    pub(super) fn times(&self) -> Result<TimeFormat> {
        TimeFormat::new(self.time).map_err(|error| {
            let advice = "set TZ to a zone such as Europe/Berlin, or omit `--time local`";
            usage!("the local time zone is not known: {error}; {advice}")
        })
    }

    pub(super) fn style(&self, binary: HexLength, output: &File) -> Result<TextStyle> {
        // On a terminal, unless `NO_COLOR` is set.
        let is_plain = AutoStream::choice(output) == ColorChoice::Never;
        let colours = if is_plain { Colours::Off } else { Colours::On };
        Ok(TextStyle { binary, times: self.times()?, colours })
    }
}
