//! `sizeleak archive`: an archive of rotated captures, processed once and completed by later calls; what it holds, and how a
//! call over it ends: which files are damaged or missing, and why nothing was found.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, anyhow};
use clap::{Args, Subcommand, ValueHint};
use indicatif::DecimalBytes;
use serde_json::{Value, json};
use sizeleak_frame::what;
use sizeleak_output::OutputFormat;
use sizeleak_pipeline::Pipeline;
use sizeleak_platform::runtime::Interrupt;
use sizeleak_platform::telemetry::Progress;
use sizeleak_platform::telemetry::log::{Screen, complain, say};
use sizeleak_report::document::NONE;
use sizeleak_text::{counted, escaped, utc};
use sizeleak_traffic::archive::{
    ArchiveError, ArchiveRun, ArchiveWatch, FileVerdict, Manifest, ManifestPoint, PartFormat, PlannedPoint,
    RoundResults, RunResults, forget_point,
};

use super::document::{Document, blank, line, name_cell, numbers, paragraph, rest, spaced};
use super::failure::with_code;
use super::output_option::{ReportFormatOption, one_of, print_document};
use super::progress::Bar;
use super::session::Session;
use super::shared_options::{INPUT, OUTPUT, STAGES, TimeRangeOption, duration};
use super::traffic_input::{StageOptionArguments, choose_gateway};

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
    Status(StatusArguments),
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
        Some(Operation::Status(status)) => return show_status(status),
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
    say("sizeleak", &counts(&results.manifest));
    say("sizeleak", &outcome(&results, &run));
    let notes = [silence(&results.manifest), absence(&results.manifest, &run.out)];
    notes.iter().flatten().for_each(|note| say("note", note));
    name_doubts(&results.manifest, &run.out);
    let failures = results.failures();
    name(&failures);
    if !results.stopped.is_empty() {
        return Err(stopped());
    }
    check(&failures, &results.manifest, &run.out)
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

fn plan_table(points: &[PlannedPoint]) -> Document {
    let rows = points.iter().map(|point| {
        let what = match (point.files_to_read, point.makes_answers) {
            (0, true) => "read records".to_owned(),
            (0, false) => "up to date".to_owned(),
            (files, _) => format!("read {}", files_of(files, point.bytes_to_read)),
        };
        [point.point.clone(), point.files.to_string(), in_bytes(point.bytes), what]
    });
    let table = numbers(["point", "files", "size", "to do"], rows);
    let files = points.iter().map(|point| point.files_to_read).sum();
    if files == 0 {
        return table;
    }
    let all = format!("In all: read {}", files_of(files, points.iter().map(|point| point.bytes_to_read).sum()));
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
        check(&last.failures(), &last.manifest, &run.out)?;
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
        say("sizeleak", &format!("{changed}{}", counts(manifest)));
        if let Some(silence) = silence(manifest) {
            say("note", &silence);
        }
    }
    name(&round.new_failures);
}

/// At most this many files and points that failed are named; `status` names all.
const MAX_NAMED: usize = 20;

const MAX_DOUBTFUL: usize = 5;

/// What makes answers doubtful, or leaves some out, and is no damage of a file.
const DOUBTS: [&str; 7] =
    [what::UNCOVERED, what::MISFIT, what::SHIFTED, what::UNSUPPORTED, what::EVICTED, what::LOSS, what::MALFORMED];

fn counts(manifest: &Manifest) -> String {
    let captures: u64 = manifest.points.iter().map(|point| point.captures).sum();
    let answers: u64 = manifest.points.iter().filter_map(|point| point.identifications).sum();
    let (points, files) = (manifest.points.len(), manifest.files.len());
    let left = |word: &str, verdict| match manifest.count_of(verdict) {
        0 => String::new(),
        count => format!(", {count} {word}"),
    };
    let (growing, outside) = (left("still growing", FileVerdict::Growing), left("outside", FileVerdict::Outside));
    format!(
        "{}, {} ({}{growing}{outside}), {}",
        counted(points, "point", "points"),
        counted(files, "file", "files"),
        counted(captures, "of them a capture", "of them captures"),
        counted(answers, "answer", "answers")
    )
}

