//! `sizeleak archive`: an archive of rotated captures, processed once and completed by later calls.

mod choice;
mod forget;
mod locked;
mod plan;
mod results;
mod status;
mod times;
mod watch;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use sizeleak_archive::{ArchiveRun, MissingCaptures, PartFormat, PointsOf};
use sizeleak_pipeline::Pipeline;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::Progress;
use sizeleak_platform::telemetry::log::{Screen, say};

use self::choice::CaptureChoice;
use self::locked::LockFlags;
use self::watch::WatchedArchive;
use super::failure::Failure;
use super::gateway_choice::choose_gateway;
use super::help::{INPUT, OUTPUT, STAGES};
use super::output_option::print_document;
use super::progress::ProgressFlags;
use super::stage_options::StageOptionArguments;

/// Process rotated captures once, into answers by gateway and day
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Example:\n  \
    sizeleak archive captures -o results --gateway 192.168.1.20 --model model.toml",
    after_long_help = "Examples:\n  \
    sizeleak archive captures -o results --gateway 192.168.1.20 --model model.toml\n  \
    sizeleak archive captures -o results --gateway 192.168.1.20 --model other.toml   # reads records, no packets\n  \
    sizeleak archive captures -o results --pipeline pipeline.toml --jobs 4 --dry-run\n  \
    sizeleak archive 'captures/2026-0[1-3]*/**/*.pcap*' -o results --pipeline pipeline.toml --since 2026-01-06\n  \
    sizeleak archive captures -o results --pipeline pipeline.toml --watch\n  \
    sizeleak archive status results --format json\n  \
    sizeleak archive forget results POINT\n\n\
    Every file below a folder is looked at, whatever its name; captures are recognised by content, also compressed. In a \
    quoted pattern `*` and `?` stand for letters of a name, `[0-9]` for one of several, and `**` for folders at any \
    depth. The captures of one folder are one capture point (`--one-point`: with all below it): they are merged by time, so \
    connections go on from file to file. Links \
    to folders are not followed; a file that links lead to is read once.\n\n\
    OUT gets identifications/gateway=IP/day=YYYY-MM-DD/part-POINT.parquet, records/POINT with the TLS records of its \
    captures, and manifest.ndjson with a line for every file. It may be stopped at any time: the same call completes it. \
    A new file is read alone if it begins later than all others end; else those behind it are read again.\n\n\
    With `--since` and `--until` captures count as a whole, so some answers may be of other times; all are looked at once \
    for their times. A file that is damaged or cannot be read makes the exit code 1, after all others are processed."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    operation: Option<Operation>,

    /// Folders of captures, single captures, and quoted patterns
    ///
    /// Such as 'captures/2026-0[1-3]*/**/*.pcap*'. What exists by that name is no pattern. A pattern without a match is an
    /// error, except with `--watch`.
    #[arg(value_name = "FOLDER", required = true, value_hint = ValueHint::AnyPath)]
    captures: Vec<PathBuf>,

    /// The folder of results; one that exists is completed
    #[arg(short, long, value_name = "OUT", required = true, value_hint = ValueHint::DirPath, help_heading = OUTPUT)]
    output: Option<PathBuf>,

    /// The format of the answers
    #[arg(long, value_enum, default_value_t, help_heading = OUTPUT)]
    format: AnswerFormat,

    /// The pipeline file, instead of the standard pipeline
    ///
    /// Its captures are replaced. ./pipeline.toml is not used unless it is named.
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pipeline: Option<PathBuf>,

    #[command(flatten)]
    options: StageOptionArguments,

    /// The model of the gateway, from `sizeleak learn`
    ///
    /// Can be repeated, for several services or gateways.
    #[arg(long, value_name = "FILE", help_heading = STAGES)]
    model: Vec<PathBuf>,

    /// How many capture points are processed at once
    ///
    /// Results do not depend on it.
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,

    /// Print what would be read and made, and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Take each folder named as one capture point
    ///
    /// With all folders below it, such as one for each day: connections go on from folder to folder.
    #[arg(long, hide_short_help = true, help_heading = INPUT)]
    one_point: bool,

    #[command(flatten)]
    choice: CaptureChoice,

    #[command(flatten)]
    lock: LockFlags,

    /// Give up what was found in captures that are gone, or outside of the range of time
    ///
    /// By default a point keeps its results when captures were deleted, and nothing is added to it.
    #[arg(long, hide_short_help = true, help_heading = OUTPUT)]
    forget: bool,

    #[command(flatten)]
    progress: ProgressFlags,
}

#[derive(Debug, Subcommand)]
enum Operation {
    /// Show what an archive holds, and which files are damaged or missing
    Status(status::Arguments),
    /// Remove all that an archive holds of a capture point
    Forget(forget::Arguments),
}

/// The format of the answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum AnswerFormat {
    /// Parquet, compressed by zstd
    #[default]
    Parquet,
    /// One JSON object a line
    Ndjson,
}

impl From<AnswerFormat> for PartFormat {
    fn from(format: AnswerFormat) -> Self {
        match format {
            AnswerFormat::Parquet => Self::Parquet,
            AnswerFormat::Ndjson => Self::Ndjson,
        }
    }
}

pub(crate) fn run(arguments: &Arguments, screen: &Screen) -> Result<ExitCode, Failure> {
    match &arguments.operation {
        Some(Operation::Status(status)) => return status::run(status),
        Some(Operation::Forget(forget)) => return forget::run(forget),
        None => {}
    }
    let run = arguments.archive_run()?;
    if arguments.dry_run {
        print_document(&plan::table(&run.plan()?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let when_locked = arguments.lock.when_locked();
    if let Some(every) = arguments.choice.watched_every() {
        let progress = &arguments.progress;
        return watch::run(&WatchedArchive { run: &run, every, progress, screen }, when_locked);
    }
    let results = when_locked.attempt(&run.interrupt, || {
        let progress = Progress::new();
        let _bar = arguments.progress.begin_alone(&progress, screen);
        run.run(&progress)
    })?;
    say("sizeleak", &results::counts(&results.manifest));
    say("sizeleak", &results::outcome(&results, &run));
    if let Some(silence) = results::silence(&results.manifest) {
        say("note", &silence);
    }
    if let Some(absence) = results::absence(&results.manifest, &run.out) {
        say("note", &absence);
    }
    results::name_doubts(&results.manifest, &run.out);
    let failures = results.failures();
    results::name(&failures);
    if results.is_stopped() {
        return Err(results::stopped());
    }
    results::check(&failures, &results.manifest, &run.out)?;
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn archive_run(&self) -> Result<ArchiveRun, Failure> {
        let mut pipeline =
            self.pipeline.as_ref().map_or_else(|| Ok(Pipeline::standard()), |file| Pipeline::read(file))?;
        self.options.set_gateway(&mut pipeline)?;
        if !self.model.is_empty() {
            pipeline.use_models(&self.model)?;
        }
        self.options.set_others(&mut pipeline)?;
        choose_gateway(&mut pipeline)?;
        let out = self.output.clone().unwrap_or_default();
        Ok(ArchiveRun {
            format: self.format.into(),
            jobs: self.jobs.get(),
            points_of: if self.one_point { PointsOf::Operands } else { PointsOf::Folders },
            missing: if self.forget { MissingCaptures::Forget } else { MissingCaptures::Keep },
            settle: self.choice.settle(),
            range: self.choice.range()?,
            interrupt: Interrupt::on_signals()?,
            ..ArchiveRun::new(self.captures.clone(), pipeline.without_saves(), out)
        })
    }
}
