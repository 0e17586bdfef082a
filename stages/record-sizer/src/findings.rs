//! What was found in the segments of a connection: TLS events, and incidents to report or count; what the stage counts,
//! and how much payload was used.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, Protocol, Segment};
use sizeleak_platform::counters;

use crate::handshake::Hello;
use crate::message::FlowEvent;
use crate::messages::MessageEnd;
use crate::record::SizedRecord;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TlsEvent {
    pub(crate) direction: Direction,
    pub(crate) time_ns: i64,
    pub(crate) kind: EventKind,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum EventKind {
    /// A hello is complete; `follows_data` if application data came before it in the same stream.
    Hello {
        hello: Box<Hello>,
        follows_data: bool,
    },
    Record(SizedRecord),
    /// A message of another protocol or one of which no record header was read, or what belongs to it.
    Other(FlowEvent),
}

impl TlsEvent {
    /// Whether it is a burst of segments, which stands for a record only where there are none.
    pub(crate) fn is_burst(&self) -> bool {
        matches!(&self.kind, EventKind::Other(FlowEvent::Message(message)) if message.protocol == Protocol::Tcp)
    }
}

/// A fault of the capture or of the traffic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Incident {
    /// Bytes are missing; zero where their number is unknown.
    Gap {
        bytes: u64,
    },
    /// The gap that was reported last, of this number of bytes, was none: its bytes come next.
    NotMissing {
        bytes: u64,
    },
    Retransmitted,
    OutOfOrder,
    /// Record boundaries were found again after `skipped` captured bytes.
    Resync {
        skipped: u64,
    },
    Conflict(Conflict),
    /// This number of bytes of payload claimed a place in the stream that nothing confirmed. They are not used.
    Unconfirmed {
        bytes: u64,
    },
    /// No record header where one should be.
    Malformed,
    NotTls,
    OpenVpn,
    /// Messages are sized by the lengths of segments, and end so.
    SizedBySegments(MessageEnd),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conflict {
    /// A retransmission differs from the bytes it repeats, which stay.
    Kept,
    /// A retransmission differs from the bytes it repeats, and is used from there on: its bytes come next.
    Replaced,
    Hello,
}

/// What one segment led to; its memory is reused for the next.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    pub(crate) events: Vec<TlsEvent>,
    pub(crate) incidents: Vec<(i64, Incident)>,
    /// The bytes that were read, where somebody wants to know.
    pub(crate) read: Option<Vec<ReadBytes>>,
}

/// Sorts the events of both directions by time; those of one direction keep their order.
pub(crate) fn merge_directions(events: Vec<TlsEvent>) -> Vec<TlsEvent> {
    let (mut to_gateway, mut from_gateway) = (i64::MIN, i64::MIN);
    let timed = events.into_iter().map(|event| {
        let latest = if event.direction == Direction::ToGateway { &mut to_gateway } else { &mut from_gateway };
        *latest = event.time_ns.max(*latest);
        (*latest, event)
    });
    let mut timed: Vec<_> = timed.collect();
    timed.sort_by_key(|(latest, _)| *latest);
    timed.into_iter().map(|(_, event)| event).collect()
}

/// Bytes of one direction of a TCP stream that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBytes {
    pub direction: Direction,
    pub sequence: u32,
    pub bytes: Box<[u8]>,
}

counters! {
    SizerCounters
    first {
        /// Segments and datagrams; not part of `summary`.
        pub(crate) segments: u64,
    }
    // Flows found with times that the rest of the traffic contradicts, and how often all times went back; records that
    // stand for segments of which no header was captured, and for bursts without TLS; messages that are missing by their
    // numbers.
    rare { odd_times clock_steps segment_records burst_records missing_messages }
    counted {
        records sessions retransmitted out_of_order conflicts gaps gap_bytes resyncs skipped_bytes malformed not_tls
        truncated unconfirmed_bytes payload_bytes lost_bytes worst_loss_millionths hidden_bytes datagrams
        other_datagrams evicted_flows idle_flows evicted_bytes
    }
    last {}
}

impl SizerCounters {
    #[inline]
    pub(crate) fn segment(&mut self, segment: &Segment<'_>) {
        self.segments += 1;
        let hidden = u64::from(segment.length).saturating_sub(segment.payload.len() as u64);
        self.hidden_bytes = self.hidden_bytes.saturating_add(hidden);
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PayloadUse {
    /// Bytes of its streams, captured or not, and of packets that nothing confirmed. Where a gap has no known length,
    /// what is missing does not count.
    pub(crate) sent: u64,
    /// Those of them that belong to no record or message, since its header is missing, hidden, or was not found.
    pub(crate) lost: u64,
}

impl PayloadUse {
    /// Adds bytes that belong to nothing so far.
    pub(crate) fn lose(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// Takes bytes back that belong to a record after all.
    pub(crate) fn find(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_sub(bytes);
    }

    /// Adds bytes of which it is not known whether they belong to it.
    pub(crate) fn doubt(&mut self, bytes: u64) {
        self.sent = self.sent.saturating_add(bytes);
        self.lose(bytes);
    }

    pub(crate) fn lost_millionths(self) -> u64 {
        let whole = u128::from(self.sent.max(self.lost)).max(1);
        (u128::from(self.lost) * 1_000_000 / whole) as u64
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::ContentType;

    use super::*;
    use crate::record::Header;

    #[test]
    fn merged_events_are_sorted_by_time_and_keep_the_order_within_a_direction() {
        let event = |direction, time_ns| {
            let header = Header { content_type: ContentType::ApplicationData, minor: 3, length: 9 };
            TlsEvent { direction, time_ns, kind: EventKind::Record(SizedRecord { header, start_ns: time_ns, time_ns }) }
        };
        let (to, from) = (Direction::ToGateway, Direction::FromGateway);
        let events = vec![event(to, 5), event(to, 4), event(to, 9), event(from, 3), event(from, 6)];
        let times: Vec<i64> = merge_directions(events).iter().map(|event| event.time_ns).collect();
        assert_eq!(times, [3, 5, 4, 6, 9]);
    }

    #[test]
    fn share_is_at_most_all() {
        let share = |sent, lost| PayloadUse { sent, lost }.lost_millionths();
        assert_eq!(
            (share(0, 0), share(200, 1), share(10, 400), share(u64::MAX, u64::MAX)),
            (0, 5000, 1_000_000, 1_000_000)
        );
    }
}