fn outcome(results: &RunResults, run: &ArchiveRun) -> String {
    let done = match results.changed {
        0 if results.failures().is_empty() => "nothing to do: all points are up to date".to_owned(),
        0 => "no point is new or has changed".to_owned(),
        changed => counted(changed, "point is new or has changed", "points are new or have changed"),
    };
    let gone = results.gone.first().map_or_else(String::new, |first| {
        let (points, have) = if results.gone.len() == 1 { ("point", "has") } else { ("points", "have") };
        format!(
            "; {} {points}, such as `{first}`, {have} no capture any more, and what was found there is kept",
            results.gone.len()
        )
    });
    if results.manifest.points.iter().all(|point| point.identifications.is_none_or(|answers| answers == 0)) {
        return format!("{done}{gone}");
    }
    let answers = run.out.join("identifications");
    let answers = answers.display();
    let read = match run.format {
        PartFormat::Parquet => format!("`duckdb -c \"FROM '{answers}/**/*.parquet' LIMIT 5\"` shows the first ones"),
        PartFormat::Ndjson => "one JSON object a line".to_owned(),
    };
    format!("{done}{gone}; answers are in {answers} ({read})")
}

fn name(failures: &BTreeSet<(String, String)>) {
    for (name, fault) in failures.iter().take(MAX_NAMED) {
        complain("archive", &sentence(name, fault));
    }
    if let Some(more) = failures.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        complain("archive", &format!("and {more} more"));
    }
}

fn sentence(name: &str, fault: &str) -> String {
    // What a stage says of a file names it already.
    if fault.starts_with(name) { fault.to_owned() } else { format!("{name}: {fault}") }
}

/// That there is no capture, which is probably the wrong folder; those that are growing or outside are counted.
fn absence(manifest: &Manifest, out: &Path) -> Option<String> {
    let is_capture = |verdict| manifest.count_of(verdict) > 0;
    let waits = is_capture(FileVerdict::Growing) || is_capture(FileVerdict::Outside);
    if waits || manifest.points.iter().any(|point| point.captures > 0 || point.fault.is_some()) {
        return None;
    }
    let shown = out.display();
    Some(match manifest.files.len() {
        0 => "there is no file in what was named".to_owned(),
        _ => format!("no file is a capture: `sizeleak archive status {shown}` says what they are"),
    })
}

fn silence(manifest: &Manifest) -> Option<String> {
    let first = manifest.silent_points().next().filter(|_| !manifest.is_silent())?;
    Some(match manifest.silent_points().count() {
        1 => format!("no packet of `{first}` is from or to a gateway that is named"),
        points => format!("no packet of {points} points, such as `{first}`, is from or to a gateway that is named"),
    })
}

