//! What a model knows of a gateway's records, looked up by size.

use sizeleak_frame::{Direction, Record};
use sizeleak_model::{Basis, GatewayRecords, MIN_OCCURRENCES, Model, NoiseStatistics, RecordLayout, ServiceRecords};

use crate::by_size::BySize;
use crate::exchange::Heard;

/// A command is this much shorter or longer than the model's sizes make one, at most: what ε may not have shown yet.
const SLACK: i64 = 4;

/// Length fields grow with what they measure, by less than a part in so many.
const GROWTH: i64 = 32;

/// Commands nearly as long as a record, in bytes, tell how many of its length are to be expected.
const NEAR: i64 = 8;

/// What was not seen to be a command is expected to be one so often.
const LEAST_EXPECTED: f64 = 0.25;

/// What is known so well that its time matters no more.
pub(crate) const WELL_KNOWN: u64 = 8;

/// What a model knows of records.
#[derive(Debug)]
pub(crate) struct Knowledge {
    basis: Basis,
    pub(crate) noise: NoiseStatistics,
    has_timers: bool,
    /// The noise to the gateway, and what it sends.
    service: BySize<ServiceRecords>,
    gateway: BySize<GatewayRecords>,
    /// The sizes a command may have at all, from the least to the most.
    explained: [i64; 2],
    /// How often commands of these sizes were labelled, smallest first.
    labelled: Vec<(i64, u64)>,
}

impl Knowledge {
    /// What a model knows; `None` where it holds nothing of records that are no commands.
    pub(crate) fn of(model: &Model) -> Option<Self> {
        let noise = model.noise.clone()?;
        let mut labelled: Vec<(i64, u64)> =
            model.neighbours.tuples().iter().map(|tuple| (tuple.size, tuple.times)).collect();
        labelled.sort_by_key(|(size, _)| *size);
        let service = BySize::new(noise.to_gateway.iter().map(|kind| (kind.size, *kind)));
        // That a few have no answer means nothing.
        let known = noise.from_gateway.iter().filter(|kind| kind.times >= MIN_OCCURRENCES || kind.answered > 0);
        let gateway = BySize::new(known.map(|kind| (kind.size, *kind)));
        Some(Self {
            explained: explained(model),
            labelled,
            basis: model.learned.basis.clone(),
            has_timers: noise.to_gateway.iter().any(|kind| kind.every_ms.is_some()),
            noise,
            service,
            gateway,
        })
    }

    /// What is heard, with the size that it has in the model's basis.
    pub(crate) fn in_basis<'a>(&self, heard: Heard<'a>) -> Heard<'a> {
        Heard { size: size(&self.basis, heard.record), ..heard }
    }

    /// Whether some noise comes on a timer that runs on, so that it matters when it came before.
    pub(crate) fn has_timers(&self) -> bool {
        self.has_timers
    }

    /// What is known of records of a size to the gateway.
    pub(crate) fn service(&self, size: u32) -> Option<&ServiceRecords> {
        self.service.get(size)
    }

    /// What is known of records of a size from the gateway.
    pub(crate) fn gateway(&self, size: u32) -> Option<&GatewayRecords> {
        self.gateway.get(size)
    }

    /// How many labelled commands have a size.
    pub(crate) fn commands(&self, size: u32) -> u64 {
        let times = self.labelled([i64::from(size); 2]);
        self.service(size).map_or(0, |kind| kind.commands).max(times)
    }

    /// How many labelled commands have a size from the least to the most.
    fn labelled(&self, [least, most]: [i64; 2]) -> u64 {
        let from = self.labelled.partition_point(|(size, _)| *size < least);
        let near = self.labelled.iter().skip(from).take_while(|(size, _)| *size <= most);
        near.fold(0, |sum: u64, (_, times)| sum.saturating_add(*times))
    }

    /// The size of a record that the next one continues, where messages are cut.
    pub(crate) fn full(&self, direction: Direction) -> Option<u32> {
        match direction {
            Direction::ToGateway => self.noise.full_to_gateway,
            Direction::FromGateway => self.noise.full_from_gateway,
        }
    }

    /// Whether a command can have a size: whether actions make it up.
    pub(crate) fn is_explained(&self, size: u32) -> bool {
        let [least, most] = self.explained;
        // Of a command in parts the first says nothing of the whole.
        self.noise.written == RecordLayout::Parts || (least..=most).contains(&size.into())
    }

    /// How many commands of a size are to be expected where as many were as labelled.
    pub(crate) fn expected(&self, size: u32) -> f64 {
        let near = self.labelled([i64::from(size).saturating_sub(NEAR), i64::from(size).saturating_add(NEAR)]);
        let seen = self.commands(size) as f64;
        seen.max(near as f64 / (2 * NEAR + 1) as f64).max(LEAST_EXPECTED)
    }
}

