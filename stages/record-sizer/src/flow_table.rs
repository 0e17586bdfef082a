//! A bounded table of values by flow, in order of insertion. When it is full, the flows unused for longest are
//! evicted, so memory is bounded, flows in use stay, and nothing depends on the order of a hash table.
//!
//! Ages are counted in periods. A period ends when an eighth of the table was used in it: that costs little, and room
//! is made for many flows at once.

use std::collections::{BTreeMap, BTreeSet};

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

/// The number of periods in which a full table is used once.
const PERIODS: usize = 8;

const MIN_GROWTH: usize = 64;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct FlowTable<V> {
    #[serde(with = "indexmap::map::serde_seq", bound(serialize = "V: Serialize", deserialize = "V: Deserialize<'de>"))]
    values: IndexMap<u64, Entry<V>, RandomState>,
    period: u32,
    used_in_period: usize,
    capacity: usize,
    /// When idle flows were evicted last, and the period that ended then.
    last_sweep: Option<(i64, u32)>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry<V> {
    /// The period in which it was last used.
    used: u32,
    value: V,
}

impl<V> FlowTable<V> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { values: IndexMap::default(), period: 1, used_in_period: 0, capacity, last_sweep: None }
    }

    #[inline]
    pub(crate) fn find(&mut self, flow: u64) -> Option<&mut V> {
        let entry = self.values.get_mut(&flow)?;
        if entry.used != self.period {
            entry.used = self.period;
            count_use(&mut self.period, &mut self.used_in_period, self.capacity);
        }
        Some(&mut entry.value)
    }

    /// A value that is not used by this: it is forgotten as if nobody had looked.
    #[inline]
    pub(crate) fn look_up(&self, flow: u64) -> Option<&V> {
        self.values.get(&flow).map(|entry| &entry.value)
    }

    pub(crate) fn insert(&mut self, flow: u64, value: V) -> &mut V {
        let entry = Entry { used: self.period, value };
        count_use(&mut self.period, &mut self.used_in_period, self.capacity);
        if self.values.len() == self.values.capacity() {
            self.grow();
        }
        &mut self.values.entry(flow).insert_entry(entry).into_mut().value
    }

    /// Removes a value; the last one takes its place in the order.
    pub(crate) fn remove(&mut self, flow: u64) -> Option<V> {
        self.values.swap_remove(&flow).map(|entry| entry.value)
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.values.len() >= self.capacity
    }

    /// Whether the last sweep for idle flows is longer ago than this. The first call counts as a sweep.
    #[inline]
    pub(crate) fn is_sweep_due(&mut self, now_ns: i64, interval_ns: i64) -> bool {
        let (sweep_ns, _) = *self.last_sweep.get_or_insert((now_ns, 0));
        now_ns.saturating_sub(sweep_ns) > interval_ns
    }

    /// Up to this time no sweep is due, and there is room, unless values are added.
    pub(crate) fn next_sweep_ns(&self, interval_ns: i64) -> i64 {
        let next_ns = self.last_sweep.map(|(sweep_ns, _)| sweep_ns.saturating_add(interval_ns));
        next_ns.filter(|_| !self.is_full()).unwrap_or(i64::MIN)
    }

    pub(crate) fn evict_idle(&mut self, now_ns: i64) -> Vec<(u64, V)> {
        let before = self.last_sweep.map_or(0, |(_, period)| period);
        self.last_sweep = Some((now_ns, self.period));
        (self.period, self.used_in_period) = (self.period.saturating_add(1), 0);
        self.evict_unused_since(before)
    }

    /// Removes and returns at least an eighth of a full table: the values unused for longest.
    pub(crate) fn evict_oldest(&mut self) -> Vec<(u64, V)> {
        let mut used: Vec<u32> = self.values.values().map(|entry| entry.used).collect();
        let Some(last) = used.len().min((self.capacity / PERIODS).max(1)).checked_sub(1) else { return Vec::new() };
        let (_, latest, _) = used.select_nth_unstable(last);
        self.evict_unused_since(*latest)
    }

    /// Removes all values, without a second place for them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u64, V)> + use<V> {
        std::mem::take(&mut self.values).into_iter().map(|(flow, entry)| (flow, entry.value))
    }

    /// Forgets when the last sweep was, because time went back, and returns all values.
    pub(crate) fn restart_time(&mut self) -> impl Iterator<Item = &mut V> {
        self.last_sweep = None;
        self.values.values_mut().map(|entry| &mut entry.value)
    }

    fn evict_unused_since(&mut self, period: u32) -> Vec<(u64, V)> {
        let evicted = self.values.extract_if(.., |_, entry| entry.used <= period);
        evicted.map(|(flow, entry)| (flow, entry.value)).collect()
    }

    fn grow(&mut self) {
        let known = self.values.len();
        let room = self.capacity.saturating_sub(known).max(1);
        self.values.reserve_exact((known / 2).max(MIN_GROWTH).min(room));
    }
}

