//! Which types of devices the actions of a command are for, where several types have the same actions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::given_actions::GivenActions;
use crate::inventory::Inventory;

/// So many answers are remembered.
const MAX_KNOWN: usize = 4096;

/// Ways to share out actions that are looked at for one answer, at most.
const MAX_STEPS: usize = 1 << 17;

/// Types of devices, as bits in the order of the inventory.
type TypeSet = u32;

/// How often actions occur, by the types that have them.
type Totals = Vec<(TypeSet, u32)>;

#[derive(Debug, Clone)]
pub struct DeviceTypes {
    pub names: Vec<String>,
    /// How many devices there are of each type.
    counts: Vec<u32>,
    types_with: BTreeMap<String, TypeSet>,
    known: BTreeMap<Totals, Option<Arc<[f64]>>>,
}

impl DeviceTypes {
    /// The types of an inventory that obeys its limits ([`crate::MAX_DEVICE_TYPES`]); further ones are left out.
    pub fn new(inventory: &Inventory) -> Self {
        let types_with = inventory.types_with().into_iter().map(|(action, types)| (action.to_owned(), types)).collect();
        let types = || inventory.devices.iter().take(TypeSet::BITS as usize);
        let names = types().map(|device| device.name.clone()).collect();
        let counts = types().map(|device| device.count).collect();
        Self { names, counts, types_with, known: BTreeMap::new() }
    }

    /// How probable it is for each type that a command with these actions is for a device of it, if every way to give
    /// the actions to devices is as likely, one to a device at most. `None` if there is no way, or there are too many
    /// to look at.
    pub fn addressed<'a>(&mut self, actions: impl IntoIterator<Item = (&'a str, u32)>) -> Option<Arc<[f64]>> {
        let mut totals: BTreeMap<TypeSet, u32> = BTreeMap::new();
        for (action, count) in actions {
            let total = totals.entry(*self.types_with.get(action)?).or_default();
            *total = total.saturating_add(count);
        }
        let totals: Totals = totals.into_iter().filter(|(_, total)| *total > 0).collect();
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

#[cfg(test)]
mod tests {
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
}
