//! The ways to make up some sums, most probable first: no more is worked out than is asked for.
//!
//! The table (`ranking`) knows the best way on from every place, so the best way of all is walked straight down. Each turn
//! it does not take at a place is a deviation, with the best that can come of it known too; the next best way of all
//! begins at the best deviation that waits. Of those that wait, only as many are kept as ways are still wanted.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use crate::ranking::{Choice, Place, Ranking};

/// So many turns are looked at for one command, and the list ends there.
pub(crate) const MAX_TURNS: u64 = 1 << 26;

/// Some sums' ways, most probable first.
#[derive(Debug)]
pub(crate) struct Ranked<'a> {
    ranking: &'a Ranking,
    waiting: BinaryHeap<Deviation>,
    /// How many deviations there were.
    made: u64,
    /// The ways already found: of each layer where some are taken, how many.
    found: Vec<Vec<(usize, u32)>>,
    most: usize,
    turns: u64,
}

/// One way to make up one of the sums.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Way {
    /// Which of the sums, by its place.
    pub(crate) sum: usize,
    /// The actions that occur, by their places in the model's list, and how often; in the solver's order.
    pub(crate) actions: Vec<(usize, u32)>,
    /// The logarithm of its weight.
    pub(crate) ln: f64,
}

/// A turn not taken.
#[derive(Debug, Clone, Copy)]
struct Deviation {
    /// The logarithm of the weight of the best way that begins like this.
    ln: f64,
    /// Among equals, the one made first comes first.
    made: u64,
    sum: usize,
    /// The way found before that is the same up to the layer before.
    parent: Option<usize>,
    /// How many are taken in the layer before.
    taken: u32,
    place: Place,
}

impl<'a> Ranked<'a> {
    /// The ways to make up sums that are in the table, each with the logarithm of its weight; `most` of them at most.
    pub(crate) fn new(ranking: &'a Ranking, sums: &[(usize, f64)], most: usize) -> Self {
        let mut ranked = Self { ranking, waiting: BinaryHeap::new(), made: 0, found: Vec::new(), most, turns: 0 };
        for (sum, (bytes, before)) in sums.iter().enumerate() {
            let place = Place::beginning(*bytes, *before);
            let ln = before + ranking.best(0, 0, *bytes);
            ranked.wait(Deviation { ln, made: 0, sum, parent: None, taken: 0, place });
        }
        ranked
    }

    fn wait(&mut self, deviation: Deviation) {
        if deviation.ln == f64::NEG_INFINITY {
            return;
        }
        self.made += 1;
        self.waiting.push(Deviation { made: self.made, ..deviation });
        let wanted = self.most - self.found.len();
        if self.waiting.len() > 2 * wanted + 1024 {
            let mut all = std::mem::take(&mut self.waiting).into_vec();
            all.select_nth_unstable_by(wanted, |a, b| b.cmp(a));
            all.truncate(wanted);
            self.waiting = BinaryHeap::from(all);
        }
    }

    /// Walks on from a deviation, each time the best turn; all others wait.
    fn walk(&mut self, start: Deviation) -> Vec<(usize, u32)> {
        let layer_before = start.place.layer.checked_sub(1);
        let parent = start.parent.and_then(|parent| self.found.get(parent)).map_or(&[][..], Vec::as_slice);
        let shared = parent.iter().take_while(|(layer, _)| Some(*layer) < layer_before);
        let mut way: Vec<(usize, u32)> = shared.copied().collect();
        way.extend(layer_before.map(|layer| (layer, start.taken)).filter(|(_, taken)| *taken > 0));
        let mut place = start.place;
        while let Some((best, others)) = self.turns(place) {
            for (ln, choice) in others {
                // Rounding must not put what begins here before what led here.
                let deviation = Deviation { ln: ln.min(start.ln), parent: Some(self.found.len()), ..start };
                self.wait(Deviation { taken: choice.taken, place: place.after(choice), ..deviation });
            }
            way.extend((best.taken > 0).then_some((place.layer, best.taken)));
            place = place.after(best);
        }
        way
    }

    /// The best turn at a place, of equally good ones that which takes most, and all others that lead to an end.
    fn turns(&mut self, place: Place) -> Option<(Choice, Vec<(f64, Choice)>)> {
        let mut turns = Vec::new();
        self.turns += self.ranking.rate(place, &mut turns);
        let best = (0..turns.len()).max_by(|a, b| {
            let ln = |at: &usize| turns.get(*at).map_or(f64::NEG_INFINITY, |(ln, _)| *ln);
            ln(a).total_cmp(&ln(b))
        })?;
        let (_, best) = turns.remove(best);
        // Those that take more first, as they come where nothing tells them apart.
        turns.reverse();
        Some((best, turns))
    }
}

