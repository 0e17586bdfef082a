//! The state of a UDP flow: DTLS and its session, or something else.

use serde::{Deserialize, Serialize};
use sizeleak_frame::Segment;

use crate::dtls::{DtlsRecord, ReplayWindow, dtls_records, is_quic};
use crate::per_direction::PerDirection;
use crate::session::{Negotiation, TlsSession};
use crate::session_keys::SessionKeys;

/// A UDP flow that carries DTLS or QUIC.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct UdpFlow {
    keys: SessionKeys,
    negotiation: Negotiation,
    seen: PerDirection<ReplayWindow>,
    is_quic: bool,
}

/// What a datagram holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DatagramContent {
    /// DTLS records; those seen before are left out.
    Dtls(Vec<DtlsRecord>),
    /// The first packet of a QUIC connection.
    NewQuic,
    /// Anything else, further packets of QUIC included.
    Other,
}

impl UdpFlow {
    /// Whether the flow of a datagram is worth keeping.
    pub(crate) fn is_recognised(datagram: &Segment<'_>) -> bool {
        is_quic(datagram.payload) || dtls_records(datagram.payload, datagram.length).is_some()
    }

    /// Whether a flow can be in this state.
    pub(crate) fn is_valid(&self) -> bool {
        self.keys.is_valid() && self.negotiation.is_valid()
    }

    /// Takes a datagram.
    pub(crate) fn datagram(&mut self, datagram: &Segment<'_>) -> DatagramContent {
        if let Some(mut records) = dtls_records(datagram.payload, datagram.length) {
            let window = self.seen.of_mut(datagram.direction);
            records.retain(|record| window.insert(record.epoch, record.number));
            return DatagramContent::Dtls(records);
        }
        if !self.is_quic && is_quic(datagram.payload) {
            self.is_quic = true;
            return DatagramContent::NewQuic;
        }
        DatagramContent::Other
    }

    /// The session between the two ends.
    pub(crate) fn session(&mut self) -> TlsSession<'_> {
        TlsSession { keys: &mut self.keys, negotiation: &mut self.negotiation }
    }
}
