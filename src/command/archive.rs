//! `sizeleak archive`: an archive of rotated captures, processed once and completed by later calls.

mod results;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Subcommand, ValueHint};
use indicatif::DecimalBytes;
use results::stopped;
use sizeleak_output::OutputFormat;
use sizeleak_pipeline::Pipeline;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::Progress;
use sizeleak_platform::telemetry::log::{Screen, complain, say};
use sizeleak_text::counted;
use sizeleak_traffic::archive::{
    ArchiveError, ArchivePlan, ArchiveRun, ArchiveWatch, PartFormat, RoundResults, RunResults, forget_point,
};

use super::output_option::{one_of, print_document};
use super::progress::Bar;
use super::session::Session;
use super::shared_options::{INPUT, OUTPUT, STAGES, TimeRangeOption, duration};
use super::traffic_input::{StageOptionArguments, choose_gateway};
use crate::command::document::{Document, blank, line, numbers};

/// Process rotated captures once, into answers by gateway and day
#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_long_help = "Examples:\n  \
    sizeleak archive captures -o results --gateway 192.168.1.20 --model model.toml\n  \
    sizeleak archive captures -o results --gateway 192.168.1.20 --model other.toml   # reads records, no packets\n  \
    sizeleak archive captures -o results --pipeline pipeline.toml --jobs 4 --dry-run\n  \
    sizeleak archive 'captures/2026-0[1-3]*/**/*.pcap*' -o results --pipeline pipeline.toml --since 2026-01-06\n  \
    sizeleak archive captures -o results --pipeline pipeline.toml --watch\n  \
    sizeleak archive status results --format json\n  \
    sizeleak archive forget results POINT\n\n\
    Captures are recognised by content. The captures of one folder are one capture point (`--one-point`: with all below \
    it): they are merged by time, so connections go on from file to file. OUT gets answers by gateway and day, the TLS \
    records of each point, and a manifest. It may be stopped at any time: the same call completes it. A file that is \
    damaged makes the exit code 1, after all others are processed. docs/archives.md says more."
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

    /// The format of the answers: parquet or ndjson
    #[arg(long, value_parser = one_of(&[OutputFormat::Parquet, OutputFormat::Ndjson]), default_value = "parquet",
        hide_possible_values = true, help_heading = OUTPUT)]
    format: OutputFormat,

    /// The pipeline file, whose captures are replaced, instead of the standard pipeline
    #[arg(long, value_name = "FILE", help_heading = INPUT)]
    pipeline: Option<PathBuf>,

    #[command(flatten)]
    options: StageOptionArguments,

    /// The model of the gateway, made by `sizeleak learn`; can be repeated, for several services or gateways
    #[arg(long, value_name = "FILE", help_heading = STAGES)]
    model: Vec<PathBuf>,

    /// How many capture points are processed at once; results do not depend on it
    #[arg(long, value_name = "N", default_value = "1")]
    jobs: NonZeroUsize,

    /// Print what would be read and made, and write nothing
    #[arg(long)]
    dry_run: bool,

    /// Take each folder named as one capture point. With all folders below it, such as one for each day: connections go
    /// on from folder to folder.
    #[arg(long, help_heading = INPUT)]
    one_point: bool,

    /// Stay, and process new captures as they arrive
    ///
    /// Files are looked for by their names, sizes and times, which works on network drives, too. SIGINT and SIGTERM end it;
    /// then the exit code is 1 if files are damaged, else 130.
    #[arg(long, conflicts_with = "dry_run", help_heading = INPUT)]
    watch: bool,

    /// How often `--watch` looks for new files
    #[arg(long, value_name = "TIME", value_parser = interval, default_value = "10s", requires = "watch", help_heading = INPUT)]
    every: Duration,

    /// Leave files for a later call that were modified within this time [default: 30s with --watch, else 0s]. They may
    /// still be growing. `status` lists them.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = INPUT)]
    settle: Option<Duration>,

    #[command(flatten)]
    range: TimeRangeOption,

    /// Wait if another call is writing to OUT. By default the call ends with an error, so that calls of a timer do not
    /// pile up.
    #[arg(long, conflicts_with = "dry_run", help_heading = OUTPUT)]
    wait: bool,

    /// Give up what was found in captures that are gone, or outside of the range of time. By default a point keeps its
    /// results when captures were deleted, and nothing is added to it.
    #[arg(long, help_heading = OUTPUT)]
    forget: bool,
}

