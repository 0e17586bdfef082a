//! The latencies of a stream's stages, as its summary has them.

use anyhow::anyhow;
use sizeleak_frame::{Frame, Summary};
use sizeleak_output::AnswerSink;
use sizeleak_output::plot::{Quantiles, StageLatency};
use sizeleak_platform::telemetry::Latency;

use super::content::Answers;
use super::kind::PictureKind;
use crate::command::failure::Failure;

/// The last summary of a stream.
#[derive(Default)]
struct LastSummary(Option<Summary>);

impl AnswerSink for LastSummary {
    fn add(&mut self, frame: Frame) {
        if let Frame::Summary(summary) = frame {
            self.0 = Some(summary);
        }
    }

    fn learn(&mut self, _: u64, _: Option<&str>, _: Option<&str>) {}
}

/// The latencies of the stages of a whole stream.
pub(super) fn of(answers: Answers, name: &str) -> Result<Vec<StageLatency>, Failure> {
    let mut last = LastSummary::default();
    answers.read(name, &mut last)?;
    let stages = last.0.map(|summary| summary.stages).unwrap_or_default();
    let latencies: Vec<StageLatency> = stages
        .into_iter()
        .map(|stage| StageLatency {
            service: quantiles(&stage.latency),
            queue: quantiles(&stage.queue),
            stage: stage.stage,
        })
        .filter(|stage| stage.service.is_some() || stage.queue.is_some())
        .collect();
    if latencies.is_empty() {
        let source = PictureKind::Latency.source();
        return Err(anyhow!("{name} has no latencies, which a summary holds; they are drawn from {source}").into());
    }
    Ok(latencies)
}

/// The times of a histogram; `None` if it is empty or cannot be read.
fn quantiles(histogram: &[u8]) -> Option<Quantiles> {
    let latency = Latency::from_bytes(histogram).ok().filter(|latency| !latency.histogram().is_empty())?;
    let at = |quantile| latency.histogram().value_at_quantile(quantile);
    Some(Quantiles { median: at(0.5), p99: at(0.99), longest: at(1.0) })
}
