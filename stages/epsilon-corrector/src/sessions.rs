//! What handshakes showed of the sessions that commands travel in, as far as it matters here: bounded, whatever comes.

use std::collections::{BTreeMap, VecDeque};

/// Flows of which something is remembered; of more, the one first heard of is forgotten.
const MAX_FLOWS: usize = 100_000;

/// Names of cipher suites are shorter.
const MAX_NAME: usize = 64;

/// Cipher suites by flow, and of which flows an assumption was told.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    flows: BTreeMap<u64, Flow>,
    /// In the order first heard of.
    order: VecDeque<u64>,
    pub(crate) forgotten: u64,
}

#[derive(Debug, Default)]
struct Flow {
    cipher_suite: Option<Box<str>>,
    told: bool,
}

impl Sessions {
    /// Takes note of a session; it replaces the flow's last one.
    pub(crate) fn begin(&mut self, flow: u64, cipher_suite: Option<&str>) {
        let known = self.flow(flow);
        known.told &= known.cipher_suite.as_deref() == cipher_suite;
        known.cipher_suite = cipher_suite.map(|name| name.chars().take(MAX_NAME).collect());
    }

    /// The cipher suite of a flow's session, where its handshake was seen.
    pub(crate) fn cipher_suite(&self, flow: u64) -> Option<&str> {
        self.flows.get(&flow)?.cipher_suite.as_deref()
    }

    /// Whether something is told of a flow's session for the first time.
    pub(crate) fn is_news(&mut self, flow: u64) -> bool {
        !std::mem::replace(&mut self.flow(flow).told, true)
    }

    fn flow(&mut self, flow: u64) -> &mut Flow {
        if !self.flows.contains_key(&flow) {
            if self.flows.len() >= MAX_FLOWS
                && let Some(oldest) = self.order.pop_front()
            {
                self.flows.remove(&oldest);
                self.forgotten += 1;
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
    fn a_new_session_is_news_again() {
        let mut sessions = Sessions::default();
        assert!(sessions.is_news(1) && !sessions.is_news(1) && sessions.is_news(2));
        sessions.begin(1, Some("X"));
        assert_eq!((sessions.cipher_suite(1), sessions.cipher_suite(2)), (Some("X"), None));
        assert!(sessions.is_news(1) && !sessions.is_news(1));
        sessions.begin(1, Some("X"));
        assert!(!sessions.is_news(1), "a reconnect with the same suite");
    }

    #[test]
    fn memory_is_bounded() {
        let mut sessions = Sessions::default();
        for flow in 0..MAX_FLOWS as u64 + 10 {
            sessions.begin(flow, Some(&"é".repeat(1000)));
        }
        assert_eq!((sessions.flows.len(), sessions.order.len(), sessions.forgotten), (MAX_FLOWS, MAX_FLOWS, 10));
        assert_eq!(sessions.cipher_suite(9), None);
        assert_eq!(sessions.cipher_suite(10).map(|name| name.chars().count()), Some(MAX_NAME));
    }
}
