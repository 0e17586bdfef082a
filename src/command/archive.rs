//! `sizeleak archive`: an archive of rotated captures, processed once and completed by later calls.

mod status;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use bytesize::ByteSize;
use clap::{Args, Subcommand, ValueEnum, ValueHint};
use sizeleak_archive::{ArchivePlan, ArchiveRun, Manifest, PartFormat, PointsOf};
use sizeleak_pipeline::Pipeline;
use sizeleak_telemetry::Progress;
use sizeleak_telemetry::log::{LogFlags, Screen, complain, say};

use super::failure::Failure;
use super::help::{INPUT, OUTPUT, STAGES};
use super::output_option::print_text;
use super::progress::ProgressFlags;
use super::stage_options::StageOptionArguments;
use super::text_table::numbers;

/// At most this many files and points that failed are named; `status` names all.
const MOST_NAMED: usize = 20;

/// Process rotated captures once, into answers by gateway and day
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
    sizeleak archive captures -o results --gateway 192.168.1.20 --model model.toml\n  \
    sizeleak archive status results",
    after_long_help = "Examples:\n  \
    sizeleak archive captures -o results --gateway 192.168.1.20 --model model.toml\n  \
    sizeleak archive captures -o results --gateway 192.168.1.20 --model other.toml   # reads records, no packets\n  \
    sizeleak archive captures -o results --pipeline pipeline.toml --jobs 4 --dry-run\n  \
    sizeleak archive status results --format json\n\n\
    Every file below a folder is looked at, whatever its name; captures are recognised by content, also compressed. The \
    captures of one folder are one capture point (`--one-point`: with all below it): they are merged by time, so \
    connections go on from file to file. Links \
    to folders are not followed; a file that links lead to is read once.\n\n\
    OUT gets identifications/gateway=IP/day=YYYY-MM-DD/part-POINT.parquet, records/POINT.frames.zst, and \
    manifest.ndjson with a line for every file. It may be stopped at any time: the same call completes it. A point is \
    read again as a whole when one of its files is new or has changed.\n\n\
    A file that is damaged or cannot be read makes the exit code 1, after all others are processed."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    operation: Option<Operation>,

    /// Folders of captures, and single captures
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

    /// The model of the gateway, made by `sizeleak learn`
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
    #[arg(long, help_heading = INPUT)]
    one_point: bool,

    /// Give up what was found in captures that are gone
    ///
    /// By default a point keeps its results when captures were deleted, and nothing is added to it.
    #[arg(long, hide_short_help = true, help_heading = OUTPUT)]
    forget: bool,

    #[command(flatten)]
    progress: ProgressFlags,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

#[derive(Debug, Subcommand)]
enum Operation {
    /// Show what an archive holds, and which files are damaged or missing
    Status(status::Arguments),
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
    if let Some(Operation::Status(status)) = &arguments.operation {
        return status::run(status);
    }
    let run = arguments.archive_run()?;
    if arguments.dry_run {
        print_text(&plan_table(&run.plan()?))?;
        return Ok(ExitCode::SUCCESS);
    }
    let progress = Progress::new();
    let bar = arguments.progress.begin_alone(&progress, screen, &arguments.log);
    let outcome = run.run(&progress);
    drop(bar);
    let manifest = outcome?;
    if !arguments.log.is_quiet() {
        say("sizeleak", &counts(&manifest));
    }
    name_failures(&manifest);
    if manifest.has_failures() {
        let out = run.out.display();
        return Err(anyhow!("files are damaged or missing; `sizeleak archive status {out}` lists them").into());
    }
    Ok(ExitCode::SUCCESS)
}

impl Arguments {
    fn archive_run(&self) -> Result<ArchiveRun, Failure> {
        let mut pipeline = match &self.pipeline {
            Some(file) => Pipeline::read(file)?,
            None => Pipeline::standard(),
        };
        self.options.check_gateway(&pipeline)?;
        self.options.set_gateway(&mut pipeline)?;
        if !self.model.is_empty() {
            pipeline.use_models(&self.model)?;
        }
        self.options.set_others(&mut pipeline)?;
        Ok(ArchiveRun {
            operands: self.captures.clone(),
            pipeline: pipeline.without_saves(),
            out: self.output.clone().unwrap_or_default(),
            format: self.format.into(),
            jobs: self.jobs.get(),
            points_of: if self.one_point { PointsOf::Operands } else { PointsOf::Folders },
            forget: self.forget,
        })
    }
}

fn plan_table(plan: &ArchivePlan) -> String {
    let rows = plan.points.iter().map(|point| {
        let what = match (point.reads_captures, point.makes_answers) {
            (true, _) => "read captures",
            (false, true) => "read records",
            (false, false) => "up to date",
        };
        let size = ByteSize(point.bytes).display().si().to_string();
        [point.point.clone(), point.files.to_string(), size, what.to_owned()]
    });
    numbers(["point", "files", "size", "to do"], rows)
}

fn counts(manifest: &Manifest) -> String {
    let captures: u64 = manifest.points.iter().map(|point| point.captures).sum();
    let answers: u64 = manifest.points.iter().filter_map(|point| point.identifications).sum();
    let (points, files) = (manifest.points.len(), manifest.files.len());
    format!("points {points}, files {files}, of these captures {captures}, identifications {answers}")
}

/// Says what is wrong with files and points.
fn name_failures(manifest: &Manifest) {
    let of_points = manifest.points.iter().filter_map(|point| Some((&point.point, point.fault.clone()?)));
    let of_files = manifest.failed_files().map(|(file, fault)| (&file.path, fault));
    let failures: Vec<_> = of_points.chain(of_files).collect();
    for (name, fault) in failures.iter().take(MOST_NAMED) {
        complain("archive", &status::sentence(name, fault));
    }
    if let Some(more) = failures.len().checked_sub(MOST_NAMED).filter(|more| *more > 0) {
        complain("archive", &format!("and {more} more"));
    }
}
