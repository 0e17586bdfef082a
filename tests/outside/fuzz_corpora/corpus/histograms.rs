//! Latencies of a `summary`: histograms as the stages write them, and headers that promise more than there is.

use std::time::Duration;

use sizeleak_platform::telemetry::Latency;

/// The cookie of compressed histograms of version 2.
const COOKIE: u32 = 0x1c84_9304;

pub(super) fn inputs() -> Vec<(&'static str, Vec<u8>)> {
    let mut latency = Latency::default();
    let empty = latency.to_bytes();
    for exponent in 0..36 {
        latency.record_each(Duration::from_nanos(1 << exponent), 1 << (exponent / 2));
    }
    let full = latency.to_bytes();
    let mut overflowing = Latency::default();
    (1..5).for_each(|ns| overflowing.record_each(Duration::from_nanos(ns), 1 << 62));
    let long = [&COOKIE.to_be_bytes()[..], &u32::MAX.to_be_bytes(), &full[8..]].concat();
    vec![
        ("empty", empty),
        ("cut", full[..full.len() / 2].to_vec()),
        ("full", full),
        ("length", long),
        ("overflow", overflowing.to_bytes()),
        ("nothing", Vec::new()),
    ]
}
