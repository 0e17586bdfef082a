//! All ways to make up some sums, most probable first: walked through one after another, and put in order at the end.
//!
//! Where all ways, or a good part of them, are wanted, this costs a fraction of finding the next best each time
//! (`ranked`), and comes to the same ways with the same weights in the same order, to the last bit. For that, a way's
//! weight is put together here as there: a way turns off from another at one place, where it was the sum of what led
//! there, of the turn and of the best way on; and ways of equal weight stand in the order in which they are met there.

use sizeleak_model::Rank;

use crate::ranked::MAX_TURNS;
use crate::ranking::{Choice, Place, Ranking};

/// With more actions than this a way is as much work as finding the next best.
const MAX_LAYERS: usize = 512;

/// So many times as many ways as are wanted are still found faster all at once.
const TIMES_AS_MANY: u64 = 8;

/// A way has rarely more actions that differ.
const USUAL: usize = 5;

/// More ways than this are never found all at once: they take memory.
const MAX_WAYS: u64 = 1 << 16;

/// All ways to make up some sums.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    ways: Vec<Way>,
    /// The actions of all ways with their counts, those of one way by their places in the model's list.
    counts: Vec<(u32, u32)>,
    /// The places of ways, most probable first.
    order: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Way {
    /// The logarithm of its weight.
    ln: f64,
    sum: usize,
    /// The way it turns off from, and how many turned off from that before it; without one, the place of the sum.
    parent: Option<usize>,
    nth: usize,
    /// Where its counts begin.
    counts: usize,
}

/// A turn not taken yet.
#[derive(Debug, Clone, Copy)]
struct Deviation {
    ln: f64,
    parent: Option<usize>,
    nth: usize,
    /// How many are taken in the layer before.
    taken: u32,
    place: Place,
}

/// What is walked with.
struct Walk<'a> {
    ranking: &'a Ranking,
    /// How many are taken of each action, in the order of the model's list.
    taken: Vec<u32>,
    waiting: Vec<Deviation>,
    rated: Vec<(f64, Choice)>,
    turns: u64,
}

impl Whole {
    /// Whether it pays to find so many ways where `most` are wanted.
    pub(crate) fn pays(ways: u64, most: usize) -> bool {
        ways <= (most as u64).saturating_mul(TIMES_AS_MANY).min(MAX_WAYS)
    }

    /// The ways to make up sums that are in the table, no more than `most`, each with the logarithm of its weight; `None`
    /// where finding the next best would end early, or is as good.
    pub(crate) fn of(ranking: &Ranking, sums: &[(usize, f64)], most: usize) -> Option<Self> {
        let layers = ranking.layers();
        if layers > MAX_LAYERS {
            return None;
        }
        let mut walk = Walk { ranking, taken: vec![0; layers], waiting: Vec::new(), rated: Vec::new(), turns: 0 };
        let mut whole = Self { ways: Vec::with_capacity(most), ..Self::default() };
        whole.counts.reserve(most.saturating_mul(layers.min(USUAL)));
        for (sum, (bytes, before)) in sums.iter().enumerate() {
            let ln = before + ranking.best(0, 0, *bytes);
            if ln == f64::NEG_INFINITY {
                continue;
            }
            let place = Place::beginning(*bytes, *before);
            walk.waiting.push(Deviation { ln, parent: None, nth: sum, taken: 0, place });
            while let Some(start) = walk.waiting.pop() {
                walk.on(start, whole.ways.len());
                let counts = whole.counts.len();
                whole.ways.push(Way { ln: start.ln, sum, parent: start.parent, nth: start.nth, counts });
                walk.list(&mut whole.counts);
                if walk.turns > MAX_TURNS {
                    return None;
                }
            }
        }
        whole.put_in_order();
        Some(whole)
    }

    /// How many ways there are, and how many actions they have together that differ.
    pub(crate) fn size(&self) -> (usize, usize) {
        (self.ways.len(), self.counts.len())
    }

    /// The ways, most probable first: which of the sums, the actions with their counts, and the logarithm of the weight.
    pub(crate) fn ways(&self) -> impl Iterator<Item = (usize, &[(u32, u32)], f64)> {
        self.order.iter().filter_map(|at| {
            let way = self.ways.get(*at)?;
            let end = self.ways.get(at + 1).map_or(self.counts.len(), |next| next.counts);
            Some((way.sum, self.counts.get(way.counts..end)?, way.ln))
        })
    }

    fn put_in_order(&mut self) {
        let mut order: Vec<Rank> = self.ways.iter().zip(0..).map(|(way, at)| Rank::new(way.ln, at)).collect();
        order.sort_unstable();
        self.order.reserve(order.len());
        // Of each way, its place in the order, counted from 1: that of a way that turns off from none is 0.
        let mut places = vec![0; order.len()];
        for equals in order.chunk_by(|a, b| a.is_tied_with(*b)) {
            let begins = self.order.len();
            match equals {
                [only] => self.order.push(only.place()),
                _ => self.line_up(equals, &places),
            }
            for (place, at) in self.order.iter().enumerate().skip(begins) {
                if let Some(slot) = places.get_mut(*at) {
                    *slot = place + 1;
                }
            }
        }
    }

