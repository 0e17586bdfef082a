//! What models know about a gateway's records (their `[noise]`), looked up by flow and size.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use sizeleak_flow_models::FlowModels;
use sizeleak_frame::{Direction, Flow, Record, Session};
use sizeleak_model::{
    Action, Basis, Choice, GatewayRecords, Kind, MIN_OCCURRENCES, Model, ModelSet, NoiseStatistics, RecordLayout,
    ServiceRecords,
};

/// Sizes may be this many bytes outside the range of the model: labelled commands may not have shown every ε.
const SLACK: i64 = 4;

/// Length fields grow with what they measure, by less than this part of it.
const GROWTH: i64 = 32;

/// Labelled commands whose size differs by at most this many bytes show how many of a size to expect.
const NEAR: i64 = 8;

/// How many commands to expect of a size that no labelled command has.
const MIN_EXPECTED: f64 = 0.25;

/// Answers seen this often are answers at any time.
pub(crate) const WELL_KNOWN: u64 = 8;

#[derive(Debug)]
pub(crate) struct NoiseModel {
    basis: Basis,
    pub(crate) noise: NoiseStatistics,
    pub(crate) has_interval_timers: bool,
    /// Whether commands came as answers to requests.
    pub(crate) polls: bool,
    /// Records to the gateway and from it by size. Only looked up, so the order of the tables never shows.
    service: HashMap<u32, ServiceRecords, RandomState>,
    gateway: HashMap<u32, GatewayRecords, RandomState>,
    command_range: [i64; 2],
    /// How often commands of these sizes were labelled, smallest first.
    labelled: Vec<(i64, u64)>,
}

impl NoiseModel {
    /// What a model knows; `None` if it knows nothing about records that are not commands.
    pub(crate) fn new(model: &Model) -> Option<Self> {
        let noise = model.noise.clone()?;
        let mut labelled: Vec<(i64, u64)> =
            model.neighbours.tuples().iter().map(|tuple| (tuple.size, tuple.times)).collect();
        labelled.sort_by_key(|(size, _)| *size);
        // A few records without an answer show nothing.
        let known =
            noise.from_gateway.iter().filter(|records| records.times >= MIN_OCCURRENCES || records.answered > 0);
        Some(Self {
            basis: model.learned.basis.clone(),
            has_interval_timers: noise.to_gateway.iter().any(|records| records.every_ms.is_some()),
            polls: noise.from_gateway.iter().any(GatewayRecords::brings_commands),
            service: noise.to_gateway.iter().map(|records| (records.size, *records)).collect(),
            gateway: known.map(|records| (records.size, *records)).collect(),
            command_range: command_range(model),
            labelled,
            noise,
        })
    }

    pub(crate) fn size(&self, record: &Record) -> u32 {
        size_in_basis(&self.basis, record)
    }

    pub(crate) fn service(&self, size: u32) -> Option<&ServiceRecords> {
        self.service.get(&size)
    }

    pub(crate) fn gateway(&self, size: u32) -> Option<&GatewayRecords> {
        self.gateway.get(&size)
    }

    pub(crate) fn labelled_commands(&self, size: u32) -> u64 {
        let in_tuples = self.labelled_between([i64::from(size); 2]);
        self.service(size).map_or(0, |records| records.commands).max(in_tuples).max(self.is_continued(size).into())
    }

    fn labelled_between(&self, [min, max]: [i64; 2]) -> u64 {
        let from = self.labelled.partition_point(|(size, _)| *size < min);
        let between = self.labelled.iter().skip(from).take_while(|(size, _)| *size <= max);
        between.fold(0, |sum: u64, (_, times)| sum.saturating_add(*times))
    }

    pub(crate) fn is_continued(&self, size: u32) -> bool {
        self.noise.continued.contains(&size)
    }

    pub(crate) fn full_size(&self, direction: Direction) -> Option<u32> {
        match direction {
            Direction::ToGateway => self.noise.full_to_gateway,
            Direction::FromGateway => self.noise.full_from_gateway,
        }
    }

    /// Whether some actions make up a command of this size.
    pub(crate) fn is_explained(&self, size: u32) -> bool {
        let [min, max] = self.command_range;
        // The first part of a command says nothing about the size of the whole.
        self.noise.written == RecordLayout::Parts || self.is_continued(size) || (min..=max).contains(&size.into())
    }

    pub(crate) fn expected_commands(&self, size: u32) -> f64 {
        let near = self.labelled_between([i64::from(size).saturating_sub(NEAR), i64::from(size).saturating_add(NEAR)]);
        let labelled = self.labelled_commands(size) as f64;
        labelled.max(near as f64 / (2 * NEAR + 1) as f64).max(MIN_EXPECTED)
    }
}

#[derive(Debug)]
pub(crate) struct NoiseModels {
    flows: FlowModels,
    /// Whether commands or reports are looked for.
    direction: Direction,
    /// Of each section; `None` where it knows nothing about records that are not commands.
    sections: Vec<Option<NoiseModel>>,
}

