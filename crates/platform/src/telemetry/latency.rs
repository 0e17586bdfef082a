//! A stage's time per frame, as an HDR histogram: how it is encoded, and shown as a table for people and as a log for
//! the viewers of `HdrHistogram`.

use std::fmt::{Display, Formatter};
use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime};

use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use sizeleak_frame::{StageSummary, Summary};
use sizeleak_text::{escaped, fitted, width};

/// Nanoseconds per frame, from 1 ns to 60 s with three significant digits; longer times count as 60 s.
#[derive(Debug, Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
    /// The sum of the times recorded, which the encoding does not hold.
    sum: Duration,
}

const LONGEST_NS: u64 = 60_000_000_000;

/// The initial upper bound, which grows on demand: most stages never see a longer time.
const INITIAL_MAX_NS: u64 = 100_000;

impl Default for Latency {
    #[expect(clippy::expect_used, reason = "the bounds are constants the histogram takes")]
    fn default() -> Self {
        let mut histogram = Histogram::new_with_bounds(1, INITIAL_MAX_NS, 3).expect("bounds of a histogram");
        histogram.auto(true);
        Self { histogram, sum: Duration::ZERO }
    }
}

impl Latency {
    pub fn record_shared(&mut self, time: Duration, frames: u64) {
        if let Some(each) = (time.as_nanos() as u64).checked_div(frames) {
            self.record_each(Duration::from_nanos(each), frames);
        }
    }

    pub fn record_each(&mut self, time: Duration, frames: u64) {
        if frames > 0 {
            let time_ns = (time.as_nanos() as u64).clamp(1, LONGEST_NS);
            // Cannot fail: the histogram grows up to the bound.
            let _recorded = self.histogram.record_n(time_ns, frames);
            let sum_ns = (time.as_nanos() as u64).saturating_mul(frames);
            self.sum = self.sum.saturating_add(Duration::from_nanos(sum_ns));
        }
    }

    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// `HdrHistogram`'s V2 format, deflated, as `summary` carries it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes) {
            Ok(_) => bytes,
            Err(_) => Vec::new(),
        }
    }

    /// Decodes the result of [`Latency::to_bytes`], or any histogram of at most three significant digits. The error says why
    /// these bytes are not a histogram, or one that is not safe to decode.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let plain = checked(bytes)?;
        let decoded = Deserializer::new().deserialize(&mut &*plain);
        let histogram = decoded.map_err(|error| error.to_string())?;
        // The sum of the counts ends there: beyond it no quantile can be found.
        if histogram.len() == u64::MAX {
            return Err("it counts more than 64 bits hold".to_owned());
        }
        Ok(Self { histogram, sum: Duration::ZERO })
    }
}

/// The first bytes of `HdrHistogram`'s V2 encoding.
const PLAIN: u32 = 0x1c84_9313;

const COMPRESSED: u32 = 0x1c84_9314;

/// Bytes before the counts: the cookie, the length of the counts, a normalising offset and the significant digits (four
/// each), the lowest and the highest value and a ratio (eight each).
const HEADER_BYTES: usize = 40;

/// At most this many significant digits: a histogram of any range has at most [`MAX_COUNTS`] counts with them.
const MAX_DIGITS: u32 = 3;

/// Counts of a histogram from 1 to the largest value, with three significant digits: 1024 for each power of two.
const MAX_COUNTS: u64 = 65 * 1024;

const COUNT_BYTES: usize = 9;

const TOO_MANY: &str = "it has more counts than any histogram of three significant digits";

const MAX_BYTES: usize = HEADER_BYTES + MAX_COUNTS as usize * COUNT_BYTES;

/// The plain encoding of a histogram that is safe to decode: what it declares is there, and is bounded.
pub(crate) fn checked(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    let plain = inflated(bytes)?;
    if word(&plain, 0) != Some(PLAIN) {
        return Err("it is not in the V2 encoding");
    }
    let (Some(length), Some(digits), Some(counts)) = (word(&plain, 4), word(&plain, 12), plain.get(HEADER_BYTES..))
    else {
        return Err("it ends within its header");
    };
    if digits > MAX_DIGITS {
        return Err("it has more than three significant digits");
    }
    if usize::try_from(length).ok() != Some(counts.len()) {
        return Err("the length it declares is not that of its counts");
    }
    // Such a number stands for 2^63 counts of zero. No other holds as many of these bytes, unless it is above 2^56.
    if counts.windows(COUNT_BYTES).any(|number| number == [0xff; COUNT_BYTES]) {
        return Err(TOO_MANY);
    }
    Ok(plain)
}

