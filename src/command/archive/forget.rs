//! `sizeleak archive forget`: what an archive holds of a capture point goes.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueHint};
use sizeleak_archive::forget_point;

use crate::command::failure::Failure;

/// Remove all that an archive holds of a capture point: answers, records and states
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sizeleak archive forget results captures+2026-01\n\n\
    `sizeleak archive status OUT` lists the points. Remove the captures first: while their folder holds them, the next \
    call over it brings everything back.")]
pub(crate) struct Arguments {
    /// The folder of results
    #[arg(value_name = "OUT", value_hint = ValueHint::DirPath)]
    out: PathBuf,

    /// The name of the point
    #[arg(value_name = "POINT")]
    point: String,
}

pub(super) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    forget_point(&arguments.out, &arguments.point)?;
    Ok(ExitCode::SUCCESS)
}
