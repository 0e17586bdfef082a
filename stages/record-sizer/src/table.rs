//! The flows remembered, in the order they came. Where there are too many those are forgotten that were silent for longest,
//! so that memory is bounded, what is in use stays, and nothing depends on the order of a hash table.
//!
//! How long ago a flow was used is known by periods, each of which an eighth of the table is used in: that costs little, and
//! room is made for many at once.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

/// So many periods it takes to use a full table once.
const PERIODS: usize = 8;

/// The table grows by so many flows at least.
const LEAST_GROWTH: usize = 64;

/// So many pairs of hints there are at least, and at most: 32 and 128 KiB.
const HINTS: [usize; 2] = [1 << 12, 1 << 14];
/// So many there are for each flow, up to that most and within a factor of two: with few of them, the first of a pair would
/// often be another flow's.
const HINTS_PER_FLOW: usize = 8;

/// Where a flow is in its table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place(u32);

impl Place {
    /// Where no flow ever is.
    pub(crate) const NOWHERE: Self = Self(u32::MAX);
}

/// Values by flow.
#[derive(Debug)]
pub(crate) struct Flows<V> {
    values: IndexMap<u64, V, RandomState>,
    /// The period that each was used in last.
    used: Vec<u32>,
    period: u32,
    /// How many were used in it.
    used_in_period: usize,
    most: usize,
    /// Where flows were found last, by the low bits of their numbers: a power of two of pairs.
    hints: Vec<[u32; 2]>,
    /// When the silent ones were forgotten last, and the period that ended then.
    swept: Option<(i64, u32)>,
}

impl<V> Flows<V> {
    /// A table of at most `most` values.
    pub(crate) fn new(most: usize) -> Self {
        let (values, used, hints) = (IndexMap::default(), Vec::new(), Vec::new());
        Self { values, used, period: 1, used_in_period: 0, most, hints, swept: None }
    }

    /// The value of a flow.
    #[inline]
    pub(crate) fn find(&mut self, flow: u64) -> Option<&mut V> {
        let at = self.values.get_index_of(&flow)?;
        self.take_at(at)
    }

    /// Where a flow is now, and its value, which does not count as used for that.
    #[inline]
    pub(crate) fn look_up(&mut self, flow: u64) -> Option<(Place, &V)> {
        let [first, second] = self.hints.get(self.hints_of(flow)).copied().unwrap_or_default();
        let at = if self.is_at(first as usize, flow) {
            first
        } else if self.is_at(second as usize, flow) {
            second
        } else {
            self.look_up_by_hash(flow)?
        };
        self.values.get_index(at as usize).map(|(_, value)| (Place(at), value))
    }

    #[inline(never)]
    fn look_up_by_hash(&mut self, flow: u64) -> Option<u32> {
        let at = self.values.get_index_of(&flow)? as u32;
        let [fewest, most] = HINTS;
        if self.values.len() > 2 * most {
            // Most hints would lead to other flows, far apart in memory.
            self.hints = Vec::new();
        } else {
            // Four times as many at once: each time all that is known is lost.
            let wanted = (HINTS_PER_FLOW * self.values.len()).next_power_of_two().clamp(fewest, most);
            if self.hints.len() < wanted / 2 {
                self.hints = vec![[0; 2]; wanted];
            }
        }
        let hints = self.hints_of(flow);
        if let Some(hints) = self.hints.get_mut(hints) {
            let [latest, _] = *hints;
            *hints = [at, latest];
        }
        Some(at)
    }

    #[inline]
    fn hints_of(&self, flow: u64) -> usize {
        flow as usize & self.hints.len().wrapping_sub(1)
    }

    #[inline]
    fn is_at(&self, at: usize, flow: u64) -> bool {
        self.values.get_index(at).is_some_and(|(there, _)| *there == flow)
    }

    /// The value of a flow, which is where it was [found](Self::look_up), or elsewhere by now.
    pub(crate) fn find_from(&mut self, Place(at): Place, flow: u64) -> Option<&mut V> {
        if self.is_at(at as usize, flow) { self.take_at(at as usize) } else { self.find(flow) }
    }

