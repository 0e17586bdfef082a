//! A stage's time per frame, as an HDR histogram.

use std::time::Duration;

use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};
use thiserror::Error;

use crate::telemetry::encoded_histogram::checked;

/// Nanoseconds per frame, from 1 ns to 60 s with three significant digits; longer times count as 60 s.
#[derive(Debug, Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
}

const LONGEST_NS: u64 = 60_000_000_000;

/// The initial upper bound, which grows on demand: most stages never see a longer time.
const INITIAL_MAX_NS: u64 = 100_000;

/// Bytes that are not a histogram, or one that is not safe to decode.
#[derive(Debug, Error)]
#[error("a latency histogram that cannot be read: {0}")]
pub struct LatencyError(String);

impl Latency {
    #[expect(clippy::expect_used, clippy::missing_panics_doc, reason = "the bounds are constants the histogram takes")]
    pub fn new() -> Self {
        let mut histogram = Histogram::new_with_bounds(1, INITIAL_MAX_NS, 3).expect("bounds of a histogram");
        histogram.auto(true);
        Self { histogram }
    }

    /// Records that `frames` frames took `time` together.
    pub fn record_shared(&mut self, time: Duration, frames: u64) {
        if let Some(each) = (time.as_nanos() as u64).checked_div(frames) {
            self.record_each(Duration::from_nanos(each), frames);
        }
    }

    /// Records that each of `frames` frames took `time`.
    pub fn record_each(&mut self, time: Duration, frames: u64) {
        if frames > 0 {
            let time_ns = (time.as_nanos() as u64).clamp(1, LONGEST_NS);
            // Cannot fail: the histogram grows up to the bound.
            let _recorded = self.histogram.record_n(time_ns, frames);
        }
    }

    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }

    /// `HdrHistogram`'s V2 format, deflated, as `summary` carries it.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        match V2DeflateSerializer::new().serialize(&self.histogram, &mut bytes) {
            Ok(_) => bytes,
            Err(_) => Vec::new(),
        }
    }

    /// Decodes the result of [`Latency::to_bytes`], or any histogram of at most three significant digits.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, LatencyError> {
        let plain = checked(bytes).map_err(|fault| LatencyError(fault.to_owned()))?;
        let decoded = Deserializer::new().deserialize(&mut &*plain);
        let histogram = decoded.map_err(|error| LatencyError(error.to_string()))?;
        // The sum of the counts ends there: beyond it no quantile can be found.
        if histogram.len() == u64::MAX {
            return Err(LatencyError("it counts more than 64 bits hold".to_owned()));
        }
        Ok(Self { histogram })
    }
}

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_survives_encoding() {
        let mut latency = Latency::new();
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
        let mut latency = Latency::new();
        for each_ns in 1..4 {
            latency.record_each(Duration::from_nanos(each_ns), 1 << 62);
        }
        assert!(Latency::from_bytes(&latency.to_bytes()).is_ok());
        latency.record_each(Duration::from_nanos(4), 1 << 62);
        assert!(Latency::from_bytes(&latency.to_bytes()).is_err());
    }
}