fn inflated(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut plain = Vec::new();
    let read = match (word(bytes, 0), bytes.get(8..)) {
        // The length of the compressed bytes follows the cookie; they end by themselves.
        (Some(COMPRESSED), Some(rest)) => ZlibDecoder::new(rest).take(MAX_BYTES as u64 + 1).read_to_end(&mut plain),
        _ => bytes.take(MAX_BYTES as u64 + 1).read_to_end(&mut plain),
    };
    match read {
        Err(_) => Err("it cannot be decompressed"),
        Ok(length) if length > MAX_BYTES => Err(TOO_MANY),
        Ok(_) => Ok(plain),
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

/// A table of each stage's time per frame and of the time frames waited for it.
#[derive(Debug, Clone, Copy)]
pub struct LatencyTable<'a>(pub &'a Summary);

const MAX_NAME_COLUMNS: usize = 40;
const MAX_NAME_CHARACTERS: usize = 64;

const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p99", 0.99), ("max", 1.0)];

impl Display for LatencyTable<'_> {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let names: Vec<_> = self.0.stages.iter().map(|row| escaped(&row.stage)).collect();
        let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
        let columns = widest.clamp("stage".len(), MAX_NAME_COLUMNS);
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

fn write_quantiles(formatter: &mut Formatter<'_>, histogram: &[u8]) -> std::fmt::Result {
    for time_ns in quantiles_ns(histogram) {
        let text = time_ns.map_or_else(|| "-".to_owned(), |time_ns| short(Duration::from_nanos(time_ns)));
        write!(formatter, "  {text:>12}")?;
    }
    Ok(())
}

/// The times at [`QUANTILES`]; `None` for a histogram that cannot be decoded or has no times.
pub(crate) fn quantiles_ns(histogram: &[u8]) -> [Option<u64>; 3] {
    let latency = Latency::from_bytes(histogram).ok().filter(|latency| !latency.histogram().is_empty());
    QUANTILES.map(|(_, quantile)| Some(latency.as_ref()?.histogram().value_at_quantile(quantile)))
}

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
    // Names of streams can be as long as a frame.
    let name: String = row.stage.chars().take(MAX_NAME_CHARACTERS).collect();
    [(format!("{name}.service"), &row.latency), (format!("{name}.queue"), &row.queue)]
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::prelude::*;

    use super::*;
    use crate::telemetry::Latency;

    #[test]
    fn histogram_survives_encoding() {
        let mut latency = Latency::default();
        latency.record_shared(Duration::from_nanos(2560), 256);
        latency.record_each(Duration::from_secs(100), 1);
        latency.record_shared(Duration::from_secs(1), 0);
        let read = Latency::from_bytes(&latency.to_bytes()).unwrap();
        assert_eq!(read.histogram().len(), 257);
        assert_eq!(read.histogram().value_at_quantile(0.5), 10);
        assert!(read.histogram().max() >= LONGEST_NS);
        assert!(Latency::from_bytes(b"no histogram").is_err());
    }

    #[test]
    fn a_histogram_whose_counts_overflow_is_refused() {
        let mut latency = Latency::default();
        for each_ns in 1..4 {
            latency.record_each(Duration::from_nanos(each_ns), 1 << 62);
        }
        assert!(Latency::from_bytes(&latency.to_bytes()).is_ok());
        latency.record_each(Duration::from_nanos(4), 1 << 62);
        assert!(Latency::from_bytes(&latency.to_bytes()).is_err());
    }

    fn encoded(length: u32, digits: u32, highest: u64, counts: &[u8]) -> Vec<u8> {
        let mut plain = [PLAIN, length, 0, digits].map(u32::to_be_bytes).concat();
        plain.extend([1, highest, 1.0_f64.to_bits()].map(u64::to_be_bytes).as_flattened());
        plain.extend(counts);
        plain
    }

    fn compressed(plain: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        let body = encoder.finish().unwrap();
        [&COMPRESSED.to_be_bytes()[..], &(body.len() as u32).to_be_bytes(), &body].concat()
    }

    fn fault(bytes: &[u8]) -> String {
        Latency::from_bytes(bytes).unwrap_err()
    }

    #[test]
    fn declared_counts_that_are_not_there_are_rejected() {
        let declared = encoded(i32::MAX.cast_unsigned(), 3, 1 << 40, b"\x02");
        assert!(fault(&declared).contains("the length it declares"));
        assert!(fault(&compressed(&declared)).contains("the length it declares"));
    }

    #[test]
    fn too_fine_or_too_long_histogram_is_rejected() {
        assert!(fault(&encoded(1, 5, u64::MAX, b"\x02")).contains("significant digits"));
        assert!(fault(&compressed(&vec![0; 1 << 24])).contains("more counts"));
        // The smallest number: negating it overflows.
        let zeros = [0xff; COUNT_BYTES];
        assert!(fault(&encoded(9, 3, 1 << 40, &zeros)).contains("more counts"));
        assert!(fault(&encoded(1, 3, 1 << 40, b"\x80")).contains("failed to fill whole buffer"));
    }

    #[test]
    fn any_range_with_three_digits_is_accepted() {
        for bytes in [encoded(1, 3, u64::MAX, b"\x02"), compressed(&encoded(2, 0, 2, b"\x02\x04"))] {
            assert!(!Latency::from_bytes(&bytes).unwrap().histogram().is_empty());
        }
    }

    proptest! {
        #[test]
        fn arbitrary_counts_and_bounds_never_panic(
            digits in 0..6_u32,
            highest: u64,
            counts in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let plain = encoded(counts.len() as u32, digits, highest, &counts);
            prop_assert_eq!(Latency::from_bytes(&plain).is_ok(), Latency::from_bytes(&compressed(&plain)).is_ok());
        }
    }

    fn summary() -> Summary {
        let mut latency = Latency::default();
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
