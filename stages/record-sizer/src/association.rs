//! One UDP flow: DTLS and its session, or something else.

use sizeleak_frame::Segment;

use crate::datagram::{DatagramRecord, Seen, is_quic, records};
use crate::session::Session;

/// The state of a UDP flow.
#[derive(Debug, Default)]
pub(crate) struct Association {
    pub(crate) session: Session,
    /// By direction, in the order of their numbers.
    seen: [Seen; 2],
    is_quic: bool,
}

/// What a datagram is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Datagram {
    /// DTLS; those of its records that were not seen before.
    Dtls(Vec<DatagramRecord>),
    /// The first of a QUIC connection.
    Quic,
    /// Anything else, QUIC that was recognised before included.
    Other,
}

impl Association {
    /// Whether a datagram is worth remembering its flow.
    pub(crate) fn is_known_kind(segment: &Segment<'_>) -> bool {
        is_quic(segment.payload) || records(segment.payload, segment.length).is_some()
    }

    /// Takes a datagram.
    pub(crate) fn datagram(&mut self, segment: &Segment<'_>) -> Datagram {
        if let Some(mut found) = records(segment.payload, segment.length) {
            if let Some(seen) = self.seen.get_mut(usize::from(segment.direction.number())) {
                found.retain(|record| seen.is_new(record.epoch, record.number));
            }
            return Datagram::Dtls(found);
        }
        if !self.is_quic && is_quic(segment.payload) {
            self.is_quic = true;
            return Datagram::Quic;
        }
        Datagram::Other
    }
}
