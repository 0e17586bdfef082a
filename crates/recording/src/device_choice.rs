//! Which devices do the actions of a command.

use rand::seq::SliceRandom;
use rand_chacha::ChaCha20Rng;
use serde::{Deserialize, Serialize};
use sizeleak_model::Inventory;

/// An action of one device, as the program that sends commands is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceAction {
    /// The type of device, as in the inventory.
    pub device: String,
    /// Which device of this type, from 0.
    pub index: u32,
    pub action: String,
}

/// Devices for actions, others each time, so that identifiers and states vary; `None` if there are not enough.
pub(crate) fn devices_for(
    inventory: &Inventory,
    actions: &[&str],
    random: &mut ChaCha20Rng,
) -> Option<Vec<DeviceAction>> {
    let of_type = |at: usize| inventory.devices.get(at).map_or(0, |device| device.count);
    let mut devices: Vec<(usize, u32)> =
        (0..inventory.devices.len()).flat_map(|at| (0..of_type(at)).map(move |index| (at, index))).collect();
    devices.shuffle(random);
    let can = |device: usize, action: usize| {
        let has = |at: &(usize, u32)| {
            inventory.devices.get(at.0)?.actions.iter().find(|name| Some(&name.as_str()) == actions.get(action))
        };
        devices.get(device).and_then(has).is_some()
    };
    // A matching of actions with devices: each action takes a free device, or one whose action finds another device.
    let mut taken: Vec<Option<usize>> = vec![None; devices.len()];
    for action in 0..actions.len() {
        let mut tried = vec![false; devices.len()];
        if !take(action, &can, &mut taken, &mut tried) {
            return None;
        }
    }
    let chosen = devices.iter().zip(&taken).filter_map(|((at, index), action)| {
        let (device, action) = (inventory.devices.get(*at)?, actions.get((*action)?)?);
        Some(DeviceAction { device: device.name.clone(), index: *index, action: (*action).to_owned() })
    });
    Some(chosen.collect())
}

fn take(action: usize, can: &dyn Fn(usize, usize) -> bool, taken: &mut [Option<usize>], tried: &mut [bool]) -> bool {
    for device in 0..taken.len() {
        if !can(device, action) || tried.get(device).copied().unwrap_or(true) {
            continue;
        }
        tried.iter_mut().skip(device).take(1).for_each(|tried| *tried = true);
        let is_free = match taken.get(device).copied().flatten() {
            None => true,
            Some(other) => take(other, can, taken, tried),
        };
        if is_free {
            taken.iter_mut().skip(device).take(1).for_each(|taken| *taken = Some(action));
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use sizeleak_model::Device;

    use super::*;

    #[test]
    fn each_device_does_one_action_that_it_has() {
        let device = |name: &str, count, actions: &[&str]| Device {
            name: name.to_owned(),
            count,
            actions: actions.iter().map(|&action| action.to_owned()).collect(),
            safe: true,
        };
        let home = Inventory { devices: vec![device("plug", 2, &["on"]), device("lamp", 1, &["on", "red"])] };
        for seed in 0..20 {
            let mut random = ChaCha20Rng::seed_from_u64(seed);
            let chosen = devices_for(&home, &["on", "on", "red"], &mut random).unwrap();
            let red = chosen.iter().find(|chosen| chosen.action == "red").unwrap();
            assert_eq!((red.device.as_str(), red.index, chosen.len()), ("lamp", 0, 3));
            assert_eq!(devices_for(&home, &["red", "red"], &mut random), None);
        }
    }
}
