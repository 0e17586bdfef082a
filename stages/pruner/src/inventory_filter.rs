//! Whether candidates are within the inventory. A foreign decomposer may not have checked.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;
use sizeleak_frame::{Actions, SharedList};
use sizeleak_model::{InventoryError, Limits, MAX_ACTION_CLASSES, Model};

/// The limits of the model's inventory, by action names.
#[derive(Debug)]
pub(crate) struct InventoryFilter {
    /// The class of each action. Only looked up, so its order does not matter.
    classes: HashMap<String, usize, RandomState>,
    limits: Limits,
    /// How many actions a command can have; `u32::MAX` without an inventory.
    pub(crate) max_actions: u32,
    /// The names that the last candidate referred to, each with its class; `None` if the model does not have the action. The
    /// candidates of a list share their names, so that each name is looked up once.
    of_names: RefCell<ClassesOfNames>,
}

type ClassesOfNames = (SharedList<Arc<str>>, Vec<Option<usize>>);

impl InventoryFilter {
    pub(crate) fn new(model: &Model) -> Result<Self, InventoryError> {
        let limits = model.limits_of_all()?;
        let names = model.action_names().into_iter().map(str::to_owned);
        let classes = names.zip(0..).map(|(name, action)| (name, limits.class_of(action))).collect();
        Ok(Self { classes, max_actions: limits.max_actions(), limits, of_names: RefCell::default() })
    }

    /// Whether each of the actions finds a device of its own; always true without an inventory.
    pub(crate) fn allows(&self, actions: &Actions) -> bool {
        let limits = &self.limits;
        if limits.is_free() {
            return true;
        }
        let mut of_names = self.of_names.borrow_mut();
        if !of_names.0.is_clone_of(actions.names()) {
            let class = |name: &Arc<str>| self.classes.get(&**name).copied();
            *of_names = (actions.names().clone(), actions.names().iter().map(class).collect());
        }
        let mut totals = [0_u32; MAX_ACTION_CLASSES];
        let totals = totals.get_mut(..limits.classes()).unwrap_or_default();
        for (name_index, count) in actions.indexed_counts().iter().filter(|(_, count)| *count > 0) {
            let class = of_names.1.get(*name_index as usize).copied().flatten();
            let Some(total) = class.and_then(|class| totals.get_mut(class)) else { return false };
            *total = total.saturating_add(*count);
        }
        limits.admits_totals(totals)
    }
}
