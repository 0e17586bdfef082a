//! How files of labels are read, as several subcommands have it.

use std::fs::File;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use jiff::SignedDuration;
use sizeleak_capture::CaptureReader;
use sizeleak_labels::{DateFormat, LabelForm, LabelMap, LabelOffset, LabelTimes, LabelZone};
use sizeleak_text::{MAX_WRITTEN_BYTES, read_text};

use super::failure::usage;
use super::help::INPUT;

/// What labels look like, and how their clock is set.
#[derive(Debug, Args)]
pub(super) struct LabelReading {
    /// Which events of a log, as of Home Assistant, are actions; `sizeleak labels LOG` writes it
    #[arg(id = "label_map", long = "label-map", value_name = "FILE", help_heading = INPUT)]
    map: Option<PathBuf>,

    /// The time zone of labels whose times name none, such as Europe/Berlin, +01:00 or UTC
    #[arg(
        id = "label_zone",
        long = "label-zone",
        value_name = "ZONE",
        allow_hyphen_values = true,
        help_heading = INPUT
    )]
    zone: Option<LabelZone>,

    /// How the labels' dates are written, such as '%d/%m/%Y %H:%M' [default: the form that reads them all]
    #[arg(id = "label_format", long = "label-format", value_name = "FORMAT", help_heading = INPUT)]
    format: Option<DateFormat>,
}

#[derive(Debug, Args)]
pub(super) struct LabelClockOption {
    /// What to add to the labels' times, such as 23s or -1h; `start`: they count from the first packet [default: what the
    /// commands show, if that is certain]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = offset, help_heading = INPUT)]
    label_offset: Option<Offset>,
}

#[derive(Debug, Clone, Copy)]
enum Offset {
    /// In nanoseconds.
    By(i64),
    /// The time of the first packet.
    Start,
}

fn offset(text: &str) -> Result<Offset, String> {
    if text == "start" {
        return Ok(Offset::Start);
    }
    let duration: SignedDuration = text.parse().map_err(|_| "write it like 23s or -1h, or `start`".to_owned())?;
    let nanoseconds = i64::try_from(duration.as_nanos());
    nanoseconds.map(Offset::By).map_err(|_| "it must be within 292 years".to_owned())
}

impl LabelReading {
    pub(super) fn form(&self) -> Result<LabelForm> {
        let read = |path: &PathBuf| -> Result<LabelMap> {
            let text = read_text(path, MAX_WRITTEN_BYTES).with_context(|| path.display().to_string())?;
            text.parse().map_err(|fault: String| anyhow!("{}: {fault}", path.display()))
        };
        let map = self.map.as_ref().map(read).transpose()?;
        Ok(LabelForm { zone: self.zone.clone(), format: self.format.clone(), map })
    }

    /// The same with their clock; `captures` are those that are labelled.
    pub(super) fn times(&self, clock: &LabelClockOption, captures: &[PathBuf]) -> Result<LabelTimes> {
        let offset = match clock.label_offset {
            Some(Offset::By(nanoseconds)) => Some(LabelOffset::By(nanoseconds)),
            Some(Offset::Start) => Some(LabelOffset::From(first_packet(captures)?)),
            None => None,
        };
        Ok(LabelTimes { form: self.form()?, offset })
    }
}

/// The time of the first packet of all captures, in nanoseconds since the epoch.
fn first_packet(captures: &[PathBuf]) -> Result<i64> {
    let mut first: Option<i64> = None;
    for capture in captures.iter().filter(|capture| capture.is_file()) {
        let file = File::open(capture).with_context(|| capture.display().to_string())?;
        // Damage is reported where the capture is read.
        let packet =
            CaptureReader::new(Box::new(file)).and_then(|mut reader| Ok(reader.next_packet()?.map(|one| one.time_ns)));
        if let Ok(Some(time_ns)) = packet {
            first = Some(first.map_or(time_ns, |first| first.min(time_ns)));
        }
    }
    let missing = || {
        usage!(
            "`--label-offset start` needs captures whose first packet can be read: name their files, or write the time of \
             the labels' start into them"
        )
    };
    first.ok_or_else(missing)
}
