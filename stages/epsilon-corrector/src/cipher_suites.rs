//! The cipher suites that handshakes showed, by flow.

use std::collections::{BTreeMap, VecDeque};

use crate::suite_evidence::LengthEvidence;

/// The most flows that are remembered; beyond it the oldest one is evicted.
const MAX_FLOWS: usize = 100_000;

/// Longer names of cipher suites are cut.
const MAX_NAME_CHARS: usize = 64;

/// Each flow's cipher suite, and what was reported of its session.
#[derive(Debug, Default)]
pub(crate) struct CipherSuites {
    flows: BTreeMap<u64, FlowSuite>,
    /// The flows, oldest first.
    order: VecDeque<u64>,
    pub(crate) evicted: u64,
}

#[derive(Debug, Default)]
pub(crate) struct FlowSuite {
    /// Of a session whose handshake was seen.
    pub(crate) name: Option<Box<str>>,
    /// Whether an assumption about the session was reported.
    pub(crate) is_reported: bool,
    /// Whether it was reported that the model cannot be asked of the session.
    pub(crate) is_refused: bool,
    /// Of a session whose handshake was not captured.
    pub(crate) evidence: LengthEvidence,
}

impl CipherSuites {
    /// Replaces the cipher suite of a flow when a session begins.
    pub(crate) fn update(&mut self, flow: u64, name: Option<&str>) {
        let suite = self.entry(flow);
        let is_same = suite.name.as_deref() == name;
        (suite.is_reported, suite.is_refused) = (suite.is_reported && is_same, suite.is_refused && is_same);
        suite.evidence = LengthEvidence::default();
        suite.name = name.map(|name| name.chars().take(MAX_NAME_CHARS).collect());
    }

    /// The cipher suite of a flow's session, if its handshake was seen.
    pub(crate) fn of_flow(&self, flow: u64) -> Option<&str> {
        self.flows.get(&flow)?.name.as_deref()
    }

    /// What is known of a flow, from now on if it is a new one.
    pub(crate) fn entry(&mut self, flow: u64) -> &mut FlowSuite {
        if !self.flows.contains_key(&flow) {
            if self.flows.len() >= MAX_FLOWS
                && let Some(oldest) = self.order.pop_front()
            {
                self.flows.remove(&oldest);
                self.evicted += 1;
            }
            self.order.push_back(flow);
        }
        self.flows.entry(flow).or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_with_another_suite_is_reported_again() {
        let mut suites = CipherSuites::default();
        suites.entry(1).is_reported = true;
        assert!(suites.entry(1).is_reported && !suites.entry(2).is_reported);
        suites.update(1, Some("X"));
        assert_eq!((suites.of_flow(1), suites.of_flow(2)), (Some("X"), None));
        assert!(!suites.entry(1).is_reported);
        suites.entry(1).is_reported = true;
        suites.update(1, Some("X"));
        assert!(suites.entry(1).is_reported, "a reconnect with the same suite");
    }

    #[test]
    fn memory_is_bounded() {
        let mut suites = CipherSuites::default();
        for flow in 0..MAX_FLOWS as u64 + 10 {
            suites.update(flow, Some(&"é".repeat(1000)));
        }
        assert_eq!((suites.flows.len(), suites.order.len(), suites.evicted), (MAX_FLOWS, MAX_FLOWS, 10));
        assert_eq!(suites.of_flow(9), None);
        assert_eq!(suites.of_flow(10).map(|name| name.chars().count()), Some(MAX_NAME_CHARS));
    }
}
