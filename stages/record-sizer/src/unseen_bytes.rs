//! What packets without payload say of bytes behind those that were seen of a direction. They may still come, and are given
//! up only with the connection, for one packet alone may be forged; but those that the header of an open record promises
//! as soon as the other side has them.

use serde::{Deserialize, Serialize};
use sizeleak_frame::Segment;

use crate::rivals::WINDOW;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnseenBytes {
    /// The greatest sequence number behind them that their sender gave, up to that of its FIN.
    sent: Option<u32>,
    /// The greatest that another packet of the sender gave, up to that one.
    sent_again: Option<u32>,
    /// Whether that FIN was seen: numbers behind it count it.
    has_ended: bool,
    /// The greatest two numbers that the other side has acknowledged, which may be the same, the greater one first. A number
    /// may count a FIN that was not seen.
    received: [Option<u32>; 2],
    /// When the greatest was seen first.
    pub(crate) received_ns: i64,
}

impl UnseenBytes {
    pub(crate) fn is_empty(self) -> bool {
        self.sent.or(self.sent_again).is_none() && self.is_unanswered()
    }

    pub(crate) fn is_unanswered(self) -> bool {
        self.received == [None; 2]
    }

    pub(crate) fn add_sent(&mut self, segment: &Segment<'_>, next: u32) {
        let is_after = |one: u32, other: u32| one.wrapping_sub(next) > other.wrapping_sub(next);
        let (number, is_fin) = (segment.sequence, segment.flags & Segment::FIN != 0);
        let Some(sent) = self.sent else {
            (self.sent, self.has_ended) = (Some(number), is_fin);
            return;
        };
        let is_greater = is_after(number, sent);
        let takes_place = !self.has_ended && (is_fin || is_greater);
        let lesser = if is_greater { sent } else { number };
        if takes_place {
            (self.sent, self.has_ended) = (Some(number), is_fin);
        }
        self.sent_again = Some(self.sent_again.filter(|again| is_after(*again, lesser)).unwrap_or(lesser));
    }

    pub(crate) fn add_received(&mut self, number: u32, time_ns: i64, next: u32) {
        let [greatest, second] = self.received;
        let is_after =
            |known: Option<u32>| known.is_none_or(|known| number.wrapping_sub(next) >= known.wrapping_sub(next));
        if is_after(greatest) {
            self.received_ns = if greatest == Some(number) { self.received_ns } else { time_ns };
            self.received = [Some(number), greatest];
        } else if is_after(second) {
            self.received = [greatest, Some(number)];
        }
    }

    /// When the other side was seen to have received all before this number, which is near `next`.
    pub(crate) fn received_before(self, number: u32, next: u32) -> Option<i64> {
        let [greatest, _] = self.received;
        (beyond(greatest?, next) >= beyond(number, next)).then_some(self.received_ns)
    }

    pub(crate) fn go_back(&mut self, time_ns: i64) {
        self.received_ns = self.received_ns.min(time_ns);
    }

    /// How many bytes are missing by two packets of their sender, where the capture holds none of the other side.
    pub(crate) fn sent_twice(self, next: u32) -> u64 {
        let [sent, again] = [self.sent, self.sent_again].map(|number| number.map_or(0, |number| beyond(number, next)));
        sent.min(again).max(0).unsigned_abs()
    }

    /// Forgets what the stream has come to, and a number that a FIN alone explains.
    pub(crate) fn forget_before(&mut self, next: u32) {
        let is_ahead = |sent: &u32| beyond(*sent, next) > 0;
        (self.sent, self.sent_again) = (self.sent.filter(is_ahead), self.sent_again.filter(is_ahead));
        self.has_ended &= self.sent.is_some();
        self.received = self.received.map(|number| number.filter(|number| beyond(*number, next) > 1));
    }

    /// How many bytes are missing, by two packets: two of the other side, or one of each. `accepted` is what the other side
    /// has acknowledged with data that was accepted. Without a number of the sender's FIN, a FIN may count as a byte.
    pub(crate) fn missing(self, accepted: Option<u32>, next: u32) -> u64 {
        let count = |number: Option<u32>| number.map_or(0, |number| beyond(number, next).max(0).unsigned_abs());
        let (sent, accepted) = (count(self.sent), count(accepted));
        let [greatest, second] = self.received.map(|number| count(number).max(accepted));
        match greatest.min(sent.max(second)) {
            // With the FIN that was seen.
            missing if sent > 0 && missing == sent + 1 => sent,
            // A FIN, or nothing.
            missing if sent == 0 && missing <= 1 => 0,
            missing => missing,
        }
    }
}

/// By how many bytes a number is beyond the next byte of a stream; 0 or less where it is not, or farther than a window.
pub(crate) fn beyond(number: u32, next: u32) -> i64 {
    let distance = i64::from(number.wrapping_sub(next).cast_signed());
    if distance <= WINDOW { distance } else { 0 }
}
