//! Messages sized by the lengths of segments, where no record header can be read: the capture holds headers alone, or
//! the connection carries no TLS.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, PerDirection};

use crate::chunk::Chunk;

/// How long the rest of a write may take, in nanoseconds: a sender that has more to send waits for an acknowledgement
/// at most.
const WRITE_GAP_NS: i64 = 250_000_000;

/// The least payload of a full segment (RFC 9293, section 3.7.1), and the most over Ethernet; longer ones were joined
/// before they were captured.
const FULL_BYTES: std::ops::RangeInclusive<u64> = 536..=1500;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum MessageEnd {
    /// The end of a write: a segment that its sender pushes. One that is full or not pushed is continued by the next.
    Write,
    /// A silence of more than `gap_ns` nanoseconds, or data of the other side.
    Silence { gap_ns: i64 },
}

/// A message: consecutive bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SizedMessage {
    /// When its first and its last bytes were captured, in nanoseconds since the epoch.
    pub(crate) start_ns: i64,
    pub(crate) time_ns: i64,
    pub(crate) bytes: u64,
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct ConnectionMessages {
    /// Finds the messages of each direction, if they are to be used.
    pub(crate) sizers: PerDirection<Option<MessageSizer>>,
    /// What was reported to stand for records, once something was.
    pub(crate) reported: Option<MessageEnd>,
    pub(crate) turns: HandshakeTurns,
}

impl ConnectionMessages {
    pub(crate) fn both(end: MessageEnd) -> Box<Self> {
        let sizers = PerDirection::same(end).map(|end| Some(MessageSizer::new(end)));
        Box::new(Self { sizers, ..Self::default() })
    }

