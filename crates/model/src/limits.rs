//! The commands that an inventory allows: Hall's conditions on how often actions occur, and an order of the classes of
//! actions, in which devices are given to them.

use crate::inventory::MAX_ACTION_CLASSES;
use crate::{Action, Inventory, InventoryError};

/// The commands that an inventory allows, for an ordered list of actions.
///
/// A command has at most one action for each device, so a command is possible if every action can be assigned its own
/// device: a bipartite b-matching. Actions that the same types of device have form a *class*. By Hall's theorem the
/// matching exists if, for every set of types, the actions that only these types have do not outnumber their devices.
/// Of these conditions only those that no others imply are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    class_of: Vec<usize>,
    classes: usize,
    conditions: Vec<Condition>,
}

/// An upper bound on how often the actions of some classes may occur together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The classes, as a bit set.
    classes: u64,
    /// How often the actions of its classes may occur in total.
    pub max: u32,
    /// The number of devices with such actions; `u32::MAX` without an inventory, or if only [`Limits::counting`] limits them.
    pub devices: u32,
    /// Whether it still matters at the end of a command how often they occur ([`Limits::counting_classes`]).
    pub is_kept: bool,
}

impl Inventory {
    /// The limits of commands made of `actions`.
    ///
    /// # Errors
    /// [`InventoryError`], among them [`InventoryError::UnknownAction`] if no device has one of the actions.
    pub fn limits(&self, actions: &[Action]) -> Result<Limits, InventoryError> {
        self.check()?;
        let counts: Vec<u32> = self.devices.iter().map(|device| device.count).collect();
        let types_with = self.types_with();
        let types = actions.iter().map(|action| {
            let types = types_with.get(action.name.as_str()).copied();
            types.ok_or_else(|| InventoryError::UnknownAction(action.name.clone()))
        });
        Limits::new(&counts, &types.collect::<Result<Vec<_>, _>>()?)
    }
}

impl Condition {
    pub fn holds_class(&self, class: usize) -> bool {
        class < MAX_ACTION_CLASSES && self.classes >> class & 1 == 1
    }

    /// Whether it holds one of a set of classes, given as a bit set.
    pub fn holds_any(&self, classes: u64) -> bool {
        self.classes & classes != 0
    }

    /// How often the actions of its classes occur, given the totals of all classes.
    pub fn sum(&self, totals: &[u32]) -> u32 {
        let held = totals.iter().enumerate().filter(|(class, _)| self.holds_class(*class));
        held.fold(0, |sum, (_, total)| sum.saturating_add(*total))
    }
}

impl Limits {
    /// Limits from the number of devices of each type (all above 0) and, for each action, the types that have it.
    fn new(counts: &[u32], types_of_action: &[u32]) -> Result<Self, InventoryError> {
        let mut types_of_class: Vec<u32> = Vec::new();
        let mut class_of = Vec::new();
        for types in types_of_action {
            let class = types_of_class.iter().position(|known| known == types).unwrap_or(types_of_class.len());
            if class == types_of_class.len() {
                types_of_class.push(*types);
            }
            class_of.push(class);
        }
        if types_of_class.len() > MAX_ACTION_CLASSES {
            return Err(InventoryError::TooManyClasses(types_of_class.len()));
        }
        Ok(Self { class_of, classes: types_of_class.len(), conditions: conditions(counts, &types_of_class) })
    }

    /// Those of an inventory, or none where there is no inventory.
    pub fn of(inventory: Option<&Inventory>, actions: &[Action]) -> Result<Self, InventoryError> {
        inventory.map_or_else(|| Ok(Self::free(actions.len())), |inventory| inventory.limits(actions))
    }

    /// No limits: any number of each of `actions` actions, all of one class.
    pub fn free(actions: usize) -> Self {
        Self { class_of: vec![0; actions], classes: usize::from(actions > 0), conditions: Vec::new() }
    }

