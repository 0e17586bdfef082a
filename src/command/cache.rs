//! `sizeleak cache`: what earlier runs left, to be seen and removed.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::anyhow;
use bytesize::ByteSize;
use clap::{Args, Subcommand};
use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};
use serde_json::json;

use super::Failure;
use sizeleak_pipeline::cache::{CacheStore, StoredEntry, cache_folder};

/// Show and clear what earlier runs left in the cache
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sizeleak cache list\n  sizeleak cache clear --older-than 7d\n  du -sh \"$(sizeleak cache \
                        path)\"\n\n`sizeleak run --cache` fills it."
)]
pub(crate) struct Arguments {
    /// The folder of the cache [default: `$SIZELEAK_CACHE_DIR`, else `sizeleak` in the user's folder for caches]
    #[arg(long, value_name = "DIR", global = true)]
    cache_dir: Option<PathBuf>,

    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List what is there, what was used last first
    #[command(after_help = "Examples:\n  sizeleak cache list\n  sizeleak cache list --json | jq '.[].stage'")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove all that is there, or what was not used lately
    #[command(after_help = "Examples:\n  sizeleak cache clear\n  sizeleak cache clear --older-than 7d")]
    Clear {
        /// Remove what was last used longer ago than this, such as 7d or 12h
        #[arg(long, value_name = "TIME", value_parser = age)]
        older_than: Option<SignedDuration>,
    },
    /// Print the folder
    #[command(after_help = "Examples:\n  sizeleak cache path")]
    Path,
}

/// A time as a person writes it; a day has 24 hours.
fn age(text: &str) -> Result<SignedDuration, String> {
    let span: Span = text.parse().map_err(|_| "write it like 7d or 12h".to_owned())?;
    let time = span.to_duration(SpanRelativeTo::days_are_24_hours()).map_err(|error| error.to_string())?;
    if time.is_negative() { Err("it must be 0 s at least".to_owned()) } else { Ok(time) }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    // Nothing is added here: its size does not matter.
    let store = CacheStore::new(cache_folder(arguments.cache_dir.as_deref())?, u64::MAX);
    match &arguments.what {
        What::List { json } => {
            let entries = store.list()?;
            print(&if *json { as_json(&entries)? } else { as_table(&entries) })?;
        }
        What::Clear { older_than } => {
            let before = older_than.map(|time| Timestamp::now().checked_sub(time));
            let before = before.transpose().map_err(|error| Failure::usage(anyhow!("--older-than: {error}")))?;
            let removed = store.clear(before)?;
            let bytes = ByteSize(removed.iter().map(|stored| stored.entry.bytes).sum());
            eprintln!("sizeleak: {} removed, {}", counted(removed.len(), "entry", "entries"), bytes.display().si());
        }
        What::Path => print(&format!("{}\n", store.root().display()))?,
    }
    Ok(ExitCode::SUCCESS)
}

fn print(text: &str) -> Result<(), Failure> {
    match super::stdout().and_then(|mut stdout| stdout.write_all(text.as_bytes())) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(anyhow!("the output cannot be written: {error}").into())
        }
        _ => Ok(()),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

fn as_table(entries: &[StoredEntry]) -> String {
    let moment = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    let head = ["made (UTC)", "last used (UTC)", "stage", "size", "captures"].map(str::to_owned);
    let rows = entries.iter().map(|StoredEntry { entry, used, .. }| {
        let size = ByteSize(entry.bytes).display().si().to_string();
        [moment(entry.made), moment(*used), entry.stage.clone(), size, captures(entry)]
    });
    let rows: Vec<[String; 5]> = [head].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|text| text.chars().count()).max();
    let [made, used, stage, size] = [0, 1, 2, 3].map(|column| width(column).unwrap_or(0));
    let line = |row: &[String; 5]| {
        let [first, second, third, fourth, last] = row;
        format!("{first:<made$}  {second:<used$}  {third:<stage$}  {fourth:>size$}  {last}\n")
    };
    rows.iter().map(line).collect()
}

/// The captures by their names, the first of many.
fn captures(entry: &sizeleak_pipeline::cache::CacheEntry) -> String {
    let first = entry.captures.first().map(|capture| capture.path.display().to_string()).unwrap_or_default();
    match entry.captures.len() {
        0 | 1 => first,
        many => format!("{first} and {} more", many - 1),
    }
}

fn as_json(entries: &[StoredEntry]) -> Result<String, Failure> {
    let mut all = Vec::new();
    for StoredEntry { entry, used, .. } in entries {
        let mut value = serde_json::to_value(entry).map_err(|error| anyhow!(error))?;
        if let Some(fields) = value.as_object_mut() {
            fields.insert("used".to_owned(), json!(used));
        }
        all.push(value);
    }
    Ok(serde_json::to_string_pretty(&all).map_err(|error| anyhow!(error))? + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_units_and_no_sign() {
        assert_eq!(age("7d"), Ok(SignedDuration::from_hours(168)));
        assert_eq!(age("1w 12h"), Ok(SignedDuration::from_hours(180)));
        assert!(age("7").is_err() && age("-1d").is_err() && age("soon").is_err());
    }
}