#[derive(Debug, Subcommand)]
enum Operation {
    /// Show what an archive holds, and which files are damaged or missing
    Status(results::Arguments),
    /// Remove all that an archive holds of a capture point: answers, records and states
    #[command(after_help = "Example:\n  sizeleak archive forget results captures+2026-01\n\n\
        `sizeleak archive status OUT` lists the points. Remove the captures first: while their folder holds them, the next \
        call over it brings everything back.")]
    Forget {
        /// The folder of results
        #[arg(value_name = "OUT", value_hint = ValueHint::DirPath)]
        out: PathBuf,

        /// The name of the point
        #[arg(value_name = "POINT")]
        point: String,
    },
}

pub(crate) fn run(arguments: &Arguments, session: &Session) -> Result<()> {
    match &arguments.operation {
        Some(Operation::Status(status)) => return results::run(status),
        Some(Operation::Forget { out, point }) => {
            forget_point(out, point)?;
            return Ok(());
        }
        None => {}
    }
    let run = arguments.archive_run()?;
    if arguments.dry_run {
        print_document(&plan_table(&run.plan()?))?;
        return Ok(());
    }
    if arguments.watch {
        return arguments.watch(&run, &session.screen);
    }
    let results = arguments.attempt(&run.interrupt, || {
        let progress = Progress::new();
        let _bar = Bar::of_people(&progress, &session.screen);
        run.run(&progress)
    })?;
    say("sizeleak", &results::counts(&results.manifest));
    say("sizeleak", &results::outcome(&results, &run));
    let notes = [results::silence(&results.manifest), results::absence(&results.manifest, &run.out)];
    notes.iter().flatten().for_each(|note| say("note", note));
    results::name_doubts(&results.manifest, &run.out);
    let failures = results.failures();
    results::name(&failures);
    if !results.stopped.is_empty() {
        return Err(stopped());
    }
    results::check(&failures, &results.manifest, &run.out)
}

impl Arguments {
    fn archive_run(&self) -> Result<ArchiveRun> {
        let mut pipeline =
            self.pipeline.as_ref().map_or_else(|| Ok(Pipeline::standard()), |file| Pipeline::read(file))?;
        self.options.apply(&mut pipeline, &self.model)?;
        choose_gateway(&mut pipeline)?;
        let out = self.output.clone().unwrap_or_default();
        Ok(ArchiveRun {
            format: if self.format == OutputFormat::Ndjson { PartFormat::Ndjson } else { PartFormat::Parquet },
            jobs: self.jobs.get(),
            one_point: self.one_point,
            forget: self.forget,
            settle: self.settle.unwrap_or(if self.watch { WATCHED_SETTLE } else { Duration::ZERO }),
            range: self.range.range()?,
            interrupt: Interrupt::on_signals()?,
            ..ArchiveRun::new(self.captures.clone(), pipeline.without_saves(), out)
        })
    }
}

/// More often than this would be waiting by looking.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration(text)?;
    if interval < MIN_INTERVAL { Err("it must be 100ms or more".to_owned()) } else { Ok(interval) }
}

/// How long files have been left alone before `--watch` reads them.
const WATCHED_SETTLE: Duration = Duration::from_secs(30);

