//! Which flows hold bytes back, until when, and how many: what is given up first when memory is needed.

use std::collections::{BTreeMap, BTreeSet};

/// The flows that hold bytes.
#[derive(Debug, Default)]
pub(crate) struct Waiting {
    by_deadline: BTreeSet<(i64, u64)>,
    by_flow: BTreeMap<u64, (i64, usize)>,
    bytes: usize,
}

impl Waiting {
    /// Takes note of what a flow holds now. Without a deadline it waits for nothing, and is given up last.
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

    /// A flow whose deadline has come, at whatever time it may be.
    pub(crate) fn overdue(&self, now_ns: i64) -> Option<u64> {
        let first = self.by_deadline.first().filter(|(deadline, _)| *deadline <= now_ns && *deadline < i64::MAX);
        first.map(|(_, flow)| *flow)
    }

    /// The flow to give up first.
    pub(crate) fn first(&self) -> Option<u64> {
        self.by_deadline.first().map(|(_, flow)| *flow)
    }

    /// Whether no flow holds any.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_flow.is_empty()
    }

    /// Bytes held by all flows together.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_and_sums() {
        let mut waiting = Waiting::default();
        waiting.update(1, Some(30), 100);
        waiting.update(2, Some(20), 10);
        waiting.update(3, None, 1);
        assert_eq!(
            (waiting.bytes(), waiting.first(), waiting.overdue(19), waiting.overdue(20)),
            (111, Some(2), None, Some(2))
        );
        waiting.update(2, Some(40), 20);
        assert_eq!((waiting.bytes(), waiting.first()), (121, Some(1)));
        waiting.update(1, None, 0);
        waiting.update(2, None, 0);
        assert_eq!((waiting.bytes(), waiting.first(), waiting.overdue(i64::MAX)), (1, Some(3), None));
    }
}
