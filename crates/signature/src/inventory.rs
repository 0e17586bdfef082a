//! Which devices there are and what each can be told: what a command can be made of at all.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::syntax;

/// The most kinds of device an inventory may have; conditions are checked for every union of them.
pub const MOST_KINDS: usize = 12;

/// The devices behind a gateway, by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    /// The kinds of device.
    #[serde(rename = "device", default)]
    pub devices: Vec<Device>,
}

/// A kind of device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// The kind's name.
    pub name: String,
    /// How many of it there are.
    pub count: u32,
    /// What one can be told to do; a command tells each device one thing at most.
    pub actions: Vec<String>,
}

/// Why an inventory cannot be used.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum InventoryError {
    /// The text is no inventory.
    #[error("the inventory cannot be read: {0}")]
    Syntax(String),
    /// Two kinds of one name.
    #[error("the inventory names the device `{0}` twice: add up their counts, or give them two names")]
    DuplicateDevice(String),
    /// An action named twice in one kind.
    #[error("the inventory lists the action `{action}` of device `{device}` twice: list it once")]
    DuplicateAction {
        /// The kind of device.
        device: String,
        /// The action.
        action: String,
    },
    /// A kind of which there is none, or that can do nothing.
    #[error("the device `{0}` of the inventory has no count or no action: leave it out")]
    Empty(String),
    /// Too many kinds.
    #[error(
        "the inventory has {0} kinds of device, this version takes {MOST_KINDS}: merge kinds with the same actions"
    )]
    TooManyKinds(usize),
    /// An action no device can take.
    #[error("no device of the inventory has the action `{0}`: add it to one, or drop it from the labels")]
    UnknownAction(String),
}

impl Inventory {
    /// Reads an inventory: `[[device]]` with `name`, `count` and `actions`.
    ///
    /// # Errors
    /// [`InventoryError`].
    pub fn from_toml(text: &str) -> Result<Self, InventoryError> {
        let inventory: Self =
            toml::from_str(text).map_err(|error| InventoryError::Syntax(syntax::fault(text, &error)))?;
        inventory.check()?;
        Ok(inventory)
    }

    /// Checks what the form alone does not rule out.
    ///
    /// # Errors
    /// [`InventoryError`].
    pub fn check(&self) -> Result<(), InventoryError> {
        if self.devices.len() > MOST_KINDS {
            return Err(InventoryError::TooManyKinds(self.devices.len()));
        }
        let mut names = BTreeSet::new();
        for device in &self.devices {
            if !names.insert(&device.name) {
                return Err(InventoryError::DuplicateDevice(device.name.clone()));
            }
            if device.count == 0 || device.actions.is_empty() {
                return Err(InventoryError::Empty(device.name.clone()));
            }
            let mut actions = BTreeSet::new();
            if let Some(action) = device.actions.iter().find(|action| !actions.insert(*action)) {
                let (device, action) = (device.name.clone(), action.clone());
                return Err(InventoryError::DuplicateAction { device, action });
            }
        }
        Ok(())
    }

    /// All actions, in the order they are first named.
    pub fn action_names(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.devices.iter().flat_map(|device| &device.actions).map(String::as_str);
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// What this inventory allows of commands made of `actions`.
    ///
    /// # Errors
    /// [`InventoryError::UnknownAction`] where no device can take one of them.
    pub fn limits<'a>(&self, actions: impl IntoIterator<Item = &'a str>) -> Result<Limits, InventoryError> {
        self.check()?;
        let mut kinds_of_class: Vec<u32> = Vec::new();
        let mut class_of = Vec::new();
        for action in actions {
            let kinds = self.kinds_with(action);
            if kinds == 0 {
                return Err(InventoryError::UnknownAction(action.to_owned()));
            }
            let class = kinds_of_class.iter().position(|known| *known == kinds).unwrap_or_else(|| {
                kinds_of_class.push(kinds);
                kinds_of_class.len() - 1
            });
            class_of.push(class);
        }
        Ok(Limits { class_of, conditions: self.conditions(&kinds_of_class), classes: kinds_of_class.len() })
    }

    /// The kinds that can take an action, as a bit set.
    fn kinds_with(&self, action: &str) -> u32 {
        let has = |device: &Device| device.actions.iter().any(|name| name == action);
        self.devices.iter().enumerate().filter(|(_, device)| has(device)).fold(0, |set, (kind, _)| set | 1 << kind)
    }

