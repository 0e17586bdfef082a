//! The TLS session of a flow of datagrams, as DTLS and QUIC have one, and whether it was reported.

use serde::{Deserialize, Serialize};
use sizeleak_frame::Protocol;

use crate::message::{FlowEvent, Found};
use crate::session::{Negotiation, TlsSession};
use crate::session_keys::SessionKeys;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct DatagramSession {
    pub(crate) keys: SessionKeys,
    pub(crate) negotiation: Negotiation,
    pub(crate) is_reported: bool,
}

impl DatagramSession {
    pub(crate) fn tls(&mut self) -> TlsSession<'_> {
        TlsSession { keys: &mut self.keys, negotiation: &mut self.negotiation }
    }

    pub(crate) fn report(&mut self, protocol: Protocol, time_ns: i64, found: &mut Found) {
        self.is_reported = true;
        let session = self.tls().frame(0, time_ns, protocol);
        found.events.push(FlowEvent::Session(Box::new(session)));
    }
}
