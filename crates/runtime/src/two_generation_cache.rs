//! A cache bounded by bytes, with two generations in place of a use order.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// Caches values by key and evicts those not looked up lately once they take too many bytes. It is never iterated, so
/// the order of its tables has no effect on output.
#[derive(Debug)]
pub struct TwoGenerationCache<K, V> {
    young: HashMap<K, CachedValue<V>, RandomState>,
    /// The previous generation; dropped when the young one fills its half.
    old: HashMap<K, CachedValue<V>, RandomState>,
    young_bytes: usize,
    max_bytes: usize,
}

#[derive(Debug)]
struct CachedValue<V> {
    value: V,
    bytes: usize,
}

impl<K: Eq + Hash + Copy, V> TwoGenerationCache<K, V> {
    /// An empty cache for values of `max_bytes` bytes in total.
    pub fn new(max_bytes: usize) -> Self {
        Self { young: HashMap::default(), old: HashMap::default(), young_bytes: 0, max_bytes }
    }

    /// Looks up a value.
    pub fn recall(&mut self, key: &K) -> Option<&V> {
        if !self.old.is_empty()
            && let Some(CachedValue { value, bytes }) = self.old.remove(key)
        {
            self.remember(*key, value, bytes);
        }
        self.young.get(key).map(|cached| &cached.value)
    }

    /// Inserts or replaces a value of `bytes` bytes, unless it takes more than half the cache.
    pub fn remember(&mut self, key: K, value: V, bytes: usize) {
        let half = self.max_bytes / 2;
        if let Some(before) = self.young.remove(&key) {
            self.young_bytes -= before.bytes;
        }
        self.old.remove(&key);
        if bytes > half {
            return;
        }
        if self.young_bytes + bytes > half {
            self.old = std::mem::take(&mut self.young);
            self.young_bytes = 0;
        }
        self.young_bytes += bytes;
        self.young.insert(key, CachedValue { value, bytes });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn bytes<K, V>(table: &HashMap<K, CachedValue<V>, RandomState>) -> usize {
        table.values().map(|cached| cached.bytes).sum()
    }

    proptest! {
        #[test]
        fn recalled_values_are_those_remembered_last_within_the_limit(uses in prop::collection::vec((0u8..16, 0usize..70, any::<bool>()), 0..200)) {
            let mut cache: TwoGenerationCache<u8, u32> = TwoGenerationCache::new(100);
            let mut told: BTreeMap<u8, u32> = BTreeMap::new();
            for ((key, size, is_asked), number) in uses.into_iter().zip(0..) {
                if is_asked {
                    if let Some(value) = cache.recall(&key) {
                        prop_assert_eq!(told.get(&key), Some(value));
                    }
                } else {
                    cache.remember(key, number, size);
                    told.insert(key, number);
                    prop_assert_eq!(cache.recall(&key), (size <= 50).then_some(&number));
                }
                prop_assert_eq!(cache.young_bytes, bytes(&cache.young));
                prop_assert!(bytes(&cache.young) <= 50 && bytes(&cache.old) <= 50);
            }
        }
    }

    #[test]
    fn values_looked_up_are_not_evicted() {
        let mut cache = TwoGenerationCache::new(100);
        cache.remember(0, "asked for", 10);
        for key in 1..50 {
            cache.remember(key, "once", 10);
            assert_eq!(cache.recall(&0), Some(&"asked for"));
        }
        assert_eq!(cache.recall(&1), None);
        cache.remember(99, "too large", 51);
        assert_eq!(cache.recall(&99), None);
    }
}
