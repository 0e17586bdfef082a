//! Which types of devices the actions of a command are for, where several types have the same actions; and in how many
//! ways actions can be given to the devices of a type, one to a device at most. Devices are told apart, actions of a
//! class are not.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;

use crate::inventory::Inventory;

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

/// The binomial coefficient.
pub fn choose(all: u32, some: u32) -> f64 {
    (0..some).map(|chosen| choice_after(all, chosen)).product()
}

/// C(all, chosen + 1) / C(all, chosen): one more thing is chosen.
fn choice_after(all: u32, chosen: u32) -> f64 {
    f64::from(all.saturating_sub(chosen)) / f64::from(chosen + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Device;

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
}