impl NoiseModels {
    /// What the sections know; `None` if none of them knows anything about records that are not commands.
    pub(crate) fn new(models: &ModelSet, direction: Direction) -> Option<Self> {
        let sections: Vec<Option<NoiseModel>> = models.sections().iter().map(NoiseModel::new).collect();
        sections.iter().any(Option::is_some).then(|| Self {
            flows: FlowModels::new(models.scopes()),
            direction,
            sections,
        })
    }

    pub(crate) fn add_flow(&mut self, flow: &Flow) {
        self.flows.add_flow(flow);
    }

    pub(crate) fn add_session(&mut self, session: &Session) {
        self.flows.add_session(session);
    }

    #[inline]
    pub(crate) fn of_flow(&mut self, flow: u64) -> Option<&NoiseModel> {
        match self.flows.choose(flow, self.direction) {
            Choice::Covered(section) | Choice::Assumed(section, _) => self.sections.get(section)?.as_ref(),
            Choice::Uncovered(_) => None,
        }
    }
}

/// The size of a record in a basis: the middle of its range.
pub(crate) fn size_in_basis(basis: &Basis, record: &Record) -> u32 {
    // Commands of a session that the basis does not fit are refused by later stages; until then any size serves.
    let sizes = basis.sizes(record.length.into(), 1, record.plaintext);
    let [min, max] = sizes.unwrap_or([record.length.into(); 2]);
    u32::try_from(min.max(0).saturating_add(max.saturating_sub(min).max(0) / 2)).unwrap_or(u32::MAX)
}

/// The least and greatest size that actions make up or a labelled command has.
pub(crate) fn command_range(model: &Model) -> [i64; 2] {
    let sizes = || model.actions.iter().flat_map(Action::size_range);
    let tuples = model.neighbours.tuples();
    let epsilons = || tuples.iter().map(|tuple| tuple.epsilon);
    let kind_sizes = || model.kinds.iter().flat_map(|kinds| &kinds.list).flat_map(Kind::size_range);
    let labelled = || tuples.iter().map(|tuple| tuple.size).chain(kind_sizes());
    let least = sizes().min().map(|size| model.overhead.saturating_add(size));
    let least = least.map(|one_action| one_action.saturating_add(epsilons().min().unwrap_or(0)));
    let min = least.into_iter().chain(labelled()).min().unwrap_or(0);
    let max_actions = model.limits().map_or(u32::MAX, |limits| limits.max_actions());
    let max = if max_actions == u32::MAX {
        i64::MAX
    } else {
        let all = sizes().max().unwrap_or(0).saturating_mul(max_actions.into()).saturating_add(model.overhead);
        let all = all.saturating_add(epsilons().max().unwrap_or(0)).max(labelled().max().unwrap_or(0));
        all.saturating_add(all / GROWTH)
    };
    [min.saturating_sub(SLACK), max.saturating_add(SLACK)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::model;

    #[test]
    fn a_size_is_explained_if_actions_of_the_inventory_make_it_up() {
        let noise_model = NoiseModel::new(&model(NoiseStatistics::default())).unwrap();
        // |ac| = 60, three devices with actions of 40 and 41 bytes, ε from −1 to 1.
        assert!([95, 100, 141, 184, 193].into_iter().all(|size| noise_model.is_explained(size)));
        assert!([0, 23, 94, 300, u32::MAX].into_iter().all(|size| !noise_model.is_explained(size)));
        let mut unlimited = model(NoiseStatistics::default());
        unlimited.inventory = None;
        assert!(NoiseModel::new(&unlimited).unwrap().is_explained(100_000), "nothing limits the number of actions");
        let parts = NoiseStatistics { written: RecordLayout::Parts, ..NoiseStatistics::default() };
        assert!(NoiseModel::new(&model(parts)).unwrap().is_explained(23));
    }

    #[test]
    fn commands_are_expected_at_and_near_labelled_sizes() {
        let records = ServiceRecords { size: 143, commands: 7, ..ServiceRecords::default() };
        let noise = NoiseStatistics { to_gateway: vec![records], ..NoiseStatistics::default() };
        let noise_model = NoiseModel::new(&model(noise)).unwrap();
        assert!((noise_model.expected_commands(101) - 20.0 / 17.0).abs() < 1e-12);
        assert!((noise_model.expected_commands(143) - 7.0).abs() < 1e-12);
        assert!((noise_model.expected_commands(120) - MIN_EXPECTED).abs() < 1e-12);
        assert!(NoiseModel::new(&Model { noise: None, ..model(NoiseStatistics::default()) }).is_none());
    }

    #[test]
    fn the_size_of_an_inverted_or_huge_range_is_in_bounds() {
        let plaintext = |range| Record { plaintext: Some(range), ..crate::testing::to(0, 100) };
        let basis = model(NoiseStatistics::default()).learned.basis;
        assert_eq!(size_in_basis(&basis, &plaintext([10, 20])), 15);
        assert_eq!(size_in_basis(&basis, &plaintext([20, 10])), 20);
        assert_eq!(size_in_basis(&basis, &plaintext([0, u64::MAX])), u32::MAX);
        assert_eq!(size_in_basis(&basis, &plaintext([u64::MAX; 2])), u32::MAX);
        assert_eq!(size_in_basis(&Basis::Wire, &plaintext([10, 10])), 124);
    }
}
