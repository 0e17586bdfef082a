//! The latencies of a summary: as a table for people, and as a log for the viewers of `HdrHistogram`.

use std::fmt::{Display, Formatter};
use std::io::{self, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use sizeleak_frame::{StageSummary, Summary};
use sizeleak_text::{escaped, fitted, width};

use crate::telemetry::Latency;

/// A table of each stage's time per frame and of the time frames waited for it.
#[derive(Debug, Clone, Copy)]
pub struct LatencyTable<'a>(pub &'a Summary);

/// The names of stages are cut at this many columns.
const MAX_COLUMNS: usize = 40;
/// Longer names of stages are cut in tables and logs, in characters.
const MAX_NAME: usize = 64;

const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];

impl Display for LatencyTable<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.0.stages.iter().map(|row| escaped(&row.stage)).collect();
        let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
        let columns = widest.clamp("stage".len(), MAX_COLUMNS);
        write!(formatter, "{}  {:>11}  {:>11}", fitted("stage", columns), "frames in", "frames out")?;
        for heading in ["service", "queue"] {
            for (name, _) in QUANTILES {
                write!(formatter, "  {:>12}", format!("{heading} {name}"))?;
            }
        }
        for (row, name) in self.0.stages.iter().zip(&names) {
            let name = fitted(name, columns);
            write!(formatter, "\n{name}  {:>11}  {:>11}", row.frames_in, row.frames_out)?;
            write_quantiles(formatter, &row.latency)?;
            write_quantiles(formatter, &row.queue)?;
        }
        Ok(())
    }
}

/// The beginning of a stage's name: names of streams can be as long as a frame.
fn shown_name(name: &str) -> &str {
    name.char_indices().nth(MAX_NAME).and_then(|(end, _)| name.get(..end)).unwrap_or(name)
}

fn write_quantiles(formatter: &mut Formatter<'_>, histogram: &[u8]) -> std::fmt::Result {
    let latency = Latency::from_bytes(histogram).ok().filter(|latency| !latency.histogram().is_empty());
    for (_, quantile) in QUANTILES {
        let text = latency.as_ref().map_or_else(
            || "-".to_owned(),
            |latency| short(Duration::from_nanos(latency.histogram().value_at_quantile(quantile))),
        );
        write!(formatter, "  {text:>12}")?;
    }
    Ok(())
}

/// A duration in the unit that keeps it short.
fn short(duration: Duration) -> String {
    let ns = duration.as_nanos();
    match ns {
        0..10_000 => format!("{ns} ns"),
        10_000..10_000_000 => format!("{:.1} µs", ns as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} ms", ns as f64 / 1e6),
        _ => format!("{:.1} s", ns as f64 / 1e9),
    }
}

/// Writes the histograms in the interval log format of `HdrHistogram` (version 1.3), in nanoseconds: one interval per
/// histogram, tagged `STAGE.service` or `STAGE.queue`. Histograms that cannot be decoded are skipped.
pub fn write_latency_log(
    output: &mut impl Write,
    summary: &Summary,
    start: SystemTime,
    duration: Duration,
) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .with_start_time(start)
        .with_base_time(start)
        .begin_log_with(output, &mut serializer)?;
    for (tag, histogram) in summary.stages.iter().flat_map(tagged) {
        let Ok(latency) = Latency::from_bytes(histogram) else { continue };
        // Tags may not hold spaces or commas; names of external stages may.
        let tag: String = tag.chars().map(|c| if c.is_whitespace() || c == ',' { '_' } else { c }).collect();
        log.write_histogram(latency.histogram(), Duration::ZERO, duration, Tag::new(&tag))
            .map_err(|error| io::Error::other(format!("{error:?}")))?;
    }
    Ok(())
}

fn tagged(row: &StageSummary) -> [(String, &[u8]); 2] {
    let name = shown_name(&row.stage);
    [(format!("{name}.service"), &row.latency), (format!("{name}.queue"), &row.queue)]
}

#[cfg(test)]
mod tests {
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};

    use super::*;

    fn summary() -> Summary {
        let mut latency = Latency::new();
        latency.record_each(Duration::from_micros(20), 3);
        let row = StageSummary {
            stage: "my segmenter,x".into(),
            frames_in: 3,
            latency: latency.to_bytes(),
            queue: b"broken".to_vec(),
            ..StageSummary::default()
        };
        Summary { stages: vec![row] }
    }

    #[test]
    fn table_shows_valid_histograms_and_dashes() {
        let table = LatencyTable(&summary()).to_string();
        let row = table.lines().nth(1).unwrap();
        assert!(row.starts_with("my segmenter,x            3            0"), "{row}");
        assert!(row.contains("20.0 µs") && row.ends_with('-'), "{row}");
    }

    /// Formatting to a width above 65,535 panics.
    #[test]
    fn very_long_and_hostile_names_are_cut_and_shown_as_text() {
        let mut summary = summary();
        for stage in ["x".repeat(100_000), "a\nb\u{1b}[2J".to_owned()] {
            summary.stages.push(StageSummary { stage, ..StageSummary::default() });
        }
        let table = LatencyTable(&summary).to_string();
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.chars().count() == lines[0].chars().count()), "{table}");
        assert!(lines[2].contains("xxx…  ") && lines[3].starts_with(r"a\nb\u{1b}[2J  "), "{table}");
    }

    #[test]
    fn long_name_is_cut() {
        let row = StageSummary { stage: "ä".repeat(100_000), ..StageSummary::default() };
        let summary = Summary { stages: vec![row] };
        let table = LatencyTable(&summary).to_string();
        assert!(table.lines().all(|line| line.chars().count() < 250), "{} characters", table.len());
        let mut log = Vec::new();
        write_latency_log(&mut log, &summary, SystemTime::UNIX_EPOCH, Duration::from_secs(2)).unwrap();
        assert!(log.len() < 10_000, "{} bytes", log.len());
    }

    #[test]
    fn log_holds_the_valid_histograms() {
        let mut log = Vec::new();
        write_latency_log(&mut log, &summary(), SystemTime::UNIX_EPOCH, Duration::from_secs(2)).unwrap();
        let tags: Vec<String> = IntervalLogIterator::new(&log)
            .filter_map(|entry| match entry.unwrap() {
                LogEntry::Interval(interval) => Some(interval.tag().unwrap().as_str().to_owned()),
                _ => None,
            })
            .collect();
        assert_eq!(tags, ["my_segmenter_x.service"]);
    }
}
