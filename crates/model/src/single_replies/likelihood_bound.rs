//! How likely the replies to a command can be at most, where the numbers of replies that should come are partly known.
//!
//! A search over actions leaves out what cannot matter by it. A bound is of one interpretation of the records at a time;
//! it gives each place in the order of replies to one that should come, at its best, and takes the others as missing.

use super::interpretation::{Interpretation, ln_factorial};
use super::seen_replies::{ClassShares, Component, SeenReplies};

impl SeenReplies {
    /// At least ln P(replies | number of each class) for all numbers that are those given, or more in the classes that
    /// are open.
    pub fn ln_bound(&self, class_counts: &[u32], is_open: &[bool]) -> f64 {
        let (mut greatest, mut sum) = (f64::NEG_INFINITY, 0.0);
        for interpretation in &self.interpretations {
            let ln_bound = self.ln_bound_of(interpretation, class_counts, is_open);
            if ln_bound > greatest {
                sum = sum * (greatest - ln_bound).exp() + 1.0;
                greatest = ln_bound;
            } else if ln_bound > f64::NEG_INFINITY {
                sum += (ln_bound - greatest).exp();
            }
        }
        if sum > 0.0 { greatest + sum.ln() } else { f64::NEG_INFINITY }
    }

    /// A number of replies of one class from which on further ones only make the replies less likely, whatever the
    /// numbers of other classes.
    pub fn most_helpful(&self) -> u32 {
        let missing = self.components.iter().flat_map(|component| &component.classes);
        let missing = missing.map(|class| class.missing).fold(0.0, f64::max);
        let of = |interpretation: &Interpretation| peak(interpretation.replies.iter().sum(), missing);
        self.interpretations.iter().map(of).max().unwrap_or(0)
    }

    fn ln_bound_of(&self, interpretation: &Interpretation, class_counts: &[u32], is_open: &[bool]) -> f64 {
        let mut ln_bound = interpretation.ln_weight;
        for component in &self.components {
            ln_bound += component.ln_bound(&interpretation.replies, class_counts, is_open);
            if ln_bound == f64::NEG_INFINITY {
                break;
            }
        }
        ln_bound
    }
}

/// Replies of one class that should come.
#[derive(Debug, Clone, Copy)]
struct Pool {
    number: u32,
    /// The logarithm of how likely one is at a place, compared with the class that suits the place best.
    ln_at_place: f64,
    ln_missing: f64,
}

impl Component {
    fn ln_bound(&self, seen: &[u32], class_counts: &[u32], is_open: &[bool]) -> f64 {
        let count = |class: &ClassShares| class_counts.get(class.class).copied().unwrap_or(0);
        let is_open = |class: &ClassShares| is_open.get(class.class).copied().unwrap_or(false);
        let seen_of = |index: usize| self.types.get(index).and_then(|at| seen.get(*at)).copied().unwrap_or(0);
        if let [class] = &self.classes[..] {
            let places: u32 = class.types.iter().map(|of_type| seen_of(of_type.index)).sum();
            let number = if is_open(class) { count(class).max(peak(places, class.missing)) } else { count(class) };
            if number < places {
                return f64::NEG_INFINITY;
            }
            let of_types = class.types.iter().filter(|of_type| seen_of(of_type.index) > 0);
            let of_types = of_types
                .map(|of_type| f64::from(seen_of(of_type.index)) * (of_type.share * (1.0 - class.missing)).ln());
            return of_types.sum::<f64>() + ln_orders(number, places) + missing(number - places, class.missing.ln());
        }
        let places: u32 = (0..self.types.len()).map(seen_of).sum();
        let share = |class: &ClassShares, index: usize| {
            let of_type = class.types.iter().find(|of_type| of_type.index == index);
            of_type.map_or(0.0, |of_type| of_type.share * (1.0 - class.missing))
        };
        let best: Vec<(u32, f64)> = (0..self.types.len())
            .map(|index| (seen_of(index), self.classes.iter().map(|class| share(class, index)).fold(0.0, f64::max)))
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

/// The number of replies that makes it most likely that `places` of them come.
fn peak(places: u32, missing: f64) -> u32 {
    (f64::from(places) / (1.0 - missing)).floor() as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::single_replies::{ReplyClass, SeenReplies, SingleReplies};

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
            let seen = SeenReplies::new(&home(missing, unseen), &ranges);
            let counts: Vec<u32> = least.iter().zip(&more).zip(&is_open)
                .map(|((least, more), is_open)| least + if *is_open { *more } else { 0 }).collect();
            let (bound, ln_likelihood) = (seen.ln_bound(&least, &is_open), seen.ln_likelihood(&counts));
            prop_assert!(ln_likelihood <= bound + 1e-9, "{ln_likelihood} {bound}");
        }

        #[test]
        fn beyond_the_most_helpful_number_replies_only_become_less_likely(
            counts in prop::collection::vec(0u32..4, 3),
            class in 0usize..3,
            is_open in prop::collection::vec(any::<bool>(), 3),
            missing in prop::sample::select(vec![0.02, 0.4, 0.9]),
            unseen in prop::sample::select(vec![0.0, 0.01]),
            records in prop::collection::vec(prop::sample::select(vec![90, 94, 95, 96, 160, 185]), 0..6),
        ) {
            let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
            let seen = SeenReplies::new(&home(missing, unseen), &ranges);
            let at = |number: u32| {
                let mut counts = counts.clone();
                counts[class] = number;
                seen.ln_bound(&counts, &is_open)
            };
            let from = seen.most_helpful();
            for number in from..from + 5 {
                prop_assert!(at(number + 1) <= at(number) + 1e-9, "{} {}", at(number + 1), at(number));
            }
        }
    }
}
