//! How likely the replies of some classes can be at most, where the numbers of those that should come are partly known.
//!
//! A bound gives each place in the order of replies to one that should come, at its best, and takes the others as missing.

use super::interpretation::ln_factorial;
use super::seen_replies::{Component, peak};
use super::ways::ClassShares;

/// Replies of one class that should come.
#[derive(Debug, Clone, Copy)]
struct Pool {
    number: u32,
    /// The logarithm of how likely one is at a place, compared with the class that suits the place best.
    ln_at_place: f64,
    ln_missing: f64,
}

impl Component {
    /// At least the logarithm of the likelihood of a pattern ([`Component::ln_ways`]), for all numbers of each class that
    /// are those given, or more in the classes that are open.
    pub fn ln_bound(&self, pattern: usize, class_counts: &[u32], is_open: &[bool]) -> f64 {
        let seen = &self.patterns[pattern];
        let count = |class: &ClassShares| class_counts[class.class];
        let is_open = |class: &ClassShares| is_open[class.class];
        let places: u32 = seen.iter().sum();
        let share = |class: &ClassShares, index: usize| {
            let of_type = class.types.iter().find(|of_type| of_type.index == index);
            of_type.map_or(0.0, |of_type| of_type.share * (1.0 - class.missing))
        };
        let best: Vec<(u32, f64)> = (0..self.types.len())
            .map(|index| (seen[index], self.classes.iter().map(|class| share(class, index)).fold(0.0, f64::max)))
            .collect();
        let of_places: f64 =
            best.iter().filter(|(seen, _)| *seen > 0).map(|(seen, share)| f64::from(*seen) * share.ln()).sum();
        let pool = |class: &ClassShares| {
            let seen = best.iter().enumerate().filter(|(_, (seen, _))| *seen > 0);
            let at_place = seen.map(|(index, (_, best))| share(class, index) / best).fold(0.0, f64::max);
            Pool { number: count(class), ln_at_place: at_place.ln(), ln_missing: class.missing.ln() }
        };
        let open = self.classes.iter().filter(|class| is_open(class)).map(pool).reduce(|a, b| Pool {
            number: 0,
            ln_at_place: a.ln_at_place.max(b.ln_at_place),
            ln_missing: a.ln_missing.max(b.ln_missing),
        });
        of_places + ln_best_use(self.classes.iter().map(pool).collect(), open, places)
    }
}

/// The logarithm of how likely the places can be taken at most by what is in the pools and, if there is one, by any
/// number of replies of the open pool.
fn ln_best_use(mut pools: Vec<Pool>, open: Option<Pool>, places: u32) -> f64 {
    let sent: u32 = pools.iter().fold(0, |sum, pool| sum.saturating_add(pool.number));
    let open = open.map(|open| Pool { number: 0, ..open });
    // Beyond, further ones of the open pool are missing.
    let most_further = open.map_or(0, |open| peak(places, open.ln_missing.exp()).max(places));
    pools.extend(open);
    // Those first that lose most when they are missing.
    let gain = |pool: &Pool| pool.ln_at_place - pool.ln_missing;
    let is_further = |at: usize| open.is_some() && at + 1 == pools.len();
    let mut order: Vec<usize> = (0..pools.len()).collect();
    order.sort_by(|a, b| {
        let gain = |at: &usize| pools.get(*at).map_or(f64::NEG_INFINITY, gain);
        gain(b).total_cmp(&gain(a))
    });
    let least_further = places.saturating_sub(sent);
    (least_further..=most_further.max(least_further))
        .filter(|further| *further == 0 || open.is_some())
        .map(|further| {
            let (mut left, mut ln_use) = (places, ln_orders(sent.saturating_add(further), places));
            for at in &order {
                let Some(pool) = pools.get(*at) else { continue };
                let number = if is_further(*at) { further } else { pool.number };
                let used = number.min(left);
                left -= used;
                ln_use += if used > 0 { f64::from(used) * pool.ln_at_place } else { 0.0 };
                ln_use += missing(number - used, pool.ln_missing);
            }
            ln_use
        })
        .fold(f64::NEG_INFINITY, f64::max)
}

