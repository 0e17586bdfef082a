//! The inventory: which devices there are and which actions each of them has.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

use crate::Action;

/// The largest number of device types in an inventory; every union of types is checked for a condition.
pub const MAX_DEVICE_TYPES: usize = 16;

/// The largest number of action classes (sets of types that share an action) in an inventory.
pub const MAX_ACTION_CLASSES: usize = 64;

/// The largest number of devices of a type: commands with more have more states than are counted.
pub const MAX_DEVICES: u32 = (1 << 16) - 1;

/// The most different actions of an inventory or a model.
pub(crate) const MAX_ACTIONS: usize = 4096;

/// The devices behind a gateway, by type.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inventory {
    #[serde(rename = "device", default)]
    pub devices: Vec<Device>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    pub name: String,
    #[serde(deserialize_with = "device_count")]
    pub count: u32,
    /// The actions of such a device; a command has at most one action for each device.
    #[serde(deserialize_with = "action_list")]
    pub actions: Vec<String>,
    /// Whether commanding it harms nobody who is not asked: false for locks and heaters.
    #[serde(default = "is_safe", skip_serializing_if = "Clone::clone")]
    pub safe: bool,
}

fn device_count<'de, D: Deserializer<'de>>(value: D) -> Result<u32, D::Error> {
    let count = u32::deserialize(value)?;
    if count <= MAX_DEVICES {
        return Ok(count);
    }
    Err(D::Error::custom(format!("{count} devices of a type: the limit is {MAX_DEVICES}")))
}

fn action_list<'de, D: Deserializer<'de>>(value: D) -> Result<Vec<String>, D::Error> {
    let actions = Vec::deserialize(value)?;
    if actions.len() <= MAX_ACTIONS {
        return Ok(actions);
    }
    Err(D::Error::custom(format!("{} actions of a type: the limit is {MAX_ACTIONS}", actions.len())))
}

/// What a device is unless the inventory says otherwise.
fn is_safe() -> bool {
    true
}

#[derive(Debug, thiserror::Error, Clone, PartialEq, Eq)]
pub enum InventoryError {
    #[error("the inventory cannot be read: {0}")]
    Syntax(String),
    #[error("the inventory names the device `{0}` twice: add up their counts, or give them two names")]
    DuplicateDevice(String),
    #[error("the inventory lists the action `{action}` of device `{device}` twice: list it once")]
    DuplicateAction { device: String, action: String },
    #[error("the inventory has no [[device]]: add one for each type, with `name`, `count` and `actions`")]
    NoDevices,
    #[error("the inventory counts 0 of the device `{0}`: remove it, or give its number")]
    ZeroCount(String),
    #[error("the device `{0}` of the inventory has no action: remove it, or list its actions")]
    NoActions(String),
    #[error("the inventory has an empty name in its device number {0}: name it")]
    EmptyName(usize),
    #[error(
        "the inventory has {0} types of device, the limit is {MAX_DEVICE_TYPES}: merge types with the same actions"
    )]
    TooManyTypes(usize),
    #[error("the inventory has {0} different actions, the limit is {MAX_ACTIONS}: give actions of one size one name")]
    TooManyActions(usize),
    #[error(
        "the inventory's types share actions in {0} different ways, the limit is {MAX_ACTION_CLASSES}: merge types \
         with nearly the same actions"
    )]
    TooManyClasses(usize),
    #[error("no device of the inventory has the action `{0}`: add it to one, or remove it from the labels")]
    UnknownAction(String),
}

impl Inventory {
    /// Reads an inventory: `[[device]]` with `name`, `count` and `actions`.
    pub fn from_toml(text: &str) -> Result<Self, InventoryError> {
        let inventory: Self = toml::from_str(text).map_err(|error| InventoryError::Syntax(toml_fault(text, &error)))?;
        inventory.check()?;
        Ok(inventory)
    }

    /// Checks the bounds and names that the TOML types do not enforce.
    pub fn check(&self) -> Result<(), InventoryError> {
        match self.devices.len() {
            0 => return Err(InventoryError::NoDevices),
            types if types > MAX_DEVICE_TYPES => return Err(InventoryError::TooManyTypes(types)),
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
        let actions = self.action_names().len();
        if actions > MAX_ACTIONS { Err(InventoryError::TooManyActions(actions)) } else { Ok(()) }
    }

    /// The names of all actions, in order of first occurrence.
    pub fn action_names(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.devices.iter().flat_map(|device| &device.actions).map(String::as_str);
        names.filter(|name| seen.insert(*name)).collect()
    }

    /// Which types have an action, as bits in the order of the inventory; types beyond the bits, which [`Self::check`]
    /// refuses, are left out.
    pub(crate) fn types_with(&self) -> BTreeMap<&str, u32> {
        let mut types_with: BTreeMap<&str, u32> = BTreeMap::new();
        for (at, device) in (0..u32::BITS).zip(&self.devices) {
            for action in &device.actions {
                *types_with.entry(action).or_default() |= 1 << at;
            }
        }
        types_with
    }

    /// The names of the devices' actions that are not among the learned `actions`; commands with them cannot be
    /// recognised.
    pub fn unlearned(&self, actions: &[Action]) -> Vec<&str> {
        let learned: BTreeSet<&str> = actions.iter().map(|action| action.name.as_str()).collect();
        let mut names = self.action_names();
        names.retain(|name| !learned.contains(name));
        names
    }
}

/// What is wrong with a TOML text, in one line that names the line of the text if it is known.
pub(crate) fn toml_fault(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let line = before.map(|before| format!("line {}: ", before.matches('\n').count() + 1));
    line.unwrap_or_default() + error.message()
}
