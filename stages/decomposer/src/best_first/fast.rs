//! The fast path where most ways to make up some sums are wanted: finds all of them by depth-first search, and sorts
//! them at the end. It takes a fraction of the time of best-first search.
//!
//! Ways, weights and order are those of best-first search, to the last bit. To that end, a way's weight is the weight
//! that its deviation had there, and ways of equal weight are in the order in which their deviations were added there.

use sizeleak_model::Rank;

use crate::deviation::Deviation;
use crate::weight_table::{MAX_BRANCHES, WeightTable, WeightedWay};

/// With more layers, walking a way takes as long as finding the next best one.
const MAX_LAYERS: usize = 512;

/// Finding up to this many times the ways wanted is still faster.
const MAX_SURPLUS: u64 = 8;

/// The most ways that are kept in memory.
const MAX_WAYS: u64 = 1 << 16;

/// All ways to make up some sums.
#[derive(Debug, Default)]
struct AllWays {
    ways: Vec<FoundWay>,
    /// The actions of all ways with their counts, those of one way by their indexes in the model's list.
    counts: Vec<(u32, u32)>,
}

#[derive(Debug, Clone, Copy)]
struct FoundWay {
    /// Numbered among those of its parent, or among the sums.
    start: Deviation,
    /// Where its counts begin.
    begin: usize,
}

