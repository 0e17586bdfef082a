//! The lanes of a timeline: one for each action, in groups by section of the model, or else by gateway and service, and one
//! for each kind of deviation.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use super::timeline::{Mark, Timeline};

/// The number of actions with a lane of their own; the others share one.
const MAX_ACTIONS: usize = 40;

/// The number of sections, or gateways and services, with a group of their own; the others share one.
const MAX_GROUPS: usize = 20;

const MAX_KINDS: usize = 12;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Commands with this action, by the order in which actions are first seen.
    Action(usize, Arc<str>),
    OtherActions,
    NoAction,
    Unexplained,
    Deviation(String),
}

/// The lanes of a section, of a gateway and service, or of deviations.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) lanes: Vec<Lane>,
}

#[derive(Debug, Default)]
pub(super) struct Lanes {
    /// By gateway, and then by service; deviations come last.
    pub(super) groups: Vec<Group>,
    /// In which lanes each command is, with the number of actions; the lanes of all groups are counted from the first.
    pub(super) marks: Vec<Vec<(usize, u64)>>,
    /// The same of each label; none if it is not known which gateway it is of.
    pub(super) truths: Vec<Vec<(usize, u64)>>,
    pub(super) incidents: Vec<usize>,
    /// The greatest number of one action in a command or label: the scale of all lanes.
    pub(super) most: u64,
}

/// What groups are ordered by: sections of models come first, unknown gateways and services last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKey {
    Section(String),
    Ends { has_no_gateway: bool, gateway: Option<IpAddr>, service: Service },
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Service {
    Named(Box<str>),
    /// One without a name, by its port: the addresses of a cloud change, and are not what lanes are about.
    AtPort(u16),
    Unknown,
}

#[derive(Default)]
struct Found {
    /// The actions of all groups in the order in which they are first seen.
    actions: Vec<Arc<str>>,
    /// By their groups.
    lanes: BTreeSet<(usize, Lane)>,
}

impl Lanes {
    pub(super) fn of(timeline: &Timeline) -> Self {
        let (keys, group_of_flow) = groups(timeline);
        let group_of = |mark: &Mark| group_of_flow.get(&mark.flow).copied().unwrap_or(0);
        let names = group_names(timeline, &keys, &group_of_flow);
        let mut found = Found::default();
        let marks = timeline.marks.iter().map(|mark| match (group_of(mark), &mark.best) {
            (group, Some(best)) => found.of_actions(group, &best.actions),
            (group, None) => vec![(found.lane(group, Lane::Unexplained), 0)],
        });
        let marks: Vec<_> = marks.collect();
        let truths = timeline.truths.iter().map(|truth| {
            let mark = truth.command.and_then(|at| timeline.marks.get(at));
            let group = mark.map(group_of).or((names.len() == 1).then_some(0));
            group.map_or_else(Vec::new, |group| found.of_actions(group, &truth.actions))
        });
        let truths: Vec<_> = truths.collect();
        let (marks, truths) = (found.bars(marks), found.bars(truths));
        let most = marks.iter().chain(&truths).flatten().map(|(_, count)| *count).max().unwrap_or(0);
        let mut groups: Vec<Group> = names.into_iter().map(|name| Group { name, lanes: Vec::new() }).collect();
        for (group, lane) in found.lanes {
            if let Some(group) = groups.get_mut(group) {
                group.lanes.push(lane);
            }
        }
        let mut lanes = Self { groups, marks, truths, incidents: Vec::new(), most };
        lanes.add_deviations(timeline);
        lanes
    }

    fn add_deviations(&mut self, timeline: &Timeline) {
        let kinds: BTreeSet<&str> = timeline.incidents.iter().map(|incident| incident.what.as_str()).collect();
        if kinds.is_empty() {
            return;
        }
        let first = self.count();
        let mut lanes: Vec<Lane> = kinds.iter().take(MAX_KINDS).map(|kind| Lane::Deviation((*kind).into())).collect();
        let lane = |kind: &str| kinds.iter().take(MAX_KINDS).position(|known| *known == kind).unwrap_or(MAX_KINDS);
        self.incidents = timeline.incidents.iter().map(|incident| first + lane(&incident.what)).collect();
        lanes.extend((kinds.len() > MAX_KINDS).then(|| Lane::Deviation("other kinds".into())));
        self.groups.push(Group { name: "deviations".to_owned(), lanes });
    }