    /// These limits, and at most `most` actions in total; there is always a condition on all actions
    /// ([`Self::counter`]).
    #[must_use]
    pub fn counting(&self, most: u32) -> Self {
        let all = self.all_classes();
        let devices = self.counter().and_then(|at| self.conditions.get(at)).map_or(u32::MAX, |all| all.devices);
        let mut conditions = self.conditions.clone();
        conditions.retain(|condition| condition.classes != all);
        conditions.push(Condition { classes: all, max: most.min(self.max_actions()), devices, is_kept: false });
        Self { conditions, ..self.clone() }
    }

    /// These limits with a condition for each class, in order, that never fails: it counts the actions of the class.
    #[must_use]
    pub fn counting_classes(&self) -> Self {
        let count = |class| Condition {
            classes: 1_u64 << class,
            max: self.max_of_class(class),
            devices: u32::MAX,
            is_kept: true,
        };
        let conditions = self.conditions.iter().copied().chain((0..self.classes).map(count)).collect();
        Self { conditions, ..self.clone() }
    }

    /// The index of the condition on all actions together, if there is one.
    pub fn counter(&self) -> Option<usize> {
        let all = self.all_classes();
        self.conditions.iter().position(|condition| condition.classes == all)
    }

    fn all_classes(&self) -> u64 {
        (0..self.classes.min(MAX_ACTION_CLASSES)).fold(0, |all, class| all | 1 << class)
    }

    pub fn is_free(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The class of an action, by the action's index; [`Self::classes`], an invalid class, for an unknown action.
    pub fn class_of(&self, action: usize) -> usize {
        self.class_of.get(action).copied().unwrap_or(self.classes)
    }

    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The conditions; none of them is implied by the others.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// How often the actions of a class can occur together; `u32::MAX` if unlimited.
    pub fn max_of_class(&self, class: usize) -> u32 {
        let with = self.conditions.iter().filter(|condition| condition.holds_class(class));
        with.map(|condition| condition.max).min().unwrap_or(u32::MAX)
    }

    /// The largest number of actions in a command; `u32::MAX` if unlimited.
    pub fn max_actions(&self) -> u32 {
        if self.is_free() {
            return u32::MAX;
        }
        // Filling one class after another reaches the maximum (the greedy vertex of a polymatroid).
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

    /// Whether every action can be assigned a device, given how often the actions of each class occur.
    pub fn admits_totals(&self, totals: &[u32]) -> bool {
        totals.iter().skip(self.classes).all(|total| *total == 0)
            && self.conditions.iter().all(|condition| condition.sum(totals) <= condition.max)
    }

    /// Whether every action can be assigned a device, given how often each action occurs.
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

/// The conditions that no others imply. A set of types has one if it is the union of the types of the classes inside it
/// (a larger set would have more devices for the same classes) and does not split into two parts without a common class
/// (the conditions of the parts imply that of the set): the closed and inseparable sets of the polymatroid.
fn conditions(counts: &[u32], types_of_class: &[u32]) -> Vec<Condition> {
    let mut conditions = Vec::new();
    for set in 1..1_u32 << counts.len() {
        let inside = types_of_class.iter().enumerate().filter(|(_, types)| *types & !set == 0);
        let (classes, covered) =
            inside.clone().fold((0_u64, 0), |(classes, covered), (at, types)| (classes | 1 << at, covered | types));
        if covered == set && is_connected(set, &inside.map(|(_, types)| *types)) {
            let devices = counts.iter().enumerate().filter(|(at, _)| set >> at & 1 == 1);
            let max = devices.fold(0, |sum, (_, count)| count.saturating_add(sum));
            conditions.push(Condition { classes, max, devices: max, is_kept: false });
        }
    }
    conditions
}

/// Whether the classes connect all types of the set.
fn is_connected(set: u32, classes: &(impl Iterator<Item = u32> + Clone)) -> bool {
    let mut reached = set & set.wrapping_neg();
    loop {
        let grown =
            classes.clone().filter(|types| types & reached != 0).fold(reached, |reached, types| reached | types);
        if grown == reached {
            return reached == set;
        }
        reached = grown;
    }
}

impl Limits {
    /// The classes in an order that keeps few conditions open at a time: the next class is always the one after which
    /// the open conditions can be used up in the fewest ways. Whoever gives devices to actions does it in this order, so
    /// that the share of free devices (see `docs/method.md`) is the same everywhere.
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
