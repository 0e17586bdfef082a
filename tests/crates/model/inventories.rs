//! Inventories, what they limit, and which devices a command is for.

use proptest::prelude::*;
use sizeleak_model::{Device, DeviceTypes, GivenActions, Inventory, InventoryError, Limits, choose};

use super::samples::{actions, device, home};

#[test]
fn action_names_are_in_order_of_first_occurrence() {
    assert_eq!(home().action_names(), ["on", "off", "red"]);
    assert_eq!(home().unlearned(&actions(&["red", "blink"])), ["on", "off"]);
}

#[test]
fn errors_name_the_fault() {
    let error = |text: &str| Inventory::from_toml(text).unwrap_err().to_string();
    let twice = "[[device]]\nname = \"a\"\ncount = 1\nactions = [\"x\"]\n".repeat(2);
    assert!(error(&twice).contains("device `a` twice"));
    assert!(error("[[device]]\nname = \"a\"\ncount = 1\nactions = [\"x\", \"x\"]").contains("action `x`"));
    assert!(error("[[device]]\nname = \"a\"\ncount = 0\nactions = [\"x\"]").contains("counts 0"));
    assert!(error("[[device]]\nname = \"a\"\ncount = 1\nactions = []").contains("has no action"));
    assert!(error("[[device]]\nname = \"\"\ncount = 1\nactions = []").contains("device number 1"));
    assert!(error("[[device]]\nname = \"a\"\ncount = -1\nactions = [\"x\"]").contains("line 3"));
    assert!(error("[[device]]\nname = \"a\"\ncuont = 1\nactions = [\"x\"]").contains("line 3: unknown field `cuont`"));
    let many = error("[[device]]\nname = \"a\"\ncount = 65536\nactions = [\"x\"]");
    assert!(many.contains("line 3: 65536 devices of a type: the limit is 65535"), "{many}");
    let list = |from: u32, to: u32| (from..to).map(|at| format!("\"{at}\", ")).collect::<Vec<_>>().concat();
    let many = error(&format!("[[device]]\nname = \"a\"\ncount = 1\nactions = [{}]", list(0, 4097)));
    assert!(many.contains("line 4: 4097 actions of a type: the limit is 4096"), "{many}");
    let device_with =
        |name: &str, actions: String| format!("[[device]]\nname = \"{name}\"\ncount = 1\nactions = [{actions}]\n");
    let three =
        [device_with("a", list(0, 4000)), device_with("b", list(3000, 4096)), device_with("c", list(4096, 4098))];
    assert!(error(&three.concat()).contains("4098 different actions, the limit is 4096"));
    assert!(Inventory::from_toml(&three[..2].concat()).is_ok());
    assert!(error("[[devices]]").contains("devices"));
    assert!(error("").contains("no [[device]]"));
    let types = (0..17).map(|at| device(&at.to_string(), 1, &["on"])).collect();
    assert_eq!(Inventory { devices: types }.check(), Err(InventoryError::TooManyTypes(17)));
}

#[test]
fn an_inventory_reads_back_from_toml() {
    let text = toml::to_string(&home()).unwrap();
    assert_eq!(Inventory::from_toml(&text).unwrap(), home());
}

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

fn types() -> DeviceTypes {
    let device = |name: &str, count, actions: &[&str]| Device {
        name: name.to_owned(),
        count,
        actions: actions.iter().map(|action| (*action).to_owned()).collect(),
        safe: true,
    };
    DeviceTypes::new(&Inventory {
        devices: vec![
            device("plug", 2, &["on", "off"]),
            device("lamp", 1, &["on", "red"]),
            device("lock", 1, &["open"]),
        ],
    })
}