    /// The value of a flow, if it still is where it was [found](Self::look_up).
    #[inline]
    pub(crate) fn find_at(&mut self, Place(at): Place, flow: u64) -> Option<&mut V> {
        if self.is_at(at as usize, flow) { self.take_at(at as usize) } else { None }
    }

    #[inline]
    fn take_at(&mut self, at: usize) -> Option<&mut V> {
        if let Some(used) = self.used.get_mut(at)
            && *used != self.period
        {
            *used = self.period;
            self.count_use();
        }
        self.values.get_index_mut(at).map(|(_, value)| value)
    }

    /// Adds the value of a flow that has none.
    pub(crate) fn insert(&mut self, flow: u64, value: V) -> &mut V {
        let period = self.period;
        self.count_use();
        if self.values.len() == self.values.capacity() {
            self.grow();
        }
        let entry = self.values.entry(flow);
        if entry.index() == self.used.len() {
            self.used.push(period);
        }
        entry.insert_entry(value).into_mut()
    }

    /// Removes a value. Another one may come sooner in the order for it.
    pub(crate) fn remove(&mut self, flow: u64) -> Option<V> {
        let (at, _, value) = self.values.swap_remove_full(&flow)?;
        self.used.swap_remove(at);
        Some(value)
    }

    /// Whether there is room for no more.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.values.len() >= self.most
    }

    /// Whether it was longer ago than this that the silent ones were forgotten.
    pub(crate) fn is_older(&mut self, now_ns: i64, most_ns: i64) -> bool {
        let (swept_ns, _) = *self.swept.get_or_insert((now_ns, 0));
        now_ns.saturating_sub(swept_ns) > most_ns
    }

    /// The last moment at which that is not longer ago than this, and there is room, as long as no value is added.
    pub(crate) fn calm_until(&self, most_ns: i64) -> i64 {
        let until = self.swept.map(|(swept_ns, _)| swept_ns.saturating_add(most_ns));
        until.filter(|_| !self.is_full()).unwrap_or(i64::MIN)
    }

    /// Forgets those that were silent since the last time; returns them.
    pub(crate) fn forget_silent(&mut self, now_ns: i64) -> Vec<(u64, V)> {
        let before = self.swept.map_or(0, |(_, period)| period);
        self.swept = Some((now_ns, self.period));
        self.begin_period();
        self.forget(before)
    }

    /// Makes room where there is none: forgets an eighth of all, those that were silent for longest; returns them.
    pub(crate) fn make_room(&mut self) -> Vec<(u64, V)> {
        let mut used = self.used.clone();
        let Some(last) = used.len().min((self.most / PERIODS).max(1)).checked_sub(1) else { return Vec::new() };
        let (_, latest, _) = used.select_nth_unstable(last);
        self.forget(*latest)
    }

    /// Takes out all values.
    pub(crate) fn drain(&mut self) -> Vec<(u64, V)> {
        self.used.clear();
        std::mem::take(&mut self.values).into_iter().collect()
    }

    /// Forgets those that were not used after this period.
    fn forget(&mut self, latest: u32) -> Vec<(u64, V)> {
        let mut used = self.used.iter();
        let is_silent = |_: &u64, _: &mut V| used.next().is_some_and(|used| *used <= latest);
        let forgotten = self.values.extract_if(.., is_silent).collect();
        self.used.retain(|used| *used > latest);
        forgotten
    }

    /// Makes the table larger, by half, and never larger than it may be used.
    fn grow(&mut self) {
        let known = self.values.len();
        let room = self.most.saturating_sub(known).max(1);
        self.values.reserve_exact((known / 2).max(LEAST_GROWTH).min(room));
    }

    fn count_use(&mut self) {
        self.used_in_period += 1;
        if self.used_in_period >= self.most / PERIODS {
            self.begin_period();
        }
    }

    fn begin_period(&mut self) {
        // There is no end of them that anybody will see.
        self.period = self.period.saturating_add(1);
        self.used_in_period = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_silent_for_longest_are_forgotten() {
        let mut table = Flows::new(4);
        for (flow, value) in [(9, 'a'), (3, 'b'), (5, 'c'), (7, 'd')] {
            assert!(!table.is_full());
            assert!(!table.is_older(0, 30));
            assert_eq!(table.calm_until(30), 30);
            table.insert(flow, value);
        }
        assert_eq!(table.find(9), Some(&mut 'a'));
        assert!(table.is_full());
        assert_eq!(table.calm_until(30), i64::MIN);
        assert_eq!(table.make_room(), [(3, 'b')]);
        assert_eq!(table.find(3), None);
        assert!(!table.is_full());
        assert_eq!(table.remove(5), Some('c'));
        assert_eq!(table.drain(), [(9, 'a'), (7, 'd')]);
        assert!(table.make_room().is_empty());
    }

    #[test]
    fn a_place_is_no_more_than_where_to_look_first() {
        let mut table = Flows::new(4);
        for (flow, value) in [(9, 'a'), (3, 'b'), (5, 'c')] {
            table.insert(flow, value);
        }
        let [five, nine] = [(5, 'c'), (9, 'a')].map(|(flow, value)| {
            let (place, there) = table.look_up(flow).unwrap();
            assert_eq!(*there, value);
            place
        });
        assert!(table.look_up(7).is_none());
        assert_eq!(table.find_at(five, 5), Some(&mut 'c'));
        assert_eq!(table.find_from(five, 5), Some(&mut 'c'));
        // Another one takes its place, and it another's.
        table.remove(9);
        assert_eq!(table.find_at(nine, 9), None);
        assert_eq!(table.find_at(Place::NOWHERE, 5), None);
        assert_eq!(table.find_at(five, 5), None);
        assert_eq!(table.find_from(five, 5), Some(&mut 'c'));
        assert_eq!(table.find_from(Place::NOWHERE, 5), Some(&mut 'c'));
        assert_eq!(table.find_from(nine, 9), None);
        assert_eq!(table.look_up(5).map(|(_, value)| *value), Some('c'));
        table.drain();
        assert_eq!(table.find_at(five, 5), None);
        assert!(table.look_up(5).is_none());
    }

    #[test]
    fn flows_with_the_same_hint_are_told_apart() {
        let mut table = Flows::new(1 << 20);
        // In the end there are too many for hints.
        let flows: Vec<u64> = (0..40_000).map(|at| (at << 40) | (at % 3)).collect();
        for some in flows.chunks(2000) {
            for flow in some {
                table.insert(*flow, *flow);
            }
            for flow in some.iter().chain(flows.iter().take(500)).chain(some.iter().rev()) {
                assert_eq!(table.look_up(*flow).map(|(_, value)| *value), Some(*flow));
            }
            assert!(table.look_up(7 << 40).is_none());
        }
    }

    #[test]
    fn room_is_made_for_many_at_once_and_what_is_in_use_stays() {
        let mut table = Flows::new(1000);
        let mut forgotten = 0;
        for flow in 0..100_000 {
            if table.is_full() {
                let silent = table.make_room();
                assert!(silent.is_sorted() && silent.len() >= 125 && silent.len() < 400, "{}", silent.len());
                forgotten += silent.len();
            }
            table.insert(flow, flow);
            assert_eq!(table.find(7.min(flow)), Some(&mut 7.min(flow)), "at {flow}");
        }
        assert_eq!(forgotten + table.drain().len(), 100_000);
    }

    #[test]
    fn time_makes_silent() {
        let mut table = Flows::new(1000);
        assert_eq!(table.calm_until(30), i64::MIN);
        assert!(!table.is_older(50, 30));
        table.insert(1, 'a');
        table.insert(2, 'b');
        assert_eq!(table.calm_until(30), 80);
        assert_eq!(table.calm_until(i64::MAX), i64::MAX);
        assert!(!table.is_older(80, 30));
        assert!(table.is_older(81, 30));
        assert!(table.forget_silent(81).is_empty());
        assert_eq!(table.find(2), Some(&mut 'b'));
        assert!(!table.is_older(111, 30));
        assert_eq!(table.forget_silent(112), [(1, 'a')]);
        assert_eq!(table.forget_silent(143), [(2, 'b')]);
    }
}
