//! `sizeleak labels`: how a file of labels is read, the same labels as plain CSV, and the map of a log.

use std::fmt::Write as _;
use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use jiff::Timestamp;
use sizeleak_labels::{Label, LabelOffset, LabelTimes, Labels};
use sizeleak_platform::telemetry::log::{say, show};
use sizeleak_text::listed;

use super::labelled_captures::LabelReading;
use super::output_option::OutputOption;

/// Show how labels are read, convert them, or write the map of a log of events
#[derive(Debug, Args)]
#[command(mut_arg("label_offset", |offset| offset.help("What to add to the labels' times, such as 23s or -1h")))]
#[command(after_help = "Examples:\n  \
    sizeleak labels labels.csv\n  \
    sizeleak labels history.json -o map.toml\n  \
    sizeleak labels history.json --label-map map.toml -o labels.csv\n\n\
    FILE of `-o` is CSV that every command reads without options. A log of events (CSV, JSON or lines of JSON) says \
    which state each entity had when. Without a map of it, a template is written: name the actions in it, delete the \
    other lines, and give it as `--label-map`.")]
pub(crate) struct Arguments {
    /// The labels, or the log
    #[arg(value_name = "FILE")]
    file: PathBuf,

    #[command(flatten)]
    reading: LabelReading,

    #[command(flatten)]
    output: OutputOption,
}

const SHOWN: usize = 40;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let path = arguments.file.display();
    let open = || File::open(&arguments.file).with_context(|| path.to_string());
    let LabelTimes { form, offset } = arguments.reading.times(&[])?;
    let mut labels = match Labels::read_in(open()?, &form) {
        Ok(labels) => labels,
        Err(error) if form.map.is_none() => {
            let map = Labels::map_of_log(open()?).map_err(|unknown| {
                // What is wrong with a table of labels says more.
                let fault = if error.is_perhaps_log() { unknown } else { error };
                anyhow!("{path}: {fault}")
            })?;
            arguments.output.write(map.in_words().as_bytes())?;
            let advice = "name its actions in this map, and give it as `--label-map`";
            say("sizeleak", &format!("{path} is a log of events: {advice}"));
            return Ok(());
        }
        Err(error) => return Err(anyhow!("{path}: {error}")),
    };
    if let Some(LabelOffset::By(nanoseconds)) = offset {
        labels.rows.iter_mut().for_each(|row| row.time_ns = row.time_ns.saturating_add(nanoseconds));
    }
    let summary = summary(&path.to_string(), &labels);
    if arguments.output.path().is_none() {
        return arguments.output.write(summary.as_bytes());
    }
    let mut converted = Vec::new();
    labels.write(&mut converted)?;
    show(summary.trim_end());
    arguments.output.write(&converted)
}

fn summary(path: &str, labels: &Labels) -> String {
    let mut text = format!("{path}: {} commands", labels.rows.len());
    let times = || labels.rows.iter().map(|row| row.time_ns);
    if let (Some(first), Some(last)) = (times().min(), times().max()) {
        let _ = write!(text, " from {} to {}", time(first), time(last));
    }
    let total = |action: usize| labels.rows.iter().map(|row| u64::from(row.counts[action])).sum::<u64>();
    let actions = labels.actions.iter().enumerate().map(|(at, name)| format!("{} `{name}`", total(at)));
    let _ = write!(text, "\nactions: {}\n", listed(actions, SHOWN));
    if let Some(Label { time_ns, counts, line }) = labels.rows.first() {
        let occurring = labels.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
        let occurring = listed(occurring.map(|(name, count)| format!("{count} `{name}`")), SHOWN);
        let occurring = if occurring.is_empty() { "no action".to_owned() } else { occurring };
        let _ = writeln!(text, "first command, line {line}: {}, {occurring}", time(*time_ns));
    }
    for note in &labels.notes {
        let _ = writeln!(text, "{note}");
    }
    sizeleak_text::escaped_lines(&text).into_owned()
}

fn time(time_ns: i64) -> String {
    Timestamp::from_nanosecond(time_ns.into()).map_or_else(|_| format!("{time_ns} ns"), |time| time.to_string())
}