/// The types of the four devices, and the sets of types that they are.
fn by_enumeration(on: usize, off: usize, red: usize) -> Option<Vec<f64>> {
    // What each device is asked for: nothing, on, off or red.
    let of_device = [&[0, 1, 2][..], &[0, 1, 2], &[0, 1, 3]];
    let (mut all, mut used) = (0.0, [0.0; 2]);
    for a in of_device[0] {
        for b in of_device[1] {
            for c in of_device[2] {
                let asked = [*a, *b, *c];
                let times = |what| asked.iter().filter(|asked| **asked == what).count();
                if (times(1), times(2), times(3)) == (on, off, red) {
                    // Actions of the same types are told apart no further.
                    all += 1.0;
                    used[0] += f64::from(u8::from(*a > 0 || *b > 0));
                    used[1] += f64::from(u8::from(*c > 0));
                }
            }
        }
    }
    (all > 0.0).then(|| vec![used[0] / all, used[1] / all, 0.0])
}

#[test]
fn types_are_as_probable_as_among_all_ways_to_give_actions_to_devices() {
    for (on, off, red) in [(1, 0, 0), (2, 0, 0), (3, 0, 0), (1, 1, 0), (1, 2, 0), (2, 1, 1), (0, 0, 1), (1, 0, 1)] {
        let counts = [("on", on), ("off", off), ("red", red)];
        let found = types().addressed(counts.map(|(name, count)| (name, count as u32)));
        let expected = by_enumeration(on, off, red);
        match (&found, &expected) {
            (Some(found), Some(expected)) => {
                let is_near = found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-12);
                assert!(is_near, "{counts:?}: {found:?} is not {expected:?}");
            }
            (None, None) => {}
            _ => panic!("{counts:?}: {found:?} is not {expected:?}"),
        }
    }
}

#[test]
fn types_of_foreign_actions_or_of_too_many_ways_are_not_known() {
    assert_eq!(types().addressed([("dim", 1)]), None);
    let device = |at: u32| Device {
        name: at.to_string(),
        count: 200,
        actions: vec!["on".to_owned(), at.to_string()],
        safe: true,
    };
    let mut many = DeviceTypes::new(&Inventory { devices: (0..20).map(device).collect() });
    assert_eq!(many.addressed([("on", 2000)]), None);
    assert!(many.addressed([("on", 2)]).is_some());
}

/// What each device is asked for, a class or nothing, in all ways.
fn all_assignments(devices: u32, classes: usize) -> Vec<Vec<Option<usize>>> {
    let mut found = vec![Vec::new()];
    for _ in 0..devices {
        let asked = || std::iter::once(None).chain((0..classes).map(Some));
        found = found.iter().flat_map(|before| asked().map(move |next| [&before[..], &[next]].concat())).collect();
    }
    found
}

proptest! {
    #[test]
    fn ways_are_as_many_as_assignments_of_actions_to_devices(
        devices in 0..6_u32,
        before in prop::collection::vec(0..3_u32, 1..4),
        most in 0..7_u32,
    ) {
        let mut found = vec![(GivenActions { totals: before.clone(), free: devices }, 1.0)];
        for class in 0..before.len() {
            found = found.into_iter().flat_map(|(given, ways)| given.with_more(class, most, ways)).collect();
        }
        let mut expected: std::collections::BTreeMap<GivenActions, f64> = std::collections::BTreeMap::new();
        for asked in all_assignments(devices, before.len()) {
            let times = |class| asked.iter().filter(|asked| **asked == Some(class)).count() as u32;
            if (0..before.len()).all(|class| times(class) <= most) {
                let totals = before.iter().zip(0..).map(|(before, class)| before + times(class)).collect();
                let free = asked.iter().filter(|asked| asked.is_none()).count() as u32;
                *expected.entry(GivenActions { totals, free }).or_default() += 1.0;
            }
        }
        prop_assert_eq!(found.len(), expected.len(), "each is found once");
        for (given, ways) in found {
            prop_assert!((ways - expected.get(&given).copied().unwrap_or(0.0)).abs() < 1e-9, "{given:?}: {ways}");
        }
    }
}

#[test]
fn nothing_is_chosen_from_too_few() {
    let found = [0, 2, 4, 5].map(|some| choose(4, some).to_bits());
    assert_eq!(found, [1.0_f64, 6.0, 1.0, 0.0].map(f64::to_bits));
}
