//! What is drawn: the commands and deviations of a stream, and the labels of a user.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::DateTime;
use sizeleak_frame::{Actions, Deviation, Frame, Identification};
use sizeleak_text::TimeRange;

use super::page::clean;
use crate::TimeFormat;
use crate::answers::{AnswerSink, BestAnswer};
use crate::flow_names::FlowNames;
use crate::table::deviation_words;

const MAX_WORDS: usize = 400;

#[derive(Debug)]
pub(super) struct Mark {
    pub(super) time_ns: i64,
    pub(super) size: u64,
    pub(super) flow: u64,
    /// `None` where nothing explains the command.
    pub(super) best: Option<Answer>,
}

#[derive(Debug)]
pub(super) struct Answer {
    /// The most probable actions, each at least once.
    pub(super) actions: Vec<(Arc<str>, u64)>,
    /// The other ones that it may as well be, if nothing tells them from these.
    pub(super) twin: Option<Vec<(Arc<str>, u64)>>,
    /// Of both together.
    pub(super) probability: f64,
}

#[derive(Debug)]
pub(super) struct Incident {
    pub(super) time_ns: i64,
    pub(super) gateway: Option<IpAddr>,
    pub(super) what: String,
    /// The kind, how strange it is, what was seen and what would have been usual.
    pub(super) words: String,
}

/// What a user labelled: the true actions of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truth {
    /// When, in nanoseconds since 1970.
    pub time_ns: i64,
    /// The actions with how often each occurs; those that do not occur may be left out.
    pub actions: Vec<(Arc<str>, u64)>,
    /// The command that it belongs to: its index in [`Timeline::commands`].
    pub command: Option<usize>,
}

#[derive(Debug)]
pub struct Timeline {
    pub(super) marks: Vec<Mark>,
    pub(super) incidents: Vec<Incident>,
    pub(super) truths: Vec<Truth>,
    pub(super) names: FlowNames,
    /// The section of a model that answers each flow, where that is known.
    pub(super) sections: BTreeMap<u64, String>,
    /// Commands and deviations that the filter accepts, including those beyond the limit.
    pub accepted: u64,
    pub rejected: u64,
    limit: usize,
    filter: CommandFilter,
}

impl Timeline {
    pub fn new(limit: usize, filter: CommandFilter) -> Self {
        let (marks, incidents, truths, names) = (Vec::new(), Vec::new(), Vec::new(), FlowNames::default());
        Self { marks, incidents, truths, names, sections: BTreeMap::new(), accepted: 0, rejected: 0, limit, filter }
    }

    pub fn drawn(&self) -> u64 {
        (self.marks.len() + self.incidents.len()) as u64
    }

    /// The commands that are drawn: their times, in nanoseconds since 1970, and their gateways, as far as they are known.
    pub fn commands(&self) -> impl Iterator<Item = (i64, Option<IpAddr>)> {
        self.marks.iter().map(|mark| (mark.time_ns, self.gateway(mark.flow)))
    }

    pub fn add_truth(&mut self, truth: Truth) {
        self.truths.push(truth);
    }

    /// Names the section of a model that answers each flow: these flows share their lanes. `section` is given the
    /// gateway, the service's address and port, its server name, and the protocol, as far as they are known; where it gives
    /// `None`, a flow has the lanes of its gateway and service.
    pub fn set_sections(
        &mut self,
        section: impl Fn(Option<IpAddr>, Option<SocketAddr>, [Option<&str>; 2]) -> Option<String>,
    ) {
        let of_flow = |flow: u64| {
            let ends = self.names.ends(flow);
            let service = ends.and_then(|ends| ends.service);
            let texts = ends.map_or([None; 2], |ends| [ends.server_name.as_deref(), ends.protocol.as_deref()]);
            Some((flow, section(self.gateway(flow), service, texts)?))
        };
        self.sections = self.flows().into_iter().filter_map(of_flow).collect();
    }

    pub(super) fn gateway(&self, flow: u64) -> Option<IpAddr> {
        self.names.ends(flow)?.gateway
    }

    pub fn gateways(&self) -> BTreeSet<IpAddr> {
        let of_commands = self.flows().into_iter().filter_map(|flow| self.gateway(flow));
        of_commands.chain(self.incidents.iter().filter_map(|incident| incident.gateway)).collect()
    }

