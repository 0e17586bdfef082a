//! Draws how long the stages of a pipeline take for a frame.

use super::marks::{DIAMONDS, DOTS, SQUARES, Style};
use super::page::{PictureSize, TooSmall, clean, rule};
use super::panel::{Heading, Panel, Surroundings};
use super::scale::Scale;

const MAX_NAME: usize = 24;

#[derive(Debug)]
pub struct StageLatency {
    pub stage: String,
    /// The time for a frame; `None` if it is not known.
    pub service: Option<Quantiles>,
    /// The time that a frame waited for the stage; `None` if it is not known.
    pub queue: Option<Quantiles>,
}

/// Times of frames, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub struct Quantiles {
    pub median: u64,
    pub p99: u64,
    pub longest: u64,
}

/// What is drawn of each stage, how, and how far from the middle of its row, as a share of that.
type Series = (&'static str, Style, f64, fn(&StageLatency) -> Option<Quantiles>);

const SERIES: [Series; 2] =
    [("work on a frame", DOTS, -0.18, |stage| stage.service), ("wait of a frame", SQUARES, 0.18, |stage| stage.queue)];

pub fn latency_svg(stages: &[StageLatency], size: PictureSize, title: Option<&str>) -> Result<String, TooSmall> {
    let series = || SERIES.into_iter().filter(|(.., times)| stages.iter().any(|stage| times(stage).is_some()));
    let mut keys: Vec<_> =
        series().map(|(name, style, ..)| style.joined().key(format!("{name}, median to 99 %"))).collect();
    keys.push(DIAMONDS.key("longest"));
    let about = format!("{} stages; times of single frames, in microseconds", stages.len());
    let heading = Heading { title, own: "How long the stages take for a frame", about: &about };
    let names: Vec<String> = stages.iter().map(|stage| clean(&stage.stage, MAX_NAME)).collect();
    let mut panel = Panel::new(size, heading, keys, Surroundings::rows(&names))?;
    let all = || stages.iter().flat_map(|stage| series().filter_map(|(.., times)| times(stage)));
    let times = all().flat_map(|Quantiles { median, longest, .. }| [median, longest]);
    let x = Scale::logarithmic(times.map(microseconds), panel.x_length(), 40.0);
    panel.axis_below(&x, "time for a frame (µs)");
    let row = panel.name_rows(&names);
    for (at, stage) in stages.iter().enumerate() {
        let middle = panel.top + (at as f64 + 0.5) * row;
        if at > 0 {
            panel.add(rule(panel.left, middle - row / 2.0, panel.left + panel.width, middle - row / 2.0));
        }
        for (_, style, shift, times) in series() {
            let Some(Quantiles { median, p99, longest }) = times(stage) else { continue };
            let y = middle + shift * row;
            let [median, p99, longest] = [median, p99, longest].map(|time| panel.x(&x, microseconds(time)));
            panel.add(style.straight((median, y), (longest, y)).set("stroke-dasharray", "1 2"));
            panel.add(style.straight((median, y), (p99, y)).set("stroke-width", 3));
            panel.add(DIAMONDS.mark(longest, y));
            panel.add(style.mark(median, y).set("class", "latency"));
        }
    }
    Ok(panel.svg())
}

fn microseconds(time_ns: u64) -> f64 {
    time_ns as f64 / 1000.0
}
