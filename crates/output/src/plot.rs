//! Pictures as SVG: timelines of commands, what homes usually do, and figures of reports.

mod chart;
mod confusion;
mod drawing;
mod habits;
mod lanes;
mod page;
mod panel;
#[cfg(feature = "figures")]
mod rendering;
mod scale;
mod sizes;
mod timeline;

pub use chart::{Chart, ChartKind, ChartValue};
pub use confusion::ConfusionFigure;
pub use drawing::svg_of;
pub use habits::{HomeHabits, habits_svg};
pub use page::{PictureSize, TooSmall};
#[cfg(feature = "figures")]
pub use rendering::{Rendering, RenderingError};
pub use sizes::CommandSizes;
pub use timeline::{CommandFilter, TimePoint, Timeline, Truth};

/// Frames for tests of pictures.
#[cfg(test)]
mod samples {
    use std::sync::Arc;

    use sizeleak_frame::{
        Actions, Candidate, Command, CommandAt, Deviation, Flow, Frame, Identification, SharedList, Transport,
    };

    pub(super) fn identification(flow: u64, actions: Option<Vec<(&str, u32)>>) -> Frame {
        let command = Command { time_ns: 5, end_ns: 5, flow, size: 100, records: 1, ..Command::default() };
        let named =
            |pairs: Vec<_>| pairs.into_iter().map(|(name, count)| (Arc::from(name), count)).collect::<Actions>();
        let candidates: SharedList<Candidate> = actions
            .into_iter()
            .map(|pairs| Candidate { actions: named(pairs), epsilon: 0, probability: 0.5, likelihood: None })
            .collect();
        let listed = candidates.len() as u64;
        Identification { candidates, candidate_count: listed, listed, ..Identification::unanswered(command) }.into()
    }

    pub(super) fn deviation(what: &str, time_ns: i64, gateway: &str, flow: u64) -> Frame {
        let commands = vec![CommandAt { flow, time_ns }];
        let [what, gateway, expected, seen] = [what, gateway, "one an hour", "nine"].map(str::to_owned);
        Deviation { time_ns, gateway, what, p_value: 0.0125, expected, seen, commands }.into()
    }

    pub(super) fn flow(flow: u64, gateway: &str, service: &str) -> Frame {
        let (gateway, service) = (gateway.parse().unwrap(), service.parse().unwrap());
        Flow::new(flow, gateway, service, Transport::Tcp).into()
    }
}