    pub(super) fn count(&self) -> usize {
        self.groups.iter().map(|group| group.lanes.len()).sum()
    }
}

fn groups(timeline: &Timeline) -> (Vec<GroupKey>, BTreeMap<u64, usize>) {
    let key = |flow: u64| {
        if let Some(section) = timeline.sections.get(&flow) {
            return GroupKey::Section(section.clone());
        }
        let (gateway, ends) = (timeline.gateway(flow), timeline.names.ends(flow));
        let named = ends.and_then(|ends| ends.server_name.clone()).map(Service::Named);
        let at_port = || ends.and_then(|ends| ends.service).map(|service| Service::AtPort(service.port()));
        let service = named.or_else(at_port).unwrap_or(Service::Unknown);
        GroupKey::Ends { has_no_gateway: gateway.is_none(), gateway, service }
    };
    let flows: Vec<(u64, GroupKey)> = timeline.flows().into_iter().map(|flow| (flow, key(flow))).collect();
    let mut keys: Vec<GroupKey> = flows.iter().map(|(_, key)| key.clone()).collect();
    keys.sort_unstable();
    keys.dedup();
    let group = |key: &GroupKey| keys.binary_search(key).unwrap_or(0).min(MAX_GROUPS - 1);
    let groups = flows.iter().map(|(flow, key)| (*flow, group(key))).collect();
    (keys, groups)
}

fn group_names(timeline: &Timeline, keys: &[GroupKey], group_of_flow: &BTreeMap<u64, usize>) -> Vec<String> {
    let addresses = |group: usize| -> BTreeSet<SocketAddr> {
        let flows = group_of_flow.iter().filter(|(_, of_flow)| **of_flow == group);
        flows.filter_map(|(flow, _)| timeline.names.ends(*flow)?.service).collect()
    };
    let name = |(group, key): (usize, &GroupKey)| match key {
        GroupKey::Section(section) => section.clone(),
        GroupKey::Ends { gateway, service, .. } => {
            let gateway = gateway.map_or_else(|| "unknown gateway".to_owned(), |gateway| gateway.to_string());
            let addresses = addresses(group);
            let service = match (service, addresses.first()) {
                (Service::Named(name), _) => name.to_string(),
                (Service::AtPort(_), Some(only)) if addresses.len() == 1 => only.to_string(),
                (Service::AtPort(port), _) => format!("{} addresses at port {port}", addresses.len()),
                (Service::Unknown, _) => "an unknown service".to_owned(),
            };
            format!("{gateway} and {service}")
        }
    };
    let mut names: Vec<String> = keys.iter().take(MAX_GROUPS).enumerate().map(name).collect();
    if let (Some(last), true) = (names.last_mut(), keys.len() > MAX_GROUPS) {
        *last = format!("{} other gateways and services", keys.len() + 1 - MAX_GROUPS);
    }
    names
}

impl Found {
    /// The lanes by their numbers, once all are found.
    fn bars(&self, all: Vec<Vec<((usize, Lane), u64)>>) -> Vec<Vec<(usize, u64)>> {
        let numbers: BTreeMap<&(usize, Lane), usize> = self.lanes.iter().zip(0..).collect();
        let bars = |own: Vec<_>| own.iter().filter_map(|(lane, count)| Some((*numbers.get(lane)?, *count))).collect();
        all.into_iter().map(bars).collect()
    }

