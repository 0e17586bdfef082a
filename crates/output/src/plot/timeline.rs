//! The commands of a stream, and the lanes that their actions are drawn in.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use sizeleak_frame::{Flow, Identification};

use super::command_filter::CommandFilter;

/// The number of actions with a lane of their own; the others share one.
const MOST_ACTIONS: usize = 40;

/// The gateways of at most this many flows are kept; beyond that the flow with the lowest number is evicted.
const MOST_FLOWS: usize = 100_000;

/// A row of the plot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Lane {
    /// Commands with this action.
    Action(String),
    /// Commands with any of the actions that have no lane of their own.
    OtherActions,
    /// Commands whose first candidate has no action.
    NoAction,
    /// Commands that no candidate explains.
    Unexplained,
}

/// A command in the plot.
#[derive(Debug)]
pub(super) struct Mark {
    pub(super) time_ns: i64,
    pub(super) size: u64,
    pub(super) gateway: Option<IpAddr>,
    /// The probability of the first candidate.
    pub(super) probability: Option<f64>,
    /// The indices of its lanes, at least one, each with the number of actions.
    pub(super) bars: Vec<(usize, u64)>,
}

/// The commands to draw.
#[derive(Debug)]
pub struct Timeline {
    pub(super) lanes: Vec<Lane>,
    pub(super) marks: Vec<Mark>,
    /// Commands that the filter accepts, including those beyond the limit.
    accepted: u64,
    /// Commands that the filter rejects.
    rejected: u64,
    /// The flows of the commands.
    pub(super) flows: BTreeSet<u64>,
    gateways: BTreeMap<u64, IpAddr>,
    /// The greatest number of actions in each lane.
    most: Vec<u64>,
    limit: usize,
    filter: CommandFilter,
}

impl Timeline {
    /// An empty timeline that keeps the first `limit` commands that the filter accepts.
    pub fn new(limit: usize, filter: CommandFilter) -> Self {
        Self {
            lanes: Vec::new(),
            marks: Vec::new(),
            accepted: 0,
            rejected: 0,
            flows: BTreeSet::new(),
            gateways: BTreeMap::new(),
            most: Vec::new(),
            limit,
            filter,
        }
    }

    /// How many commands are drawn.
    pub fn drawn(&self) -> u64 {
        self.marks.len() as u64
    }

    /// How many commands the filter accepts, including those beyond the limit.
    pub fn accepted(&self) -> u64 {
        self.accepted
    }

    /// How many commands the filter rejects.
    pub fn rejected(&self) -> u64 {
        self.rejected
    }

    /// The gateways of the commands that are drawn.
    pub(super) fn gateways(&self) -> BTreeSet<IpAddr> {
        self.marks.iter().filter_map(|mark| mark.gateway).collect()
    }