fn doubts(point: &ManifestPoint) -> Option<String> {
    let counted = DOUBTS.iter().filter_map(|what| Some(format!("{what} {}", point.notices.get(*what)?)));
    let counted: Vec<String> = counted.collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

fn name_doubts(manifest: &Manifest, out: &Path) {
    let mut doubtful = manifest.points.iter().filter_map(|point| Some((&point.point, doubts(point)?)));
    for (point, doubts) in doubtful.by_ref().take(MAX_DOUBTFUL) {
        let records = out.join("records").join(point);
        let shown = records.display();
        say("note", &format!("{point}: {doubts}: `sizeleak run -v '{shown}'/*.zst --model …` says why"));
    }
    let more = doubtful.count();
    if more > 0 {
        say(
            "note",
            &format!("{more} more points have such notices: `sizeleak archive status {}` lists them", out.display()),
        );
    }
}

fn check(failures: &BTreeSet<(String, String)>, manifest: &Manifest, out: &Path) -> Result<()> {
    let shown = out.display();
    if !failures.is_empty() {
        let are_points = manifest.points.iter().any(|point| point.fault.is_some());
        let what = if are_points { "points are not complete" } else { "files are damaged or missing" };
        return Err(anyhow!("{what}; `sizeleak archive status {shown}` lists them"));
    }
    if manifest.is_silent() {
        let fault = "no packet of any point is from or to a gateway that is named";
        return Err(anyhow!("{fault}; `sizeleak survey CAPTURE` says which addresses look like gateways"));
    }
    Ok(())
}

fn stopped() -> anyhow::Error {
    with_code(130, anyhow!("stopped; the results are whole, and the same call completes them"))
}

/// At most this many files that are no captures are listed; all that failed are.
const MAX_OTHERS: usize = 10;

const MAX_NAME: usize = 20;

/// Show what an archive holds, and which files are damaged or missing
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sizeleak archive status results\n  \
    sizeleak archive status results --format json | jq '.files[] | select(.verdict == \"damaged\")'")]
struct StatusArguments {
    /// The folder of results
    #[arg(value_name = "OUT", value_hint = ValueHint::DirPath)]
    out: PathBuf,

    #[command(flatten)]
    format: ReportFormatOption,
}

fn show_status(arguments: &StatusArguments) -> Result<()> {
    let manifest = Manifest::read(&arguments.out)?;
    arguments.format.printed().write(&as_json(&manifest)?, Some("points"), || table(&manifest))
}

fn table(manifest: &Manifest) -> Document {
    let day = |time_ns: Option<i64>| {
        time_ns.map_or_else(|| NONE.to_owned(), |time_ns| utc(time_ns).get(..10).unwrap_or(NONE).to_owned())
    };
    let count = |count: Option<u64>| count.map_or_else(|| NONE.to_owned(), |count| count.to_string());
    let rows = manifest.points.iter().map(|point| {
        [
            end_of(&point.point),
            point.captures.to_string(),
            point.packets.to_string(),
            day(point.first_ns),
            day(point.last_ns),
            count(point.commands),
            count(point.identifications),
        ]
    });
    let header = ["point", "captures", "packets", "from", "to", "commands", "answers"];
    let said = |words: fn(&ManifestPoint) -> Option<String>| {
        manifest.points.iter().filter_map(move |point| Some((point.point.as_str(), words(point)?)))
    };
    let files = manifest.failed_files().map(|(file, fault)| (file.path.as_str(), fault));
    let outside = match manifest.count_of(FileVerdict::Outside) {
        0 => Document::new(),
        count => {
            let captures = counted(count, "capture", "captures");
            line(format!("Outside of the range of time: {captures}, which `--format json` lists"))
        }
    };
    let others: Vec<_> = with(manifest, FileVerdict::NoCapture).collect();
    let more = rest(others.len(), MAX_OTHERS, |more| format!("  and {more} more, which `--format json` lists"));
    spaced([
        numbers(header, rows),
        list("Failed", said(|point| point.fault.clone()).chain(files)),
        silence(manifest).map_or_else(Document::new, |silence| paragraph(name_cell(&silence), 0)),
        list("Doubtful or incomplete, by notices", said(doubts)),
        list("Growing", said(|point| point.waits.clone()).chain(with(manifest, FileVerdict::Growing))),
        outside,
        [list("No captures", others.iter().take(MAX_OTHERS).cloned()), more].concat(),
        paragraph("This is what the last run found, as manifest.ndjson has it; no file was read again.", 0),
    ])
}

fn with(manifest: &Manifest, verdict: FileVerdict) -> impl Iterator<Item = (&str, String)> {
    let files = manifest.files.iter().map(|(_, file)| file).filter(move |file| file.verdict == verdict);
    files.filter_map(|file| Some((file.path.as_str(), file.fault()?)))
}

fn end_of(name: &str) -> String {
    // Names of points are ASCII.
    match name.len().checked_sub(MAX_NAME).and_then(|cut| name.get(cut + 1..)) {
        Some(end) => format!("…{end}"),
        None => name.to_owned(),
    }
}

fn list<'a>(heading: &str, entries: impl Iterator<Item = (&'a str, String)>) -> Document {
    let entry = |(name, fault): (&str, String)| paragraph(format!("  {}", escaped(&sentence(name, &fault))), 4);
    let entries: Document = entries.flat_map(entry).collect();
    if entries.is_empty() { entries } else { [line(format!("{heading}:")), entries].concat() }
}

fn as_json(manifest: &Manifest) -> Result<Value> {
    let mut files = Vec::new();
    for (point, file) in &manifest.files {
        let mut value = serde_json::to_value(file)?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("point".to_owned(), Value::from(point.as_str()));
        }
        files.push(value);
    }
    Ok(json!({ "points": manifest.points, "files": files }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looks_all_the_time() {
        assert!(interval("0s").is_err() && interval("100ms").is_ok());
    }
}
