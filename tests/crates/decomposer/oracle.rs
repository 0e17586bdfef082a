//! Counts and ways against brute force on small cases, and against independent dynamic programs on large ones.
//! Those recur by device or by number of actions; the counts recur by action.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sizeleak_inference::search::{HeaviestWays, WayCounts, WayWeights};
use sizeleak_model::{Action, Device, Inventory, Limits};

const LETTERS: &str = "abcdefghijkl";

fn actions(sizes: &[i64]) -> Vec<Action> {
    sizes.iter().zip(LETTERS.chars()).map(|(size, name)| Action::new(name, *size)).collect()
}

fn inventory(kinds: &[(u32, &str)]) -> Inventory {
    let device = |(at, (count, letters)): (usize, &(u32, &str))| Device {
        name: at.to_string(),
        count: *count,
        actions: letters.chars().map(String::from).collect(),
        safe: true,
    };
    Inventory { devices: kinds.iter().enumerate().map(device).collect() }
}

fn counts(sizes: &[i64], kinds: &[(u32, &str)]) -> WayCounts {
    let actions = actions(sizes);
    WayCounts::new(&actions, &inventory(kinds).limits(&actions).unwrap()).unwrap()
}

/// The multisets of actions that make up sums.
pub(super) struct Ways {
    weights: WayWeights,
    actions: usize,
}

impl Ways {
    pub(super) fn new(actions: &[Action], limits: &Limits) -> Self {
        Self { weights: WayWeights::flat(actions, limits).unwrap(), actions: actions.len() }
    }

    /// How often each action occurs in the ways to a sum, at most so many ways.
    pub(super) fn find(&mut self, sum: i64, most: usize) -> Vec<Vec<u32>> {
        let Ok(bytes) = usize::try_from(sum) else { return Vec::new() };
        assert!(self.weights.prepare(bytes));
        let counts = |actions: &[(u32, u32)]| {
            let mut counts = vec![0; self.actions];
            for (action, count) in actions {
                counts[*action as usize] = *count;
            }
            counts
        };
        let found = HeaviestWays::find(&self.weights, &[(sum, 1.0)], most as u64, most);
        found.iter().map(|way| counts(way.actions)).collect()
    }
}

fn sum_of(sizes: &[i64], counts: &[u32]) -> i64 {
    counts.iter().zip(sizes).map(|(count, size)| i64::from(*count) * size).sum()
}

/// Every multiset that an assignment of at most one action to each device makes, by sum.
fn brute_force(sizes: &[i64], kinds: &[(u32, &str)]) -> BTreeMap<i64, BTreeSet<Vec<u32>>> {
    let mut made = BTreeSet::from([vec![0; sizes.len()]]);
    for (count, letters) in kinds {
        for _ in 0..*count {
            for counts in made.clone() {
                for letter in letters.bytes() {
                    let mut counts = counts.clone();
                    counts[usize::from(letter - b'a')] += 1;
                    made.insert(counts);
                }
            }
        }
    }
    let mut by_sum: BTreeMap<i64, BTreeSet<Vec<u32>>> = BTreeMap::new();
    for counts in made {
        by_sum.entry(sum_of(sizes, &counts)).or_default().insert(counts);
    }
    by_sum
}

/// `[n][s]`: how many multisets of exactly n of these coins have the sum s.
fn by_number(coins: &[i64], most: usize, most_sum: usize) -> Vec<Vec<u128>> {
    let mut table = vec![vec![0_u128; most_sum + 1]; most + 1];
    table[0][0] = 1;
    for coin in coins {
        for number in 1..=most {
            for sum in *coin as usize..=most_sum {
                let with_one_less = table[number - 1][sum - *coin as usize];
                table[number][sum] += with_one_less;
            }
        }
    }
    table
}

/// Adds the truncated product of two polynomials to a third.
fn add_product(into: &mut [u128], a: &[u128], b: &[u128]) {
    for (at, left) in a.iter().enumerate().filter(|(_, left)| **left > 0) {
        for (slot, right) in into.iter_mut().skip(at).zip(b) {
            *slot += left * right;
        }
    }
}

