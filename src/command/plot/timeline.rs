//! The commands of a stream in order of time, and the lanes that their actions are drawn in.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use sizeleak_frame::{Flow, Identification};

use super::choice::AddressPrefilter;
use super::source::Take;

/// Actions beyond these share a lane.
const MOST_ACTIONS: usize = 40;

/// Flows whose gateway is remembered; then that with the lowest number is forgotten.
const MOST_FLOWS: usize = 100_000;

/// A row of the plot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FramerInput {
    /// Commands with this action.
    Action(String),
    /// Commands with any of the actions that have no lane of their own.
    OtherActions,
    /// Commands whose first candidate has no action at all.
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
    /// That of the first candidate, if there is one.
    pub(super) probability: Option<f64>,
    /// The lanes it is drawn in, by their position, with the number of actions; at least one.
    pub(super) bars: Vec<(usize, u64)>,
}

/// What is drawn.
#[derive(Debug)]
pub(super) struct Timeline {
    pub(super) lanes: Vec<FramerInput>,
    pub(super) marks: Vec<Mark>,
    /// How many commands there were of those chosen, those beyond the limit counted.
    pub(super) commands: u64,
    /// How many were not chosen.
    pub(super) others: u64,
    /// The flows that commands are from.
    pub(super) flows: BTreeSet<u64>,
    gateways: BTreeMap<u64, IpAddr>,
    /// Of each lane, the greatest number of actions in it.
    most: Vec<u64>,
    limit: usize,
    sieve: AddressPrefilter,
}

impl Timeline {
    /// An empty one, that keeps the first `limit` commands that the sieve takes.
    pub(super) fn new(limit: usize, sieve: AddressPrefilter) -> Self {
        Self {
            lanes: Vec::new(),
            marks: Vec::new(),
            commands: 0,
            others: 0,
            flows: BTreeSet::new(),
            gateways: BTreeMap::new(),
            most: Vec::new(),
            limit,
            sieve,
        }
    }

    /// The gateways of the commands that are drawn.
    pub(super) fn gateways(&self) -> BTreeSet<IpAddr> {
        self.marks.iter().filter_map(|mark| mark.gateway).collect()
    }

    /// The first and the last time there is.
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
            return vec![(self.place(FramerInput::Unexplained), 0)];
        };
        let mut bars: Vec<(usize, u64)> = Vec::new();
        for (name, count) in best.actions.iter().filter(|(_, count)| *count > 0) {
            let (at, count) = (self.place(FramerInput::Action(name.to_string())), u64::from(count));
            match bars.iter_mut().find(|(lane, _)| *lane == at) {
                Some((_, sum)) => *sum += count,
                None => bars.push((at, count)),
            }
        }
        if bars.is_empty() {
            bars.push((self.place(FramerInput::NoAction), 0));
        }
        for (lane, count) in &bars {
            if let Some(most) = self.most.get_mut(*lane) {
                *most = (*most).max(*count);
            }
        }
        bars
    }

    /// The position of a lane, which is added where it is new.
    fn place(&mut self, lane: FramerInput) -> usize {
        if let Some(at) = self.lanes.iter().position(|known| *known == lane) {
            return at;
        }
        let actions = self.lanes.iter().filter(|known| matches!(known, FramerInput::Action(_))).count();
        if matches!(lane, FramerInput::Action(_)) && actions >= MOST_ACTIONS {
            return self.place(FramerInput::OtherActions);
        }
        self.lanes.push(lane);
        self.most.push(0);
        self.lanes.len() - 1
    }
}

impl Take for Timeline {
    fn flow(&mut self, flow: &Flow) {
        if self.gateways.len() >= MOST_FLOWS {
            self.gateways.pop_first();
        }
        self.gateways.insert(flow.flow, flow.gateway);
    }

    fn identification(&mut self, identification: &Identification) {
        let command = &identification.command;
        let gateway = self.gateways.get(&command.flow).copied();
        if !self.sieve.takes(command, gateway) {
            self.others += 1;
            return;
        }
        self.commands += 1;
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
        let command = Command {
            time_ns: 5,
            end_ns: 5,
            flow: 1,
            size: 100,
            plaintext: None,
            records: 1,
            replies: 0,
            reply_bytes: 0,
        };
        let named =
            |pairs: Vec<_>| pairs.into_iter().map(|(name, count)| (Arc::from(name), count)).collect::<Actions>();
        let candidates: SharedList<Candidate> = actions
            .into_iter()
            .map(|pairs| Candidate { actions: named(pairs), epsilon: 0, probability: 0.5 })
            .collect();
        let listed = candidates.len() as u64;
        Identification { command, candidates, candidate_count: listed, listed, min_actions: None, max_actions: None }
    }

    #[test]
    fn every_command_has_a_lane() {
        let mut timeline = Timeline::new(10, AddressPrefilter::default());
        for actions in [Some(vec![("on", 2), ("off", 1)]), Some(vec![("off", 0)]), None, Some(vec![("off", 3)])] {
            timeline.identification(&identification(actions));
        }
        let lane = |name: &str| FramerInput::Action(name.to_owned());
        assert_eq!(timeline.lanes, [lane("on"), lane("off"), FramerInput::NoAction, FramerInput::Unexplained]);
        let bars: Vec<_> = timeline.marks.iter().map(|mark| mark.bars.clone()).collect();
        assert_eq!(bars, [vec![(0, 2), (1, 1)], vec![(2, 0)], vec![(3, 0)], vec![(1, 3)]]);
        assert_eq!((timeline.most(1), timeline.most(2), timeline.span()), (3, 0, Some((5, 5))));
    }

    #[test]
    fn many_commands_and_many_actions_are_bounded() {
        let mut timeline = Timeline::new(100, AddressPrefilter::default());
        for number in 0..200 {
            timeline.identification(&identification(Some(vec![(&format!("action {number}"), 1), ("on", 1)])));
        }
        assert_eq!((timeline.marks.len(), timeline.commands), (100, 200));
        assert_eq!(timeline.lanes.len(), MOST_ACTIONS + 1);
        assert_eq!(timeline.lanes.last(), Some(&FramerInput::OtherActions));
        let last = timeline.marks.last().unwrap();
        assert_eq!(last.bars, [(MOST_ACTIONS, 1), (1, 1)]);
    }
}
