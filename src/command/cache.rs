//! `sizeleak cache`: lists and removes cache entries of earlier runs.

use std::process::ExitCode;

use anyhow::anyhow;
use bytesize::ByteSize;
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use serde_json::{Value, json};

use sizeleak_pipeline::cache::{CacheEntry, StoredEntry};
use sizeleak_platform::telemetry::log::{LogFlags, say};
use sizeleak_text::counted;

use super::cache_folder::CacheFolder;
use super::document::{Document, words};
use super::failure::Failure;
use super::output_option::print;
use super::report_format::ReportFormatOption;

/// List and remove cache entries of earlier runs
#[derive(Debug, Args)]
#[command(
    mut_arg("cache_dir", |folder| folder.global(true).hide_short_help(false)),
    after_help = "Examples:\n  \
    sizeleak cache list\n  \
    sizeleak cache clear --older-than 7d\n  \
    du -sh \"$(sizeleak cache path)\"\n\n\
    `sizeleak run --cache` fills the cache."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    folder: CacheFolder,

    #[command(subcommand)]
    operation: Operation,

    #[command(flatten)]
    pub(super) log: LogFlags,
}

#[derive(Debug, Subcommand)]
enum Operation {
    /// List the entries, the most recently used first
    #[command(after_help = "Examples:\n  sizeleak cache list\n  sizeleak cache list --json | jq '.[].stage'")]
    List {
        #[command(flatten)]
        format: ReportFormatOption,
    },
    /// Remove all entries, or those not used recently
    #[command(after_help = "Examples:\n  sizeleak cache clear\n  sizeleak cache clear --older-than 7d")]
    Clear {
        /// Remove entries that were last used longer ago than this, such as 7d or 12h
        #[arg(long, value_name = "TIME", value_parser = age)]
        older_than: Option<SignedDuration>,
    },
    /// Print the folder
    #[command(after_help = "Examples:\n  sizeleak cache path")]
    Path,
}

/// A duration; a day has 24 hours.
fn age(text: &str) -> Result<SignedDuration, String> {
    let span: Span = text.parse().map_err(|_| "write it like 7d or 12h".to_owned())?;
    let time = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|error| error.to_string())?;
    if time.is_negative() { Err("it must be at least 0 s".to_owned()) } else { Ok(time) }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // Nothing is added, so the limit does not matter.
    let store = arguments.folder.open(u64::MAX)?;
    match &arguments.operation {
        Operation::List { format } => {
            let entries = store.list()?;
            format.printed().print(&as_json(&entries)?, None, || table(&entries))?;
        }
        Operation::Clear { older_than } => {
            let before = older_than.map(|time| Timestamp::now().checked_sub(time));
            let before = before.transpose().map_err(|error| Failure::usage(anyhow!("--older-than: {error}")))?;
            let removed = store.clear(before)?;
            let bytes = ByteSize(removed.iter().map(|stored| stored.entry.bytes).sum());
            let removed = counted(removed.len(), "entry", "entries");
            say("sizeleak", &format!("{removed} removed, {}", bytes.display().si()));
        }
        Operation::Path => print(format!("{}\n", store.root().display()).as_bytes())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn table(entries: &[StoredEntry]) -> Document {
    let time = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let rows = entries.iter().map(|StoredEntry { entry, used, .. }| {
        let size = ByteSize(entry.bytes).display().si().to_string();
        [time(entry.made), time(*used), entry.stage.clone(), size, captures(entry)]
    });
    words(["made (UTC)", "last used (UTC)", "stage", "size", "captures"], rows)
}

/// The first capture, and how many more there are.
fn captures(entry: &CacheEntry) -> String {
    let first = entry.captures.first().map(|capture| capture.path.display().to_string()).unwrap_or_default();
    match entry.captures.len() {
        0 | 1 => first,
        many => format!("{first} and {} more", many - 1),
    }
}

fn as_json(entries: &[StoredEntry]) -> Result<Value, Failure> {
    let mut all = Vec::new();
    for StoredEntry { entry, used, .. } in entries {
        let mut value = serde_json::to_value(entry).map_err(|error| anyhow!(error))?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("used".to_owned(), json!(used));
        }
        all.push(value);
    }
    Ok(Value::from(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_needs_a_unit_and_no_sign() {
        assert_eq!(age("7d"), Ok(SignedDuration::from_hours(168)));
        assert_eq!(age("1w 12h"), Ok(SignedDuration::from_hours(180)));
        assert!(age("7").is_err() && age("-1d").is_err() && age("soon").is_err());
    }
}
