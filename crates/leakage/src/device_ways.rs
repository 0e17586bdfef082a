//! In how many ways the actions of a command can be given to devices, by the kinds of device that are used.
//!
//! Actions that the same kinds of device have form a class ([`sizeleak_model::Limits`]). The ways to give them to devices
//! depend on the totals of the classes alone.

use std::collections::BTreeMap;

use sizeleak_model::{Device, Inventory};

use crate::error::LeakageError;
use crate::premises::PriorKind;

/// The most combinations of totals and kinds.
const MAX_COMBINATIONS: usize = 1 << 18;

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
    /// The ways for commands of at most `most` actions. `actions` are the names of all actions with their class.
    pub(crate) fn new(
        inventory: &Inventory,
        actions: &[(&str, usize)],
        most: u32,
        weight: &ActionWeight,
    ) -> Result<Self, LeakageError> {
        let classes = actions.iter().map(|(_, class)| class + 1).max().unwrap_or(0);
        let mut found: BTreeMap<(Vec<u32>, KindSet), f64> = BTreeMap::from([((vec![0; classes], 0), 1.0)]);
        for (kind, device) in inventory.devices.iter().enumerate() {
            let own = ways_of_kind(device, actions, classes, most, weight);
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
                if both.len() > MAX_COMBINATIONS {
                    return Err(LeakageError::TooMany);
                }
            }
            found = both;
        }
        let mut ways: BTreeMap<Vec<u32>, Vec<(KindSet, f64)>> = BTreeMap::new();
        for ((totals, set), of_set) in found {
            ways.entry(totals).or_default().push((set, of_set));
        }
        Ok(Self { ways })
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
) -> BTreeMap<Vec<u32>, f64> {
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
    let mut found = BTreeMap::from([(vec![0; classes], 1.0)]);
    for class in own_classes {
        let mut more = BTreeMap::new();
        for (totals, ways) in &found {
            let used: u32 = totals.iter().sum();
            for count in 0..=device.count.min(most) - used {
                let mut sum: Vec<u32> = totals.clone();
                if let Some(total) = sum.get_mut(class) {
                    *total += count;
                }
                more.insert(sum, ways * choose(device.count - used, count) * share.powf(f64::from(count)));
            }
        }
        found = more;
    }
    found
}

/// The binomial coefficient.
pub(crate) fn choose(all: u32, some: u32) -> f64 {
    (0..some).map(|at| f64::from(all.saturating_sub(at)) / f64::from(at + 1)).product()
}