/// The size of a record in a basis: the middle of those it may have.
pub(crate) fn size(basis: &Basis, record: &Record) -> u32 {
    // Where the basis does not fit the session its commands are refused later; until then any size serves.
    let sizes = basis.sizes(record.length.into(), 1, record.plaintext);
    let [least, most] = sizes.unwrap_or([record.length.into(); 2]);
    u32::try_from(least.max(0).saturating_add(most.saturating_sub(least).max(0) / 2)).unwrap_or(u32::MAX)
}

/// The least and the most that actions make up, and labelled commands have.
fn explained(model: &Model) -> [i64; 2] {
    let sizes = || model.actions.iter().map(|action| action.size);
    let tuples = model.neighbours.tuples();
    let epsilons = || tuples.iter().map(|tuple| tuple.epsilon);
    let labelled = || tuples.iter().map(|tuple| tuple.size);
    let one = model.overhead.saturating_add(sizes().min().unwrap_or(0));
    let least = one.saturating_add(epsilons().min().unwrap_or(0)).min(labelled().min().unwrap_or(one));
    let actions = model.limits().map_or(u32::MAX, |limits| limits.max_actions());
    let most = if actions == u32::MAX {
        i64::MAX
    } else {
        let all = sizes().max().unwrap_or(0).saturating_mul(actions.into()).saturating_add(model.overhead);
        let all = all.saturating_add(epsilons().max().unwrap_or(0)).max(labelled().max().unwrap_or(0));
        all.saturating_add(all / GROWTH)
    };
    [least.saturating_sub(SLACK), most.saturating_add(SLACK)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::model;

    #[test]
    fn what_actions_make_up_is_explained() {
        let knowledge = Knowledge::of(&model(NoiseStatistics::default())).unwrap();
        // |ac| = 60, three devices with actions of 40 and 41 bytes, ε from −1 to 1.
        assert!([95, 100, 141, 184, 193].into_iter().all(|size| knowledge.is_explained(size)));
        assert!([0, 23, 94, 300, u32::MAX].into_iter().all(|size| !knowledge.is_explained(size)));
        let mut free = model(NoiseStatistics::default());
        free.inventory = None;
        assert!(Knowledge::of(&free).unwrap().is_explained(100_000), "nothing limits the number of actions");
        let parts = NoiseStatistics { written: RecordLayout::Parts, ..NoiseStatistics::default() };
        assert!(Knowledge::of(&model(parts)).unwrap().is_explained(23));
    }

    #[test]
    fn commands_are_expected_near_those_labelled() {
        let seen = ServiceRecords { size: 143, commands: 7, ..ServiceRecords::default() };
        let knowledge =
            Knowledge::of(&model(NoiseStatistics { to_gateway: vec![seen], ..NoiseStatistics::default() })).unwrap();
        assert!((knowledge.expected(101) - 20.0 / 17.0).abs() < 1e-12);
        assert!((knowledge.expected(143) - 7.0).abs() < 1e-12);
        assert!((knowledge.expected(120) - LEAST_EXPECTED).abs() < 1e-12);
        assert!(Knowledge::of(&Model { noise: None, ..model(NoiseStatistics::default()) }).is_none());
    }

    #[test]
    fn a_hostile_range_is_some_size() {
        let plaintext = |range| Record { plaintext: Some(range), ..crate::testing::to(0, 100) };
        let basis = model(NoiseStatistics::default()).learned.basis;
        assert_eq!(size(&basis, &plaintext([10, 20])), 15);
        assert_eq!(size(&basis, &plaintext([20, 10])), 20);
        assert_eq!(size(&basis, &plaintext([0, u64::MAX])), u32::MAX);
        assert_eq!(size(&basis, &plaintext([u64::MAX; 2])), u32::MAX);
        assert_eq!(size(&Basis::Wire, &plaintext([10, 10])), 124);
    }
}