    /// Hall's conditions: what only the kinds of a set can take must not outnumber the devices of that set. Sets whose
    /// classes are those of a smaller set say nothing new and are left out.
    fn conditions(&self, kinds_of_class: &[u32]) -> Vec<Condition> {
        let mut conditions: Vec<Condition> = Vec::new();
        for set in 1..1_u32 << self.devices.len() {
            let inside = |kinds: &u32| kinds & !set == 0;
            let classes = kinds_of_class.iter().enumerate().filter(|(_, kinds)| inside(kinds));
            let classes: Vec<usize> = classes.map(|(class, _)| class).collect();
            let devices = self.devices.iter().enumerate().filter(|(kind, _)| set & 1 << kind != 0);
            let most = devices.map(|(_, device)| device.count).fold(0, u32::saturating_add);
            match conditions.iter_mut().find(|known| known.classes == classes) {
                _ if classes.is_empty() => {}
                Some(known) => known.most = known.most.min(most),
                None => conditions.push(Condition { classes, most }),
            }
        }
        conditions
    }
}

/// What an inventory allows of commands made of an ordered list of actions. Actions that the same kinds of device can
/// take form a class; how often a class occurs in all decides whether every action finds a device (Hall's theorem).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    class_of: Vec<usize>,
    classes: usize,
    conditions: Vec<Condition>,
}

/// The actions of these classes together occur this often at most.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    classes: Vec<usize>,
    most: u32,
}

impl Limits {
    /// No limits: any number of any of `actions` actions, all of one class.
    pub fn free(actions: usize) -> Self {
        Self { class_of: vec![0; actions], classes: usize::from(actions > 0), conditions: Vec::new() }
    }

    /// Whether any number of any action is allowed.
    pub fn is_free(&self) -> bool {
        self.conditions.is_empty()
    }

    /// The class of an action, by the action's place in the list.
    pub fn class_of(&self, action: usize) -> Option<usize> {
        self.class_of.get(action).copied()
    }

    /// How many classes there are.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// How often the actions of a class can occur together.
    pub fn most_of_class(&self, class: usize) -> u32 {
        let with = self.conditions.iter().filter(|condition| condition.classes.contains(&class));
        with.map(|condition| condition.most).min().unwrap_or(u32::MAX)
    }

    /// How many actions a command can have.
    pub fn most_actions(&self) -> u32 {
        let all = self.conditions.iter().filter(|condition| condition.classes.len() == self.classes);
        all.map(|condition| condition.most).min().unwrap_or(u32::MAX)
    }

    /// Whether every action finds a device, given how often each class occurs.
    pub fn admits_totals(&self, totals: &[u32]) -> bool {
        self.conditions.iter().all(|condition| {
            let sum = condition.classes.iter().filter_map(|class| totals.get(*class));
            sum.map(|total| u64::from(*total)).sum::<u64>() <= u64::from(condition.most)
        })
    }

    /// Whether every action finds a device, given how often each action occurs.
    pub fn admits(&self, counts: &[u32]) -> bool {
        let mut totals = vec![0_u32; self.classes];
        for (count, class) in counts.iter().zip(&self.class_of) {
            if let Some(total) = totals.get_mut(*class) {
                *total = total.saturating_add(*count);
            }
        }
        self.admits_totals(&totals)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn device(name: &str, count: u32, actions: &[&str]) -> Device {
        Device { name: name.into(), count, actions: actions.iter().map(|action| (*action).to_owned()).collect() }
    }

    fn home() -> Inventory {
        Inventory { devices: vec![device("plug", 12, &["on", "off"]), device("lamp", 4, &["on", "off", "red"])] }
    }

    #[test]
    fn plugs_and_lamps() {
        let limits = home().limits(["on", "red", "off"]).unwrap();
        assert_eq!((limits.classes(), limits.most_actions()), (2, 16));
        assert_eq!((limits.most_of_class(0), limits.most_of_class(1)), (16, 4));
        assert!(limits.admits(&[10, 4, 2]));
        assert!(!limits.admits(&[10, 4, 3]));
        assert!(!limits.admits(&[0, 5, 0]));
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = |text| Inventory::from_toml(text).unwrap_err().to_string();
        assert!(error("[[device]]\nname = \"a\"\ncount = 1\nactions = [\"x\", \"x\"]").contains("twice"));
        assert!(error("[[device]]\nname = \"a\"\ncount = 0\nactions = [\"x\"]").contains("leave it out"));
        assert!(error("[[devices]]").contains("devices"));
        assert_eq!(home().limits(["blink"]), Err(InventoryError::UnknownAction("blink".into())));
        assert_eq!(home().action_names(), ["on", "off", "red"]);
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
            let limits = inventory.limits(names.iter().copied()).unwrap();
            let expected = fits(&inventory, &names, counts, &mut vec![0; inventory.devices.len()]);
            prop_assert_eq!(limits.admits(counts), expected);
        }
    }
}
