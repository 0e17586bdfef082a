//! The figures of a run in the `OpenMetrics` text format.

use std::fmt::{Display, Write as _};

use crate::telemetry::{BOUNDS_NS, Meter, Telemetry, TimeHistogram};

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) fn text(telemetry: &Telemetry) -> String {
    let mut text = Exposition::default();
    text.family("build", None, "info", "The program that runs");
    text.sample("build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    input(&mut text, telemetry);
    let meters = telemetry.meters();
    if !meters.is_empty() {
        stages(&mut text, &meters);
    }
    notices_and_output(&mut text, telemetry);
    text.0.push_str("# EOF\n");
    text.0
}

/// A text of metric families (`OpenMetrics` 1.0, section "Text format"), whose names all begin alike.
#[derive(Debug, Default)]
struct Exposition(String);

impl Exposition {
    fn family(&mut self, name: &str, unit: Option<&str>, metric_type: &str, help: &str) {
        self.line(format_args!("# HELP sizeleak_{name} {help}"));
        self.line(format_args!("# TYPE sizeleak_{name} {metric_type}"));
        if let Some(unit) = unit {
            self.line(format_args!("# UNIT sizeleak_{name} {unit}"));
        }
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        if labels.is_empty() {
            self.line(format_args!("sizeleak_{name} {value}"));
        } else {
            self.line(format_args!("sizeleak_{name}{{{}}} {value}", labels.join(",")));
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to memory does not fail.
        _ = writeln!(self.0, "{line}");
    }
}

fn input(text: &mut Exposition, telemetry: &Telemetry) {
    let help = "Bytes of the input that were read, before anything is decompressed";
    text.family("input_read_bytes", Some("bytes"), "counter", help);
    text.sample("input_read_bytes_total", &[], telemetry.progress().read());
    if let Some(total) = telemetry.progress().total() {
        let help = "Bytes of the input in all; missing where that is not known";
        text.family("input_size_bytes", Some("bytes"), "gauge", help);
        text.sample("input_size_bytes", &[], total);
    }
}

fn stages(text: &mut Exposition, meters: &[Meter]) {
    let help = "Frames that a stage took, rows of batches each; of a capture, packets";
    counter(text, "frames_in", None, help, meters, |meter| meter.counts().frames_in);
    let help = "Frames that a stage made, rows of batches each";
    counter(text, "frames_out", None, help, meters, |meter| meter.counts().frames_out);
    let help = "Bytes of traffic in the frames that a stage took";
    counter(text, "traffic_in_bytes", Some("bytes"), help, meters, |meter| meter.counts().bytes_in);
    histogram(text, "service_seconds", "Time a stage worked on a frame", meters, Meter::service);
    histogram(text, "queue_seconds", "Time a frame waited for a stage", meters, Meter::queue);
}

fn notices_and_output(text: &mut Exposition, telemetry: &Telemetry) {
    text.family("notices", None, "counter", "Notices of what was skipped, lost or assumed");
    for ((stage, what), count) in telemetry.notices() {
        text.sample("notices_total", &[("stage", &stage), ("what", &what)], count);
    }
    let help = "Frames that came out of the last stage, rows of batches each";
    text.family("output_frames", None, "counter", help);
    for (kind, count) in telemetry.output() {
        text.sample("output_frames_total", &[("kind", &kind)], count);
    }
}

fn counter(
    text: &mut Exposition,
    name: &str,
    unit: Option<&str>,
    help: &str,
    meters: &[Meter],
    count: impl Fn(&Meter) -> u64,
) {
    text.family(name, unit, "counter", help);
    for meter in meters {
        text.sample(&format!("{name}_total"), &[("stage", meter.stage())], count(meter));
    }
}

fn histogram(
    text: &mut Exposition,
    name: &str,
    help: &str,
    meters: &[Meter],
    times: impl Fn(&Meter) -> &TimeHistogram,
) {
    text.family(name, Some("seconds"), "histogram", help);
    for meter in meters {
        let (times, stage) = (times(meter), ("stage", meter.stage()));
        // Counts up to each bound, the last of which is the count of all, so that they agree.
        let counts = times.buckets().chain([times.beyond()]);
        let up_to_bounds = counts.scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        let buckets: Vec<u64> = up_to_bounds.collect();
        text.sample(&format!("{name}_sum"), &[stage], number(times.sum().as_secs_f64()));
        text.sample(&format!("{name}_count"), &[stage], buckets.last().unwrap_or(&0));
        let bounds = BOUNDS_NS.iter().map(|bound| number(*bound as f64 / 1e9)).chain(["+Inf".to_owned()]);
        for (bound, count) in bounds.zip(&buckets) {
            text.sample(&format!("{name}_bucket"), &[("le", &bound), stage], count);
        }
    }
}

/// A canonical number: a whole one has a fraction, too.
fn number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.1}") } else { value.to_string() }
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
