//! What an archive holds, and how a call over it ends: which files are damaged or missing, and why nothing was found.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::{Args, ValueHint};
use serde_json::{Value, json};
use sizeleak_frame::what;
use sizeleak_platform::telemetry::log::{complain, say};
use sizeleak_report::document::NONE;
use sizeleak_text::{counted, escaped, utc};
use sizeleak_traffic::archive::{ArchiveRun, FileVerdict, Manifest, ManifestPoint, PartFormat, RunResults};

use crate::command::document::{Document, line, name_cell, numbers, paragraph, rest, spaced};
use crate::command::failure::with_code;
use crate::command::report_format::ReportFormatOption;

/// At most this many files and points that failed are named; `status` names all.
const MAX_NAMED: usize = 20;

const MAX_DOUBTFUL: usize = 5;

/// What makes answers doubtful, or leaves some out, and is no damage of a file.
const DOUBTS: [&str; 7] =
    [what::UNCOVERED, what::MISFIT, what::SHIFTED, what::UNSUPPORTED, what::EVICTED, what::LOSS, what::MALFORMED];

pub(super) fn counts(manifest: &Manifest) -> String {
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

pub(super) fn outcome(results: &RunResults, run: &ArchiveRun) -> String {
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

pub(super) fn name(failures: &BTreeSet<(String, String)>) {
    for (name, fault) in failures.iter().take(MAX_NAMED) {
        complain("archive", &sentence(name, fault));
    }
    if let Some(more) = failures.len().checked_sub(MAX_NAMED).filter(|more| *more > 0) {
        complain("archive", &format!("and {more} more"));
    }
}

pub(super) fn sentence(name: &str, fault: &str) -> String {
    // What a stage says of a file names it already.
    if fault.starts_with(name) { fault.to_owned() } else { format!("{name}: {fault}") }
}

/// That there is no capture, which is probably the wrong folder; those that are growing or outside are counted.
pub(super) fn absence(manifest: &Manifest, out: &Path) -> Option<String> {
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

pub(super) fn silence(manifest: &Manifest) -> Option<String> {
    let first = manifest.silent_points().next().filter(|_| !manifest.is_silent())?;
    Some(match manifest.silent_points().count() {
        1 => format!("no packet of `{first}` is from or to a gateway that is named"),
        points => format!("no packet of {points} points, such as `{first}`, is from or to a gateway that is named"),
    })
}

pub(super) fn doubts(point: &ManifestPoint) -> Option<String> {
    let counted = DOUBTS.iter().filter_map(|what| Some(format!("{what} {}", point.notices.get(*what)?)));
    let counted: Vec<String> = counted.collect();
    (!counted.is_empty()).then(|| counted.join(", "))
}

pub(super) fn name_doubts(manifest: &Manifest, out: &Path) {
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

pub(super) fn check(failures: &BTreeSet<(String, String)>, manifest: &Manifest, out: &Path) -> Result<()> {
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

pub(super) fn stopped() -> anyhow::Error {
    with_code(130, anyhow!("stopped; the results are whole, and the same call completes them"))
}

/// At most this many files that are no captures are listed; all that failed are.
const MAX_OTHERS: usize = 10;

const MAX_NAME: usize = 20;

/// Show what an archive holds, and which files are damaged or missing
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sizeleak archive status results\n  \
    sizeleak archive status results --format json | jq '.files[] | select(.verdict == \"damaged\")'")]
pub(crate) struct Arguments {
    /// The folder of results
    #[arg(value_name = "OUT", value_hint = ValueHint::DirPath)]
    out: PathBuf,

    #[command(flatten)]
    format: ReportFormatOption,
}

pub(super) fn run(arguments: &Arguments) -> Result<()> {
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
