//! Shares of actions where each action of a command uses up a device.
//!
//! The decomposer weighs an action by its share, and by the share of its devices that are still free. So the actions of
//! few devices occur more rarely, in long commands, than their share says. The shares that make labelled commands most
//! likely are those with which each action is expected as often as it occurred.

use sizeleak_model::Limits;

/// The most combinations of how often actions of each class occur, a bound of time; with more, devices do not count.
const MAX_COMBINATIONS: usize = 1 << 14;

/// The most rounds of scaling, and the relative change below which they end: the model file shows six decimals.
const ROUNDS: usize = 100;
const MIN_CHANGE: f64 = 1e-6;

/// How often the actions of each class of [`Limits`] occur in a command, how far they use up each of its conditions, and
/// the share of free devices for all of them.
#[derive(Clone)]
struct Combination {
    totals: Vec<u32>,
    used: Vec<u32>,
    free: f64,
}

/// The shares that let actions occur as often as `frequencies` says, which sum to 1, in commands whose numbers of
/// actions are given by how many commands have 1, 2, 3… actions.
pub(super) fn shares(frequencies: &[f64], concentration: f64, limits: &Limits, commands_of: &[f64]) -> Vec<f64> {
    let mut wanted = vec![0.0; limits.classes()];
    for (action, share) in frequencies.iter().enumerate() {
        wanted.get_mut(limits.class_of(action)).into_iter().for_each(|sum| *sum += share);
    }
    let Some(combinations) = combinations(limits, commands_of.len()).filter(|_| wanted.len() > 1) else {
        return frequencies.to_vec();
    };
    let mut weights = wanted.clone();
    for _ in 0..ROUNDS {
        let expected = expected_shares(&combinations, &weights, concentration, commands_of);
        let scale = |(wanted, expected): (&f64, &f64)| if *expected > 0.0 { wanted / expected } else { 1.0 };
        let scales: Vec<f64> = wanted.iter().zip(&expected).map(scale).collect();
        let next: Vec<f64> = weights.iter().zip(&scales).map(|(weight, scale)| weight * scale).collect();
        let sum: f64 = next.iter().sum();
        weights = next.into_iter().map(|weight| weight / sum).collect();
        if scales.iter().all(|scale| (scale - 1.0).abs() < MIN_CHANGE) {
            break;
        }
    }
    let scale = |(action, share): (usize, &f64)| {
        let class = limits.class_of(action);
        let found = weights.get(class).zip(wanted.get(class)).filter(|(_, wanted)| **wanted > 0.0);
        share * found.map_or(1.0, |(weight, wanted)| weight / wanted)
    };
    frequencies.iter().enumerate().map(scale).collect()
}

/// All combinations of up to `most` actions; `None` if there are too many, or nothing limits them.
fn combinations(limits: &Limits, most: usize) -> Option<Vec<Combination>> {
    if limits.is_free() {
        return None;
    }
    let [totals, used] = [limits.classes(), limits.conditions().len()].map(|length| vec![0; length]);
    let mut found = vec![Combination { totals, used, free: 1.0 }];
    for class in limits.class_order() {
        let mut more = Vec::new();
        for mut combination in found {
            loop {
                more.push(combination.clone());
                let has_room = (combination.totals.iter().sum::<u32>() as usize) < most;
                let Some(free) = limits.take(class, &mut combination.used).filter(|_| has_room) else { break };
                *combination.totals.get_mut(class)? += 1;
                combination.free *= free;
                if more.len() > MAX_COMBINATIONS {
                    return None;
                }
            }
        }
        found = more;
    }
    Some(found)
}

/// Which share of all actions is of each class.
fn expected_shares(combinations: &[Combination], weights: &[f64], concentration: f64, commands_of: &[f64]) -> Vec<f64> {
    let most = commands_of.len();
    // Of a class, by how many actions of it there are: Pólya's urn for all its actions together.
    let of_class = |weight: &f64| -> Vec<f64> {
        let factor = |so_far: &mut f64, before: usize| {
            let weighed = *so_far;
            *so_far *= (weight + before as f64 / concentration) / (before as f64 + 1.0);
            Some(weighed)
        };
        (0..=most).scan(1.0, factor).collect()
    };
    let factors: Vec<Vec<f64>> = weights.iter().map(of_class).collect();
    let mut all = vec![0.0; most + 1];
    let mut occurring = vec![vec![0.0; weights.len()]; most + 1];
    for Combination { totals, free, .. } in combinations {
        let weighed = totals.iter().zip(&factors).map(|(total, factors)| factors[*total as usize]);
        let weight = free * weighed.product::<f64>();
        let number: usize = totals.iter().map(|total| *total as usize).sum();
        let (Some(all), Some(occurring)) = (all.get_mut(number), occurring.get_mut(number)) else { continue };
        *all += weight;
        for (occurring, total) in occurring.iter_mut().zip(totals) {
            *occurring += weight * f64::from(*total);
        }
    }
    let mut expected = vec![0.0; weights.len()];
    for ((commands, all), occurring) in
        commands_of.iter().zip(all.iter().skip(1)).zip(occurring.iter().skip(1)).filter(|((_, all), _)| **all > 0.0)
    {
        for (expected, occurring) in expected.iter_mut().zip(occurring) {
            *expected += commands * occurring / all;
        }
    }
    let sum: f64 = expected.iter().sum();
    expected.into_iter().map(|expected| if sum > 0.0 { expected / sum } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::testing::{actions, home};

    /// Shares with which `red`, which four of sixteen devices have, is a tenth of all actions.
    fn shares_for(commands_of: &[f64]) -> Vec<f64> {
        let limits = home().limits(&actions(&["on", "off", "red"])).unwrap();
        shares(&[0.5, 0.4, 0.1], 1e9, &limits, commands_of)
    }

    #[test]
    fn actions_of_few_devices_have_a_greater_share_where_commands_are_long() {
        let long = shares_for(&[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 10.0]);
        assert!(long[2] > 0.11 && (long.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{long:?}");
        assert!((long[0] / long[1] - 5.0 / 4.0).abs() < 1e-9, "within a class nothing changes: {long:?}");
    }

    #[test]
    fn single_actions_have_their_frequencies() {
        let single = shares_for(&[10.0]);
        assert!(single.iter().zip([0.5, 0.4, 0.1]).all(|(share, wanted)| (share - wanted).abs() < 1e-5), "{single:?}");
    }

    #[test]
    fn without_an_inventory_shares_are_frequencies() {
        assert_eq!(shares(&[0.7, 0.3], 50.0, &Limits::free(2), &[1.0, 2.0]), [0.7, 0.3]);
    }
}
