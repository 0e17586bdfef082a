//! What an inventory allows of commands: Hall's conditions on how often actions occur.

use crate::InventoryError;
use crate::inventory::MAX_ACTION_CLASSES;

/// What an inventory allows of commands made of an ordered list of actions.
///
/// A device takes one action a command at most, so a command is possible where every action finds a device of its own: a
/// bipartite b-matching. Actions that the same kinds of device can take form a *class*. By Hall's theorem the matching
/// exists where, for every set of kinds, the actions only these kinds can take do not outnumber their devices; of these
/// conditions only those that no others imply are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    class_of: Vec<usize>,
    classes: usize,
    conditions: Vec<Condition>,
}

/// The actions of some classes together occur so often at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The classes, as a bit set.
    classes: u64,
    /// How often they may occur.
    max: u32,
    /// How many devices there are for them; `u32::MAX` where nothing limits them but [`Limits::counting`].
    devices: u32,
}

impl Condition {
    /// Whether the actions of a class count.
    pub fn holds_class(&self, class: usize) -> bool {
        class < MAX_ACTION_CLASSES && self.classes >> class & 1 == 1
    }

    /// How often the actions of its classes may occur in all.
    pub fn max(&self) -> u32 {
        self.max
    }

    /// How many devices there are for the actions of its classes; `u32::MAX` where no inventory says.
    pub fn devices(&self) -> u32 {
        self.devices
    }
}

impl Limits {
    /// Limits from the numbers of devices of each kind (all above 0) and, for each action, the kinds that can take it.
    pub(crate) fn new(counts: &[u32], kinds_of_action: &[u32]) -> Result<Self, InventoryError> {
        let mut kinds_of_class: Vec<u32> = Vec::new();
        let mut class_of = Vec::new();
        for kinds in kinds_of_action {
            let class = kinds_of_class.iter().position(|known| known == kinds).unwrap_or(kinds_of_class.len());
            if class == kinds_of_class.len() {
                kinds_of_class.push(*kinds);
            }
            class_of.push(class);
        }
        if kinds_of_class.len() > MAX_ACTION_CLASSES {
            return Err(InventoryError::TooManyClasses(kinds_of_class.len()));
        }
        Ok(Self { class_of, classes: kinds_of_class.len(), conditions: conditions(counts, &kinds_of_class) })
    }

    /// No limits: any number of any of `actions` actions, all of one class.
    pub fn free(actions: usize) -> Self {
        Self { class_of: vec![0; actions], classes: usize::from(actions > 0), conditions: Vec::new() }
    }

    /// These limits for commands of `most` actions at most, with a condition on all actions together in any case
    /// ([`Self::counter`]).
    #[must_use]
    pub fn counting(&self, most: u32) -> Self {
        let all = self.all_classes();
        let devices = self.counter().and_then(|at| self.conditions.get(at)).map_or(u32::MAX, Condition::devices);
        let mut conditions = self.conditions.clone();
        conditions.retain(|condition| condition.classes != all);
        conditions.push(Condition { classes: all, max: most.min(self.max_actions()), devices });
        Self { conditions, ..self.clone() }
    }

    /// The condition, by its place, on all actions together, where there is one.
    pub fn counter(&self) -> Option<usize> {
        let all = self.all_classes();
        self.conditions.iter().position(|condition| condition.classes == all)
    }

    fn all_classes(&self) -> u64 {
        (0..self.classes.min(MAX_ACTION_CLASSES)).fold(0, |all, class| all | 1 << class)
    }