impl Iterator for Ranked<'_> {
    type Item = Way;

    fn next(&mut self) -> Option<Way> {
        if self.found.len() >= self.most || self.turns > MAX_TURNS {
            return None;
        }
        let start = self.waiting.pop()?;
        let layers = self.walk(start);
        let action = |(layer, count): &(usize, u32)| Some((self.ranking.action(*layer)?, *count));
        let way = Way { sum: start.sum, actions: layers.iter().filter_map(action).collect(), ln: start.ln };
        self.found.push(layers);
        Some(way)
    }
}

impl PartialEq for Deviation {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Deviation {}

impl PartialOrd for Deviation {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Deviation {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ln.total_cmp(&other.ln).then(other.made.cmp(&self.made))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use sizeleak_model::{Action, Device, Inventory, Limits, Prior};

    use super::*;

    fn actions(number: usize) -> Vec<Action> {
        (0..number).map(|at| Action { name: at.to_string(), size: 1 }).collect()
    }

    fn limits(kinds: &[(u32, Vec<usize>)], number: usize) -> Limits {
        let device = |(at, (count, actions)): (usize, &(u32, Vec<usize>))| Device {
            name: at.to_string(),
            count: *count,
            actions: actions.iter().map(usize::to_string).collect(),
        };
        let devices = kinds.iter().enumerate().map(device).collect();
        Inventory { devices }.limits(&actions(number)).unwrap()
    }

    /// The weights of every multiset of up to `most` actions within the limits, worked out one by one.
    fn weights(prior: &Prior, limits: &Limits, devices: &[f64], most: u32) -> BTreeMap<Vec<u32>, f64> {
        let mut all = vec![vec![0; devices.len()]];
        for action in 0..devices.len() {
            let grown = all.into_iter().flat_map(|counts| {
                (0..=most).map(move |count| {
                    let mut counts = counts.clone();
                    counts[action] = count;
                    counts
                })
            });
            all = grown.filter(|counts| counts.iter().sum::<u32>() <= most && limits.admits(counts)).collect();
        }
        let of_actions = |counts: &Vec<u32>| -> f64 {
            counts
                .iter()
                .enumerate()
                .flat_map(|(at, count)| (1..=*count).map(move |nth| prior.ln_next(at, nth).exp()))
                .product()
        };
        // One kind of device takes everything: of d devices d (d − 1) … are left.
        let falling = |n: u32| (0..n).map(|used| 1.0 - f64::from(used) / devices[0]).product::<f64>();
        let number = |counts: &[u32]| counts.iter().sum::<u32>();
        let mut by_number = vec![0.0; most as usize + 1];
        for counts in &all {
            by_number[number(counts) as usize] += of_actions(counts) * falling(number(counts));
        }
        let weight = |counts: &Vec<u32>| {
            let n = number(counts);
            of_actions(counts) * falling(n) / by_number[n as usize] * prior.ln_number(n).exp()
        };
        all.iter().map(|counts| (counts.clone(), weight(counts))).collect()
    }

    fn dense(way: &Way, actions: usize) -> Vec<u32> {
        let mut counts = vec![0; actions];
        for (action, count) in &way.actions {
            counts[*action] = *count;
        }
        counts
    }

