//! `sizeleak reproduce`: the table of a publication, rebuilt on simulated homes.

mod study;
mod table;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::Context;
use clap::{Args, ValueEnum};
use sizeleak_platform::storage::RunFiles;
use sizeleak_platform::telemetry::log::{LogFlags, say};

use super::failure::Failure;
use super::help::OUTPUT;
use super::output_option::writes_stdout;
use super::report_format::ReportFormatOption;
use study::{Study, StudyHome};

/// Rebuild the paper's table, by its procedure and by ours
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sizeleak reproduce paper\n  sizeleak reproduce paper --commands 2000 -o homes",
    after_long_help = "Examples:\n  \
    sizeleak reproduce paper\n  \
    sizeleak reproduce paper --commands 2000 -o homes\n  \
    sizeleak reproduce paper --json\n\n\
    The paper (Junges, François, Festor 2019) has 12 plugs with 4 actions and 4 lamps with 7 behind one gateway, and 307 \
    commands to test on. How good its procedure is depends on the protocol inside TLS, so the home is simulated with \
    three: WebSocket, MQTT and HTTP. On each, one model is learned by the paper's procedure (`learn --method paper`, \
    `pruner.mode=paper`) and one by this program's defaults, from the same labelled commands; both are evaluated on the \
    same others. The same seed gives the same table.\n\n\
    JSON keys: schema, seed, commands, labelled, published (truth_among, truth_among_after_pruning: part, of, share, \
    interval (low, high)), homes (a list: protocol, papers_procedure and ours (truth_among, first_right and both \
    _after_pruning, as in published; mean_candidates, mean_candidates_after_pruning), possible (first_right, \
    first_right_with_replies))."
)]
pub(crate) struct Arguments {
    /// Whose table
    #[arg(value_enum)]
    publication: Publication,

    /// The seed of all randomness
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Commands to test on in each home
    #[arg(long, value_name = "N", default_value_t = 307, value_parser = clap::value_parser!(u32).range(1..))]
    commands: u32,

    /// Keep the homes and their models in FOLDER, created if missing
    #[arg(short, long, value_name = "FOLDER", help_heading = OUTPUT)]
    output: Option<PathBuf>,

    #[command(flatten)]
    format: ReportFormatOption,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

/// A publication whose table can be rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Publication {
    /// Junges, François, Festor: Passive inference of user actions through IoT gateway encrypted traffic analysis, 2019
    Paper,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Publication::Paper = arguments.publication;
    let begun = Instant::now();
    let temporary = if arguments.output.is_none() { Some(tempfile::tempdir()?) } else { None };
    let folder = match (&arguments.output, &temporary) {
        (Some(folder), _) => folder.clone(),
        (None, Some(temporary)) => temporary.path().to_owned(),
        (None, None) => PathBuf::new(),
    };
    let homes = StudyHome::all(&folder, arguments.commands);
    let mut files = RunFiles::new();
    homes.iter().flat_map(StudyHome::files).for_each(|file| files.writes("the home's file", &file));
    writes_stdout(&mut files);
    files.check()?;
    let study = Study::run(&homes, arguments.seed, arguments.commands)?;
    arguments.format.printed().print(&study, Some("homes"), || table::table(&study))?;
    let kept = arguments.output.iter().map(|folder| format!("; the homes are in {}", folder.display()));
    let kept: String = kept.collect();
    say("sizeleak", &format!("took {:.1} s{kept}", begun.elapsed().as_secs_f64()));
    if let Some(temporary) = temporary {
        temporary.close().context("the temporary folder cannot be removed")?;
    }
    Ok(ExitCode::SUCCESS)
}
