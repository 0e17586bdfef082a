//! The actions that add up to a sum: how many multisets of them there are, and which are the most probable.
//!
//! The inventory is a small automaton (`automaton`) that all walks through the actions run over; a walk is a multiset
//! of actions. What the ways to go on from each of its states amount to (`way_table`) says how many there are
//! ([`WayCounts`]), or with the weights of a prior how probable they are ([`WayWeights`]). The heaviest
//! ones are found by [`HeaviestWays`]: depth first, heavier branches first, through all branches of which a way may weigh
//! at least a threshold. The threshold falls until enough ways are found; once there are more than wanted, it rises to the
//! lightest one that is kept. Of the ways, none but those kept are stored. Where sizes vary, a way (so many of each action)
//! has several sums, and its weight is that of all of them.
//!
//! ```
//! use sizeleak_inference::search::{HeaviestWays, WayCounts, WayWeights};
//! use sizeleak_model::{Action, Device, Inventory};
//!
//! let actions = [("on", 40), ("off", 41)].map(|(name, size)| Action::new(name, size));
//! let plugs = Device { name: "plug".into(), count: 3, actions: vec!["on".into(), "off".into()], safe: true };
//! let limits = Inventory { devices: vec![plugs] }.limits(&actions)?;
//!
//! let mut counts = WayCounts::new(&actions, &limits)?;
//! assert_eq!(counts.count(121)?, 1);
//! assert_eq!(counts.count(4 * 40)?, 0); // three plugs take at most three actions
//!
//! let mut weights = WayWeights::flat(&actions, &limits).expect("the table is small");
//! assert!(weights.prepare(121));
//! let ways = HeaviestWays::find(&weights, &[(121, 1.0)], 1, 10);
//! let found: Vec<_> = ways.iter().map(|way| (way.actions, way.probability)).collect();
//! assert_eq!(found, [(&[(0, 2), (1, 1)][..], 1.0)]); // `on` twice and `off` once
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod automaton;
mod way_counts;
mod way_table;
mod way_weights;

use sizeleak_model::Pmf;

use crate::search::way_table::{Heaviest, Ways};

pub use automaton::WalkPrior;
pub use way_counts::{RangeCount, SearchError, SumTooLarge, WayCounts};
pub use way_weights::WayWeights;

/// The first threshold, as a share of the weight of all ways, and by what thresholds fall.
const FIRST_SHARE: f64 = 1e-3;
const FALL: f64 = 8.0;

/// Up to so many times the ways wanted are all found at once, without a threshold...
const MAX_SURPLUS: u64 = 8;

/// ...but not more than these, which take some milliseconds.
const MAX_AT_ONCE: u64 = 1 << 16;

/// Where sizes vary, the search ends where the ways that are not found weigh less than this share together...
const NEGLIGIBLE: f64 = 1e-9;

/// ...or where none of them weighs as much as this one.
const MIN_SHARE: f64 = 1e-15;

/// The most branches that are looked at under one threshold, in numbers that their distributions have: a second's work.
const MAX_WORK: usize = 1 << 28;

#[derive(Debug, Clone, Default)]
pub struct HeaviestWays {
    found: Found,
    total: f64,
    ln_total: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Way<'a> {
    /// The index of its most probable sum among those asked for.
    pub sum: usize,
    /// The actions that occur, by their indexes in the model's list and in that order, and how often.
    pub actions: &'a [(u32, u32)],
    /// Its share of the weight of all ways.
    pub probability: f64,
}

#[derive(Debug, Clone, Default)]
struct Found {
    ways: Vec<FoundWay>,
    /// The actions of all ways with their counts.
    actions: Vec<(u32, u32)>,
}

#[derive(Debug, Clone, Copy)]
struct FoundWay {
    weight: f64,
    sum: usize,
    /// Where its actions begin and end; ways found earlier have earlier ones.
    actions: [usize; 2],
}

