//! Tests of `two_generation_cache`.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn weight<K, V>(generation: &HashMap<K, Weighted<V>, RandomState>) -> usize {
    generation.values().map(|kept| kept.weight).sum()
}

proptest! {
    #[test]
    fn recall_returns_the_value_remembered_last_and_the_weight_is_bounded(
        uses in prop::collection::vec((0u8..16, 0usize..70, any::<bool>()), 0..200),
    ) {
        let mut cache: TwoGenerationCache<u8, u32> = TwoGenerationCache::new(100);
        let mut remembered: BTreeMap<u8, u32> = BTreeMap::new();
        for ((key, weight_of_value, is_recall), number) in uses.into_iter().zip(0..) {
            if is_recall {
                if let Some(value) = cache.recall(&key) {
                    prop_assert_eq!(remembered.get(&key), Some(value));
                }
            } else {
                cache.remember(key, number, weight_of_value);
                remembered.insert(key, number);
                prop_assert_eq!(cache.recall(&key), (weight_of_value <= 50).then_some(&number));
            }
            prop_assert_eq!(cache.young_weight, weight(&cache.young));
            prop_assert!(weight(&cache.young) <= 50 && weight(&cache.old) <= 50);
        }
    }

    #[test]
    fn the_entries_used_last_are_kept_and_every_other_is_counted_as_evicted(
        keys in prop::collection::vec(0u8..12, 0..200),
    ) {
        let mut cache: TwoGenerationCache<u8, u32> = TwoGenerationCache::new(8);
        let mut uses = [0u32; 12];
        let mut created = 0;
        for (at, key) in keys.iter().enumerate() {
            let mut used_last: Vec<u8> = Vec::new();
            for key in keys[..at].iter().rev() {
                if !used_last.contains(key) && used_last.len() < 4 {
                    used_last.push(*key);
                }
            }
            for key in &used_last {
                prop_assert_eq!(cache.peek(key), Some(&uses[usize::from(*key)]));
            }
            created += u64::from(cache.peek(key).is_none());
            uses[usize::from(*key)] = cache.peek(key).copied().unwrap_or_default() + 1;
            *cache.get_or_default(*key) += 1;
            prop_assert!(cache.young.len() <= 4 && cache.old.len() <= 4);
            prop_assert_eq!(created, cache.evicted() + (cache.young.len() + cache.old.len()) as u64);
        }
    }
}

#[test]
fn a_value_that_is_recalled_again_and_again_is_never_evicted() {
    let mut cache = TwoGenerationCache::new(100);
    cache.remember(0, "used", 10);
    for key in 1..50 {
        cache.remember(key, "once", 10);
        assert_eq!(cache.recall(&0), Some(&"used"));
    }
    assert_eq!(cache.recall(&1), None);
    cache.remember(99, "too heavy", 51);
    assert_eq!(cache.recall(&99), None);
}
