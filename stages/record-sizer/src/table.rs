//! The flows remembered, in the order they came. When too many were used, or time is over, those are forgotten that were
//! not used since the last time, so that memory is bounded, what is in use stays, and nothing depends on the order of a
//! hash table.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

/// Values by flow.
#[derive(Debug)]
pub(crate) struct Flows<V> {
    values: IndexMap<u64, V, RandomState>,
    /// Whether each was used since the last time some were forgotten.
    used: Vec<bool>,
    used_count: usize,
    /// So many may be used before others are forgotten.
    most: usize,
    since_ns: Option<i64>,
}

impl<V> Flows<V> {
    /// A table of at most `most` values.
    pub(crate) fn new(most: usize) -> Self {
        Self { values: IndexMap::default(), used: Vec::new(), used_count: 0, most: (most / 2).max(1), since_ns: None }
    }

    /// The value of a flow.
    #[inline]
    pub(crate) fn find(&mut self, flow: u64) -> Option<&mut V> {
        let (at, _, value) = self.values.get_full_mut(&flow)?;
        if let Some(used @ false) = self.used.get_mut(at) {
            *used = true;
            self.used_count += 1;
        }
        Some(value)
    }

    /// Adds the value of a flow that has none.
    pub(crate) fn insert(&mut self, flow: u64, value: V) -> &mut V {
        let entry = self.values.entry(flow);
        if entry.index() == self.used.len() {
            self.used.push(true);
            self.used_count += 1;
        }
        entry.insert_entry(value).into_mut()
    }

    /// Removes a value. Another one may come sooner in the order for it.
    pub(crate) fn remove(&mut self, flow: u64) -> Option<V> {
        let (at, _, value) = self.values.swap_remove_full(&flow)?;
        self.used_count -= usize::from(self.used.swap_remove(at));
        Some(value)
    }

    /// Whether so many were used that others are to be forgotten.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used_count >= self.most
    }

    /// Whether it was longer ago than this that some were forgotten.
    #[inline]
    pub(crate) fn is_older(&mut self, now_ns: i64, most_ns: i64) -> bool {
        now_ns.saturating_sub(*self.since_ns.get_or_insert(now_ns)) > most_ns
    }

    /// Forgets those that were not used since the last time; returns them.
    pub(crate) fn forget_unused(&mut self, now_ns: i64) -> Vec<(u64, V)> {
        self.since_ns = Some(now_ns);
        let mut used = std::mem::take(&mut self.used).into_iter();
        let forgotten = self.values.extract_if(.., |_, _| !used.next().unwrap_or_default()).collect();
        self.used = vec![false; self.values.len()];
        self.used_count = 0;
        forgotten
    }

    /// Takes out all values.
    pub(crate) fn drain(&mut self) -> Vec<(u64, V)> {
        (self.used, self.used_count) = (Vec::new(), 0);
        std::mem::take(&mut self.values).into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_leaves_in_order() {
        let mut table = Flows::new(4);
        table.insert(9, 'a');
        table.insert(3, 'b');
        assert!(table.is_full());
        assert!(table.forget_unused(10).is_empty());
        assert!(!table.is_full());
        table.insert(5, 'c');
        assert_eq!(table.find(3), Some(&mut 'b'));
        assert!(table.is_full());
        assert_eq!(table.forget_unused(20), [(9, 'a')]);
        assert_eq!(table.find(9), None);
        assert_eq!(table.remove(5), Some('c'));
        table.insert(1, 'd');
        assert_eq!(table.find(3), Some(&mut 'b'));
        assert!(table.is_full());
        assert_eq!(table.drain(), [(3, 'b'), (1, 'd')]);
        assert!(!table.is_full());
        assert!(!table.is_older(50, 30));
        assert!(table.is_older(51, 30));
    }
}
