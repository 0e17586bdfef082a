//! The cipher suites that handshakes showed, by flow.

use std::collections::{BTreeMap, VecDeque};

use crate::suite_evidence::LengthEvidence;

/// The most flows that are remembered; beyond it the oldest one is evicted.
const MAX_FLOWS: usize = 100_000;

/// Longer names of cipher suites are cut.
const MAX_NAME_CHARS: usize = 64;

/// Each flow's cipher suite, and whether an assumption about its session was reported.
#[derive(Debug, Default)]
pub(crate) struct CipherSuites {
    flows: BTreeMap<u64, FlowSuite>,
    /// The flows, oldest first.
    order: VecDeque<u64>,
    /// How many flows were evicted.
    pub(crate) evicted: u64,
}

#[derive(Debug, Default)]
struct FlowSuite {
    name: Option<Box<str>>,
    is_reported: bool,
    /// Whether it was reported that the model cannot be asked of the session.
    is_refused: bool,
    /// Of a session whose handshake was not captured.
    evidence: LengthEvidence,
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

    /// Whether an assumption about a flow's session was reported.
    pub(crate) fn is_reported(&self, flow: u64) -> bool {
        self.flows.get(&flow).is_some_and(|suite| suite.is_reported)
    }

    pub(crate) fn set_reported(&mut self, flow: u64) {
        self.entry(flow).is_reported = true;
    }

    /// Notes that the model cannot be asked of a flow's session; returns whether that is to be reported.
    pub(crate) fn refuse(&mut self, flow: u64) -> bool {
        !std::mem::replace(&mut self.entry(flow).is_refused, true)
    }

    /// Whether it was found that the model cannot be asked of a flow's session.
    pub(crate) fn is_refused(&self, flow: u64) -> bool {
        self.flows.get(&flow).is_some_and(|suite| suite.is_refused)
    }

    /// What the lengths of a flow's records say about its suite.
    pub(crate) fn evidence(&mut self, flow: u64) -> &mut LengthEvidence {
        &mut self.entry(flow).evidence
    }

    fn entry(&mut self, flow: u64) -> &mut FlowSuite {
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
        suites.set_reported(1);
        assert!(suites.is_reported(1) && !suites.is_reported(2));
        suites.update(1, Some("X"));
        assert_eq!((suites.of_flow(1), suites.of_flow(2)), (Some("X"), None));
        assert!(!suites.is_reported(1));
        suites.set_reported(1);
        suites.update(1, Some("X"));
        assert!(suites.is_reported(1), "a reconnect with the same suite");
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