    pub(super) fn flows(&self) -> BTreeSet<u64> {
        self.marks.iter().map(|mark| mark.flow).collect()
    }

    pub(super) fn span(&self) -> Option<(i64, i64)> {
        let commands = || self.marks.iter().map(|mark| mark.time_ns);
        let deviations = || self.incidents.iter().map(|incident| incident.time_ns);
        let times = || commands().chain(deviations()).chain(self.truths.iter().map(|truth| truth.time_ns));
        Some((times().min()?, times().max()?))
    }

    /// Whether the first candidate of a command has exactly the actions of a label.
    pub(super) fn is_right(mark: &Mark, truth: &Truth) -> bool {
        let sorted = |actions: &[(Arc<str>, u64)]| {
            let mut actions: Vec<_> = actions.iter().filter(|(_, count)| *count > 0).cloned().collect();
            actions.sort_unstable();
            actions
        };
        mark.best.as_ref().is_some_and(|best| sorted(&best.actions) == sorted(&truth.actions))
    }

    pub(super) fn take(&mut self, frame: &Frame) {
        self.names.observe(frame);
        match frame {
            Frame::Identification(identification) => self.add_command(identification),
            Frame::Deviation(deviation) => self.add_deviation(deviation),
            _ => {}
        }
    }

    /// Whether what happened at a time in some of these flows is drawn; counts it.
    fn takes(&mut self, time_ns: i64, gateway: Option<IpAddr>, flows: impl IntoIterator<Item = u64>) -> bool {
        let is_accepted = self.filter.accepts(time_ns, gateway, flows);
        let has_room = self.drawn() < self.limit as u64;
        *(if is_accepted { &mut self.accepted } else { &mut self.rejected }) += 1;
        is_accepted && has_room
    }

    fn add_deviation(&mut self, deviation: &Deviation) {
        let gateway = deviation.gateway.parse().ok();
        let flows = deviation.commands.iter().map(|command| command.flow);
        if self.takes(deviation.time_ns, gateway, flows) {
            let (what, words) = (clean(&deviation.what, MAX_WORDS), clean(&deviation_words(deviation), MAX_WORDS));
            self.incidents.push(Incident { time_ns: deviation.time_ns, gateway, what, words });
        }
    }

    fn add_command(&mut self, identification: &Identification) {
        let command = &identification.command;
        if !self.takes(command.time_ns, self.gateway(command.flow), [command.flow]) {
            return;
        }
        let best = BestAnswer::new(identification).map(|best| Answer {
            actions: summed(&best.first.actions),
            twin: best.twin.map(|twin| summed(&twin.actions)),
            probability: best.probability(),
        });
        self.marks.push(Mark { time_ns: command.time_ns, size: command.size, flow: command.flow, best });
    }
}

/// Actions with their counts, each name once.
fn summed(actions: &Actions) -> Vec<(Arc<str>, u64)> {
    let mut summed: Vec<(Arc<str>, u64)> = Vec::new();
    for (name, count) in actions.iter().filter(|(_, count)| *count > 0) {
        match summed.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += u64::from(count),
            None => summed.push((Arc::clone(name), count.into())),
        }
    }
    summed
}

impl AnswerSink for Timeline {
    fn add(&mut self, frame: Frame) {
        self.take(&frame);
    }

    fn learn(&mut self, flow: u64, gateway: Option<&str>, service: Option<&str>) {
        self.names.learn(flow, gateway, service);
    }
}

/// A time that a user gives, with or without an offset from UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimePoint {
    Exact(Timestamp),
    Wall(DateTime),
}

impl std::str::FromStr for TimePoint {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let exact = text.parse().map(Self::Exact);
        let time = exact.or_else(|_| text.parse().map(Self::Wall));
        time.map_err(|_| "write it like 2026-01-06, 2026-01-06T08:30 or 2026-01-06T08:30:00Z")
    }
}

impl TimePoint {
    /// In nanoseconds since 1970, by the clock of `times`; `None` before 1677 and after 2262.
    pub fn nanoseconds(self, times: &TimeFormat) -> Option<i64> {
        let time = match self {
            Self::Exact(time) => time,
            Self::Wall(time) => times.timestamp(time).ok()?,
        };
        i64::try_from(time.as_nanosecond()).ok()
    }
}

