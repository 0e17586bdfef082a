//! How probable each number of actions and each type of device is, summed over candidates.

use std::collections::BTreeMap;

use sizeleak_frame::{Candidate, DeviceTypeProbability, NumberProbability, SharedList};
use sizeleak_model::DeviceTypes;

#[derive(Debug, Clone, Default)]
pub(crate) struct CandidateSums {
    pub(crate) numbers: SharedList<NumberProbability>,
    /// Empty if it is not known of some candidate.
    pub(crate) device_types: SharedList<DeviceTypeProbability>,
}

impl CandidateSums {
    /// Sums over candidates; `types` are those of the inventory, if there is one.
    pub(crate) fn of(candidates: &[Candidate], types: Option<&mut DeviceTypes>) -> Self {
        let mut numbers: BTreeMap<u64, f64> = BTreeMap::new();
        for candidate in candidates {
            *numbers.entry(candidate.actions.total()).or_default() += candidate.probability;
        }
        let number = |(actions, probability)| NumberProbability { actions, probability };
        let device_types = types.filter(|_| !candidates.is_empty()).and_then(|types| of_types(candidates, types));
        Self { numbers: numbers.into_iter().map(number).collect(), device_types: device_types.unwrap_or_default() }
    }

    /// The sums where each candidate has this share of its probability.
    pub(crate) fn weighed(self, weight: f64) -> Self {
        if weight >= 1.0 {
            return self;
        }
        let numbers =
            self.numbers.iter().map(|number| NumberProbability { probability: number.probability * weight, ..*number });
        let device_types = self.device_types.iter().map(|of_type| DeviceTypeProbability {
            probability: of_type.probability * weight,
            device: of_type.device.clone(),
        });
        Self { numbers: numbers.collect(), device_types: device_types.collect() }
    }
}

fn of_types(candidates: &[Candidate], types: &mut DeviceTypes) -> Option<SharedList<DeviceTypeProbability>> {
    let mut sums = vec![0.0; types.names.len()];
    for candidate in candidates {
        let shares = types.addressed(candidate.actions.iter().map(|(name, count)| (&**name, count)))?;
        for (sum, share) in sums.iter_mut().zip(shares.iter()) {
            *sum += candidate.probability * share;
        }
    }
    let of_type =
        |(device, probability): (&String, f64)| DeviceTypeProbability { device: device.as_str().into(), probability };
    Some(types.names.iter().zip(sums).map(of_type).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::Actions;
    use sizeleak_model::Inventory;

    use super::*;

    fn candidate(actions: &[(&str, u32)], probability: f64) -> Candidate {
        let actions: Vec<(Arc<str>, u32)> = actions.iter().map(|(name, count)| (Arc::from(*name), *count)).collect();
        Candidate { actions: Actions::from(actions), epsilon: 0, probability, likelihood: None }
    }

    #[test]
    fn probabilities_are_summed_over_candidates() {
        let inventory = "[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\"]\n\
                         [[device]]\nname = \"lamp\"\ncount = 1\nactions = [\"on\", \"red\"]\n";
        let mut types = DeviceTypes::new(&Inventory::from_toml(inventory).unwrap());
        let candidates = [candidate(&[("on", 2)], 0.5), candidate(&[("red", 1)], 0.25), candidate(&[("on", 1)], 0.125)];
        let CandidateSums { numbers, device_types } = CandidateSums::of(&candidates, Some(&mut types)).weighed(0.5);
        let numbers: Vec<(u64, f64)> = numbers.iter().map(|number| (number.actions, number.probability)).collect();
        assert_eq!(numbers, [(1, 0.1875), (2, 0.25)]);
        // Two of four devices are on: the lamp is one of them in half of the ways, a plug in all. One: in a quarter.
        let expected = [("plug", 0.5 * (0.5 + 0.125 * 0.75)), ("lamp", 0.5 * (0.5 * 0.5 + 0.25 + 0.125 * 0.25))];
        for (found, (device, probability)) in device_types.iter().zip(expected) {
            assert!(&*found.device == device && (found.probability - probability).abs() < 1e-12, "{found:?}");
        }
    }

    #[test]
    fn nothing_is_said_of_types_where_an_action_is_of_no_device() {
        let inventory = Inventory::from_toml("[[device]]\nname = \"plug\"\ncount = 3\nactions = [\"on\"]\n").unwrap();
        let sums = CandidateSums::of(&[candidate(&[("dim", 1)], 1.0)], Some(&mut DeviceTypes::new(&inventory)));
        assert!(sums.device_types.is_empty() && sums.numbers.len() == 1);
        assert!(CandidateSums::of(&[], None).numbers.is_empty());
    }
}