    /// The lanes of a command or label, with the number of actions in each.
    fn of_actions(&mut self, group: usize, actions: &[(Arc<str>, u64)]) -> Vec<((usize, Lane), u64)> {
        let mut bars: Vec<((usize, Lane), u64)> = Vec::new();
        for (name, count) in actions.iter().filter(|(_, count)| *count > 0) {
            let lane = self.lane_of_action(group, name);
            match bars.iter_mut().find(|(known, _)| *known == lane) {
                Some((_, sum)) => *sum += count,
                None => bars.push((lane, *count)),
            }
        }
        if bars.is_empty() {
            bars.push((self.lane(group, Lane::NoAction), 0));
        }
        bars
    }

    fn lane_of_action(&mut self, group: usize, name: &Arc<str>) -> (usize, Lane) {
        let at = self.actions.iter().position(|known| known == name).unwrap_or(self.actions.len());
        if at == self.actions.len() && at < MAX_ACTIONS {
            self.actions.push(Arc::clone(name));
        }
        let lane = if at < MAX_ACTIONS { Lane::Action(at, Arc::clone(name)) } else { Lane::OtherActions };
        self.lane(group, lane)
    }

    fn lane(&mut self, group: usize, lane: Lane) -> (usize, Lane) {
        self.lanes.insert((group, lane.clone()));
        (group, lane)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{deviation, flow, identification};
    use super::super::timeline::{CommandFilter, Truth};
    use super::*;

    fn timeline(frames: &[sizeleak_frame::Frame]) -> Timeline {
        let mut timeline = Timeline::new(10_000, CommandFilter::default());
        for frame in frames {
            timeline.take(frame);
        }
        timeline
    }

    fn names(lanes: &[Lane]) -> Vec<String> {
        let name = |lane: &Lane| match lane {
            Lane::Action(_, name) => name.to_string(),
            other => format!("{other:?}"),
        };
        lanes.iter().map(name).collect()
    }

    #[test]
    fn every_command_has_a_lane_and_all_lanes_one_scale() {
        let actions = [None, Some(vec![("on", 2), ("off", 1)]), Some(vec![("off", 0)]), Some(vec![("off", 3)])];
        let lanes = Lanes::of(&timeline(&actions.map(|actions| identification(1, actions))));
        assert_eq!(names(&lanes.groups[0].lanes), ["on", "off", "NoAction", "Unexplained"], "in a stable order");
        assert_eq!(lanes.marks, [vec![(3, 0)], vec![(0, 2), (1, 1)], vec![(2, 0)], vec![(1, 3)]]);
        assert_eq!((lanes.most, lanes.count()), (3, 4));
    }

    #[test]
    fn groups_are_ordered_by_gateway_and_service_not_by_flow() {
        let on = |flow| identification(flow, Some(vec![("on", 1)]));
        let frames = [
            flow(9, "192.0.2.20", "203.0.113.1:80"),
            flow(1, "192.0.2.20", "203.0.113.2:443"),
            flow(7, "192.0.2.3", "203.0.113.2:443"),
            flow(8, "192.0.2.3", "203.0.113.2:443"),
            on(5),
            on(1),
            on(9),
            on(7),
            on(8),
        ];
        let lanes = Lanes::of(&timeline(&frames));
        let groups: Vec<&str> = lanes.groups.iter().map(|group| group.name.as_str()).collect();
        let expected = [
            "192.0.2.3 and 203.0.113.2:443",
            "192.0.2.20 and 203.0.113.1:80",
            "192.0.2.20 and 203.0.113.2:443",
            "unknown gateway and an unknown service",
        ];
        assert_eq!(groups, expected);
        assert_eq!(lanes.marks.concat(), [(3, 1), (2, 1), (1, 1), (0, 1), (0, 1)]);
    }

    #[test]
    fn services_without_a_name_share_lanes_by_port_and_sections_of_models_come_first() {
        let flows = (1..=19_u64).map(|at| flow(at, "192.0.2.3", &format!("203.0.113.{at}:443")));
        let commands = (1..=19).map(|flow| identification(flow, Some(vec![("lock", 1)])));
        let mut timeline = timeline(&flows.chain(commands).collect::<Vec<_>>());
        let groups = |timeline: &Timeline| {
            let groups = Lanes::of(timeline).groups;
            groups.into_iter().map(|group| (group.name, group.lanes.len())).collect::<Vec<_>>()
        };
        assert_eq!(groups(&timeline), [("192.0.2.3 and 19 addresses at port 443".to_owned(), 1)]);
        let last: SocketAddr = "203.0.113.19:443".parse().unwrap();
        timeline.set_sections(|_, service, _| (service != Some(last)).then(|| "lock".to_owned()));
        let expected = [("lock".to_owned(), 1), (format!("192.0.2.3 and {last}"), 1)];
        assert_eq!(groups(&timeline), expected, "a flow of no section has lanes of its own");
    }

    #[test]
    fn lanes_are_bounded() {
        let one = |number: u64| identification(1, Some(vec![(&*format!("action {number}"), 1), ("on", 1)]));
        let lanes = Lanes::of(&timeline(&(0..200).map(one).collect::<Vec<_>>()));
        assert_eq!((lanes.count(), lanes.groups[0].lanes.last()), (MAX_ACTIONS + 1, Some(&Lane::OtherActions)));
        assert_eq!(lanes.marks[199], [(MAX_ACTIONS, 1), (1, 1)]);
        let service = |number: u64| flow(number, "192.0.2.20", &format!("203.0.113.1:{}", 1000 + number));
        let many = (0..200).flat_map(|number| [service(number), identification(number, None)]);
        let lanes = Lanes::of(&timeline(&many.collect::<Vec<_>>()));
        assert_eq!(lanes.groups.len(), MAX_GROUPS);
        assert_eq!(lanes.groups[MAX_GROUPS - 1].name, "181 other gateways and services");
    }

    #[test]
    fn deviations_have_a_lane_for_each_kind_behind_those_of_actions() {
        let kinds = ["silence", "burst", "silence"];
        let mut frames: Vec<_> = (6..).zip(kinds).map(|(time_ns, kind)| deviation(kind, time_ns, "", 1)).collect();
        let alone = Lanes::of(&timeline(&frames));
        assert_eq!((names(&alone.groups[0].lanes).len(), &alone.incidents[..]), (2, &[1, 0, 1][..]));
        frames.insert(0, identification(1, Some(vec![("on", 1)])));
        let lanes = Lanes::of(&timeline(&frames));
        assert_eq!(names(&lanes.groups[1].lanes), ["Deviation(\"burst\")", "Deviation(\"silence\")"]);
        assert_eq!((&lanes.incidents[..], &lanes.marks[..]), (&[2, 1, 2][..], &[vec![(0, 1)]][..]));
        let many: Vec<_> = (0..200).map(|at| deviation(&format!("kind {at:03}"), 5, "", 1)).collect();
        let lanes = Lanes::of(&timeline(&many));
        assert_eq!((lanes.count(), lanes.incidents[199]), (MAX_KINDS + 1, MAX_KINDS));
        assert_eq!(lanes.groups[0].lanes.last(), Some(&Lane::Deviation("other kinds".into())));
    }

    #[test]
    fn labels_are_in_the_lanes_of_their_command() {
        let mut timeline = timeline(&[
            flow(1, "192.0.2.3", "203.0.113.2:443"),
            flow(2, "192.0.2.4", "203.0.113.2:443"),
            identification(2, Some(vec![("on", 1)])),
            identification(1, None),
        ]);
        for command in [Some(0), Some(1), None] {
            timeline.add_truth(Truth { time_ns: 0, actions: vec![("dim".into(), 7), ("on".into(), 0)], command });
        }
        let lanes = Lanes::of(&timeline);
        assert_eq!(names(&lanes.groups[0].lanes), ["dim", "Unexplained"]);
        assert_eq!((&lanes.truths[..], lanes.most), (&[vec![(3, 7)], vec![(0, 7)], vec![]][..], 7));
    }
}
