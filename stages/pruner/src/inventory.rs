//! Whether candidates are within the inventory: a decomposer that is not ours may not have looked.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use sizeleak_frame::{Actions, SharedList};
use sizeleak_model::{InventoryError, Limits, MOST_CLASSES, Model};

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

    fn known(&self, names: &SharedList<Arc<str>>) -> Known {
        let classes = names.iter().map(|name| self.classes.get(&**name).copied()).collect();
        Known { names: names.clone(), classes }
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

/// Names, and by their places the classes of those that the model has.
#[derive(Debug)]
struct Known {
    names: SharedList<Arc<str>>,
    classes: Vec<Option<usize>>,
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
        let mut totals = [0_u32; MOST_CLASSES];
        let totals = totals.get_mut(..inventory.limits.classes()).unwrap_or_default();
        for (place, count) in actions.places().iter().filter(|(_, count)| *count > 0) {
            let class = known.classes.get(*place as usize).copied().flatten();
            let Some(total) = class.and_then(|class| totals.get_mut(class)) else { return false };
            *total = total.saturating_add(*count);
        }
        inventory.limits.admits_totals(totals)
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