impl HeaviestWays {
    /// The heaviest ways to one of some sums, each given with a weight, at most `most` of the `count` there are. The table
    /// must be prepared for the sums; those beyond it have no way.
    pub fn find(weights: &WayWeights, sums: &[(i64, f64)], count: u64, most: usize) -> Self {
        // The first sum there is has no factor, and those after it factors below 1.
        let total = |bytes: i64| usize::try_from(bytes).ok().and_then(|at| weights.totals.get(at)).copied();
        let possible = |(_, (bytes, _)): &(usize, &(i64, f64))| total(*bytes).is_some_and(|total| total > 0.0);
        let possible: Vec<(usize, &(i64, f64))> = sums.iter().enumerate().filter(possible).collect();
        let Some(first) = possible.iter().map(|(_, (bytes, _))| *bytes).min() else { return Self::default() };
        let scaled = |(sum, (bytes, weight)): (usize, &(i64, f64))| {
            let weight = weight * (-weights.ln_per_byte * (bytes - first) as f64).exp();
            ScaledSum { sum, bytes: *bytes, weight }
        };
        let sums: Vec<ScaledSum> = possible.into_iter().map(scaled).collect();
        let total: f64 = sums.iter().map(|sum| sum.weight * total(sum.bytes).unwrap_or(0.0)).sum();
        let found = if weights.varies() {
            let bytes = AllSums::new(weights, sums);
            Search { weights, sums: bytes }.heaviest(vec![Pmf::certain(0)], total, count, most)
        } else {
            Search { weights, sums: EachSum }.heaviest(sums, total, count, most)
        };
        Self { found, total, ln_total: total.ln() - weights.ln_per_byte * first as f64 }
    }

    /// The heaviest first; those of equal weight as they were found: the heavier branch first, or else the one that
    /// takes more of an action.
    pub fn iter(&self) -> impl Iterator<Item = Way<'_>> {
        self.found.ways.iter().map(|way| Way {
            sum: way.sum,
            actions: &self.found.actions[way.actions[0]..way.actions[1]],
            probability: (way.weight / self.total).min(1.0),
        })
    }

    /// The logarithm of the weight of all ways, found or not; −∞ or NaN where it is not known.
    pub fn ln_total(&self) -> f64 {
        if self.total > 0.0 { self.ln_total } else { f64::NEG_INFINITY }
    }
}

/// A sum, or what is left of it, with its weight in the scale of the table.
#[derive(Debug, Clone, Copy)]
struct ScaledSum {
    sum: usize,
    bytes: i64,
    weight: f64,
}

/// How the sums weigh what was taken.
trait Sums {
    /// The bytes of what was taken.
    type Bytes: Clone;

    /// The bytes after one more of an action; `None` beyond all sums.
    fn one_more(&self, bytes: &Self::Bytes, sizes: &Pmf) -> Option<Self::Bytes>;

    /// What no way from a state on exceeds, without the prior's weight before it; beyond the last layer, the weight.
    fn bound(&mut self, bytes: &Self::Bytes, weights: &WayWeights, layer: usize, state: u32) -> f64;

    /// The index of the most probable sum.
    fn most_probable(&self, bytes: &Self::Bytes) -> usize;

    /// How many numbers the bytes may be.
    fn width(bytes: &Self::Bytes) -> usize;
}

/// With single sizes, each sum is searched on its own.
struct EachSum;

impl Sums for EachSum {
    /// What is left of the sum.
    type Bytes = ScaledSum;

    fn one_more(&self, rest: &ScaledSum, sizes: &Pmf) -> Option<ScaledSum> {
        let bytes = rest.bytes - sizes.least();
        (bytes >= 0).then_some(ScaledSum { bytes, ..*rest })
    }

    fn bound(&mut self, rest: &ScaledSum, weights: &WayWeights, layer: usize, state: u32) -> f64 {
        let end = if rest.bytes == 0 { Heaviest::END } else { Heaviest::NONE };
        rest.weight * weights.heaviest(layer, state).map_or(end, |row| row[rest.bytes as usize]).0
    }

    fn most_probable(&self, rest: &ScaledSum) -> usize {
        rest.sum
    }

    fn width(_: &ScaledSum) -> usize {
        1
    }
}

