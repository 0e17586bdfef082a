//! Answers that are worth keeping, since the same is asked again and again; bounded by the bytes they take.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// Remembers values by key, and forgets those not asked for lately once they take too many bytes. They are only looked up,
/// so the order of its tables shows nowhere.
#[derive(Debug)]
pub struct TwoGenerationCache<K, V> {
    young: HashMap<K, Kept<V>, RandomState>,
    /// What was asked for before the young ones; forgotten when those fill their half.
    old: HashMap<K, Kept<V>, RandomState>,
    young_bytes: usize,
    most_bytes: usize,
}

#[derive(Debug)]
struct Kept<V> {
    value: V,
    bytes: usize,
}

impl<K: Eq + Hash + Copy, V> TwoGenerationCache<K, V> {
    /// An empty memory for values of so many bytes in all.
    pub fn new(most_bytes: usize) -> Self {
        Self { young: HashMap::default(), old: HashMap::default(), young_bytes: 0, most_bytes }
    }

    /// What is remembered of a key.
    pub fn recall(&mut self, key: &K) -> Option<&V> {
        if !self.old.is_empty()
            && let Some(Kept { value, bytes }) = self.old.remove(key)
        {
            self.remember(*key, value, bytes);
        }
        self.young.get(key).map(|kept| &kept.value)
    }

    /// Remembers a value that takes so many bytes, in place of what the key had; not one that takes more than half of all.
    pub fn remember(&mut self, key: K, value: V, bytes: usize) {
        let half = self.most_bytes / 2;
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
        self.young.insert(key, Kept { value, bytes });
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn bytes<K, V>(table: &HashMap<K, Kept<V>, RandomState>) -> usize {
        table.values().map(|kept| kept.bytes).sum()
    }

    proptest! {
        /// What is recalled is what was remembered last, and never do values take more than they may.
        #[test]
        fn what_is_recalled_was_remembered(uses in prop::collection::vec((0u8..16, 0usize..70, any::<bool>()), 0..200)) {
            let mut memo: TwoGenerationCache<u8, u32> = TwoGenerationCache::new(100);
            let mut told: BTreeMap<u8, u32> = BTreeMap::new();
            for ((key, size, is_asked), number) in uses.into_iter().zip(0..) {
                if is_asked {
                    if let Some(value) = memo.recall(&key) {
                        prop_assert_eq!(told.get(&key), Some(value));
                    }
                } else {
                    memo.remember(key, number, size);
                    told.insert(key, number);
                    prop_assert_eq!(memo.recall(&key), (size <= 50).then_some(&number));
                }
                prop_assert_eq!(memo.young_bytes, bytes(&memo.young));
                prop_assert!(bytes(&memo.young) <= 50 && bytes(&memo.old) <= 50);
            }
        }
    }

    #[test]
    fn what_is_asked_for_stays() {
        let mut memo = TwoGenerationCache::new(100);
        memo.remember(0, "asked for", 10);
        for key in 1..50 {
            memo.remember(key, "once", 10);
            assert_eq!(memo.recall(&0), Some(&"asked for"));
        }
        assert_eq!(memo.recall(&1), None);
        memo.remember(99, "too large", 51);
        assert_eq!(memo.recall(&99), None);
    }
}