prop_compose! {
    /// Kinds of device that together take the actions a, b, c and d.
    fn home()(
        kinds in prop::collection::vec((1u32..4, prop::sample::subsequence(vec!['a', 'b', 'c', 'd'], 1..=4)), 1..4),
        rest in 1u32..3,
    ) -> Vec<(u32, String)> {
        let kinds = kinds.into_iter().map(|(count, names)| (count, names.into_iter().collect()));
        let mut kinds: Vec<(u32, String)> = kinds.collect();
        let is_missing = |name: &char| kinds.iter().all(|(_, names)| !names.contains(*name));
        let missing: String = "abcd".chars().filter(is_missing).collect();
        if !missing.is_empty() {
            kinds.push((rest, missing));
        }
        kinds
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn agrees_with_brute_force(sizes in prop::collection::vec(1i64..9, 4), home in home(), first in -1i64..110) {
        let kinds: Vec<(u32, &str)> = home.iter().map(|(count, names)| (*count, names.as_str())).collect();
        let (actions, mut counts) = (actions(&sizes), counts(&sizes, &kinds));
        let mut ways = Ways::new(&actions, &inventory(&kinds).limits(&actions).unwrap());
        let expected = brute_force(&sizes, &kinds);
        // The sum asked for first decides how the table grows.
        for sum in std::iter::once(first).chain(-1..110) {
            let found = ways.find(sum, 1 << 16);
            prop_assert_eq!(counts.count(sum).unwrap(), found.len() as u64);
            let distinct: BTreeSet<Vec<u32>> = found.iter().cloned().collect();
            prop_assert_eq!(distinct.len(), found.len(), "each once");
            prop_assert_eq!(distinct, expected.get(&sum).cloned().unwrap_or_default());
        }
    }

    /// Without limits: the coefficients of the product of 1 / (1 − x^size), in 128 bits.
    #[test]
    fn free_counts_are_those_of_the_generating_function(
        sizes in prop::collection::vec(3i64..80, 1..8),
        sum in 0usize..3000,
    ) {
        let mut coefficients = vec![0_u128; sum + 1];
        coefficients[0] = 1;
        for size in &sizes {
            for at in *size as usize..=sum {
                coefficients[at] += coefficients[at - *size as usize];
            }
        }
        let mut counts = WayCounts::new(&actions(&sizes), &Limits::free(sizes.len())).unwrap();
        prop_assert_eq!(counts.count(i64::try_from(sum).unwrap()).unwrap(), u64::try_from(coefficients[sum]).unwrap_or(u64::MAX));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Two overlapping kinds of device: only the first takes a and b, both take c and d, only the second takes e and f.
    /// The expected counts assign devices to each class explicitly.
    #[test]
    fn overlapping_kinds_agree_with_explicit_assignment(
        sizes in prop::collection::vec(20i64..60, 6),
        first in 1u32..7,
        second in 1u32..7,
    ) {
        let most_sum = 60 * (first + second) as usize;
        let most = (first + second) as usize;
        let classes: Vec<_> = sizes.chunks(2).map(|coins| by_number(coins, most, most_sum)).collect();
        let mut expected = vec![0_u128; most_sum + 1];
        for only_first in 0..=first {
            for only_second in 0..=second {
                for both in 0..=(first - only_first) + (second - only_second) {
                    let mut part = vec![0; most_sum + 1];
                    add_product(&mut part, &classes[0][only_first as usize], &classes[1][both as usize]);
                    add_product(&mut expected, &part, &classes[2][only_second as usize]);
                }
            }
        }
        let mut counts = counts(&sizes, &[(first, "abcd"), (second, "cdef")]);
        for (sum, expected) in expected.into_iter().enumerate() {
            prop_assert_eq!(u128::from(counts.count(i64::try_from(sum).unwrap()).unwrap()), expected, "sum {}", sum);
        }
    }
}

/// The paper's gateway: 12 plugs with 4 actions, and 4 lamps with 3 more.
#[test]
fn the_papers_gateway_agrees_with_counting_by_number() {
    let sizes = [43, 44, 46, 47, 49, 52, 55];
    let kinds = [(12, "abcd"), (4, "abcdefg")];
    let mut counts = counts(&sizes, &kinds);
    let most_sum = 16 * 55;
    let (shared, lamp_only) = (by_number(&sizes[..4], 16, most_sum), by_number(&sizes[4..], 4, most_sum));
    let mut expected = vec![0_u128; most_sum + 1];
    for (lamps, lamp_sums) in lamp_only.iter().enumerate() {
        for shared_sums in shared.iter().take(16 - lamps + 1) {
            add_product(&mut expected, lamp_sums, shared_sums);
        }
    }
    let actions = actions(&sizes);
    let limits = inventory(&kinds).limits(&actions).unwrap();
    let mut ways = Ways::new(&actions, &limits);
    for (sum, expected) in expected.iter().enumerate() {
        let sum = i64::try_from(sum).unwrap();
        assert_eq!(u128::from(counts.count(sum).unwrap()), *expected, "sum {sum}");
        let mut distinct = BTreeSet::new();
        for counts in ways.find(sum, 1 << 16) {
            assert!(limits.admits(&counts) && sum_of(&sizes, &counts) == sum, "{counts:?}");
            distinct.insert(counts);
        }
        assert_eq!(distinct.len() as u128, *expected);
    }
    assert!(expected.iter().sum::<u128>() > 50_000);
    assert_eq!(counts.count(i64::try_from(most_sum).unwrap() + 1), Ok(0));
}

/// Kinds without a common action: the product of the kinds' polynomials.
#[test]
fn many_kinds_agree_with_multiplying_their_polynomials() {
    let sizes: Vec<i64> = (0..12).map(|at| 40 + at * 7 % 23).collect();
    let letters: Vec<String> = LETTERS.chars().map(String::from).collect();
    let kinds: Vec<(u32, &str)> = letters.iter().zip(10..).map(|(letter, count)| (count, letter.as_str())).collect();
    let mut counts = counts(&sizes, &kinds);
    let most_sum = 4000;
    let mut expected = vec![0_u128; most_sum + 1];
    expected[0] = 1;
    for ((count, _), size) in kinds.iter().zip(&sizes) {
        let mut own = vec![0; most_sum + 1];
        for number in 0..=*count as usize {
            if let Some(slot) = own.get_mut(number * *size as usize) {
                *slot = 1;
            }
        }
        let mut product = vec![0; most_sum + 1];
        add_product(&mut product, &expected, &own);
        expected = product;
    }
    for (sum, expected) in expected.into_iter().enumerate() {
        assert_eq!(
            counts.count(i64::try_from(sum).unwrap()).unwrap(),
            u64::try_from(expected).unwrap_or(u64::MAX),
            "sum {sum}"
        );
    }
}
