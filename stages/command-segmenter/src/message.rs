//! Messages that were cut into records: all but the last record are as long as records get.

use crate::flow_history::{FlowHistory, SizedRecord};
use crate::periodic::Arrival;

/// A length that others followed at once less often may be that of a whole message.
const MIN_FOLLOWED: u32 = 3;

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FullLength {
    length: u32,
    followed: u32,
}

impl FullLength {
    pub(crate) fn add(&mut self, length: u32) {
        if length > self.length {
            *self = Self { length, followed: 0 };
        }
        if length == self.length {
            self.followed = self.followed.saturating_add(1);
        }
    }

    /// Whether records of a length are as long as records get.
    pub(crate) fn is(self, length: u32) -> bool {
        self.length == length && self.followed >= MIN_FOLLOWED
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct ReassembledMessage {
    pub(crate) size: u32,
    pub(crate) arrival: Arrival,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Reassembly {
    /// The record's message so far.
    pub(crate) message: ReassembledMessage,
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
    /// The message before, if it turns out to have ended with a full record.
    pub(crate) ended: Option<ReassembledMessage>,
}

/// Reassembles the messages of a flow. It holds the message that a full record, the last of the flow, is part of.
#[derive(Debug, Default)]
pub(crate) struct MessageReassembler(Option<ReassembledMessage>);

impl MessageReassembler {
    /// Adds the flow's next record to its message. `full` is the size of a record that the next one continues, if
    /// messages of this direction are cut.
    #[inline]
    pub(crate) fn add(
        &mut self,
        sized: SizedRecord<'_>,
        history: &FlowHistory,
        full: Option<u32>,
        within_ns: i64,
    ) -> Reassembly {
        let SizedRecord { record, size, .. } = sized;
        let may_continue = full.is_some_and(|full| size <= full) && history.is_continued_by(record, within_ns);
        let last = self.0.take();
        let (before, ended) = if may_continue { (last, None) } else { (None, last) };
        let message = match before {
            Some(before) => ReassembledMessage { size: before.size.saturating_add(size), ..before },
            None => ReassembledMessage { size, arrival: history.arrival(record) },
        };
        let is_full = full == Some(size);
        self.0 = is_full.then_some(message);
        Reassembly { message, is_first: before.is_none(), is_last: !is_full, ended }
    }
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::Record;

    use super::*;
    use crate::flow_history::SizeClass;
    use crate::testing::{MS, from, to};

    /// Whether a record begins its message, and whether it ends it.
    const FIRST: [bool; 2] = [true, false];
    const MIDDLE: [bool; 2] = [false, false];
    const LAST: [bool; 2] = [false, true];
    const WHOLE: [bool; 2] = [true, true];

    /// The sizes of messages so far with the parts that the records are, and the sizes of messages that ended with a
    /// full record. `full` is the size of a full record of each.
    fn reassemble(records: &[(Record, Option<u32>)]) -> (Vec<(u32, [bool; 2])>, Vec<u32>) {
        let (mut history, mut reassembler) = (FlowHistory::default(), MessageReassembler::default());
        let mut ended_sizes = Vec::new();
        let add = |(record, full): &(Record, Option<u32>)| {
            let sized = SizedRecord::new(record, SizeClass::Full);
            let Reassembly { message, is_first, is_last, ended } = reassembler.add(sized, &history, *full, 40 * MS);
            ended_sizes.extend(ended.map(|ended| ended.size));
            history.remember(sized, 10 * MS);
            (message.size, [is_first, is_last])
        };
        (records.iter().map(add).collect(), ended_sizes)
    }

    #[test]
    fn full_records_are_continued_by_the_next_of_their_direction_within_the_gap() {
        let records = [to(0, 76), to(5, 76), to(6, 20), to(7, 20), to(9, 76), from(10, 20), to(11, 76), to(90, 30)];
        let expected = [
            (100, FIRST),
            (200, MIDDLE),
            (244, LAST),
            (44, WHOLE),
            (100, FIRST),
            (44, WHOLE),
            (100, FIRST),
            (54, WHOLE),
        ];
        let (sizes, ended) = reassemble(&records.map(|record| (record, Some(100))));
        assert_eq!(sizes, expected);
        assert_eq!(ended, [100, 100]);
        let (sizes, _) = reassemble(&[to(0, 76), to(1, 90)].map(|record| (record, Some(100))));
        assert_eq!(sizes[1], (114, WHOLE), "no record of a cut message is longer than a full one");
    }

    #[test]
    fn a_record_of_a_direction_without_cuts_ends_the_open_message_once() {
        let (sizes, ended) = reassemble(&[(to(0, 76), Some(100)), (from(1, 76), None), (from(2, 76), None)]);
        assert_eq!(sizes.iter().map(|(_, part)| *part).collect::<Vec<_>>(), [FIRST, WHOLE, WHOLE]);
        assert_eq!(ended, [100]);
    }
}
