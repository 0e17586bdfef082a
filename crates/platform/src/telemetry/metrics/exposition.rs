//! The figures of a run in the `OpenMetrics` text format.

use std::fmt::Error;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::telemetry::{BOUNDS_NS, Meter, Telemetry, TimeHistogram};

/// The media type of the text.
pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The current figures.
pub(super) fn text(telemetry: &Telemetry) -> String {
    let mut registry = Registry::with_prefix("sizeleak");
    registry.register_collector(Box::new(Figures(telemetry.clone())));
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => text,
        // Writing to memory cannot fail; an empty exposition is valid.
        Err(Error) => "# EOF\n".to_owned(),
    }
}

#[derive(Debug)]
struct Figures(Telemetry);

impl Collector for Figures {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let encoder = &mut encoder;
        encoder
            .encode_descriptor("build", "The program that runs", None, MetricType::Info)?
            .encode_info(&[("version", env!("CARGO_PKG_VERSION"))])?;
        self.encode_input(encoder)?;
        self.encode_stages(encoder)?;
        self.encode_notices_and_output(encoder)
    }
}

impl Figures {
    fn encode_input(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let (read, total) = (self.0.progress().read(), self.0.progress().total());
        let help = "Bytes of the input that were read, before anything is decompressed";
        encoder
            .encode_descriptor("input_read", help, Some(&Unit::Bytes), MetricType::Counter)?
            .encode_counter::<NoLabelSet, _, u64>(&read, None)?;
        let Some(total) = total else { return Ok(()) };
        let help = "Bytes of the input in all; missing where that is not known";
        encoder
            .encode_descriptor("input_size", help, Some(&Unit::Bytes), MetricType::Gauge)?
            .encode_gauge(&i64::try_from(total).unwrap_or(i64::MAX))
    }

    fn encode_stages(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let meters = self.0.meters();
        if meters.is_empty() {
            return Ok(());
        }
        let help = "Frames that a stage took, rows of batches each; of a capture, packets";
        counter(encoder, "frames_in", help, None, &meters, |meter| meter.counts().frames_in)?;
        let help = "Frames that a stage made, rows of batches each";
        counter(encoder, "frames_out", help, None, &meters, |meter| meter.counts().frames_out)?;
        let help = "Bytes of traffic in the frames that a stage took";
        counter(encoder, "traffic_in", help, Some(&Unit::Bytes), &meters, |meter| meter.counts().bytes_in)?;
        histogram(encoder, "service", "Time a stage worked on a frame", &meters, Meter::service)?;
        histogram(encoder, "queue", "Time a frame waited for a stage", &meters, Meter::queue)
    }

    fn encode_notices_and_output(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), Error> {
        let help = "Notices of what was skipped, lost or assumed";
        let mut notices = encoder.encode_descriptor("notices", help, None, MetricType::Counter)?;
        for ((stage, what), count) in self.0.notices() {
            let labels = [("stage", stage), ("what", what)];
            notices.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        let help = "Frames that came out of the last stage, rows of batches each";
        let mut output = encoder.encode_descriptor("output_frames", help, None, MetricType::Counter)?;
        for (kind, count) in self.0.output() {
            output.encode_family(&[("kind", kind)])?.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
        }
        Ok(())
    }
}

fn counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    meters: &[Meter],
    count: impl Fn(&Meter) -> u64,
) -> Result<(), Error> {
    let mut counter = encoder.encode_descriptor(name, help, unit, MetricType::Counter)?;
    for meter in meters {
        let labels = [("stage", meter.stage())];
        counter.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(&count(meter), None)?;
    }
    Ok(())
}

fn histogram(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    meters: &[Meter],
    times: impl Fn(&Meter) -> &TimeHistogram,
) -> Result<(), Error> {
    let mut histogram = encoder.encode_descriptor(name, help, Some(&Unit::Seconds), MetricType::Histogram)?;
    for meter in meters {
        let times = times(meter);
        let bounds = BOUNDS_NS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::INFINITY]);
        let buckets: Vec<(f64, u64)> = bounds.zip(times.buckets().chain([times.beyond()])).collect();
        // Derived from the buckets, so that they agree.
        let count = buckets.iter().map(|(_, count)| count).sum();
        let sum = times.sum().as_secs_f64();
        let labels = [("stage", meter.stage())];
        histogram.encode_family(&labels)?.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::telemetry::{FrameCounts, Tally};

    #[test]
    fn text_holds_every_figure() {
        let telemetry = Telemetry::new();
        let meter = telemetry.meter("my \"stage\"\n");
        meter.set_counts(FrameCounts { frames_in: 3, frames_out: 2, bytes_in: 100 });
        meter.service().record_each(Duration::from_micros(3), 2);
        meter.service().record_each(Duration::from_secs(11), 1);
        telemetry.progress().add(7);
        let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
        let before = text(&telemetry);
        assert!(!before.contains("input_size"), "{before}");
        telemetry.progress().expect(70);
        let mut output = Tally::default();
        output.add("command", 5);
        telemetry.set_output(&output);
        let after = lines(&text(&telemetry));
        for line in [
            "sizeleak_build_info{version=\"0.1.0\"} 1",
            "# TYPE sizeleak_frames_in counter",
            "sizeleak_frames_in_total{stage=\"my \\\"stage\\\"\\n\"} 3",
            "sizeleak_traffic_in_bytes_total{stage=\"my \\\"stage\\\"\\n\"} 100",
            "sizeleak_input_read_bytes_total 7",
            "sizeleak_input_size_bytes 70",
            "sizeleak_service_seconds_bucket{le=\"0.0000025\",stage=\"my \\\"stage\\\"\\n\"} 0",
            "sizeleak_service_seconds_bucket{le=\"0.000005\",stage=\"my \\\"stage\\\"\\n\"} 2",
            "sizeleak_service_seconds_bucket{le=\"10.0\",stage=\"my \\\"stage\\\"\\n\"} 2",
            "sizeleak_service_seconds_bucket{le=\"+Inf\",stage=\"my \\\"stage\\\"\\n\"} 3",
            "sizeleak_service_seconds_count{stage=\"my \\\"stage\\\"\\n\"} 3",
            "sizeleak_service_seconds_sum{stage=\"my \\\"stage\\\"\\n\"} 11.000006",
            "sizeleak_output_frames_total{kind=\"command\"} 5",
            "# EOF",
        ] {
            assert!(after.iter().any(|shown| shown == line), "no {line}\n{}", after.join("\n"));
        }
    }
}