fn plan_table(plan: &ArchivePlan) -> Document {
    let rows = plan.points.iter().map(|point| {
        let what = match (point.files_to_read.len(), point.makes_answers) {
            (0, true) => "read records".to_owned(),
            (0, false) => "up to date".to_owned(),
            (files, _) => format!("read {}", files_of(files, point.bytes_to_read())),
        };
        [point.point.clone(), point.files.to_string(), in_bytes(point.bytes), what]
    });
    let table = numbers(["point", "files", "size", "to do"], rows);
    let files = plan.files_to_read().count();
    if files == 0 {
        return table;
    }
    let all = format!("In all: read {}", files_of(files, plan.bytes_to_read()));
    [table, blank(), line(all)].concat()
}

fn files_of(files: usize, bytes: u64) -> String {
    format!("{} ({})", counted(files, "file", "files"), in_bytes(bytes))
}

fn in_bytes(bytes: u64) -> String {
    DecimalBytes(bytes).to_string()
}

/// How often a call that waits looks whether the other one has ended.
const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(1);

impl Arguments {
    /// Does what needs the folder of results; with `--wait`, again and again until no other call is writing to it.
    fn attempt<T>(&self, interrupt: &Interrupt, mut attempt: impl FnMut() -> Result<T, ArchiveError>) -> Result<T> {
        let mut is_said = false;
        loop {
            match attempt() {
                Err(ArchiveError::Locked(out)) if self.wait => {
                    if !std::mem::replace(&mut is_said, true) {
                        let out = out.display();
                        say("sizeleak", &format!("waits for another `sizeleak archive`, which is writing to {out}"));
                    }
                    if interrupt.wait(BETWEEN_ATTEMPTS) {
                        return Err(stopped());
                    }
                }
                outcome => return Ok(outcome?),
            }
        }
    }

    fn watch(&self, run: &ArchiveRun, screen: &Screen) -> Result<()> {
        let every = self.every;
        let mut watch = self.attempt(&run.interrupt, || ArchiveWatch::begin(run))?;
        // One look, and what it leads to; `None` if nothing has changed.
        let mut look = || -> Result<Option<RoundResults>, ArchiveError> {
            let Some(round) = watch.look()? else { return Ok(None) };
            let progress = Progress::new();
            let _bar = Bar::of_people(&progress, screen);
            watch.process(round, &progress).map(Some)
        };
        let mut last = RunResults::default();
        // Of a round as a whole: a folder may come back, a disk may get room.
        let mut fault: Option<String> = None;
        let mut is_first = true;
        loop {
            match look() {
                Ok(round) => {
                    if let Some(round) = round {
                        report_round(&round, is_first);
                        last = round.results;
                    }
                    fault = None;
                }
                Err(error) if is_first => return Err(error.into()),
                Err(error) => {
                    let again = fault.replace(error.to_string());
                    if again != fault {
                        complain("archive", &format!("{error}; tried again every {every:?}"));
                    }
                }
            }
            if is_first && !run.interrupt.is_set() {
                say("sizeleak", &format!("looks for new captures every {every:?}, until it is stopped"));
            }
            is_first = false;
            if run.interrupt.wait(every) {
                break;
            }
        }
        fault.map_or(Ok(()), |fault| Err(anyhow::anyhow!(fault)))?;
        results::check(&last.failures(), &last.manifest, &run.out)?;
        Err(stopped())
    }
}

/// Says what a round has changed, if it has changed something. What is there at first is no news.
fn report_round(round: &RoundResults, is_first: bool) {
    let changed = match round.changed_files {
        _ if is_first => String::new(),
        1 => "1 file changed; ".to_owned(),
        files => format!("{files} files changed; "),
    };
    if is_first || round.changed_files > 0 {
        let manifest = &round.results.manifest;
        say("sizeleak", &format!("{changed}{}", results::counts(manifest)));
        if let Some(silence) = results::silence(manifest) {
            say("note", &silence);
        }
    }
    results::name(&round.new_failures);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looks_all_the_time() {
        assert!(interval("0s").is_err() && interval("100ms").is_ok());
    }
}
