//! Filling a batch from a buffer equals pushing packets one by one.

use proptest::prelude::*;
use sizeleak_frame::{BatchLimit, Packet, Packets};

use super::*;
use crate::packet_batcher::{PacketCounts, Selection};
use crate::testing::{GATEWAY, OTHER, prefilter, tcp_packet};

/// Parses the capture format of these tests: time, length and original length before the data.
fn parse(bytes: &[u8]) -> Option<(CapturedPacket<'_>, &[u8])> {
    let (time, behind) = bytes.split_first_chunk::<8>()?;
    let (length, behind) = behind.split_first_chunk::<4>()?;
    let (original, behind) = behind.split_first_chunk::<4>()?;
    let (data, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let original_length = u32::from_le_bytes(*original);
    Some((CapturedPacket { time_ns: i64::from_le_bytes(*time), link_type: 1, original_length, data }, behind))
}

fn record(time_ns: i64, source: [u8; 4], length: usize, original: usize) -> Vec<u8> {
    let data = tcp_packet(source, length, 0);
    let lengths = [data.len() as u32, original as u32].map(u32::to_le_bytes);
    [&time_ns.to_le_bytes()[..], lengths.as_flattened(), &data].concat()
}

/// The batches of packets before `before_ns`, filled from the buffer.
fn filled(bytes: &Arc<Vec<u8>>, before_ns: i64, mut batcher: PacketBatcher) -> (Vec<Packets>, PacketCounts) {
    let (mut sent, mut rest, mut number) = (Vec::new(), &bytes[..], 0);
    loop {
        let mut filler = BatchFiller { batcher: &mut batcher, before_ns, capture: 0, number };
        let visited = filler.visit(rest, bytes, parse);
        (rest, number) = (&rest[visited.bytes..], number + visited.packets);
        let is_due = batcher.is_due();
        sent.extend(batcher.finish());
        if !is_due {
            return (sent, batcher.counts);
        }
    }
}

/// The same, pushed one by one.
fn pushed(mut bytes: &[u8], before_ns: i64, mut batcher: PacketBatcher) -> (Vec<Packets>, PacketCounts) {
    let (mut sent, mut number) = (Vec::new(), 0);
    while let Some((CapturedPacket { time_ns, link_type, original_length, data }, behind)) = parse(bytes)
        && time_ns < before_ns
    {
        (bytes, number) = (behind, number + 1);
        batcher.push(Packet { time_ns, link_type, original_length, data, capture: 0, number }, None);
        if batcher.is_due() {
            sent.extend(batcher.finish());
        }
    }
    sent.extend(batcher.finish());
    (sent, batcher.counts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn filling_equals_pushing_one_by_one(
        runs in prop::collection::vec((0usize..6000, 0usize..3, 54usize..200), 1..6),
        selection in 0..4, before in prop::option::of(0i64..8000),
    ) {
        let mut bytes = Vec::new();
        let mut time_ns = 0;
        for (foreign, own, length) in runs {
            for number in 0..foreign + own {
                let source = if number < foreign { OTHER } else { GATEWAY };
                bytes.extend(record(time_ns, source, length + number % 7, length + 3));
                time_ns += 1;
            }
        }
        let (bytes, before_ns) = (Arc::new(bytes), before.unwrap_or(i64::MAX));
        let batcher = || {
            let selection = match selection {
                0 => Selection::All,
                1 => Selection::Only(prefilter()),
                2 => Selection::NotDropped(prefilter(), BatchLimit::Contract),
                _ => Selection::NotDropped(prefilter(), BatchLimit::InProcess),
            };
            PacketBatcher::new(selection)
        };
        let fast = filled(&bytes, before_ns, batcher());
        let plain = pushed(&bytes, before_ns, batcher());
        prop_assert!(fast == plain, "{fast:?} {plain:?}");
    }
}
