//! In how many ways the actions of a command can be given to devices, by the kinds of device that are used.
//!
//! Actions that the same kinds of device have form a class ([`sizeleak_model::Limits`]). The ways to give them to devices
//! depend on the totals of the classes alone.

use std::collections::BTreeMap;

use sizeleak_model::{Device, GivenActions, Limits, Model};

use crate::leakage::error::LeakageError;
use crate::leakage::premises::PriorKind;

/// The most combinations of totals and kinds.
const MAX_COMBINATIONS: usize = 1 << 18;

/// The most pairs of combinations that are looked at for one kind.
const MAX_PAIRS: usize = 1 << 24;

/// A set of kinds of device, as bits in the order of the inventory.
pub(crate) type KindSet = u32;

/// What an action of one kind of device weighs, by the kind.
pub(crate) enum ActionWeight {
    /// 1: all ways count the same.
    One,
    /// 1 / the number of actions that the kind has.
    Share,
}

impl ActionWeight {
    /// What a prior says: where it says nothing of devices, all ways count the same.
    pub(crate) fn of(prior: PriorKind) -> Self {
        if prior == PriorKind::Devices { Self::Share } else { Self::One }
    }
}

/// The ways by the totals of the classes and the set of kinds that are used. Devices are told apart, actions of a class
/// are not.
#[derive(Debug, Clone)]
pub(crate) struct DeviceWays {
    ways: BTreeMap<Vec<u32>, Vec<(KindSet, f64)>>,
}

impl DeviceWays {
    /// The ways for the commands of a model that `limits` allow, which count actions ([`Limits::counting`]); `None` if the
    /// devices are not known.
    pub(crate) fn new(model: &Model, limits: &Limits, weight: &ActionWeight) -> Result<Option<Self>, LeakageError> {
        let Some(inventory) = &model.inventory else { return Ok(None) };
        let (classes, most) = (limits.classes(), limits.max_actions());
        let actions: Vec<(&str, usize)> =
            (0..).zip(&model.actions).map(|(at, action)| (action.name.as_str(), limits.class_of(at))).collect();
        let mut found: BTreeMap<(Vec<u32>, KindSet), f64> = BTreeMap::from([((vec![0; classes], 0), 1.0)]);
        for (kind, device) in inventory.devices.iter().enumerate() {
            let own = ways_of_kind(device, &actions, classes, most, weight)?;
            if found.len().saturating_mul(own.len()) > MAX_PAIRS {
                return Err(LeakageError::TooMany);
            }
            let mut both = BTreeMap::new();
            for ((totals, set), ways) in &found {
                for (more, factor) in &own {
                    let sum: Vec<u32> = totals.iter().zip(more).map(|(one, other)| one + other).collect();
                    if sum.iter().sum::<u32>() > most {
                        continue;
                    }
                    let used = u32::from(more.iter().any(|total| *total > 0)) << kind;
                    *both.entry((sum, set | used)).or_insert(0.0) += ways * factor;
                }
            }
            if both.len() > MAX_COMBINATIONS {
                return Err(LeakageError::TooMany);
            }
            found = both;
        }
        let mut ways: BTreeMap<Vec<u32>, Vec<(KindSet, f64)>> = BTreeMap::new();
        for ((totals, set), of_set) in found {
            ways.entry(totals).or_default().push((set, of_set));
        }
        Ok(Some(Self { ways }))
    }

    /// All ways for these totals.
    pub(crate) fn all(&self, totals: &[u32]) -> f64 {
        self.ways.get(totals).map_or(0.0, |ways| ways.iter().map(|(_, ways)| ways).sum())
    }

    /// The share of each set of kinds among the ways for these totals.
    pub(crate) fn shares(&self, totals: &[u32]) -> Vec<(KindSet, f64)> {
        let all = self.all(totals);
        let ways = self.ways.get(totals).map_or(&[][..], Vec::as_slice);
        ways.iter().map(|(set, ways)| (*set, ways / all)).collect()
    }
}

/// The ways to give the actions of each class to devices of one kind, by their totals.
fn ways_of_kind(
    device: &Device,
    actions: &[(&str, usize)],
    classes: usize,
    most: u32,
    weight: &ActionWeight,
) -> Result<BTreeMap<Vec<u32>, f64>, LeakageError> {
    let own: Vec<usize> = actions
        .iter()
        .filter(|(name, _)| device.actions.iter().any(|own| own == name))
        .map(|(_, class)| *class)
        .collect();
    let share = match weight {
        ActionWeight::One => 1.0,
        ActionWeight::Share => 1.0 / own.len().max(1) as f64,
    };
    let mut own_classes = own;
    own_classes.sort_unstable();
    own_classes.dedup();
    let mut found = vec![(GivenActions::before(device.count, vec![0; classes]), 1.0)];
    for class in own_classes {
        let mut more = Vec::new();
        for (given, ways) in found {
            let used: u32 = given.totals.iter().sum();
            let choices = (0..).zip(given.with_more(class, most.saturating_sub(used), 1.0));
            more.extend(
                choices.map(|(count, (given, choices))| (given, ways * choices * share.powf(f64::from(count)))),
            );
            if more.len() > MAX_COMBINATIONS {
                return Err(LeakageError::TooMany);
            }
        }
        found = more;
    }
    Ok(found.into_iter().map(|(given, ways)| (given.totals, ways)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use sizeleak_model::{DeviceTypes, Inventory};

    use super::*;
    use crate::leakage::other_inventory::with_inventory;

    const ACTIONS: [&str; 4] = ["on", "off", "dim", "colour"];

    proptest! {
        #[test]
        fn kinds_are_used_as_often_as_by_the_counts_of_single_commands(
            kinds in prop::collection::vec((1..4_u32, 1..16_u32), 1..4),
            counts in [0..3_u32, 0..3_u32, 0..3_u32, 0..3_u32],
        ) {
            let device = |(at, (count, bits)): (usize, &(u32, u32))| {
                let own = (0..).zip(ACTIONS).filter(|(action, _)| bits >> action & 1 == 1);
                Device { name: at.to_string(), count: *count, actions: own.map(|(_, name)| name.to_owned()).collect() }
            };
            let inventory = Inventory { devices: kinds.iter().enumerate().map(device).collect() };
            let home = Model::from_toml(include_str!("../../../../examples/home/model.toml")).unwrap();
            let (model, _) = with_inventory(home, inventory.clone()).unwrap();
            let limits = model.limits().unwrap().counting(12);
            let ways = DeviceWays::new(&model, &limits, &ActionWeight::One).unwrap().unwrap();
            let command: Vec<(&str, u32)> = ACTIONS.into_iter().zip(counts).filter(|(_, count)| *count > 0).collect();
            let mut totals = vec![0; limits.classes()];
            let mut is_known = true;
            for (name, count) in &command {
                match model.actions.iter().position(|action| action.name == *name) {
                    Some(action) => totals[limits.class_of(action)] += count,
                    None => is_known = false,
                }
            }
            let by_command = DeviceTypes::new(&inventory).addressed(command);
            prop_assert_eq!(by_command.is_some(), is_known && ways.all(&totals) > 0.0);
            for (kind, probability) in by_command.iter().flat_map(|shares| shares.iter()).enumerate() {
                let with = ways.shares(&totals).into_iter().filter(|(set, _)| set >> kind & 1 == 1);
                let share: f64 = with.map(|(_, share)| share).sum();
                prop_assert!((share - probability).abs() < 1e-12, "{totals:?} {kind}: {share} {probability}");
            }
        }
    }
}
