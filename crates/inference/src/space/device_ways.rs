//! In how many ways the actions of a command can be given to devices, by the types of device that are used.
//!
//! Actions that the same types of device have form a class ([`sizeleak_model::Limits`]). The ways to give them to
//! devices depend on the totals of the classes alone.

use std::collections::BTreeMap;

use sizeleak_model::{Action, Device, GivenActions, Inventory, Limits};

use super::premises::SpaceError;

/// The most combinations of totals and types: as many take about a second and 100 MB.
const MAX_COMBINATIONS: usize = 1 << 18;

/// The most pairs of combinations that are looked at for one type: some seconds' work.
const MAX_PAIRS: usize = 1 << 24;

/// A set of types of device, as bits in the order of the inventory.
pub type TypeSet = u32;

/// What an action of one type of device weighs, by the type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WayWeight {
    /// 1: all ways count the same.
    One,
    /// 1 / the number of actions that the type has.
    Share,
}

/// The ways by the totals of the classes and the set of types that are used. Devices are told apart, actions of a class
/// are not.
#[derive(Debug, Clone)]
pub(crate) struct DeviceWays {
    ways: BTreeMap<Vec<u32>, Vec<(TypeSet, f64)>>,
}

impl DeviceWays {
    /// The ways for the commands that `limits` allow, which count actions ([`Limits::counting`]). `set_of` is the set of a
    /// type, by its place in the inventory: types that have the same are not told apart.
    pub(super) fn new(
        inventory: &Inventory,
        actions: &[Action],
        limits: &Limits,
        weight: WayWeight,
        set_of: impl Fn(usize) -> TypeSet,
    ) -> Result<Self, SpaceError> {
        let most = limits.max_actions();
        let actions: Vec<(&str, usize)> =
            (0..).zip(actions).map(|(at, action)| (action.name.as_str(), limits.class_of(at))).collect();
        let none = (vec![0; limits.classes()], 0);
        let mut found: BTreeMap<(Vec<u32>, TypeSet), f64> = BTreeMap::from([(none, 1.0)]);
        for (at, device) in inventory.devices.iter().enumerate() {
            let own = ways_of_type(device, &actions, limits.classes(), most, weight)?;
            if found.len().saturating_mul(own.len()) > MAX_PAIRS {
                return Err(SpaceError::TooMany);
            }
            let mut both = BTreeMap::new();
            for ((totals, set), ways) in &found {
                for (more, factor) in &own {
                    let sum: Vec<u32> = totals.iter().zip(more).map(|(one, other)| one + other).collect();
                    if sum.iter().sum::<u32>() > most {
                        continue;
                    }
                    let used = if more.iter().any(|total| *total > 0) { set_of(at) } else { 0 };
                    *both.entry((sum, set | used)).or_insert(0.0) += ways * factor;
                }
            }
            if both.len() > MAX_COMBINATIONS {
                return Err(SpaceError::TooMany);
            }
            found = both;
        }
        let mut ways: BTreeMap<Vec<u32>, Vec<(TypeSet, f64)>> = BTreeMap::new();
        for ((totals, set), of_set) in found {
            ways.entry(totals).or_default().push((set, of_set));
        }
        Ok(Self { ways })
    }

    pub(super) fn all(&self, totals: &[u32]) -> f64 {
        self.ways.get(totals).map_or(0.0, |ways| ways.iter().map(|(_, ways)| ways).sum())
    }

    /// The share of each set of types among the ways for these totals.
    pub(crate) fn shares(&self, totals: &[u32]) -> Vec<(TypeSet, f64)> {
        let all = self.all(totals);
        let ways = self.ways.get(totals).map_or(&[][..], Vec::as_slice);
        ways.iter().map(|(set, ways)| (*set, ways / all)).collect()
    }
}

/// The ways to give the actions of each class to devices of one type, by their totals.
fn ways_of_type(
    device: &Device,
    actions: &[(&str, usize)],
    classes: usize,
    most: u32,
    weight: WayWeight,
) -> Result<BTreeMap<Vec<u32>, f64>, SpaceError> {
    let own = actions.iter().filter(|(name, _)| device.actions.iter().any(|own| own == name));
    let mut own_classes: Vec<usize> = own.map(|(_, class)| *class).collect();
    let share = match weight {
        WayWeight::One => 1.0,
        WayWeight::Share => 1.0 / own_classes.len().max(1) as f64,
    };
    own_classes.sort_unstable();
    own_classes.dedup();
    let mut found = vec![(GivenActions { totals: vec![0; classes], free: device.count }, 1.0)];
    for class in own_classes {
        let mut more = Vec::new();
        for (given, ways) in found {
            let used: u32 = given.totals.iter().sum();
            let choices = (0..).zip(given.with_more(class, most.saturating_sub(used), 1.0));
            more.extend(
                choices.map(|(count, (given, choices))| (given, ways * choices * share.powf(f64::from(count)))),
            );
            if more.len() > MAX_COMBINATIONS {
                return Err(SpaceError::TooMany);
            }
        }
        found = more;
    }
    Ok(found.into_iter().map(|(given, ways)| (given.totals, ways)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sizeleak_model::DeviceTypes;

    use super::*;

    const ACTIONS: [&str; 4] = ["on", "off", "dim", "colour"];

    proptest! {
        #[test]
        fn types_are_used_as_often_as_by_the_counts_of_single_commands(
            types in prop::collection::vec((1..4_u32, 1..16_u32), 1..4),
            counts in [0..3_u32, 0..3_u32, 0..3_u32, 0..3_u32],
        ) {
            let device = |(at, (count, bits)): (usize, &(u32, u32))| {
                let own = (0..).zip(ACTIONS).filter(|(action, _)| bits >> action & 1 == 1);
                let actions = own.map(|(_, name)| name.to_owned()).collect();
                Device { name: at.to_string(), count: *count, actions, safe: true }
            };
            let inventory = Inventory { devices: types.iter().enumerate().map(device).collect() };
            let actions: Vec<Action> =
                inventory.action_names().into_iter().map(|name| Action::new(name, 40)).collect();
            let limits = inventory.limits(&actions).unwrap().counting(12);
            let ways = DeviceWays::new(&inventory, &actions, &limits, WayWeight::One, |at| 1 << at).unwrap();
            let command: Vec<(&str, u32)> = ACTIONS.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect();
            let mut totals = vec![0; limits.classes()];
            let mut is_known = true;
            for (name, count) in &command {
                match actions.iter().position(|action| action.name == *name) {
                    Some(action) => totals[limits.class_of(action)] += count,
                    None => is_known = false,
                }
            }
            let by_command = DeviceTypes::new(&inventory).addressed(command);
            prop_assert_eq!(by_command.is_some(), is_known && ways.all(&totals) > 0.0);
            let merged = DeviceWays::new(&inventory, &actions, &limits, WayWeight::One, |_| 1).unwrap();
            prop_assert!((merged.all(&totals) - ways.all(&totals)).abs() < 1e-9);
            for (at, probability) in by_command.iter().flat_map(|shares| shares.iter()).enumerate() {
                let with = ways.shares(&totals).into_iter().filter(|(set, _)| set >> at & 1 == 1);
                let share: f64 = with.map(|(_, share)| share).sum();
                prop_assert!((share - probability).abs() < 1e-12, "{totals:?} {at}: {share} {probability}");
            }
        }
    }
}
