//! Messages that were cut into records: all but the last are as long as records get.

use crate::flow_history::{FlowHistory, SizedRecord};
use crate::periodic::Arrival;

/// A message, or what has come of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReassembledMessage {
    pub(crate) size: u32,
    pub(crate) start_ns: i64,
    pub(crate) begun: Arrival,
}

/// What a record is of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MessagePart {
    /// All of it.
    Whole,
    /// The first of several.
    First,
    /// One between.
    Middle,
    /// The last of several.
    Last,
}

impl MessagePart {
    /// Whether the message ends with it.
    pub(crate) fn is_end(self) -> bool {
        matches!(self, Self::Whole | Self::Last)
    }
}

/// What a record comes to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reassembly {
    /// The message so far.
    pub(crate) message: ReassembledMessage,
    pub(crate) piece: MessagePart,
    /// The message before, if that has turned out to have ended with a full record.
    pub(crate) ended: Option<ReassembledMessage>,
}

/// The message that the last record of a flow, a full one, is a piece of.
#[derive(Debug, Default)]
pub(crate) struct MessageReassembler(Option<ReassembledMessage>);

impl MessageReassembler {
    /// Adds the flow's next record to its message. `full` is the size of a record that the next one continues, if the
    /// messages of its direction are cut.
    #[inline]
    pub(crate) fn take(
        &mut self,
        heard: SizedRecord<'_>,
        exchange: &FlowHistory,
        full: Option<u32>,
        within_ns: i64,
    ) -> Reassembly {
        if full.is_some() || self.0.is_some() {
            return self.add(heard, exchange, full, within_ns);
        }
        let SizedRecord { record, size, .. } = heard;
        let message = ReassembledMessage { size, start_ns: record.start_ns, begun: exchange.occurrence(record) };
        Reassembly { message, piece: MessagePart::Whole, ended: None }
    }

    /// The same where messages are cut, or one is unfinished.
    fn add(&mut self, heard: SizedRecord<'_>, exchange: &FlowHistory, full: Option<u32>, within_ns: i64) -> Reassembly {
        let SizedRecord { record, size, .. } = heard;
        let may_continue = full.is_some_and(|full| size <= full) && exchange.followed(record, within_ns).is_some();
        let last = self.0.take();
        let (before, ended) = if may_continue { (last, None) } else { (None, last) };
        let message = ReassembledMessage {
            size: before.map_or(0, |before| before.size).saturating_add(size),
            start_ns: before.map_or(record.start_ns, |before| before.start_ns),
            begun: before.map_or_else(|| exchange.occurrence(record), |before| before.begun),
        };
        let is_full = full == Some(size);
        self.0 = is_full.then_some(message);
        let piece = match (before.is_some(), is_full) {
            (false, false) => MessagePart::Whole,
            (false, true) => MessagePart::First,
            (true, true) => MessagePart::Middle,
            (true, false) => MessagePart::Last,
        };
        Reassembly { message, piece, ended }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Record;

    use super::*;
    use crate::flow_history::SizeClass;
    use crate::testing::{MS, from, to};

    /// The sizes of messages so far, and of those that ended with a full record.
    fn sizes(records: &[Record], full: u32) -> (Vec<(u32, MessagePart)>, Vec<u32>) {
        let (mut exchange, mut unfinished, mut ends) =
            (FlowHistory::default(), MessageReassembler::default(), Vec::new());
        let take = |record: &Record| {
            let heard = SizedRecord::new(record, SizeClass::Full);
            let Reassembly { message, piece, ended } = unfinished.take(heard, &exchange, Some(full), 40 * MS);
            ends.extend(ended.map(|ended| ended.size));
            exchange.remember(heard);
            (message.size, piece)
        };
        (records.iter().map(take).collect(), ends)
    }

    #[test]
    fn full_records_are_continued() {
        let records = [to(0, 76), to(5, 76), to(6, 20), to(7, 20), to(9, 76), from(10, 20), to(11, 76), to(90, 30)];
        let expected = [
            (100, MessagePart::First),
            (200, MessagePart::Middle),
            (244, MessagePart::Last),
            (44, MessagePart::Whole),
            (100, MessagePart::First),
            (44, MessagePart::Whole),
            (100, MessagePart::First),
            (54, MessagePart::Whole),
        ];
        let (sizes_so_far, ends) = sizes(&records, 100);
        assert_eq!(sizes_so_far, expected, "not by the other side, nor after the gap");
        assert_eq!(ends, [100, 100]);
        assert_eq!(
            sizes(&[to(0, 76), to(1, 90)], 100).0[1],
            (114, MessagePart::Whole),
            "none is longer than a full one"
        );
    }

    #[test]
    fn what_is_never_cut_ends_what_the_other_side_had_begun() {
        let (exchange, mut unfinished) = (FlowHistory::default(), MessageReassembler::default());
        let mut take = |record: &Record, full| {
            unfinished.take(SizedRecord::new(record, SizeClass::Full), &exchange, full, 40 * MS)
        };
        assert_eq!(take(&to(0, 76), Some(100)).piece, MessagePart::First);
        let reply = take(&from(1, 76), None);
        assert_eq!((reply.piece, reply.ended.map(|ended| ended.size)), (MessagePart::Whole, Some(100)));
        assert!(take(&from(2, 76), None).ended.is_none(), "once");
    }
}
