//! The flows that hold bytes, until when, and how many: this decides which are given up first when memory is needed.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct HeldFlows {
    by_deadline: BTreeSet<(i64, u64)>,
    /// Deadline and held bytes of each flow.
    by_flow: BTreeMap<u64, (i64, usize)>,
    bytes: usize,
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

    /// The flow whose deadline passed first, if any has.
    #[inline]
    pub(crate) fn overdue(&self, now_ns: i64) -> Option<u64> {
        let first = self.by_deadline.first().filter(|(deadline, _)| *deadline <= now_ns && *deadline < i64::MAX);
        first.map(|(_, flow)| *flow)
    }

    /// When the first flow is to be given up.
    pub(crate) fn first_deadline(&self) -> i64 {
        self.by_deadline.first().map_or(i64::MAX, |(deadline, _)| *deadline)
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.by_deadline.first().map(|(_, flow)| *flow)
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_with_the_earliest_deadline_comes_first() {
        let mut held = HeldFlows::default();
        held.update(1, Some(30), 100);
        held.update(2, Some(20), 10);
        held.update(3, None, 1);
        assert_eq!((held.bytes(), held.first(), held.overdue(19), held.overdue(20)), (111, Some(2), None, Some(2)));
        held.update(2, Some(40), 20);
        assert_eq!((held.bytes(), held.first()), (121, Some(1)));
        held.update(1, None, 0);
        held.update(2, None, 0);
        assert_eq!((held.bytes(), held.first(), held.overdue(i64::MAX)), (1, Some(3), None));
    }
}
