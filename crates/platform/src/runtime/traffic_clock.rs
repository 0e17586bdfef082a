//! The clock of all traffic: the time that the flows of a capture agree on.
//!
//! A stage that took the greatest time of any flow for the present would believe every odd one: a packet stamped an
//! hour late would end whatever waits on all other flows. Here a time far from the others is held, together with what
//! follows it, until other observations decide:
//!
//! - Another flow agrees, or the only flow does so twice, or one goes on alone for a while: the clock has stepped, or
//!   nothing was captured for a while. All held times are right.
//! - An observation near the old time: what was held is odd. It is dated back to the others, and so is what its flow
//!   sends with that offset later: a flow may have a clock of its own.
//!
//! A time up to [`STEP_NS`] ahead moves the clock at once, because pauses of that length are common; if other traffic
//! goes on at the old time, the clock returns to it.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};

/// Times at most this much ahead of the clock move it at once, in nanoseconds: two minutes. Most connections are kept
/// alive once a minute or more often, so longer silences are rare.
pub const STEP_NS: i64 = 120_000_000_000;

/// How long one of several flows must go on alone to show a step, in nanoseconds: a flow that is late sends more than
/// one packet before another flow contradicts it.
const ALONE_NS: i64 = 20_000_000_000;

const MAX_HELD: usize = 64;

const MAX_KNOWN_OFFSETS: usize = 1024;

/// The observations that show a step back, of several flows.
const STEP_BACK: usize = 3;

/// The time that the flows of a capture agree on; items of a time that is not certain are held.
#[derive(Debug, Serialize, Deserialize)]
pub struct TrafficClock<T> {
    /// How far times may go back without being odd.
    lag_ns: i64,
    now_ns: i64,
    last_ns: i64,
    /// A flow seen since the last step, and whether there were others.
    flow: Option<u64>,
    has_several_flows: bool,
    /// Items of times far from the clock, all on the same side of it.
    held: VecDeque<Held<T>>,
    /// How far the times of a flow are ahead of the clock.
    apart: BTreeMap<u64, i64>,
    leap: Option<Leap>,
    /// Empty between two observations.
    #[serde(skip, default = "VecDeque::new")]
    events: VecDeque<ClockEvent<T>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClockEvent<T> {
    /// An item is next in order; its times are to be reduced by `ahead_ns`.
    Item { item: T, ahead_ns: i64 },
    /// The times of a flow are ahead of those of all others, or behind if negative.
    Odd { flow: u64, time_ns: i64, ahead_ns: i64 },
    /// All traffic goes on at another time.
    Step { flow: u64, from_ns: i64, to_ns: i64 },
}

#[derive(Debug, Serialize, Deserialize)]
struct Held<T> {
    flow: u64,
    /// Its time, less the offset that was known of its flow.
    time_ns: i64,
    offset_ns: i64,
    item: T,
}

/// One flow moved the clock, and no other one has confirmed that yet.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Leap {
    flow: u64,
    to_ns: i64,
    before_ns: i64,
}

impl<T> TrafficClock<T> {
    pub fn new(lag_ns: i64) -> Self {
        Self {
            lag_ns,
            now_ns: i64::MIN,
            last_ns: i64::MIN,
            flow: None,
            has_several_flows: false,
            held: VecDeque::new(),
            apart: BTreeMap::new(),
            leap: None,
            events: VecDeque::new(),
        }
    }

    /// The greatest time that is certain; `i64::MIN` before the first one.
    #[inline]
    pub fn now_ns(&self) -> i64 {
        self.now_ns
    }

    /// Takes an observation that is close to the one before, as nearly all are. If false it was not taken, and
    /// [`add`](Self::add) decides.
    #[inline]
    pub fn follows(&mut self, flow: u64, time_ns: i64) -> bool {
        let distance_ns = time_ns.saturating_sub(self.now_ns).unsigned_abs();
        if distance_ns > self.lag_ns.unsigned_abs() || !self.held.is_empty() || self.apart.contains_key(&flow) {
            return false;
        }
        self.take(flow, time_ns);
        true
    }

    /// Adds an item that does not follow: [`next_event`](Self::next_event) returns it once its time is certain.
    #[cold]
    pub fn add(&mut self, flow: u64, time_ns: i64, item: T) {
        match self.place(flow, time_ns) {
            Some(ahead_ns) => self.events.push_back(ClockEvent::Item { item, ahead_ns }),
            None => self.hold(flow, time_ns, item),
        }
    }

