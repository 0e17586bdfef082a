//! An example segmenter: a command is a burst of application data to the gateway, ended by a silence.
//!
//! `burst.py` beside this folder writes the same frames. The crates do what all stages share: flags and `--help`,
//! reading and writing frames, passing on frames that are not for this stage, `hello` and `summary`, exit codes.
#![warn(clippy::indexing_slicing)]

mod burst;

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use sizeleak_platform::runtime::{ConfigureError, Node, Runnable, StageOptions, program};

use burst::BurstSegmenter;

/// When a command ends, and which records count.
#[derive(Debug, Clone, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
struct Options {
    /// A silence longer than this ends a command
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().silence))]
    silence: SignedDuration,

    /// Records shorter than this on the wire are keep-alives or acknowledgements
    #[arg(long, value_name = "BYTES", default_value_t = Options::default().shortest)]
    shortest: u32,
}

impl Default for Options {
    fn default() -> Self {
        Self { silence: SignedDuration::from_millis(40), shortest: 50 }
    }
}

impl StageOptions for Options {
    const NAME: &'static str = burst::NAME;
    const ABOUT: &'static str = "Finds commands among TLS records: bursts of application data to the gateway";
    const EXAMPLES: &'static [&'static str] =
        &["burst-segmenter --silence 80ms < records.frames | sizeleak frames --kind command"];

    fn build(&self) -> Result<Box<dyn Runnable>, ConfigureError> {
        let silence = Duration::try_from(self.silence).ok().filter(|silence| *silence <= burst::LONGEST);
        let fault = || ConfigureError::Usage(format!("`silence` is {:#}: it must be from 0 s to 10 s", self.silence));
        Ok(Box::new(Node::new(BurstSegmenter::new(silence.ok_or_else(fault)?, self.shortest))))
    }
}

fn main() -> ExitCode {
    program::main::<Options>()
}
