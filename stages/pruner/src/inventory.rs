//! Whether candidates are within the inventory: a decomposer that is not ours may not have looked.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use sizeleak_frame::{Actions, Shared};
use sizeleak_signature::{Condition, InventoryError, Limits, Model};

/// The model's inventory, by action names.
#[derive(Debug)]
pub(crate) struct Inventory {
    /// The class of each action. Only looked up: its order shows nowhere.
    classes: HashMap<String, usize, RandomState>,
    limits: Limits,
}

impl Inventory {
    /// The inventory of a model.
    pub(crate) fn new(model: &Model) -> Result<Self, InventoryError> {
        let limits = model.limits()?;
        let names = model.actions.iter().map(|action| action.name.clone());
        let classes = names.zip(0..).map(|(name, action)| (name, limits.class_of(action))).collect();
        Ok(Self { classes, limits })
    }

    /// Asks about the candidates of one list.
    pub(crate) fn check(&self) -> Check<'_> {
        Check { inventory: self, known: None }
    }

    fn known(&self, names: &Shared<Arc<str>>) -> Known {
        let class = |name: &Arc<str>| self.classes.get(&**name).copied().filter(|class| *class < self.limits.classes());
        let classes: Vec<Option<usize>> = names.iter().map(class).collect();
        let condition = |condition: &Condition| {
            let is_held = |class: &Option<usize>| class.is_some_and(|class| condition.holds_class(class));
            (condition.max(), classes.iter().map(|class| if is_held(class) { u32::MAX } else { 0 }).collect())
        };
        Known {
            names: names.clone(),
            strange: (0..).zip(&classes).filter(|(_, class)| class.is_none()).map(|(place, _)| place).collect(),
            conditions: self.limits.conditions().iter().map(condition).collect(),
        }
    }

    /// How many actions a command can have; `u32::MAX` where nothing limits them.
    pub(crate) fn max_actions(&self) -> u32 {
        self.limits.max_actions()
    }
}

/// Asks an inventory about candidates, which share their names: each is looked up once.
#[derive(Debug)]
pub(crate) struct Check<'a> {
    inventory: &'a Inventory,
    known: Option<Known>,
}

/// Names, and by their places what the inventory says of them.
#[derive(Debug)]
struct Known {
    names: Shared<Arc<str>>,
    /// Which the model does not have.
    strange: Vec<u32>,
    /// How often the actions of each condition may occur in all, and which they are: all bits are set for these, none for
    /// others.
    conditions: Vec<(u32, Vec<u32>)>,
}

impl Check<'_> {
    /// Whether each of the actions finds a device of its own; always where the model has no inventory.
    pub(crate) fn allows(&mut self, actions: &Actions) -> bool {
        let Self { inventory, known } = self;
        if inventory.limits.is_free() {
            return true;
        }
        let known = match known {
            Some(known) if known.names.is_clone_of(actions.names()) => known,
            _ => known.insert(inventory.known(actions.names())),
        };
        known.allows(actions.places())
    }
}

impl Known {
    fn allows(&self, counts: &[(u32, u32)]) -> bool {
        let is_strange = |(place, count): &(u32, u32)| *count > 0 && self.strange.contains(place);
        let is_met = |(max, held): &(u32, Vec<u32>)| {
            let of_those =
                |(place, count): &(u32, u32)| held.get(*place as usize).map_or(0, |all_bits| count & all_bits);
            counts.iter().map(of_those).fold(0, u32::saturating_add) <= *max
        };
        (self.strange.is_empty() || !counts.iter().any(is_strange)) && self.conditions.iter().all(is_met)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(devices: &str) -> Inventory {
        let model = format!(
            "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n[[action]]\nname = \"on\"\nsize = 40\n\
             [[action]]\nname = \"red\"\nsize = 41\n{devices}[replies]\nfixed = 0.0\nper_action = 0.0\n\
             missing = 0.0\nsurplus = 0.0\n[learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\n\
             basis = \"wire\"\n"
        );
        Inventory::new(&Model::from_toml(&model).unwrap()).unwrap()
    }

    fn actions(counts: &[(&str, u32)]) -> Actions {
        counts.iter().map(|(name, count)| (Arc::from(*name), *count)).collect()
    }

    #[test]
    fn each_action_needs_a_device() {
        let home = inventory(
            "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\"]\n\
             [[device]]\nname = \"lamp\"\ncount = 1\nactions = [\"on\", \"red\"]\n",
        );
        let allows = |counts: &[(&str, u32)]| home.check().allows(&actions(counts));
        assert!(allows(&[("on", 3)]) && allows(&[("on", 2), ("red", 1)]) && allows(&[("red", 1), ("blink", 0)]));
        assert!(!allows(&[("on", 4)]) && !allows(&[("on", 3), ("red", 1)]) && !allows(&[("red", 2)]));
        assert!(
            !allows(&[("blink", 1)]) && !allows(&[("on", 2), ("on", 2)]) && !allows(&[("on", u32::MAX), ("on", 9)])
        );
        assert_eq!(home.max_actions(), 3);
    }

    #[test]
    fn without_devices_anything_goes() {
        let free = inventory("");
        assert!(free.check().allows(&actions(&[("on", u32::MAX), ("blink", 1)])));
        assert_eq!(free.max_actions(), u32::MAX);
    }
}