/// Where sizes vary, what was taken may have any of the sums.
struct AllSums {
    sums: Vec<ScaledSum>,
    /// The greatest sum.
    most: i64,
    /// For each state that was reached, by its index: what no way to go on exceeds, for each number of bytes that is
    /// missing from the greatest sum.
    ways_on: Vec<Option<Pmf>>,
}

impl AllSums {
    fn new(weights: &WayWeights, mut sums: Vec<ScaledSum>) -> Self {
        sums.sort_by_key(|sum| sum.bytes);
        let most = sums.last().map_or(0, |sum| sum.bytes);
        Self { sums, most, ways_on: vec![None; weights.walks.automaton.state_count + 1] }
    }
}

impl Sums for AllSums {
    type Bytes = Pmf;

    fn one_more(&self, bytes: &Pmf, sizes: &Pmf) -> Option<Pmf> {
        (bytes.least() + sizes.least() <= self.most).then(|| bytes.convolve(sizes))
    }

    fn bound(&mut self, bytes: &Pmf, weights: &WayWeights, layer: usize, state: u32) -> f64 {
        let ways_on = self.ways_on[weights.index(layer, state)].get_or_insert_with(|| {
            let (row, mut ways_on) = (weights.heaviest(layer, state).unwrap_or(&[Heaviest::END]), Pmf::default());
            for sum in &self.sums {
                let to_sum = row.iter().take(sum.bytes as usize + 1).map(|ways| ways.0).collect();
                ways_on.add_moved(&Pmf::from_least(self.most - sum.bytes, to_sum), 0, sum.weight);
            }
            ways_on
        });
        bytes.convolved_at(ways_on, self.most)
    }

    /// The smallest one of equals.
    fn most_probable(&self, bytes: &Pmf) -> usize {
        let mut best = (0.0, 0);
        for sum in &self.sums {
            let weight = sum.weight * bytes.at(sum.bytes);
            if weight > best.0 {
                best = (weight, sum.sum);
            }
        }
        best.1
    }

    fn width(bytes: &Pmf) -> usize {
        bytes.len()
    }
}

struct Search<'a, S> {
    weights: &'a WayWeights,
    sums: S,
}

/// A branch: all ways that begin alike.
#[derive(Debug, Clone)]
struct Branch<B> {
    /// The layer and state from which it goes on.
    layer: usize,
    state: u32,
    /// How many are taken in the layer before.
    taken: u32,
    bytes: B,
    /// The prior's weight so far.
    weight: f64,
    /// No way of it weighs more.
    bound: f64,
}

