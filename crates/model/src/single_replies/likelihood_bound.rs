//! How likely the replies of some classes can be at most, where the numbers of those that should come are partly known.
//!
//! A bound gives each place in the order of replies to one that should come, at its best, and takes the others as missing.

use super::interpretation::ln_factorial;
use super::seen_replies::{ClassShares, Component};

/// Replies of one class that should come.
#[derive(Debug, Clone, Copy)]
struct Pool {
    number: u32,
    /// The logarithm of how likely one is at a place, compared with the class that suits the place best.
    ln_at_place: f64,
    ln_missing: f64,
}

impl Component {
    /// At least the logarithm of the likelihood of replies of the component's types, for all numbers of each class that
    /// are those given, or more in the classes that are open.
    pub(super) fn ln_bound(&self, seen: &[u32], class_counts: &[u32], is_open: &[bool]) -> f64 {
        let count = |class: &ClassShares| class_counts.get(class.class).copied().unwrap_or(0);
        let is_open = |class: &ClassShares| is_open.get(class.class).copied().unwrap_or(false);
        let seen_of = |index: usize| self.types.get(index).and_then(|at| seen.get(*at)).copied().unwrap_or(0);
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
pub(super) fn peak(places: u32, missing: f64) -> u32 {
    (f64::from(places) / (1.0 - missing)).floor() as u32
}
