//! An order of the classes of actions, in which devices are given to them.

use super::{Condition, Limits};
use crate::inventory::MAX_ACTION_CLASSES;

impl Limits {
    /// The classes in an order that keeps few conditions open at a time: the next class is always the one after which
    /// the open conditions can be used up in the fewest ways. Whoever gives devices to actions does it in this order, so
    /// that the share of free devices (see `docs/inference.md`) is the same everywhere.
    pub fn class_order(&self) -> Vec<usize> {
        let mut rest: Vec<usize> = (0..self.classes()).collect();
        let mut order = Vec::with_capacity(rest.len());
        let mut placed = 0_u64;
        while !rest.is_empty() {
            let costs = rest.iter().map(|class| self.open_ways(placed | 1 << class));
            let Some((cheapest, _)) = costs.enumerate().min_by(|a, b| a.1.total_cmp(&b.1)) else { break };
            let class = rest.remove(cheapest);
            placed |= 1 << class;
            order.push(class);
        }
        order
    }

    /// The logarithm of the number of ways in which conditions can be used up after a set of classes.
    fn open_ways(&self, placed: u64) -> f64 {
        let open = self.conditions().iter().filter(|one| one.holds_any(placed) && one.holds_any(!placed));
        let used = open.map(|condition| {
            let classes = (0..self.classes()).filter(|class| placed >> class & 1 == 1 && condition.holds_class(*class));
            let used = classes.map(|class| self.max_of_class(class)).fold(0, u32::saturating_add);
            used.min(condition.max())
        });
        used.map(|used| (f64::from(used) + 1.0).ln()).sum()
    }
}

impl Condition {
    /// Whether the condition holds one of a set of classes, given as a bit set.
    pub fn holds_any(&self, classes: u64) -> bool {
        (0..MAX_ACTION_CLASSES).any(|class| classes >> class & 1 == 1 && self.holds_class(class))
    }
}