    /// Lines up ways of equal weight as they are met: those that turn off from better ways by the order of these, and behind
    /// all of them those that turn off from one of their own.
    fn line_up(&mut self, equals: &[Rank], places: &[usize]) {
        let way = |at: usize| self.ways.get(at).map_or((None, 0), |way| (way.parent, way.nth));
        let place = |parent: Option<usize>| parent.and_then(|parent| places.get(parent)).copied().unwrap_or(0);
        let met = |parent: Option<usize>| parent.is_none() || place(parent) > 0;
        let (mut line, mut later): (Vec<usize>, Vec<usize>) =
            equals.iter().map(|equal| equal.place()).partition(|at| met(way(*at).0));
        line.sort_unstable_by_key(|at| (place(way(*at).0), way(*at).1));
        later.sort_unstable_by_key(|at| way(*at));
        let mut next = 0;
        while let Some(at) = line.get(next).copied() {
            let from = later.partition_point(|later| way(*later).0 < Some(at));
            line.extend(later.iter().skip(from).take_while(|later| way(**later).0 == Some(at)));
            next += 1;
        }
        self.order.extend(line);
    }
}

impl Walk<'_> {
    /// Walks on from a deviation, each time the best turn, to the way of this number; all others wait.
    fn on(&mut self, start: Deviation, number: usize) {
        if let Some(action) = start.place.layer.checked_sub(1).and_then(|layer| self.ranking.action(layer)) {
            take(&mut self.taken, action, start.taken);
        }
        let (mut place, mut nth) = (start.place, 0);
        loop {
            let (fork, followed) =
                self.ranking.follow(place, |layer, count| take(&mut self.taken, layer.action, count));
            self.turns += followed;
            if fork.layer >= self.taken.len() {
                return;
            }
            self.turns += self.ranking.rate(fork, &mut self.rated);
            // Of equally good ones that which takes most.
            let best = self.rated.iter().enumerate().max_by(|(_, (one, _)), (_, (other, _))| one.total_cmp(other));
            let Some((best_at, (_, best))) = best.map(|(at, rated)| (at, *rated)) else { return };
            for (at, (ln, choice)) in self.rated.iter().enumerate().rev() {
                if at != best_at {
                    // Rounding must not put what begins here before what led here.
                    let (ln, parent, taken) = (ln.min(start.ln), Some(number), choice.taken);
                    self.waiting.push(Deviation { ln, parent, nth, taken, place: fork.after(*choice) });
                    nth += 1;
                }
            }
            if let Some(action) = self.ranking.action(fork.layer) {
                take(&mut self.taken, action, best.taken);
            }
            place = fork.after(best);
        }
    }

    /// Lists the actions of the way walked last.
    fn list(&self, counts: &mut Vec<(u32, u32)>) {
        for (taken, action) in self.taken.iter().zip(0..) {
            if *taken > 0 {
                counts.push((action, *taken));
            }
        }
    }
}

fn take(taken: &mut [u32], action: usize, count: u32) {
    if let Some(slot) = taken.get_mut(action) {
        *slot = count;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sizeleak_model::{Action, Device, Inventory, Limits, Prior};

    use super::*;
    use crate::ranked::Ranked;

    fn limits(devices: u32, actions: usize) -> Limits {
        let names: Vec<String> = (0..actions).map(|at| at.to_string()).collect();
        let device =
            |name: &str, count, actions: &[String]| Device { name: name.into(), count, actions: actions.to_vec() };
        let devices = vec![device("all", devices, &names), device("last", 2, &names[actions - 1..])];
        let actions: Vec<Action> = names.into_iter().map(|name| Action { name, size: 1 }).collect();
        Inventory { devices }.limits(&actions).unwrap()
    }

    /// The same ways, weights and order, to the last bit, as finding the next best each time.
    fn is_as_ranked(ranking: &Ranking, sums: &[(usize, f64)], most: usize) {
        let ranked = Ranked::new(ranking, sums, most).map(|mut way| {
            way.actions.sort_unstable();
            (way.sum, way.actions, way.ln.to_bits())
        });
        let whole = Whole::of(ranking, sums, most).unwrap();
        let by_place = |actions: &[(u32, u32)]| -> Vec<(usize, u32)> {
            actions.iter().map(|(action, count)| (*action as usize, *count)).collect()
        };
        let found = whole.ways().take(most).map(|(sum, actions, ln)| (sum, by_place(actions), ln.to_bits()));
        assert_eq!(found.collect::<Vec<_>>(), ranked.collect::<Vec<_>>());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn agrees_with_the_next_best_each_time(
            sizes in prop::collection::vec(1usize..9, 1..5),
            // Few shares and sizes: many ways are equally good.
            shares in prop::collection::vec((1u8..4).prop_map(f64::from), 5),
            numbers in prop::collection::vec((1u8..3).prop_map(f64::from), 1..5),
            concentration in prop_oneof![Just(1e9), 0.5f64..50.0],
            devices in prop::option::of(1u32..6),
            sums in prop::collection::btree_map(1usize..30, prop_oneof![Just(0.5), 0.01f64..1.0], 1..5),
            most in 1usize..400,
        ) {
            let shares: Vec<f64> = shares.into_iter().take(sizes.len()).collect();
            let (all_shares, all_numbers) = (shares.iter().sum::<f64>(), numbers.iter().sum::<f64>());
            let shares = shares.iter().map(|share| share / all_shares).collect();
            let numbers = numbers.iter().map(|share| share / all_numbers * 0.9).collect();
            let prior = Prior { numbers, decay: 0.6, shares, concentration };
            let limits = devices.map_or(Limits::free(sizes.len()), |count| limits(count, sizes.len()));
            let sums: Vec<(usize, f64)> = sums.into_iter().map(|(sum, weight)| (sum, weight.ln())).collect();
            for ranking in [Ranking::counted(&sizes, &limits, &prior), Ranking::geometric(&sizes, &limits, &prior)] {
                let mut ranking = ranking.unwrap();
                let largest = devices.map_or(30, |count| 30.min((count as usize + 2) * sizes.iter().max().unwrap()));
                prop_assert!(ranking.prepare(largest));
                is_as_ranked(&ranking, &sums, most);
            }
        }
    }
}
