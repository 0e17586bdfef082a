//! The taps of an archive: how far their clocks are apart, and what became of their segments.

use sizeleak_archive::{Manifest, ManifestPoint, TapDescription};

use crate::command::document::{Document, blank, line, numbers};
use crate::command::figures::NONE;

/// A table for each point with taps.
pub(super) fn tables(manifest: &Manifest) -> Document {
    manifest.points.iter().filter(|point| !point.taps.is_empty()).flat_map(table).collect()
}

fn table(point: &ManifestPoint) -> Document {
    let rows = point.taps.iter().enumerate().map(|(index, tap)| {
        let TapDescription { name, captures, clock, counts } = tap;
        let is_compared = clock.matches > 0;
        let compared = |text: String| if is_compared { text } else { NONE.to_owned() };
        let ahead = if index == 0 { "0 s".to_owned() } else { format!("{:+.3} s", clock.offset_ns as f64 / 1e9) };
        [
            name.clone(),
            captures.to_string(),
            if index == 0 { ahead } else { compared(ahead) },
            compared(format!("{:.3} ms", clock.spread_ns as f64 / 1e6)),
            compared(clock.matches.to_string()),
            counts.primary_segments.to_string(),
            counts.filled_segments.to_string(),
            counts.duplicate_segments.to_string(),
        ]
    });
    let header = ["tap", "captures", "clock", "spread", "compared", "segments", "filled", "duplicates"];
    [blank(), line(format!("Taps of {}:", point.point)), numbers(header, rows)].concat()
}
