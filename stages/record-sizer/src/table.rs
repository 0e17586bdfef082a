//! The flows remembered, in two generations: when the younger is full or old, the elder is forgotten, so that memory is
//! bounded, what is in use stays, and nothing depends on the order of a hash table.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use foldhash::fast::RandomState;

/// Values by flow, each with the number it got when it came.
#[derive(Debug)]
pub(crate) struct Generations<V> {
    young: HashMap<u64, (u64, V), RandomState>,
    old: HashMap<u64, (u64, V), RandomState>,
    /// How many values a generation holds.
    most: usize,
    since_ns: Option<i64>,
    came: u64,
}

impl<V> Generations<V> {
    /// A table of at most `most` values.
    pub(crate) fn new(most: usize) -> Self {
        let most = (most / 2).max(1);
        Self { young: HashMap::default(), old: HashMap::default(), most, since_ns: None, came: 0 }
    }

    /// The value of a flow.
    #[inline]
    pub(crate) fn find(&mut self, flow: u64) -> Option<&mut V> {
        match self.young.entry(flow) {
            Entry::Occupied(known) => Some(&mut known.into_mut().1),
            // Room was made before: a generation takes one more for each that comes back from the other.
            Entry::Vacant(place) => self.old.remove(&flow).map(|value| &mut place.insert(value).1),
        }
    }

    /// Adds a value.
    pub(crate) fn insert(&mut self, flow: u64, value: V) -> &mut V {
        self.came += 1;
        let came = self.came;
        &mut self.young.entry(flow).insert_entry((came, value)).into_mut().1
    }

    /// Removes a value.
    pub(crate) fn remove(&mut self, flow: u64) -> Option<V> {
        self.young.remove(&flow).or_else(|| self.old.remove(&flow)).map(|(_, value)| value)
    }

    /// Whether the younger generation takes no more values.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.young.len() >= self.most
    }

    /// Whether the younger generation is older than this.
    #[inline]
    pub(crate) fn is_older(&mut self, now_ns: i64, most_ns: i64) -> bool {
        now_ns.saturating_sub(*self.since_ns.get_or_insert(now_ns)) > most_ns
    }

    /// Begins a generation; returns those forgotten, in the order they came.
    pub(crate) fn turn(&mut self, now_ns: i64) -> Vec<(u64, V)> {
        self.since_ns = Some(now_ns);
        let young = std::mem::take(&mut self.young);
        in_order(std::mem::replace(&mut self.old, young))
    }

    /// Takes out all values in the order they came.
    pub(crate) fn drain(&mut self) -> Vec<(u64, V)> {
        let mut all = std::mem::take(&mut self.old);
        all.extend(std::mem::take(&mut self.young));
        in_order(all)
    }
}

fn in_order<V>(values: HashMap<u64, (u64, V), RandomState>) -> Vec<(u64, V)> {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_unstable_by_key(|(_, (came, _))| *came);
    values.into_iter().map(|(flow, (_, value))| (flow, value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays_and_the_rest_leaves_in_order() {
        let mut table = Generations::new(4);
        table.insert(9, 'a');
        table.insert(3, 'b');
        assert!(table.is_full());
        assert!(table.turn(10).is_empty());
        table.insert(5, 'c');
        assert_eq!(table.find(3), Some(&mut 'b'));
        assert_eq!(table.turn(20), [(9, 'a')]);
        assert_eq!(table.find(9), None);
        assert_eq!(table.remove(5), Some('c'));
        table.insert(1, 'd');
        assert_eq!(table.drain(), [(3, 'b'), (1, 'd')]);
        assert!(!table.is_older(50, 30));
        assert!(table.is_older(51, 30));
    }
}