impl<S: Sums> Search<'_, S> {
    /// At most `most` of the `count` ways, which weigh `total` together.
    fn heaviest(&mut self, starts: Vec<S::Bytes>, total: f64, count: u64, most: usize) -> Found {
        let start = |bytes: S::Bytes| {
            let bound = self.sums.bound(&bytes, self.weights, 0, 0);
            Branch { layer: 0, state: 0, taken: 0, bytes, weight: 1.0, bound }
        };
        let mut starts: Vec<Branch<S::Bytes>> = starts.into_iter().map(start).collect();
        // The last one is searched first.
        starts.reverse();
        starts.sort_by(|a, b| a.bound.total_cmp(&b.bound));
        let varies = self.weights.varies();
        let at_once = (most as u64).saturating_mul(MAX_SURPLUS).min(MAX_AT_ONCE);
        // No way is heavier than the heaviest start; without a prior there may be more of them than a number can tell.
        let greatest = starts.last().map_or(0.0, |start| start.bound);
        let mut threshold = if !varies && count <= at_once { 0.0 } else { greatest.min(FIRST_SHARE * total) };
        let mut best = Found::default();
        loop {
            let (found, is_complete) = self.above(threshold, starts.clone(), most);
            if is_complete || best.ways.is_empty() {
                best = found;
            }
            if !is_complete {
                break;
            }
            let weight = || best.ways.iter().map(|way| way.weight).sum::<f64>();
            let is_enough = best.ways.len() as u64 >= count.min(most as u64) || threshold == 0.0;
            let is_light = threshold <= MIN_SHARE * FALL * total;
            if is_enough || varies && (is_light || weight() >= (1.0 - NEGLIGIBLE) * total) {
                break;
            }
            threshold /= FALL;
        }
        best.keep_heaviest(most);
        best.ways.sort_by(|a, b| b.weight.total_cmp(&a.weight));
        best
    }

    /// The ways of at least this weight, or the heaviest ones if these are more than `most`; and whether these are all, or
    /// some of too many to find.
    fn above(&mut self, mut threshold: f64, starts: Vec<Branch<S::Bytes>>, most: usize) -> (Found, bool) {
        let (mut found, mut work, mut pending) = (Found::default(), 0, starts);
        // How many are taken of each action, in the order of the model's list.
        let layers = &self.weights.walks.automaton.layers;
        let mut counts = vec![0; layers.len()];
        while let Some(branch) = pending.pop() {
            if branch.bound < threshold || branch.bound <= 0.0 {
                continue;
            }
            if let Some(before) = branch.layer.checked_sub(1) {
                counts[layers[before].action] = branch.taken;
            }
            if branch.layer == counts.len() {
                found.push(branch.bound, self.sums.most_probable(&branch.bytes), &counts);
                if found.ways.len() > 2 * most + 16 {
                    // Ways that weigh as much were found too late.
                    threshold = threshold.max(found.keep_heaviest(most).next_up());
                }
                continue;
            }
            let first = pending.len();
            work += self.branch_off(branch, threshold, &mut pending);
            if work > MAX_WORK {
                return (found, false);
            }
            // The heaviest one is searched first; of equals, the one that takes most.
            pending[first..].sort_by(|a, b| a.bound.total_cmp(&b.bound));
        }
        (found, true)
    }

    /// Adds the branches that take the layer's action 0, 1, 2… times and are not too light. Returns what that cost.
    fn branch_off(&mut self, from: Branch<S::Bytes>, threshold: f64, to: &mut Vec<Branch<S::Bytes>>) -> usize {
        let (weights, layer) = (self.weights, from.layer + 1);
        let (mut bytes, mut work) = (from.bytes, 0);
        for ((step, state), taken) in weights.walks.steps(from.layer, from.state).zip(0..) {
            if taken > 0 {
                let Some(longer) = self.sums.one_more(&bytes, &weights.walks.sizes[from.layer]) else { break };
                bytes = longer;
            }
            work += S::width(&bytes);
            let weight = from.weight * step;
            let bound = weight * self.sums.bound(&bytes, weights, layer, state);
            // NaN is not above.
            if bound > 0.0 && bound >= threshold {
                to.push(Branch { layer, state, taken, bytes: bytes.clone(), weight, bound });
            }
        }
        work
    }
}

impl Found {
    fn push(&mut self, weight: f64, sum: usize, counts: &[u32]) {
        let begin = self.actions.len();
        self.actions.extend((0..).zip(counts.iter().copied()).filter(|(_, count)| *count > 0));
        self.ways.push(FoundWay { weight, sum, actions: [begin, self.actions.len()] });
    }

    /// Keeps the heaviest ways, of equals those found first, in the order in which they were found. Returns the weight of
    /// the lightest.
    fn keep_heaviest(&mut self, most: usize) -> f64 {
        if self.ways.len() > most {
            let order = |a: &FoundWay, b: &FoundWay| b.weight.total_cmp(&a.weight).then(a.actions.cmp(&b.actions));
            self.ways.select_nth_unstable_by(most, order);
            self.ways.truncate(most);
            self.ways.sort_unstable_by_key(|way| way.actions);
            let mut actions = Vec::new();
            for way in &mut self.ways {
                let begin = actions.len();
                actions.extend_from_slice(&self.actions[way.actions[0]..way.actions[1]]);
                way.actions = [begin, actions.len()];
            }
            self.actions = actions;
        }
        self.ways.iter().map(|way| way.weight).fold(f64::INFINITY, f64::min)
    }
}

#[cfg(test)]
mod tests;
