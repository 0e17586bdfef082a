//! `sizeleak archive status`: what an archive holds, and what is wrong with it.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args, ValueHint};
use serde_json::{Value, json};
use sizeleak_archive::{FileVerdict, Manifest};
use sizeleak_report::document::NONE;
use sizeleak_text::{escaped, utc};

use super::results::{doubts, sentence, silence};
use crate::command::document::{Document, blank, line, name_cell, numbers, paragraph};
use crate::command::report_format::ReportFormatOption;

/// At most this many files that are no captures are listed; all that failed are.
const MAX_OTHERS: usize = 10;

/// The most columns that the name of a point takes.
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
    arguments.format.printed().print(&as_json(&manifest)?, Some("points"), || table(&manifest))
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
    let mut text = numbers(header, rows);
    let points = manifest.points.iter().filter_map(|point| Some((point.point.as_str(), point.fault.clone()?)));
    let files = manifest.failed_files().map(|(file, fault)| (file.path.as_str(), fault));
    list(&mut text, "Failed", points.chain(files));
    if let Some(silence) = silence(manifest) {
        text.extend([blank(), paragraph(name_cell(&silence), 0)].concat());
    }
    let doubtful = manifest.points.iter().filter_map(|point| Some((point.point.as_str(), doubts(point)?)));
    list(&mut text, "Doubtful or incomplete, by notices", doubtful);
    let waiting = manifest.points.iter().filter_map(|point| Some((point.point.as_str(), point.waits.clone()?)));
    list(&mut text, "Growing", waiting.chain(with(manifest, FileVerdict::Growing)));
    let outside = manifest.count_of(FileVerdict::Outside);
    if outside > 0 {
        text.extend(
            [blank(), line(format!("Outside of the range of time: {outside} captures, which `--format json` lists"))]
                .concat(),
        );
    }
    let others: Vec<_> = with(manifest, FileVerdict::NoCapture).collect();
    list(&mut text, "No captures", others.iter().take(MAX_OTHERS).cloned());
    if let Some(more) = others.len().checked_sub(MAX_OTHERS).filter(|more| *more > 0) {
        text.extend(line(format!("  and {more} more, which `--format json` lists")));
    }
    let checked = "This is what the last run found, as manifest.ndjson has it; no file was read again.";
    text.extend([blank(), paragraph(checked, 0)].concat());
    text
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

fn list<'a>(text: &mut Document, heading: &str, entries: impl Iterator<Item = (&'a str, String)>) {
    let mut entries = entries.peekable();
    if entries.peek().is_some() {
        text.extend([blank(), line(format!("{heading}:"))].concat());
    }
    for (name, fault) in entries {
        text.extend(paragraph(format!("  {}", escaped(&sentence(name, &fault))), 4));
    }
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