    fn prior(shares: &[f64], numbers: &[f64], concentration: f64) -> Prior {
        let sum: f64 = shares.iter().sum();
        let numbers = numbers.iter().map(|share| share / numbers.iter().sum::<f64>() * 0.9).collect();
        Prior { numbers, decay: 0.6, shares: shares.iter().map(|share| share / sum).collect(), concentration }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Order, weights and their sums against working out every multiset.
        #[test]
        fn agrees_with_weighing_them_all(
            sizes in prop::collection::vec(1usize..9, 3),
            shares in prop::collection::vec(0.05f64..1.0, 3),
            numbers in prop::collection::vec(0.01f64..1.0, 1..5),
            concentration in 0.5f64..50.0,
            devices in prop::option::of(1u32..6),
            sums in prop::collection::btree_map(1usize..30, 0.01f64..1.0, 1..4),
            most in 1usize..40,
        ) {
            let limits = devices.map_or(Limits::free(3), |count| limits(&[(count, vec![0, 1, 2])], 3));
            let prior = prior(&shares, &numbers, concentration);
            let mut ranking = Ranking::counted(&sizes, &limits, &prior).unwrap();
            let greatest = *sizes.iter().max().unwrap();
            prop_assert!(ranking.prepare(devices.map_or(30, |count| 30.min(count as usize * greatest))));
            let count = devices.map_or(f64::INFINITY, f64::from);
            let all = weights(&prior, &limits, &[count; 3], devices.unwrap_or(30));
            let sums: Vec<(usize, f64)> = sums.into_iter().map(|(sum, weight)| (sum, weight.ln())).collect();
            let mut expected: Vec<f64> = Vec::new();
            for (sum, weight) in &sums {
                let size = |counts: &[u32]| counts.iter().zip(&sizes).map(|(count, size)| *count as usize * size).sum::<usize>();
                let of_sum: Vec<f64> = all.iter().filter(|(counts, _)| size(counts) == *sum).map(|(_, own)| own * weight.exp()).collect();
                let mass: f64 = of_sum.iter().sum();
                prop_assert!((ranking.ln_mass(*sum).exp() * weight.exp() - mass).abs() <= 1e-9 * mass);
                expected.extend(of_sum);
            }
            expected.sort_by(|a, b| b.total_cmp(a));
            let ways: Vec<Way> = Ranked::new(&ranking, &sums, most).collect();
            prop_assert_eq!(ways.len(), most.min(expected.len()));
            let mut distinct = std::collections::BTreeSet::new();
            for (way, expected) in ways.iter().zip(&expected) {
                let counts = dense(way, 3);
                prop_assert!((way.ln.exp() / expected - 1.0).abs() < 1e-9);
                prop_assert!((all[&counts] * sums[way.sum].1.exp() / expected - 1.0).abs() < 1e-9);
                prop_assert!(distinct.insert(counts), "each once");
            }
            prop_assert!(ways.is_sorted_by(|one, next| one.ln >= next.ln));
        }
    }

    #[test]
    fn devices_that_run_out_weigh_in() {
        // Two lamps among four devices: both kinds do 0, lamps do 1 too.
        let limits = limits(&[(2, vec![0]), (2, vec![0, 1])], 2);
        let prior = prior(&[0.5, 0.5], &[0.1, 0.9], 1e9);
        let mut ranking = Ranking::counted(&[10, 10], &limits, &prior).unwrap();
        assert!(ranking.prepare(20));
        let ways: Vec<Way> = Ranked::new(&ranking, &[(20, 0.0)], 9).collect();
        let weights: Vec<(Vec<u32>, f64)> = ways.iter().map(|way| (dense(way, 2), way.ln.exp() / 0.81)).collect();
        // 0 twice: ½ · 4/4 · 3/4; once each: 2/2 · 3/4; 1 twice: ½ · 2/2 · 1/2. In all 1.375.
        let expected = [(vec![1, 1], 0.75 / 1.375), (vec![2, 0], 0.375 / 1.375), (vec![0, 2], 0.25 / 1.375)];
        for ((counts, weight), (expected_counts, expected)) in weights.iter().zip(&expected) {
            assert!(counts == expected_counts && (weight - expected).abs() < 1e-9, "{weights:?}");
        }
        assert_eq!(weights.len(), 3);
    }

    #[test]
    fn a_megabyte_without_limits_is_ranked() {
        let sizes = [43, 44, 46, 47, 49, 52, 55];
        let prior = prior(&[3.0, 1.0, 1.0, 2.0, 1.0, 1.0, 1.0], &[1.0], 9.0);
        let mut ranking = Ranking::geometric(&sizes, &Limits::free(7), &prior).unwrap();
        let sum = 1_000_000;
        assert!(ranking.prepare(sum));
        let ways: Vec<Way> = Ranked::new(&ranking, &[(sum, 0.0)], 5).collect();
        assert_eq!(ways.len(), 5);
        for way in &ways {
            let made: usize = way.actions.iter().map(|(action, count)| sizes[*action] * *count as usize).sum();
            assert_eq!(made, sum);
            assert!(way.ln <= ranking.ln_mass(sum));
        }
        assert!(!ranking.prepare(1 << 40));
        let counted = Ranking::counted(&sizes, &Limits::free(7), &prior).unwrap();
        assert!(!counted.clone().prepare(sum) && counted.clone().prepare(64 * 43));
    }

    #[test]
    fn what_waits_is_bounded_by_what_is_wanted() {
        let sizes: Vec<usize> = (0..300).map(|at| 40 + at % 150).collect();
        let limits = limits(&[(16, (0..300).collect())], 300);
        let prior = prior(&vec![1.0; 300], &[1.0; 16], 300.0);
        let mut ranking = Ranking::counted(&sizes, &limits, &prior).unwrap();
        assert!(ranking.prepare(1500));
        let mut ways = Ranked::new(&ranking, &[(1500, 0.0)], 2000);
        assert_eq!(ways.by_ref().count(), 2000);
        assert!(ways.waiting.len() <= 2 * 2000 + 1024);
        assert!(ways.made as usize > ways.waiting.len() + 2000, "some were dropped");
    }
}
