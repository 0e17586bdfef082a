//! An order of the classes of actions, in which devices are given to them.

use super::Limits;

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

    /// The share of the devices of a class that are free beside these actions; 1 where nothing limits them.
    pub fn free_share(&self, class: usize, totals: &[u32]) -> f64 {
        let counted = self.conditions().iter().filter(|one| one.holds_class(class) && one.devices < u32::MAX);
        let devices = counted.clone().map(|condition| condition.devices).min();
        let free = counted.map(|condition| condition.devices.saturating_sub(condition.sum(totals))).min();
        free.zip(devices).map_or(1.0, |(free, devices)| f64::from(free) / f64::from(devices))
    }

    /// The product of [`Self::take`] over all actions, which are given devices one after the other, those of one class after
    /// those of another in this order; 0 beyond the limits.
    pub fn free_shares(&self, order: &[usize], totals: &[u32]) -> f64 {
        let mut used = vec![0; self.conditions().len()];
        let actions = order.iter().flat_map(|class| std::iter::repeat_n(*class, totals[*class] as usize));
        actions.map(|class| self.take(class, &mut used).unwrap_or(0.0)).product()
    }

    /// Gives a device to one more action of a class, given how far each condition is used up. Returns the share of its
    /// devices that were free, 1 where nothing limits them; `None` if none is.
    pub fn take(&self, class: usize, used: &mut [u32]) -> Option<f64> {
        let (mut free, mut devices) = (u32::MAX, u32::MAX);
        let held = self.conditions().iter().zip(used).filter(|(condition, _)| condition.holds_class(class));
        for (condition, used) in held {
            if *used >= condition.max {
                return None;
            }
            if condition.devices < u32::MAX {
                free = free.min(condition.devices.saturating_sub(*used));
                devices = devices.min(condition.devices);
            }
            *used += 1;
        }
        let share = if devices == u32::MAX { 1.0 } else { f64::from(free) / f64::from(devices) };
        (class < self.classes()).then_some(share)
    }

    /// The logarithm of the number of ways in which conditions can be used up after a set of classes.
    fn open_ways(&self, placed: u64) -> f64 {
        let open = self.conditions().iter().filter(|one| one.holds_any(placed) && one.holds_any(!placed));
        let used = open.map(|condition| {
            let classes = (0..self.classes()).filter(|class| placed >> class & 1 == 1 && condition.holds_class(*class));
            let used = classes.map(|class| self.max_of_class(class)).fold(0, u32::saturating_add);
            used.min(condition.max)
        });
        used.map(|used| (f64::from(used) + 1.0).ln()).sum()
    }
}
