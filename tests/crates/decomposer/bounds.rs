//! Counts and weights at their limits: saturation, memory, invalid sizes.

use sizeleak_inference::search::{SearchError, SumTooLarge, WayCounts};
use sizeleak_model::{Action, Device, Inventory, Limits};

use super::oracle::Ways;

fn actions(sizes: impl IntoIterator<Item = i64>) -> Vec<Action> {
    sizes.into_iter().enumerate().map(|(at, size)| Action::new(at.to_string(), size)).collect()
}

/// Counts for kinds of device, each given as a count and the numbers of its actions.
fn counts(actions: &[Action], kinds: &[(u32, Vec<usize>)]) -> Result<WayCounts, SearchError> {
    let device = |(at, (count, actions)): (usize, &(u32, Vec<usize>))| Device {
        name: at.to_string(),
        count: *count,
        actions: actions.iter().map(usize::to_string).collect(),
        safe: true,
    };
    let inventory = Inventory { devices: kinds.iter().enumerate().map(device).collect() };
    WayCounts::new(actions, &inventory.limits(actions).unwrap())
}

#[test]
fn counts_saturate_at_64_bits() {
    let sizes: Vec<i64> = (1..=12).collect();
    let mut counts = WayCounts::new(&actions(sizes.clone()), &Limits::free(12)).unwrap();
    let mut exact = vec![0_u128; 20_001];
    exact[0] = 1;
    for size in sizes {
        for at in size as usize..exact.len() {
            exact[at] += exact[at - size as usize];
        }
    }
    let border = exact.iter().position(|count| *count > u128::from(u64::MAX)).unwrap();
    for sum in [border - 2, border - 1, border, border + 1, 20_000] {
        let expected = u64::try_from(exact[sum]).unwrap_or(u64::MAX);
        assert_eq!(counts.count(i64::try_from(sum).unwrap()), Ok(expected), "sum {sum}");
    }
    assert_eq!(Ways::new(&actions(1..=12), &Limits::free(12)).find(20_000, 1000).len(), 1000);
}

#[test]
fn a_megabyte_fits_and_sums_beyond_memory_are_refused() {
    let seven = [43, 44, 46, 47, 49, 52, 55];
    let mut counts = WayCounts::new(&actions(seven), &Limits::free(7)).unwrap();
    assert!(counts.count(1_000_000).unwrap() > 1 << 60);
    let first = Ways::new(&actions(seven), &Limits::free(7)).find(1_000_000, 1).remove(0);
    let sum: i64 = first.iter().zip(seven).map(|(count, size)| i64::from(*count) * size).sum();
    assert_eq!(sum, 1_000_000);
    let error = counts.count(1 << 40).unwrap_err();
    assert!(matches!(error, SumTooLarge { sum: 0x100_0000_0000, reach: 1_000_001.. }), "{error:?}");
    assert!(error.to_string().contains("learn with an inventory"), "{error}");
    assert!(counts.count(i64::MAX).is_err());
    assert_eq!(counts.count(i64::MIN), Ok(0));
}

#[test]
fn three_hundred_actions_share_sixteen_devices() {
    let actions = actions((0..300).map(|at| 40 + at % 150));
    let mut counts = counts(&actions, &[(16, (0..300).collect())]).unwrap();
    assert_eq!(counts.count(40), Ok(2));
    assert_eq!(counts.count(80), Ok(5), "two of 40 (three ways) or one of 80 (two)");
    assert!(counts.count(1500).unwrap() > 1 << 40);
    assert_eq!(counts.count(16 * 189 + 1), Ok(0));
    assert_eq!(counts.count(i64::MAX), Ok(0));
}

#[test]
fn actions_without_a_size_and_inventories_with_too_many_states_are_refused() {
    for size in [0, -1, i64::MIN] {
        let error = WayCounts::new(&actions([1, size]), &Limits::free(2)).unwrap_err();
        assert_eq!(error, SearchError::NoSize("1".into()));
    }
    let shared = [(4_000_000_000, vec![0]), (4_000_000_000, vec![0, 1])];
    assert_eq!(counts(&actions([1, 2]), &shared).unwrap_err(), SearchError::TooManyStates);
    let disjoint: Vec<(u32, Vec<usize>)> = (0..6).map(|action| (100, vec![action])).collect();
    assert!(counts(&actions(1..7), &disjoint).is_ok(), "kinds that share nothing add states, and do not multiply them");
}

#[test]
fn without_actions_only_the_empty_sum_has_a_way() {
    let mut counts = WayCounts::new(&[], &Limits::free(0)).unwrap();
    assert_eq!((counts.count(0), counts.count(5)), (Ok(1), Ok(0)));
}