    /// Takes an observation if its time is certain, and returns how far it is ahead of the clock: its times are to be
    /// reduced by that.
    fn place(&mut self, flow: u64, time_ns: i64) -> Option<i64> {
        if self.flow.is_none() {
            self.take(flow, time_ns);
            return Some(0);
        }
        let offset_ns = self.offset(flow, time_ns);
        let traffic_ns = time_ns.saturating_sub(offset_ns);
        self.revert_leap(flow, traffic_ns);
        if !self.is_in_time(traffic_ns) {
            return None;
        }
        if self.confirms(traffic_ns) {
            self.step();
        } else {
            self.release_as_odd(Some((flow, traffic_ns)));
        }
        if traffic_ns > self.now_ns.saturating_add(self.lag_ns) && self.pending_leap().is_none() {
            self.leap = Some(Leap { flow, to_ns: traffic_ns, before_ns: self.last_ns });
            self.now_ns = traffic_ns;
            self.last_ns = traffic_ns;
            self.count_flow(flow);
        } else {
            self.take(flow, traffic_ns);
        }
        Some(offset_ns)
    }

    fn hold(&mut self, flow: u64, time_ns: i64, item: T) {
        let offset_ns = self.apart.get(&flow).copied().unwrap_or_default();
        let time_ns = time_ns.saturating_sub(offset_ns);
        let goes_on = |last: &Held<T>| {
            (last.time_ns > self.now_ns) == (time_ns > self.now_ns)
                && time_ns >= last.time_ns.saturating_sub(self.lag_ns)
        };
        if !self.held.back().is_none_or(goes_on) {
            self.release_as_odd(None);
        }
        self.held.push_back(Held { flow, time_ns, offset_ns, item });
        if self.is_step() {
            self.step();
        }
    }

    pub fn finish(&mut self) {
        for Held { item, offset_ns, .. } in self.held.drain(..) {
            self.events.push_back(ClockEvent::Item { item, ahead_ns: offset_ns });
        }
    }

    #[inline]
    pub fn next_event(&mut self) -> Option<ClockEvent<T>> {
        self.events.pop_front()
    }

    fn is_in_time(&self, time_ns: i64) -> bool {
        time_ns >= self.now_ns.saturating_sub(self.lag_ns) && time_ns <= self.now_ns.saturating_add(STEP_NS)
    }

    #[inline]
    fn take(&mut self, flow: u64, time_ns: i64) {
        self.now_ns = self.now_ns.max(time_ns);
        self.last_ns = time_ns;
        self.count_flow(flow);
        if self.leap.is_some_and(|leap| leap.flow != flow || !self.has_several_flows) {
            self.leap = None;
        }
    }

    #[inline]
    fn count_flow(&mut self, flow: u64) {
        self.has_several_flows |= *self.flow.get_or_insert(flow) != flow;
    }

    /// How far the times of a flow are ahead. Forgotten when its time is nearer to that of the others without it.
    fn offset(&mut self, flow: u64, time_ns: i64) -> i64 {
        let Some(offset_ns) = self.apart.get_mut(&flow) else { return 0 };
        let traffic_ns = time_ns.saturating_sub(*offset_ns);
        if time_ns.abs_diff(self.last_ns) <= traffic_ns.abs_diff(self.last_ns) {
            self.apart.remove(&flow);
            return 0;
        }
        let since_ns = traffic_ns.saturating_sub(self.last_ns);
        if since_ns < 0 && since_ns >= self.lag_ns.saturating_neg() {
            // The offset was overestimated, by the time between two observations at most.
            *offset_ns = offset_ns.saturating_add(since_ns);
        }
        *offset_ns
    }

    fn pending_leap(&self) -> Option<Leap> {
        self.leap.filter(|leap| self.now_ns.saturating_sub(leap.to_ns) <= STEP_NS)
    }

    /// Returns to the old time if one flow alone left it and traffic goes on there.
    fn revert_leap(&mut self, flow: u64, time_ns: i64) {
        let Some(Leap { flow: leapt, to_ns, before_ns }) = self.pending_leap() else { return };
        let goes_on = before_ns.saturating_sub(self.lag_ns)..self.now_ns.saturating_sub(self.lag_ns);
        if !goes_on.contains(&time_ns) {
            return;
        }
        self.leap = None;
        (self.now_ns, self.last_ns) = (before_ns, before_ns);
        let ahead_ns = to_ns.saturating_sub(before_ns);
        self.events.push_back(ClockEvent::Odd { flow: leapt, time_ns: to_ns, ahead_ns });
        if flow != leapt {
            self.set_apart(leapt, ahead_ns);
        }
    }

