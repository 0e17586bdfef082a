//! Which devices there are and what each can be told: what a command can be made of at all.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::{Action, Limits, syntax};

/// The most kinds of device an inventory may have; conditions are checked for every union of them.
pub const MAX_DEVICE_KINDS: usize = 16;

/// The most classes of actions (sets of kinds that share an action) an inventory may have.
pub const MAX_ACTION_CLASSES: usize = 64;

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
    /// No device at all.
    #[error("the inventory has no [[device]]: add one for each kind, with `name`, `count` and `actions`")]
    NoDevices,
    /// A kind of which there is none.
    #[error("the inventory counts 0 of the device `{0}`: leave it out, or say how many there are")]
    ZeroCount(String),
    /// A kind that can do nothing.
    #[error("the device `{0}` of the inventory has no action: leave it out, or list its actions")]
    NoActions(String),
    /// A device or an action without a name.
    #[error("the inventory has an empty name in its device number {0}: name it")]
    EmptyName(usize),
    /// Too many kinds.
    #[error(
        "the inventory has {0} kinds of device, this version takes {MAX_DEVICE_KINDS}: merge kinds with the same actions"
    )]
    TooManyKinds(usize),
    /// Too many ways in which kinds share actions.
    #[error(
        "the inventory's kinds share actions in {0} different ways, this version takes {MAX_ACTION_CLASSES}: merge kinds \
         with nearly the same actions"
    )]
    TooManyClasses(usize),
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
        match self.devices.len() {
            0 => return Err(InventoryError::NoDevices),
            kinds if kinds > MAX_DEVICE_KINDS => return Err(InventoryError::TooManyKinds(kinds)),
            _ => {}
        }
        let mut names = BTreeSet::new();
        for (device, number) in self.devices.iter().zip(1..) {
            if device.name.is_empty() || device.actions.iter().any(String::is_empty) {
                return Err(InventoryError::EmptyName(number));
            }
            if !names.insert(&device.name) {
                return Err(InventoryError::DuplicateDevice(device.name.clone()));
            }
            if device.count == 0 {
                return Err(InventoryError::ZeroCount(device.name.clone()));
            }
            if device.actions.is_empty() {
                return Err(InventoryError::NoActions(device.name.clone()));
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

    /// The actions of devices that are not among `actions`: nothing was learned of them, so no command with them can be
    /// told.
    pub fn unlearned(&self, actions: &[Action]) -> Vec<&str> {
        let learned: BTreeSet<&str> = actions.iter().map(|action| action.name.as_str()).collect();
        let mut names = self.action_names();
        names.retain(|name| !learned.contains(name));
        names
    }

    /// What this inventory allows of commands made of `actions`.
    ///
    /// # Errors
    /// [`InventoryError`], among them [`InventoryError::UnknownAction`] where no device can take one of the actions.
    pub fn limits(&self, actions: &[Action]) -> Result<Limits, InventoryError> {
        self.check()?;
        let counts: Vec<u32> = self.devices.iter().map(|device| device.count).collect();
        let mut kinds_with: BTreeMap<&str, u32> = BTreeMap::new();
        for (kind, device) in self.devices.iter().enumerate() {
            for action in &device.actions {
                *kinds_with.entry(action).or_default() |= 1 << kind;
            }
        }
        let kinds = actions.iter().map(|action| {
            let kinds = kinds_with.get(action.name.as_str()).copied();
            kinds.ok_or_else(|| InventoryError::UnknownAction(action.name.clone()))
        });
        Limits::new(&counts, &kinds.collect::<Result<Vec<_>, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{actions, device, home};

    #[test]
    fn names_come_in_the_order_first_seen() {
        assert_eq!(home().action_names(), ["on", "off", "red"]);
        assert_eq!(home().unlearned(&actions(&["red", "blink"])), ["on", "off"]);
    }

    #[test]
    fn errors_say_what_to_do() {
        let error = |text| Inventory::from_toml(text).unwrap_err().to_string();
        let twice = "[[device]]\nname = \"a\"\ncount = 1\nactions = [\"x\"]\n".repeat(2);
        assert!(error(&twice).contains("device `a` twice"));
        assert!(error("[[device]]\nname = \"a\"\ncount = 1\nactions = [\"x\", \"x\"]").contains("action `x`"));
        assert!(error("[[device]]\nname = \"a\"\ncount = 0\nactions = [\"x\"]").contains("counts 0"));
        assert!(error("[[device]]\nname = \"a\"\ncount = 1\nactions = []").contains("has no action"));
        assert!(error("[[device]]\nname = \"\"\ncount = 1\nactions = []").contains("device number 1"));
        assert!(error("[[device]]\nname = \"a\"\ncount = -1\nactions = [\"x\"]").contains("line 3"));
        assert!(
            error("[[device]]\nname = \"a\"\ncuont = 1\nactions = [\"x\"]").contains("line 3: unknown field `cuont`")
        );
        assert!(error("[[devices]]").contains("devices"));
        assert!(error("").contains("no [[device]]"));
        assert_eq!(home().limits(&actions(&["blink"])), Err(InventoryError::UnknownAction("blink".into())));
        let kinds = (0..17).map(|kind| device(&kind.to_string(), 1, &["on"])).collect();
        assert_eq!(Inventory { devices: kinds }.check(), Err(InventoryError::TooManyKinds(17)));
    }

    #[test]
    fn reads_what_it_writes() {
        let text = toml::to_string(&home()).unwrap();
        assert_eq!(Inventory::from_toml(&text).unwrap(), home());
    }
}
