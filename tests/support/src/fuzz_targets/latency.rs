//! The latencies of a `summary`: bytes as a histogram.

use std::time::{Duration, SystemTime};

use sizeleak_frame::{StageSummary, Summary};
use sizeleak_platform::telemetry::{Latency, LatencyTable, write_latency_log};

/// Reads bytes as a histogram, which must read back from what it is written as, and shows it.
pub fn latency_histogram(bytes: &[u8]) {
    if let Ok(latency) = Latency::from_bytes(bytes) {
        let again = Latency::from_bytes(&latency.to_bytes()).expect("what was read can be written");
        assert_eq!(latency.histogram(), again.histogram());
    }
    let row = StageSummary { stage: "stage".to_owned(), latency: bytes.to_vec(), ..StageSummary::default() };
    let summary = Summary { stages: vec![row] };
    assert_eq!(LatencyTable(&summary).to_string().lines().count(), 2);
    let mut log = Vec::new();
    write_latency_log(&mut log, &summary, SystemTime::UNIX_EPOCH, Duration::from_secs(1)).expect("memory takes it");
}