    pub(crate) fn is_new(&mut self, end: MessageEnd) -> bool {
        self.reported.replace(end) != Some(end)
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct MessageSizer {
    pub(crate) end: MessageEnd,
    open: Option<SizedMessage>,
    /// The payload of a full segment, once one was seen.
    full_bytes: u64,
    /// Whether the sender marks the ends of its writes.
    pushes: bool,
    pub(crate) taken: u64,
}

impl MessageSizer {
    pub(crate) fn new(end: MessageEnd) -> Self {
        Self { end, open: None, full_bytes: 0, pushes: false, taken: 0 }
    }

    /// Takes the next bytes; returns the message that they show to be over, and the one that they complete.
    pub(crate) fn chunk(&mut self, chunk: &Chunk<'_>) -> [Option<SizedMessage>; 2] {
        let bytes = chunk.length();
        if bytes == 0 {
            return [None; 2];
        }
        let is_over = self.deadline_ns().is_some_and(|deadline_ns| chunk.time_ns >= deadline_ns);
        let over = self.open.take_if(|_| is_over);
        self.taken = self.taken.saturating_add(bytes);
        let is_continued = self.is_continued(chunk);
        let open = self.open.get_or_insert(SizedMessage { start_ns: chunk.time_ns, time_ns: chunk.time_ns, bytes: 0 });
        (open.time_ns, open.bytes) = (chunk.time_ns, open.bytes.saturating_add(bytes));
        [over, if is_continued { None } else { self.open.take() }]
    }

    /// Passes over missing bytes; zero stands for an unknown number. Inside a message they are a part of it.
    pub(crate) fn gap(&mut self, bytes: u64, time_ns: i64) -> Option<SizedMessage> {
        let is_over = bytes == 0 || self.deadline_ns().is_some_and(|deadline_ns| time_ns >= deadline_ns);
        if is_over {
            return self.open.take();
        }
        if let Some(open) = &mut self.open {
            open.bytes = open.bytes.saturating_add(bytes);
        }
        None
    }

    pub(crate) fn end(&mut self) -> Option<SizedMessage> {
        self.open.take()
    }

    /// From when on the open message is over unless more of it has come.
    pub(crate) fn deadline_ns(&self) -> Option<i64> {
        let gap_ns = match self.end {
            MessageEnd::Write => WRITE_GAP_NS,
            MessageEnd::Silence { gap_ns } => gap_ns,
        };
        self.open.map(|open| open.time_ns.saturating_add(gap_ns).saturating_add(1))
    }

    pub(crate) fn held_bytes(&self) -> usize {
        if self.open.is_some() { size_of::<Self>() } else { 0 }
    }

    pub(crate) fn go_back(&mut self, time_ns: i64) {
        if let Some(open) = &mut self.open {
            (open.start_ns, open.time_ns) = (open.start_ns.min(time_ns), open.time_ns.min(time_ns));
        }
    }

    fn is_continued(&mut self, chunk: &Chunk<'_>) -> bool {
        if self.end != MessageEnd::Write || !chunk.ends_segment {
            return true;
        }
        let bytes = chunk.length();
        if chunk.is_pushed {
            self.pushes = true;
            // Some senders push every segment.
            return self.full_bytes > 0 && bytes.is_multiple_of(self.full_bytes);
        }
        if FULL_BYTES.contains(&bytes) {
            self.full_bytes = self.full_bytes.max(bytes);
        }
        self.pushes || bytes >= *FULL_BYTES.start()
    }
}

/// Counts how often the sides of a connection have taken turns.
///
/// Up to TLS 1.2 a full handshake takes four turns: the client's hello, the server's flight, the client's key exchange
/// and `Finished`, the server's `Finished`. With TLS 1.3, and where a session is resumed, data may follow in the third
/// turn already; in the fourth there is often a session ticket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HandshakeTurns {
    turns: u8,
    last: Option<Direction>,
}

impl HandshakeTurns {
    /// Takes the next message; returns whether it belongs to the handshake: one of the first three turns, or the first
    /// message of the fourth.
    pub(crate) fn message(&mut self, direction: Direction) -> bool {
        let is_new = self.last.replace(direction) != Some(direction);
        self.turns = self.turns.saturating_add(u8::from(is_new));
        self.turns <= 3 || (self.turns == 4 && is_new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(time_ms: i64, bytes: u32, is_pushed: bool) -> Chunk<'static> {
        let fragment = Chunk::fragment(time_ms * 1_000_000, &[]);
        Chunk { hidden: bytes, starts_segment: true, ends_segment: true, is_pushed, ..fragment }
    }

    /// The bytes of the messages in these segments: milliseconds, bytes, and whether they are pushed.
    fn sizes(end: MessageEnd, segments: &[(i64, u32, bool)]) -> Vec<u64> {
        let mut sizer = MessageSizer::new(end);
        let found =
            segments.iter().flat_map(|(time_ms, bytes, pushed)| sizer.chunk(&segment(*time_ms, *bytes, *pushed)));
        let found: Vec<u64> = found.flatten().map(|message| message.bytes).collect();
        found.into_iter().chain(sizer.end().map(|message| message.bytes)).collect()
    }

    #[test]
    fn pushed_segments_are_messages_of_their_own() {
        assert_eq!(
            sizes(MessageEnd::Write, &[(0, 31, true), (0, 213, true), (1, 853, true), (1, 31, true)]),
            [31, 213, 853, 31]
        );
    }

    #[test]
    fn full_segments_are_continued_by_the_next() {
        let segments = [(0, 1436, false), (1, 1436, false), (2, 580, true), (3, 1436, true), (4, 96, true)];
        assert_eq!(sizes(MessageEnd::Write, &segments), [3452, 1532]);
        let joined = [(0, 1436, false), (1, 4308, true), (2, 7, true), (3, 4300, true), (4, 7, true)];
        assert_eq!(sizes(MessageEnd::Write, &joined), [5751, 4300, 7], "segments that were joined before the capture");
        assert_eq!(sizes(MessageEnd::Write, &[(0, 1436, false), (300, 96, true)]), [1436, 96], "but not much later");
    }

    #[test]
    fn writes_that_are_never_pushed_end_with_a_segment_that_is_not_full() {
        assert_eq!(
            sizes(MessageEnd::Write, &[(0, 31, false), (1, 90, false), (2, 1400, false), (3, 5, false)]),
            [31, 90, 1405]
        );
    }

    #[test]
    fn burst_ends_with_a_silence() {
        let end = MessageEnd::Silence { gap_ns: 40_000_000 };
        assert_eq!(sizes(end, &[(0, 10, true), (40, 20, false), (80, 1, true), (121, 5, true)]), [31, 5]);
        let always_now = MessageEnd::Silence { gap_ns: 0 };
        assert_eq!(sizes(always_now, &[(7, 10, true), (7, 20, true), (8, 5, true)]), [30, 5]);
    }

    #[test]
    fn missing_bytes_inside_a_message_are_a_part_of_it() {
        let mut sizer = MessageSizer::new(MessageEnd::Write);
        assert_eq!(sizer.gap(100, 0), None, "of what message they are is not known");
        sizer.chunk(&segment(1, 1400, false));
        assert_eq!(sizer.gap(1400, 2_000_000), None);
        let [_, whole] = sizer.chunk(&segment(3, 200, true));
        assert_eq!(whole.map(|message| message.bytes), Some(3000));
        sizer.chunk(&segment(4, 1400, false));
        assert_eq!(sizer.gap(0, 5_000_000).map(|message| message.bytes), Some(1400), "how many is not known");
    }

    #[test]
    fn three_turns_and_the_message_after_them_are_the_handshake() {
        let (to, from) = (Direction::ToGateway, Direction::FromGateway);
        let mut turns = HandshakeTurns::default();
        let found: Vec<bool> =
            [from, to, to, from, from, from, to, to, from, to].map(|direction| turns.message(direction)).into();
        assert_eq!(found, [true, true, true, true, true, true, true, false, false, false]);
    }
}