fn count_use(period: &mut u32, used_in_period: &mut usize, capacity: usize) {
    *used_in_period += 1;
    if *used_in_period >= capacity / PERIODS {
        // No run lasts long enough to reach the limit.
        (*period, *used_in_period) = (period.saturating_add(1), 0);
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct HeldFlows {
    by_deadline: BTreeSet<(i64, u64)>,
    /// Deadline and held bytes of each flow.
    by_flow: BTreeMap<u64, (i64, usize)>,
    pub(crate) bytes: usize,
}

impl HeldFlows {
    /// Sets how many bytes a flow holds now. One without a deadline waits for nothing, and is given up last.
    pub(crate) fn update(&mut self, flow: u64, deadline: Option<i64>, bytes: usize) {
        if bytes == 0 && self.by_flow.is_empty() {
            return;
        }
        let deadline = deadline.unwrap_or(i64::MAX);
        let before = if bytes == 0 { self.by_flow.remove(&flow) } else { self.by_flow.insert(flow, (deadline, bytes)) };
        if let Some((old, held)) = before {
            self.bytes -= held;
            self.by_deadline.remove(&(old, flow));
        }
        if bytes > 0 {
            self.bytes += bytes;
            self.by_deadline.insert((deadline, flow));
        }
    }

    #[inline]
    pub(crate) fn overdue(&self, now_ns: i64) -> Option<u64> {
        let first = self.by_deadline.first().filter(|(deadline, _)| *deadline <= now_ns && *deadline < i64::MAX);
        first.map(|(_, flow)| *flow)
    }

    pub(crate) fn first_deadline(&self) -> i64 {
        self.by_deadline.first().map_or(i64::MAX, |(deadline, _)| *deadline)
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.by_deadline.first().map(|(_, flow)| *flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_table_evicts_the_flows_unused_for_longest() {
        let mut table = FlowTable::new(4);
        for (flow, value) in [(9, 'a'), (3, 'b'), (5, 'c'), (7, 'd')] {
            assert!(!table.is_full());
            table.insert(flow, value);
        }
        assert_eq!(table.find(9), Some(&mut 'a'));
        assert!(table.is_full());
        assert_eq!(table.evict_oldest(), [(3, 'b')]);
        assert_eq!(table.find(3), None);
        assert!(!table.is_full());
        assert_eq!(table.remove(5), Some('c'));
        assert!(table.drain().eq([(9, 'a'), (7, 'd')]));
        assert!(table.evict_oldest().is_empty());
    }

    #[test]
    fn many_flows_are_evicted_at_once_and_used_ones_stay() {
        let mut table = FlowTable::new(1000);
        let mut evicted = 0;
        for flow in 0..100_000 {
            if table.is_full() {
                let oldest = table.evict_oldest();
                assert!(oldest.is_sorted() && oldest.len() >= 125 && oldest.len() < 400, "{}", oldest.len());
                evicted += oldest.len();
            }
            table.insert(flow, flow);
            assert_eq!(table.find(7.min(flow)), Some(&mut 7.min(flow)), "at {flow}");
        }
        assert_eq!(evicted + table.drain().count(), 100_000);
    }

    #[test]
    fn sweep_evicts_flows_unused_since_the_last_one() {
        let mut table = FlowTable::new(1000);
        assert!(!table.is_sweep_due(50, 30));
        table.insert(1, 'a');
        table.insert(2, 'b');
        assert!(!table.is_sweep_due(80, 30));
        assert!(table.is_sweep_due(81, 30));
        assert!(table.evict_idle(81).is_empty());
        assert_eq!(table.find(2), Some(&mut 'b'));
        assert!(!table.is_sweep_due(111, 30));
        assert_eq!(table.evict_idle(112), [(1, 'a')]);
        assert_eq!(table.evict_idle(143), [(2, 'b')]);
    }

    #[test]
    fn flow_with_the_earliest_deadline_comes_first() {
        let mut held = HeldFlows::default();
        held.update(1, Some(30), 100);
        held.update(2, Some(20), 10);
        held.update(3, None, 1);
        assert_eq!((held.bytes, held.first(), held.overdue(19), held.overdue(20)), (111, Some(2), None, Some(2)));
        held.update(2, Some(40), 20);
        assert_eq!((held.bytes, held.first()), (121, Some(1)));
        held.update(1, None, 0);
        held.update(2, None, 0);
        assert_eq!((held.bytes, held.first(), held.overdue(i64::MAX)), (1, Some(3), None));
    }
}