    /// Whether any number of any action is allowed.
    pub fn is_free(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The class of an action, by the action's place in the list; [`Self::classes`], which is no class, beyond it.
    pub fn class_of(&self, action: usize) -> usize {
        self.class_of.get(action).copied().unwrap_or(self.classes)
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The conditions, none of which follows from the others.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// How often the actions of a class can occur together; `u32::MAX` where nothing limits them.
    pub fn max_of_class(&self, class: usize) -> u32 {
        let with = self.conditions.iter().filter(|condition| condition.holds_class(class));
        with.map(|condition| condition.max).min().unwrap_or(u32::MAX)
    }

    /// How many actions a command can have; `u32::MAX` where nothing limits them.
    pub fn max_actions(&self) -> u32 {
        if self.is_free() {
            return u32::MAX;
        }
        // Conditions that no others imply can be met with equality one after another (a polymatroid's greedy vertex).
        let mut totals = vec![0_u32; self.classes];
        for class in 0..self.classes {
            let room = self.conditions.iter().filter(|condition| condition.holds_class(class));
            let room = room.map(|condition| condition.max.saturating_sub(condition.sum(&totals))).min();
            if let Some(total) = totals.get_mut(class) {
                *total = room.unwrap_or(0);
            }
        }
        totals.into_iter().fold(0, u32::saturating_add)
    }

    /// Whether every action finds a device, given how often the actions of each class occur.
    pub fn admits_totals(&self, totals: &[u32]) -> bool {
        totals.iter().skip(self.classes).all(|total| *total == 0)
            && self.conditions.iter().all(|condition| condition.sum(totals) <= condition.max)
    }

    /// Whether every action finds a device, given how often each action occurs.
    pub fn admits(&self, counts: &[u32]) -> bool {
        let mut totals = vec![0_u32; self.classes];
        for (count, class) in counts.iter().zip(&self.class_of) {
            if let Some(total) = totals.get_mut(*class) {
                *total = total.saturating_add(*count);
            }
        }
        counts.iter().skip(self.class_of.len()).all(|count| *count == 0) && self.admits_totals(&totals)
    }
}

impl Condition {
    fn sum(&self, totals: &[u32]) -> u32 {
        let held = totals.iter().enumerate().filter(|(class, _)| self.holds_class(*class));
        held.fold(0, |sum, (_, total)| sum.saturating_add(*total))
    }
}

/// The conditions that no others imply. They belong to the sets of kinds that are exactly the kinds of the classes inside
/// (a larger set has more devices for the same classes), and that do not fall into two parts without a class in common
/// (the parts' conditions add up to the set's): the closed and inseparable sets of the polymatroid.
fn conditions(counts: &[u32], kinds_of_class: &[u32]) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for set in 1..1_u32 << counts.len() {
        let inside = kinds_of_class.iter().enumerate().filter(|(_, kinds)| *kinds & !set == 0);
        let (classes, covered) =
            inside.clone().fold((0_u64, 0), |(classes, covered), (at, kinds)| (classes | 1 << at, covered | kinds));
        if covered == set && is_connected(set, &inside.map(|(_, kinds)| *kinds)) {
            let devices = counts.iter().enumerate().filter(|(kind, _)| set >> kind & 1 == 1);
            let max = devices.fold(0, |sum, (_, count)| count.saturating_add(sum));
            conditions.push(Condition { classes, max, devices: max });
        }
    }
    conditions
}

/// Whether the classes link all kinds of the set.
fn is_connected(set: u32, classes: &(impl Iterator<Item = u32> + Clone)) -> bool {
    let mut reached = set & set.wrapping_neg();
    loop {
        let grown =
            classes.clone().filter(|kinds| kinds & reached != 0).fold(reached, |reached, kinds| reached | kinds);
        if grown == reached {
            return reached == set;
        }
        reached = grown;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Inventory;
    use crate::testing::{actions, device, home};

    #[test]
    fn plugs_and_lamps() {
        let limits = home().limits(&actions(&["on", "red", "off"])).unwrap();
        assert_eq!((limits.classes(), limits.max_actions()), (2, 16));
        assert_eq!([0, 1, 2, 3].map(|action| limits.class_of(action)), [0, 1, 0, 2]);
        assert_eq!((limits.max_of_class(0), limits.max_of_class(1)), (16, 4));
        assert!(limits.admits(&[10, 4, 2]));
        assert!(!limits.admits(&[10, 4, 3]));
        assert!(!limits.admits(&[0, 5, 0]));
        assert!(!limits.admits(&[0, 0, 0, 1]), "an action that is not there");
        assert!(!limits.admits_totals(&[0, 0, 1]), "a class that is not there");
        assert!(!limits.admits(&[u32::MAX, 0, u32::MAX]));
    }

    #[test]
    fn conditions_that_follow_from_others_are_left_out() {
        let inventory = |kinds: &[(&str, &[&str])]| Inventory {
            devices: kinds.iter().map(|(name, actions)| device(name, 2, actions)).collect(),
        };
        let apart = inventory(&[("a", &["x"]), ("b", &["y"]), ("c", &["z"])]);
        let limits = apart.limits(&actions(&["x", "y", "z"])).unwrap();
        assert_eq!((limits.conditions().len(), limits.max_actions()), (3, 6));
        let unused = apart.limits(&actions(&["x"])).unwrap();
        assert_eq!((unused.conditions().len(), unused.max_actions()), (1, 2));
        // Of seven sets of kinds: {b} and {c} hold no class, {a, c} falls apart.
        let chain = inventory(&[("a", &["x", "y"]), ("b", &["y", "z"]), ("c", &["z"])]);
        assert_eq!(chain.limits(&actions(&["x", "y", "z"])).unwrap().conditions().len(), 4);
    }

    #[test]
    fn counting_bounds_all_actions_together() {
        let all = actions(&["on", "red", "off"]);
        let counting = home().limits(&all).unwrap().counting(7);
        assert!(counting.admits(&[3, 4, 0]) && !counting.admits(&[3, 4, 1]) && !counting.admits(&[0, 5, 0]));
        let counter = counting.conditions()[counting.counter().unwrap()];
        assert_eq!((counter.max(), counter.devices(), counting.max_actions()), (7, 16, 7));
        assert_eq!(home().limits(&all).unwrap().counting(99).max_actions(), 16);
        let free = Limits::free(3);
        assert_eq!((free.counter(), free.counting(5).max_actions()), (None, 5));
        assert_eq!(free.counting(5).conditions()[0].devices(), u32::MAX);
    }

    #[test]
    fn without_inventory_anything_goes() {
        let limits = Limits::free(3);
        assert!(limits.is_free() && limits.admits(&[u32::MAX; 3]) && limits.max_actions() == u32::MAX);
        assert_eq!((limits.classes(), limits.class_of(2), limits.max_of_class(0)), (1, 0, u32::MAX));
    }

    /// Gives every action a device of its own by trying all ways.
    fn fits(inventory: &Inventory, names: &[&str], counts: &[u32], used: &mut Vec<u32>) -> bool {
        let Some(action) = counts.iter().position(|count| *count > 0) else { return true };
        let mut rest = counts.to_vec();
        rest[action] -= 1;
        (0..inventory.devices.len()).any(|kind| {
            let device = &inventory.devices[kind];
            if used[kind] == device.count || !device.actions.iter().any(|name| name == names[action]) {
                return false;
            }
            used[kind] += 1;
            let fits = fits(inventory, names, &rest, used);
            used[kind] -= 1;
            fits
        })
    }

    proptest! {
        #[test]
        fn agrees_with_trying_all_ways(
            kinds in prop::collection::vec((1u32..4, prop::sample::subsequence(vec!["a", "b", "c", "d"], 1..=4)), 1..4),
            counts in prop::collection::vec(0u32..4, 4),
        ) {
            let devices = kinds.iter().enumerate().map(|(at, (count, actions))| device(&at.to_string(), *count, actions));
            let inventory = Inventory { devices: devices.collect() };
            let names = inventory.action_names();
            let counts = &counts[..names.len()];
            let limits = inventory.limits(&actions(&names)).unwrap();
            let expected = fits(&inventory, &names, counts, &mut vec![0; inventory.devices.len()]);
            prop_assert_eq!(limits.admits(counts), expected);
        }

        #[test]
        fn the_most_actions_are_those_of_all_kinds_in_use(
            kinds in prop::collection::vec((1u32..9, prop::sample::subsequence(vec!["a", "b", "c", "d"], 1..=4)), 1..7),
        ) {
            let devices = kinds.iter().enumerate().map(|(at, (count, actions))| device(&at.to_string(), *count, actions));
            let inventory = Inventory { devices: devices.collect() };
            let limits = inventory.limits(&actions(&["a", "b", "c", "d"]).into_iter()
                .filter(|action| inventory.action_names().contains(&action.name.as_str())).collect::<Vec<_>>()).unwrap();
            prop_assert_eq!(limits.max_actions(), kinds.iter().map(|(count, _)| count).sum::<u32>());
        }
    }
}
