//! Limits of small inventories, and against trying all assignments.

use proptest::prelude::*;

use super::*;
use crate::Inventory;
use crate::testing::{actions, device, home};

#[test]
fn actions_are_limited_by_the_devices_that_have_them() {
    let limits = home().limits(&actions(&["on", "red", "off"])).unwrap();
    assert_eq!((limits.classes(), limits.max_actions()), (2, 16));
    assert_eq!([0, 1, 2, 3].map(|action| limits.class_of(action)), [0, 1, 0, 2]);
    assert_eq!(home().limits(&actions(&["blink"])), Err(InventoryError::UnknownAction("blink".into())));
    assert_eq!((limits.max_of_class(0), limits.max_of_class(1)), (16, 4));
    assert!(limits.admits(&[10, 4, 2]));
    assert!(!limits.admits(&[10, 4, 3]));
    assert!(!limits.admits(&[0, 5, 0]));
    assert!(!limits.admits(&[0, 0, 0, 1]), "an unknown action");
    assert!(!limits.admits_totals(&[0, 0, 1]), "an unknown class");
    assert!(!limits.admits(&[u32::MAX, 0, u32::MAX]));
}

#[test]
fn implied_conditions_are_omitted() {
    let inventory = |types: &[(&str, &[&str])]| Inventory {
        devices: types.iter().map(|(name, actions)| device(name, 2, actions)).collect(),
    };
    let disjoint = inventory(&[("a", &["x"]), ("b", &["y"]), ("c", &["z"])]);
    let limits = disjoint.limits(&actions(&["x", "y", "z"])).unwrap();
    assert_eq!((limits.conditions().len(), limits.max_actions()), (3, 6));
    let unused = disjoint.limits(&actions(&["x"])).unwrap();
    assert_eq!((unused.conditions().len(), unused.max_actions()), (1, 2));
    // Of seven sets of types: {b} and {c} hold no class, {a, c} is not connected.
    let chain = inventory(&[("a", &["x", "y"]), ("b", &["y", "z"]), ("c", &["z"])]);
    assert_eq!(chain.limits(&actions(&["x", "y", "z"])).unwrap().conditions().len(), 4);
}

#[test]
fn counting_limits_the_total_of_actions() {
    let all = actions(&["on", "red", "off"]);
    let counting = home().limits(&all).unwrap().counting(7);
    assert!(counting.admits(&[3, 4, 0]) && !counting.admits(&[3, 4, 1]) && !counting.admits(&[0, 5, 0]));
    let counter = counting.conditions()[counting.counter().unwrap()];
    assert_eq!((counter.max, counter.devices, counting.max_actions()), (7, 16, 7));
    assert_eq!(home().limits(&all).unwrap().counting(99).max_actions(), 16);
    let free = Limits::free(3);
    assert_eq!((free.counter(), free.counting(5).max_actions()), (None, 5));
    assert_eq!(free.counting(5).conditions()[0].devices, u32::MAX);
}

#[test]
fn free_limits_allow_everything() {
    let limits = Limits::free(3);
    assert!(limits.is_free() && limits.admits(&[u32::MAX; 3]) && limits.max_actions() == u32::MAX);
    assert_eq!((limits.classes(), limits.class_of(2), limits.max_of_class(0)), (1, 0, u32::MAX));
}

/// Whether every action can be assigned a device, by trying all assignments.
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
    fn admits_agrees_with_trying_all_assignments(
        types in prop::collection::vec((1u32..4, prop::sample::subsequence(vec!["a", "b", "c", "d"], 1..=4)), 1..4),
        counts in prop::collection::vec(0u32..4, 4),
    ) {
        let devices = types.iter().enumerate().map(|(at, (count, actions))| device(&at.to_string(), *count, actions));
        let inventory = Inventory { devices: devices.collect() };
        let names = inventory.action_names();
        let counts = &counts[..names.len()];
        let limits = inventory.limits(&actions(&names)).unwrap();
        let expected = fits(&inventory, &names, counts, &mut vec![0; inventory.devices.len()]);
        prop_assert_eq!(limits.admits(counts), expected);
    }

    #[test]
    fn the_largest_command_uses_every_device(
        types in prop::collection::vec((1u32..9, prop::sample::subsequence(vec!["a", "b", "c", "d"], 1..=4)), 1..7),
    ) {
        let devices = types.iter().enumerate().map(|(at, (count, actions))| device(&at.to_string(), *count, actions));
        let inventory = Inventory { devices: devices.collect() };
        let limits = inventory.limits(&actions(&["a", "b", "c", "d"]).into_iter()
            .filter(|action| inventory.action_names().contains(&action.name.as_str())).collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(limits.max_actions(), types.iter().map(|(count, _)| count).sum::<u32>());
    }
}