    fn set_apart(&mut self, flow: u64, more_ns: i64) {
        let offset_ns = self.apart.entry(flow).or_default();
        *offset_ns = offset_ns.saturating_add(more_ns);
        if self.apart.len() > MAX_KNOWN_OFFSETS {
            self.apart.pop_first();
        }
    }

    /// Releases what is held, because traffic goes on at the old time: with the observation `by`, if that is known. The
    /// truth is between the observation before and this one: near this one if it is of the same flow.
    fn release_as_odd(&mut self, by: Option<(u64, i64)>) {
        let mut ahead: BTreeMap<u64, i64> = BTreeMap::new();
        for Held { flow, time_ns, offset_ns, .. } in &self.held {
            let same = by.filter(|(by, _)| by == flow);
            let more_ns = time_ns.saturating_sub(same.map_or(self.last_ns, |(_, by_ns)| by_ns));
            if let Some(known_ns) = ahead.get_mut(flow) {
                // No time of the flow may come after the one that contradicts it.
                *known_ns = if same.is_some() { more_ns.max(*known_ns) } else { *known_ns };
                continue;
            }
            ahead.insert(*flow, more_ns);
            let time_ns = time_ns.saturating_add(*offset_ns);
            self.events.push_back(ClockEvent::Odd { flow: *flow, time_ns, ahead_ns: more_ns });
        }
        for Held { flow, offset_ns, item, .. } in std::mem::take(&mut self.held) {
            let more_ns = ahead.get(&flow).copied().unwrap_or_default();
            self.events.push_back(ClockEvent::Item { item, ahead_ns: offset_ns.saturating_add(more_ns) });
        }
        for (flow, more_ns) in ahead.into_iter().filter(|(flow, _)| by.is_none_or(|(by, _)| by != *flow)) {
            self.set_apart(flow, more_ns);
        }
    }

    /// Whether a time that is in time is near the later times that are held: packets may be a little out of order.
    fn confirms(&self, time_ns: i64) -> bool {
        let first = self.held.front().filter(|first| first.time_ns > self.now_ns);
        first.is_some_and(|first| time_ns >= first.time_ns.saturating_sub(self.lag_ns))
    }

    /// Whether what is held shows that all traffic goes on at another time.
    fn is_step(&self) -> bool {
        let (Some(first), Some(last)) = (self.held.front(), self.held.back()) else { return false };
        let have_several = self.held.iter().any(|held| held.flow != first.flow);
        let is_forward = first.time_ns > self.now_ns;
        let is_only_flow = !self.has_several_flows && !have_several && self.flow == Some(first.flow);
        (have_several && (is_forward || self.held.len() >= STEP_BACK))
            || (is_only_flow && self.held.len() > 1)
            || last.time_ns.saturating_sub(first.time_ns) >= ALONE_NS
            || self.held.len() >= MAX_HELD
    }

    /// Goes on at the time of the first item that is held. The others are placed anew.
    fn step(&mut self) {
        let Some(first) = self.held.front() else { return };
        let (from_ns, to_ns) = (self.now_ns, first.time_ns);
        self.events.push_back(ClockEvent::Step { flow: first.flow, from_ns, to_ns });
        (self.now_ns, self.last_ns, self.leap) = (to_ns, to_ns, None);
        (self.flow, self.has_several_flows) = (Some(first.flow), false);
        if to_ns < from_ns {
            self.apart.clear();
        }
        for Held { flow, time_ns, offset_ns, item } in std::mem::take(&mut self.held) {
            self.add(flow, time_ns.saturating_add(offset_ns), item);
        }
    }
}

/// What a notice says about a flow whose times are ahead of all others, or behind if negative.
pub fn describe_odd_time(ahead_ns: i64) -> String {
    let seconds = ahead_ns.unsigned_abs() as f64 / 1e9;
    let (side, way) = if ahead_ns < 0 { ("behind", "forward") } else { ("ahead of", "back") };
    format!("its time is {seconds:.3} s {side} that of all other traffic, which goes on: it is dated {way} by that")
}

#[cfg(test)]
mod tests;
