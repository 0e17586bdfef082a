//! The inventory: which devices there are and which actions each of them has. Which types of devices the actions of a
//! command are for, where several types have the same actions; and in how many ways actions can be given to the devices of
//! a type, one to a device at most. Devices are told apart, actions of a class are not.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
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

/// So many answers are remembered.
const MAX_KNOWN: usize = 4096;

/// Ways to share out actions that are looked at for one answer, at most.
const MAX_STEPS: usize = 1 << 17;

/// Types of devices, as bits in the order of the inventory.
type TypeSet = u32;

/// How often actions occur, in the order of the types that have them.
type Totals = Vec<(TypeSet, u32)>;

#[derive(Debug, Clone)]
pub struct DeviceTypes {
    pub names: Vec<String>,
    /// How many devices there are of each type.
    counts: Vec<u32>,
    types_with: HashMap<String, TypeSet, RandomState>,
    known: HashMap<Totals, Option<Arc<[f64]>>, RandomState>,
}

impl DeviceTypes {
    /// The types of an inventory that obeys its limits ([`crate::MAX_DEVICE_TYPES`]); further ones are left out.
    pub fn new(inventory: &Inventory) -> Self {
        let types_with = inventory.types_with().into_iter().map(|(action, types)| (action.to_owned(), types)).collect();
        let types = || inventory.devices.iter().take(TypeSet::BITS as usize);
        let names = types().map(|device| device.name.clone()).collect();
        let counts = types().map(|device| device.count).collect();
        Self { names, counts, types_with, known: HashMap::default() }
    }

    /// How probable it is for each type that a command with these actions is for a device of it, if every way to give
    /// the actions to devices is as likely, one to a device at most. `None` if there is no way, or there are too many
    /// to look at.
    pub fn addressed<'a>(&mut self, actions: impl IntoIterator<Item = (&'a str, u32)>) -> Option<Arc<[f64]>> {
        let mut totals = Totals::new();
        for (action, count) in actions {
            let types = *self.types_with.get(action)?;
            match totals.binary_search_by_key(&types, |(own, _)| *own) {
                Ok(at) => totals[at].1 = totals[at].1.saturating_add(count),
                Err(at) => totals.insert(at, (types, count)),
            }
        }
        totals.retain(|(_, total)| *total > 0);
        if let Some(known) = self.known.get(&totals) {
            return known.clone();
        }
        let without = (0..self.counts.len()).map(|at| self.ways(&totals, Some(at)));
        let found = self.ways(&totals, None).filter(|all| *all > 0.0).and_then(|all| {
            without.map(|without| Some(1.0 - without? / all)).collect::<Option<Vec<f64>>>().map(Arc::from)
        });
        if self.known.len() >= MAX_KNOWN {
            self.known.clear();
        }
        self.known.insert(totals, found.clone());
        found
    }

    /// In how many ways devices can carry out the actions, without those of one type; `None` if it takes too long.
    fn ways(&self, totals: &Totals, without: Option<usize>) -> Option<f64> {
        let wanted: Vec<u32> = totals.iter().map(|(_, total)| *total).collect();
        let mut steps = 0;
        let mut found: BTreeMap<Vec<u32>, f64> = BTreeMap::from([(vec![0; wanted.len()], 1.0)]);
        for (at, devices) in self.counts.iter().enumerate().filter(|(at, _)| Some(*at) != without) {
            let of_type = (0..).zip(totals).filter(|(_, (types, _))| types >> at & 1 == 1);
            let of_type: Vec<(usize, u32)> = of_type.map(|(class, (_, total))| (class, *total)).collect();
            let mut next = BTreeMap::new();
            // In this order, in which the last bits of the sums are those of earlier versions.
            for (before, ways) in found.into_iter().rev() {
                let mut given = vec![(GivenActions { totals: before, free: *devices }, ways)];
                for (class, total) in of_type.iter().copied() {
                    let more = |(given, ways): (GivenActions, f64)| {
                        let left = total - given.totals.get(class).copied().unwrap_or(0);
                        given.with_more(class, left, ways)
                    };
                    given = given.into_iter().flat_map(more).collect();
                    steps += given.len();
                    if steps > MAX_STEPS {
                        return None;
                    }
                }
                for (given, ways) in given {
                    *next.entry(given.totals).or_insert(0.0) += ways;
                }
            }
            found = next;
        }
        Some(found.get(&wanted).copied().unwrap_or(0.0))
    }
}

/// Actions that have been given to devices, while those of one type are given theirs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct GivenActions {
    pub totals: Vec<u32>,
    /// How many devices of the type have none yet.
    pub free: u32,
}

impl GivenActions {
    /// Gives 0, 1, 2, … further actions of a class to devices that have none yet, `most` at the most: each with `ways` times
    /// the number of choices of these devices.
    pub fn with_more(self, class: usize, most: u32, ways: f64) -> impl Iterator<Item = (Self, f64)> {
        let mut choices = ways;
        (0..=most.min(self.free)).map(move |more| {
            if let Some(before) = more.checked_sub(1) {
                choices *= choice_after(self.free, before);
            }
            let mut given = self.clone();
            given.free -= more;
            if let Some(total) = given.totals.get_mut(class) {
                *total += more;
            }
            (given, choices)
        })
    }
}

pub fn choose(all: u32, some: u32) -> f64 {
    (0..some).map(|chosen| choice_after(all, chosen)).product()
}

/// C(all, chosen + 1) / C(all, chosen): one more thing is chosen.
fn choice_after(all: u32, chosen: u32) -> f64 {
    f64::from(all.saturating_sub(chosen)) / f64::from(chosen + 1)
}
