//! A bounded table of recently used values that evicts the others at a constant cost.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use foldhash::fast::RandomState;

/// Keeps the values used last, up to a total weight: bytes, or entries that weigh 1 each.
///
/// New and used values are in the young generation. When that is full, the old generation is evicted and the young one
/// becomes the old one. Values are only looked up, so the order of the hash tables never shows.
///
/// A bound that is known where the cache is declared is a part of its type, as in `TwoGenerationCache<u64, Flow, 1000>`.
#[derive(Debug)]
pub struct TwoGenerationCache<K, V, const MAX_WEIGHT: usize = 0> {
    young: HashMap<K, Weighted<V>, RandomState>,
    old: HashMap<K, Weighted<V>, RandomState>,
    young_weight: usize,
    generation_weight: usize,
    evicted: u64,
}

#[derive(Debug)]
struct Weighted<V> {
    value: V,
    weight: usize,
}

impl<V: Default> Default for Weighted<V> {
    fn default() -> Self {
        Self { value: V::default(), weight: 1 }
    }
}

impl<K, V> TwoGenerationCache<K, V> {
    pub fn new(max_weight: usize) -> Self {
        Self { generation_weight: max_weight / 2, ..Self::default() }
    }
}

impl<K, V, const MAX_WEIGHT: usize> Default for TwoGenerationCache<K, V, MAX_WEIGHT> {
    fn default() -> Self {
        let (young, old) = (HashMap::default(), HashMap::default());
        Self { young, old, young_weight: 0, generation_weight: MAX_WEIGHT / 2, evicted: 0 }
    }
}

impl<K: Eq + Hash + Clone, V, const MAX_WEIGHT: usize> TwoGenerationCache<K, V, MAX_WEIGHT> {
    /// Removes all values, which does not count as eviction.
    pub fn clear(&mut self) {
        self.young.clear();
        self.old.clear();
        self.young_weight = 0;
    }

    /// The value of a key; this counts as a use.
    pub fn recall(&mut self, key: &K) -> Option<&V> {
        if !self.old.is_empty()
            && let Some(used) = self.old.remove(key)
        {
            self.insert_young(key.clone(), used);
        }
        self.young.get(key).map(|kept| &kept.value)
    }

    /// The value of a key; this does not count as a use.
    pub fn peek(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key)).map(|kept| &kept.value)
    }

    /// The value of a key, which is the default value of weight 1 if there was none; this counts as a use.
    #[inline]
    pub fn get_or_default(&mut self, key: K) -> &mut V
    where
        V: Default,
    {
        if self.young_weight >= self.generation_weight && !self.young.contains_key(&key) {
            let used = self.old.remove(&key).unwrap_or_default();
            self.insert_young(key.clone(), used);
        }
        match self.young.entry(key) {
            Entry::Occupied(known) => &mut known.into_mut().value,
            Entry::Vacant(new) => {
                let used = if self.old.is_empty() { None } else { self.old.remove(new.key()) };
                let used = used.unwrap_or_default();
                self.young_weight += used.weight;
                &mut new.insert(used).value
            }
        }
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.young.values_mut().chain(self.old.values_mut()).map(|kept| &mut kept.value)
    }

    /// Replaces the value of a key. A value heavier than half of the cache is not kept.
    pub fn remember(&mut self, key: K, value: V, weight: usize) {
        if let Some(before) = self.young.remove(&key) {
            self.young_weight -= before.weight;
        }
        self.old.remove(&key);
        if weight <= self.generation_weight {
            self.insert_young(key, Weighted { value, weight });
        }
    }

    pub fn evicted(&self) -> u64 {
        self.evicted
    }

    fn insert_young(&mut self, key: K, value: Weighted<V>) {
        if self.young_weight + value.weight > self.generation_weight {
            self.evicted += self.old.len() as u64;
            // The tables keep their storage.
            self.old.clear();
            std::mem::swap(&mut self.young, &mut self.old);
            self.young_weight = 0;
        }
        self.young_weight += value.weight;
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests;
