//! A bounded map that evicts entries not used lately. It knows nothing of flows.

use std::collections::HashMap;
use std::hash::Hash;

use foldhash::quality::RandomState;
use serde::{Deserialize, Serialize};
use sizeleak_platform::runtime::sorted_table;

/// A bounded map in two generations. When the young one is full, the old one is evicted, and the young one takes its
/// place. So entries in use stay, and nothing depends on the order of the hash tables.
#[derive(Debug, Serialize, Deserialize)]
#[serde(bound(
    serialize = "K: Ord + Serialize, V: Serialize",
    deserialize = "K: Eq + Hash + Deserialize<'de>, V: Deserialize<'de>"
))]
pub(crate) struct TwoGenerations<K, V> {
    #[serde(with = "sorted_table")]
    young: HashMap<K, V, RandomState>,
    #[serde(with = "sorted_table")]
    old: HashMap<K, V, RandomState>,
    half: usize,
    evicted: u64,
    generation: u32,
}

impl<K: Eq + Hash, V: Copy> TwoGenerations<K, V> {
    /// A map of at most `capacity` entries, but at least two. It always holds the half of them that was used last.
    pub(crate) fn new(capacity: usize) -> Self {
        let (young, old) = (HashMap::default(), HashMap::default());
        Self { young, old, half: (capacity / 2).max(1), evicted: 0, generation: 0 }
    }

    pub(crate) fn capacity(&self) -> usize {
        2 * self.half
    }

    pub(crate) fn evicted(&self) -> u64 {
        self.evicted
    }

    /// The number of the young generation: entries used in it are not evicted as long as this number stays.
    pub(crate) fn generation(&self) -> u32 {
        self.generation
    }

    /// The value of a key, which counts as used.
    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        if let Some(value) = self.young.get(key) {
            return Some(*value);
        }
        let (key, value) = self.old.remove_entry(key)?;
        self.insert(key, value);
        Some(value)
    }

    pub(crate) fn contains(&self, key: &K) -> bool {
        self.young.contains_key(key) || self.old.contains_key(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.half {
            self.evicted += self.old.len() as u64;
            self.old = std::mem::take(&mut self.young);
            self.generation = self.generation.wrapping_add(1);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_bounded_and_entries_in_use_stay() {
        let mut map = TwoGenerations::new(100);
        map.insert(0, "in use");
        for key in 1..1000 {
            map.insert(key, "used once");
            if key % 20 == 0 {
                assert_eq!(map.get(&0), Some("in use"));
            }
            assert!(map.young.len() + map.old.len() <= map.capacity());
        }
        assert_eq!((map.get(&1), map.evicted()), (None, 1000 - (map.young.len() + map.old.len()) as u64));
        assert!(map.generation() > 10);
    }
}