/// Visits all `count` ways like best-first search. Returns whether it did; if not, best-first search is as good.
pub(super) fn visit_ways(
    weights: &WeightTable,
    sums: &[(usize, f64)],
    count: u64,
    max_ways: usize,
    visit: &mut impl FnMut(WeightedWay<'_>) -> bool,
) -> bool {
    if count > (max_ways as u64).saturating_mul(MAX_SURPLUS).min(MAX_WAYS) {
        return false;
    }
    let Some(all) = AllWays::find(weights, sums) else { return false };
    let _stopped = all.order().into_iter().take(max_ways).filter_map(|at| all.way(at)).all(visit);
    true
}

impl AllWays {
    /// `None` if best-first search would end early, or is as good.
    fn find(weights: &WeightTable, sums: &[(usize, f64)]) -> Option<Self> {
        let layers = weights.layers();
        if layers > MAX_LAYERS {
            return None;
        }
        let mut all = Self::default();
        let (mut pending, mut branches, mut visited) = (Vec::new(), Vec::new(), 0);
        // How many are taken of each action, in the order of the model's list.
        let mut counts = vec![0; layers];
        for start in Deviation::starts(weights, sums) {
            pending.push(start);
            while let Some(start) = pending.pop() {
                let mut take = |layer: usize, taken: u32| {
                    if let Some(count) = weights.action(layer).and_then(|action| counts.get_mut(action)) {
                        *count = taken;
                    }
                };
                if let Some(layer_before) = start.entry.layer.checked_sub(1) {
                    take(layer_before, start.taken);
                }
                let (way, mut number) = (all.ways.len(), 0);
                let deviate = |branch| {
                    pending.push(start.branch_off(branch, way, number));
                    number += 1;
                };
                visited += weights.walk(start.entry, &mut branches, deviate, take);
                all.ways.push(FoundWay { start, begin: all.counts.len() });
                all.counts.extend((0..).zip(counts.iter().copied()).filter(|(_, taken)| *taken > 0));
                if visited > MAX_BRANCHES {
                    return None;
                }
            }
        }
        Some(all)
    }

    fn way(&self, at: usize) -> Option<WeightedWay<'_>> {
        let FoundWay { start: Deviation { sum, ln_best: ln_weight, .. }, begin } = *self.ways.get(at)?;
        let end = self.ways.get(at + 1).map_or(self.counts.len(), |next| next.begin);
        Some(WeightedWay { sum, actions: self.counts.get(begin..end)?, ln_weight })
    }

    /// The indexes of the ways, most probable first.
    fn order(&self) -> Vec<usize> {
        let mut ranks: Vec<Rank> =
            self.ways.iter().zip(0..).map(|(way, at)| Rank::new(way.start.ln_best, at)).collect();
        ranks.sort_unstable();
        let mut order = Vec::with_capacity(ranks.len());
        // Each way's position in the order, from 1; 0 as long as it has none.
        let mut positions = vec![0; ranks.len()];
        for equals in ranks.chunk_by(|a, b| a.is_tied_with(*b)) {
            let begin = order.len();
            match equals {
                [only] => order.push(only.index()),
                _ => self.order_equals(equals, &positions, &mut order),
            }
            for (position, at) in order.iter().enumerate().skip(begin) {
                if let Some(slot) = positions.get_mut(*at) {
                    *slot = position + 1;
                }
            }
        }
        order
    }

    /// Orders ways of equal weight as best-first search finds them: first the deviations from ways found before, in the
    /// order of those, then the deviations from ways of this weight.
    fn order_equals(&self, equals: &[Rank], positions: &[usize], order: &mut Vec<usize>) {
        let way = |at: usize| self.ways.get(at).map_or((None, 0), |way| (way.start.parent, way.start.number));
        let position = |parent: Option<usize>| parent.and_then(|parent| positions.get(parent)).copied().unwrap_or(0);
        let is_added = |parent: Option<usize>| parent.is_none() || position(parent) > 0;
        let (mut added, mut later): (Vec<usize>, Vec<usize>) =
            equals.iter().map(|equal| equal.index()).partition(|at| is_added(way(*at).0));
        added.sort_unstable_by_key(|at| (position(way(*at).0), way(*at).1));
        later.sort_unstable_by_key(|at| way(*at));
        let mut next = 0;
        while let Some(at) = added.get(next).copied() {
            let from = later.partition_point(|later| way(*later).0 < Some(at));
            added.extend(later.iter().skip(from).take_while(|later| way(**later).0 == Some(at)));
            next += 1;
        }
        order.extend(added);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sizeleak_model::{Action, Device, Inventory, Limits, Prior};

    use super::*;
    use crate::best_first::BestFirst;
    use crate::prior_walk::WalkPrior;

    fn limits(devices: u32, actions: usize) -> Limits {
        let names: Vec<String> = (0..actions).map(|at| at.to_string()).collect();
        let device =
            |name: &str, count, actions: &[String]| Device { name: name.into(), count, actions: actions.to_vec() };
        let devices = vec![device("all", devices, &names), device("last", 2, &names[actions - 1..])];
        let actions: Vec<Action> = names.into_iter().map(|name| Action::new(name, 1)).collect();
        Inventory { devices }.limits(&actions).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn fast_path_agrees_with_best_first_search_to_the_last_bit(
            sizes in prop::collection::vec(1usize..9, 1..5),
            // Few shares and sizes: many ways have equal weights.
            shares in prop::collection::vec((1u8..4).prop_map(f64::from), 5),
            numbers in prop::collection::vec((1u8..3).prop_map(f64::from), 1..5),
            concentration in prop_oneof![Just(1e9), 0.5f64..50.0],
            devices in prop::option::of(1u32..6),
            sums in prop::collection::btree_map(1usize..30, prop_oneof![Just(0.5), 0.01f64..1.0], 1..5),
            max_ways in 1usize..400,
        ) {
            let shares: Vec<f64> = shares.into_iter().take(sizes.len()).collect();
            let (all_shares, all_numbers) = (shares.iter().sum::<f64>(), numbers.iter().sum::<f64>());
            let shares = shares.iter().map(|share| share / all_shares).collect();
            let numbers = numbers.iter().map(|share| share / all_numbers * 0.9).collect();
            let prior = Prior { numbers, decay: 0.6, shares, concentration, recurring: Vec::new() };
            let limits = devices.map_or(Limits::free(sizes.len()), |count| limits(count, sizes.len()));
            let sums: Vec<(usize, f64)> = sums.into_iter().map(|(sum, weight)| (sum, weight.ln())).collect();
            let tables =
                [WeightTable::exact(&sizes, &limits, &WalkPrior::Habit(&prior)), WeightTable::geometric(&sizes, &limits, &prior)];
            for table in tables {
                let mut table = table.unwrap();
                let largest = devices.map_or(30, |count| 30.min((count as usize + 2) * sizes.iter().max().unwrap()));
                prop_assert!(table.prepare(largest));
                let visited = |way: WeightedWay<'_>| (way.sum, way.actions.to_vec(), way.ln_weight.to_bits());
                let (mut fast, mut slow) = (Vec::new(), Vec::new());
                let mut visit = |way: WeightedWay<'_>| { fast.push(visited(way)); true };
                prop_assert!(visit_ways(&table, &sums, 1, max_ways, &mut visit));
                let mut search = BestFirst::new(&table, &sums, max_ways);
                while let Some(way) = search.advance() {
                    slow.push(visited(way));
                }
                prop_assert_eq!(fast, slow);
            }
        }
    }
}
