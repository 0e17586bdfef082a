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

pub fn choose(all: u32, some: u32) -> f64 {
    (0..some).map(|chosen| choice_after(all, chosen)).product()
}

/// C(all, chosen + 1) / C(all, chosen): one more thing is chosen.
fn choice_after(all: u32, chosen: u32) -> f64 {
    f64::from(all.saturating_sub(chosen)) / f64::from(chosen + 1)
}