/// The logarithm of the number of ways to give places to some of the replies.
fn ln_orders(number: u32, places: u32) -> f64 {
    if number < places { f64::NEG_INFINITY } else { ln_factorial(number) - ln_factorial(number - places) }
}

fn missing(number: u32, ln_missing: f64) -> f64 {
    if number > 0 { f64::from(number) * ln_missing } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::single_replies::{ReplyClass, ReplyReader, SeenReplies, SingleReplies};

    fn home(missing: f64, unseen: f64) -> SingleReplies {
        let class = |sizes: &[(i64, u64)]| ReplyClass { missing, unseen, sizes: sizes.to_vec() };
        SingleReplies {
            merged: 0.02,
            shared: 0,
            foreign: 0.01,
            foreign_sizes: vec![(160, 3)],
            per_command: vec![0; 3],
            per_action: Vec::new(),
            classes: vec![class(&[(90, 50)]), class(&[(95, 30), (96, 10)]), class(&[(94, 8)])],
        }
    }

    /// The bound of each pattern of each component.
    fn bounds(seen: &SeenReplies, counts: &[u32], is_open: &[bool]) -> Vec<f64> {
        let of_component = |component| {
            let component: &crate::Component = component;
            (0..component.patterns()).map(move |pattern| component.ln_bound(pattern, counts, is_open))
        };
        seen.components().iter().flat_map(of_component).collect()
    }

    proptest! {
        #[test]
        fn no_numbers_are_likelier_than_the_bound(
            least in prop::collection::vec(0u32..4, 3),
            more in prop::collection::vec(0u32..6, 3),
            is_open in prop::collection::vec(any::<bool>(), 3),
            missing in prop::sample::select(vec![0.0, 0.02, 0.4]),
            unseen in prop::sample::select(vec![0.0, 0.01]),
            records in prop::collection::vec(prop::sample::select(vec![90, 94, 95, 96, 160, 185]), 0..6),
        ) {
            let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
            let reader = ReplyReader::new(home(missing, unseen));
            let seen = reader.read(&ranges);
            let counts: Vec<u32> = least.iter().zip(&more).zip(&is_open)
                .map(|((least, more), is_open)| least + if *is_open { *more } else { 0 }).collect();
            let ways = seen.components().iter().flat_map(|one| (0..one.patterns()).map(|at| one.ln_ways(at, &counts)));
            for (ln_ways, bound) in ways.zip(bounds(&seen, &least, &is_open)) {
                prop_assert!(ln_ways <= bound + 1e-9, "{ln_ways} {bound}");
            }
            let (ln_likelihood, bound) = (seen.ln_likelihood(&counts), reader.ln_bound(&ranges));
            prop_assert!(ln_likelihood <= bound + 1e-9, "{ln_likelihood} {bound}");
        }

        #[test]
        fn beyond_the_peak_replies_only_become_less_likely(
            counts in prop::collection::vec(0u32..4, 3),
            class in 0usize..3,
            is_open in prop::collection::vec(any::<bool>(), 3),
            missing in prop::sample::select(vec![0.02, 0.4, 0.9]),
            unseen in prop::sample::select(vec![0.0, 0.01]),
            records in prop::collection::vec(prop::sample::select(vec![90, 94, 95, 96, 160, 185]), 0..6),
        ) {
            let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
            let seen = SeenReplies::new(&home(missing, unseen), &ranges);
            let component = seen.components().iter().find(|one| one.classes().any(|own| own == class)).unwrap();
            for pattern in 0..component.patterns() {
                let mut before = f64::INFINITY;
                for number in component.peak(pattern)..component.peak(pattern) + 6 {
                    let mut counts = counts.clone();
                    counts[class] = number;
                    let bound = component.ln_bound(pattern, &counts, &is_open);
                    prop_assert!(bound <= before + 1e-9, "{bound} {before}");
                    before = bound;
                }
            }
        }
    }
}
