//! In how many ways actions can be given to the devices of a type, one to a device at most. Devices are told apart, actions
//! of a class are not.

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
