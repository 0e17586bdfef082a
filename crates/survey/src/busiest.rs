//! A bounded table that forgets the quietest half of its values when it is full.

use std::collections::BTreeMap;

pub(crate) trait Busy {
    fn messages(&self) -> u64;
}

/// Keeps the values with the most messages; of those with as many, the latest.
#[derive(Debug)]
pub(crate) struct BusiestTable<K, V> {
    values: BTreeMap<K, (u64, V)>,
    capacity: usize,
    added: u64,
    pub(crate) forgotten: u64,
}

impl<K: Ord + Copy, V: Busy> BusiestTable<K, V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { values: BTreeMap::new(), capacity: capacity.max(2), added: 0, forgotten: 0 }
    }

    pub(crate) fn find(&mut self, key: &K) -> Option<&mut V> {
        self.values.get_mut(key).map(|(_, value)| value)
    }

    pub(crate) fn find_or_add(&mut self, key: K, value: impl FnOnce() -> V) -> &mut V {
        if self.values.len() >= self.capacity && !self.values.contains_key(&key) {
            self.forget_the_quietest();
        }
        let added = &mut self.added;
        let (_, value) = self.values.entry(key).or_insert_with(|| {
            *added += 1;
            (*added, value())
        });
        value
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.values.iter().map(|(key, (_, value))| (key, value))
    }

    fn forget_the_quietest(&mut self) {
        let mut ranks: Vec<(u64, u64)> =
            self.values.values().map(|(added, value)| (value.messages(), *added)).collect();
        let half = ranks.len() / 2;
        let (_, &mut least, _) = ranks.select_nth_unstable(half);
        let before = self.values.len();
        self.values.retain(|_, (added, value)| (value.messages(), *added) >= least);
        self.forgotten += (before - self.values.len()) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Busy for u64 {
        fn messages(&self) -> u64 {
            *self
        }
    }

    #[test]
    fn a_flood_of_quiet_values_forgets_no_busy_one() {
        let mut table: BusiestTable<u64, u64> = BusiestTable::new(100);
        *table.find_or_add(7, || 0) = 50;
        for key in 1000..100_000 {
            table.find_or_add(key, || 1);
            assert!(table.iter().count() <= 100);
        }
        assert_eq!(table.find(&7), Some(&mut 50));
        assert!(table.find(&99_999).is_some() && table.find(&1000).is_none());
        assert_eq!(table.forgotten + table.iter().count() as u64, 99_001);
    }
}