    /// The times of the first and the last command.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        let times = || self.marks.iter().map(|mark| mark.time_ns);
        Some((times().min()?, times().max()?))
    }

    /// The greatest number of actions that a command has in a lane.
    pub(super) fn most(&self, lane: usize) -> u64 {
        self.most.get(lane).copied().unwrap_or(0)
    }

    fn bars(&mut self, identification: &Identification) -> Vec<(usize, u64)> {
        let Some(best) = identification.candidates.first() else {
            return vec![(self.lane_index(Lane::Unexplained), 0)];
        };
        let mut bars: Vec<(usize, u64)> = Vec::new();
        for (name, count) in best.actions.iter().filter(|(_, count)| *count > 0) {
            let (at, count) = (self.lane_index(Lane::Action(name.to_string())), u64::from(count));
            match bars.iter_mut().find(|(lane, _)| *lane == at) {
                Some((_, sum)) => *sum += count,
                None => bars.push((at, count)),
            }
        }
        if bars.is_empty() {
            bars.push((self.lane_index(Lane::NoAction), 0));
        }
        for (lane, count) in &bars {
            if let Some(most) = self.most.get_mut(*lane) {
                *most = (*most).max(*count);
            }
        }
        bars
    }

    /// The index of a lane, which is added if it is new.
    fn lane_index(&mut self, lane: Lane) -> usize {
        if let Some(at) = self.lanes.iter().position(|known| *known == lane) {
            return at;
        }
        let actions = self.lanes.iter().filter(|known| matches!(known, Lane::Action(_))).count();
        if matches!(lane, Lane::Action(_)) && actions >= MOST_ACTIONS {
            return self.lane_index(Lane::OtherActions);
        }
        self.lanes.push(lane);
        self.most.push(0);
        self.lanes.len() - 1
    }

    /// Remembers the gateway of a flow.
    pub(super) fn add_flow(&mut self, flow: &Flow) {
        if self.gateways.len() >= MOST_FLOWS {
            self.gateways.pop_first();
        }
        self.gateways.insert(flow.flow, flow.gateway);
    }

    /// Adds a command if the filter accepts it.
    pub(super) fn add_command(&mut self, identification: &Identification) {
        let command = &identification.command;
        let gateway = self.gateways.get(&command.flow).copied();
        if !self.filter.accepts(command, gateway) {
            self.rejected += 1;
            return;
        }
        self.accepted += 1;
        if self.marks.len() >= self.limit {
            return;
        }
        let mark = Mark {
            time_ns: command.time_ns,
            size: command.size,
            gateway,
            probability: identification.candidates.first().map(|best| best.probability),
            bars: self.bars(identification),
        };
        self.flows.insert(command.flow);
        self.marks.push(mark);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::{Actions, Candidate, Command, SharedList};

    use super::*;

    fn identification(actions: Option<Vec<(&str, u32)>>) -> Identification {
        let command = Command { time_ns: 5, end_ns: 5, flow: 1, size: 100, records: 1, ..Command::default() };
        let named =
            |pairs: Vec<_>| pairs.into_iter().map(|(name, count)| (Arc::from(name), count)).collect::<Actions>();
        let candidates: SharedList<Candidate> = actions
            .into_iter()
            .map(|pairs| Candidate { actions: named(pairs), epsilon: 0, probability: 0.5 })
            .collect();
        let listed = candidates.len() as u64;
        Identification { candidates, candidate_count: listed, listed, ..Identification::unanswered(command) }
    }

    #[test]
    fn every_command_has_a_lane() {
        let mut timeline = Timeline::new(10, CommandFilter::default());
        for actions in [Some(vec![("on", 2), ("off", 1)]), Some(vec![("off", 0)]), None, Some(vec![("off", 3)])] {
            timeline.add_command(&identification(actions));
        }
        let lane = |name: &str| Lane::Action(name.to_owned());
        assert_eq!(timeline.lanes, [lane("on"), lane("off"), Lane::NoAction, Lane::Unexplained]);
        let bars: Vec<_> = timeline.marks.iter().map(|mark| mark.bars.clone()).collect();
        assert_eq!(bars, [vec![(0, 2), (1, 1)], vec![(2, 0)], vec![(3, 0)], vec![(1, 3)]]);
        assert_eq!((timeline.most(1), timeline.most(2), timeline.span()), (3, 0, Some((5, 5))));
    }

    #[test]
    fn commands_and_lanes_are_bounded() {
        let mut timeline = Timeline::new(100, CommandFilter::default());
        for number in 0..200 {
            timeline.add_command(&identification(Some(vec![(&format!("action {number}"), 1), ("on", 1)])));
        }
        assert_eq!((timeline.drawn(), timeline.accepted()), (100, 200));
        assert_eq!(timeline.lanes.len(), MOST_ACTIONS + 1);
        assert_eq!(timeline.lanes.last(), Some(&Lane::OtherActions));
        let last = timeline.marks.last().unwrap();
        assert_eq!(last.bars, [(MOST_ACTIONS, 1), (1, 1)]);
    }
}