/// Decides which commands and deviations are drawn; by default all.
#[derive(Debug, Default)]
pub struct CommandFilter {
    pub range: TimeRange,
    /// Only commands to these gateways; all if empty.
    pub gateways: Vec<IpAddr>,
    /// Only commands in these flows; all if empty.
    pub flows: Vec<u64>,
}

impl CommandFilter {
    /// Whether what happened at a time in some of these flows is drawn. Where the gateway is unknown it is drawn only if no
    /// gateways are given.
    pub(super) fn accepts(&self, time_ns: i64, gateway: Option<IpAddr>, flows: impl IntoIterator<Item = u64>) -> bool {
        self.range.contains(time_ns)
            && (self.gateways.is_empty() || gateway.is_some_and(|gateway| self.gateways.contains(&gateway)))
            && (self.flows.is_empty() || flows.into_iter().any(|flow| self.flows.contains(&flow)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{deviation, flow, identification};
    use super::*;

    #[test]
    fn commands_beyond_the_limit_are_counted() {
        let mut timeline = Timeline::new(100, CommandFilter::default());
        timeline.take(&flow(1, "192.0.2.20", "203.0.113.1:443"));
        (0..200).for_each(|_| timeline.take(&identification(1, None)));
        assert_eq!((timeline.drawn(), timeline.accepted, timeline.span()), (100, 200, Some((5, 5))));
        assert_eq!(timeline.gateways(), ["192.0.2.20".parse().unwrap()].into());
    }

    #[test]
    fn deviations_are_filtered_and_limited_as_commands_are() {
        let drawn = |filter: CommandFilter| {
            let mut timeline = Timeline::new(2, filter);
            for (time_ns, gateway, flow) in [(1, "192.0.2.20", 7), (2, "", 8), (3, "192.0.2.20", 9)] {
                timeline.take(&deviation("burst", time_ns, gateway, flow));
            }
            let times: Vec<i64> = timeline.incidents.iter().map(|incident| incident.time_ns).collect();
            (times, timeline.accepted, timeline.rejected)
        };
        let all = CommandFilter::default;
        assert_eq!(drawn(all()), (vec![1, 2], 3, 0));
        assert_eq!(
            drawn(CommandFilter { range: TimeRange { since_ns: Some(2), until_ns: Some(3) }, ..all() }),
            (vec![2], 1, 2)
        );
        assert_eq!(drawn(CommandFilter { gateways: vec!["192.0.2.20".parse().unwrap()], ..all() }), (vec![1, 3], 2, 1));
        assert_eq!(drawn(CommandFilter { flows: vec![8], ..all() }), (vec![2], 1, 2));
    }

    #[test]
    fn first_candidate_is_right_if_all_its_actions_are() {
        let mut timeline = Timeline::new(100, CommandFilter::default());
        timeline.take(&identification(1, Some(vec![("on", 1), ("off", 2), ("on", 1)])));
        timeline.take(&identification(1, None));
        let truth = |actions: &[(&str, u64)]| {
            let actions = actions.iter().map(|(name, count)| (Arc::from(*name), *count)).collect();
            Truth { time_ns: 0, actions, command: None }
        };
        let is_right = |at: usize, actions: &[(&str, u64)]| Timeline::is_right(&timeline.marks[at], &truth(actions));
        assert!(is_right(0, &[("off", 2), ("dim", 0), ("on", 2)]));
        assert!(!is_right(0, &[("off", 2), ("on", 1)]) && !is_right(0, &[("off", 2)]) && !is_right(1, &[]));
    }

    #[test]
    fn time_points_are_exact_or_by_the_clock() {
        let nanoseconds = |text: &str| text.parse::<TimePoint>().map(|time| time.nanoseconds(&TimeFormat::default()));
        assert_eq!(nanoseconds("1970-01-02"), Ok(Some(86_400_000_000_000)));
        assert_eq!(nanoseconds("1970-01-01T00:01"), Ok(Some(60_000_000_000)));
        assert_eq!(nanoseconds("1970-01-01T02:00:00.5+02:00"), Ok(Some(500_000_000)));
        assert_eq!(nanoseconds("9999-01-01"), Ok(None));
        assert!(nanoseconds("tomorrow").is_err() && nanoseconds("").is_err());
    }
}
