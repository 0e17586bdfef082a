//! A map of what was used last: bounded, at a constant cost.

use std::hash::Hash;

use foldhash::fast::RandomState;
use indexmap::IndexMap;

/// Holds at most twice `MOST` entries and forgets those not used for longest, as many as `MOST` at a time. They are only
/// looked up, so the order of its tables shows nowhere.
#[derive(Debug)]
pub(crate) struct Recent<K, V, const MOST: usize> {
    young: IndexMap<K, V, RandomState>,
    old: IndexMap<K, V, RandomState>,
    /// The place of the entry used last among the young ones: the next use is mostly of the same.
    last: usize,
    pub(crate) forgotten: u64,
}

impl<K, V, const MOST: usize> Default for Recent<K, V, MOST> {
    fn default() -> Self {
        Self { young: IndexMap::default(), old: IndexMap::default(), last: 0, forgotten: 0 }
    }
}

impl<K: Eq + Hash + Copy, V: Default, const MOST: usize> Recent<K, V, MOST> {
    /// The entry of a key, made where there is none.
    #[inline]
    pub(crate) fn entry(&mut self, key: K) -> &mut V {
        if self.young.get_index(self.last).is_none_or(|(last, _)| *last != key) {
            self.last = self.place(key);
        }
        &mut self.young[self.last]
    }

    /// The place of a key's entry among the young ones, where it is put if it is not there.
    fn place(&mut self, key: K) -> usize {
        if let Some(place) = self.young.get_index_of(&key) {
            return place;
        }
        let value = self.old.swap_remove(&key).unwrap_or_default();
        if self.young.len() >= MOST {
            self.forgotten += self.old.len() as u64;
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert_full(key, value).0
    }

    /// The entry of a key, if there is one; it does not count as used.
    pub(crate) fn look(&self, key: &K) -> Option<&V> {
        self.young.get(key).or_else(|| self.old.get(key))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The last keys used are always there, with their values; never more than twice the limit are.
        #[test]
        fn the_last_used_are_kept(keys in prop::collection::vec(0u8..12, 0..200)) {
            let mut recent: Recent<u8, u32, 4> = Recent::default();
            let mut uses = [0u32; 12];
            for (at, key) in keys.iter().enumerate() {
                let mut before: Vec<u8> = Vec::new();
                for key in keys[..at].iter().rev() {
                    if !before.contains(key) && before.len() < 4 {
                        before.push(*key);
                    }
                }
                for key in &before {
                    prop_assert_eq!(recent.look(key), Some(&uses[usize::from(*key)]));
                }
                uses[usize::from(*key)] = recent.look(key).copied().unwrap_or_default() + 1;
                *recent.entry(*key) += 1;
                prop_assert!(recent.young.len() <= 4 && recent.old.len() <= 4);
            }
        }
    }
}
