//! Packets gathered at once, against packets taken one by one.

use proptest::prelude::*;
use sizeleak_packet::Networks;

use super::*;

const GATEWAY: [u8; 4] = [192, 168, 1, 20];

/// A packet as the capture of these tests holds it: time, length and original length before the data.
fn first(bytes: &[u8]) -> Option<(CapturedPacket<'_>, &[u8])> {
    let (time, behind) = bytes.split_first_chunk::<8>()?;
    let (length, behind) = behind.split_first_chunk::<4>()?;
    let (original, behind) = behind.split_first_chunk::<4>()?;
    let (data, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let original_length = u32::from_le_bytes(*original);
    Some((CapturedPacket { time_ns: i64::from_le_bytes(*time), link_type: 1, original_length, data }, behind))
}

/// A packet of TCP in IPv4, of this length.
fn record(time_ns: i64, source: [u8; 4], length: usize, original: usize) -> Vec<u8> {
    let mut data = vec![0; length.max(54)];
    data[12..15].copy_from_slice(&[8, 0, 0x45]);
    data[23] = 6;
    data[26..30].copy_from_slice(&source);
    let lengths = [data.len() as u32, original as u32].map(u32::to_le_bytes);
    [&time_ns.to_le_bytes()[..], lengths.as_flattened(), &data].concat()
}

fn filling(batches: BatchLimit) -> PacketBatcher {
    let networks = Networks::parse(&["192.168.1.20".to_owned()]).unwrap();
    PacketBatcher::new(Selection::For(AddressPrefilter::new(networks), batches), Keeping::Shared)
}

/// The batches of packets captured before `before_ns`, gathered at once.
fn gathered(bytes: &Arc<Vec<u8>>, before_ns: i64, mut filling: PacketBatcher) -> (Vec<Packets>, Counts) {
    let (mut batches, mut rest, mut number) = (Vec::new(), &bytes[..], 0);
    loop {
        let (behind, taken) = filling.gather(rest, &Stretch { before_ns, capture: 0, number }, bytes, first);
        (rest, number) = (behind, number + taken);
        if !filling.is_due() {
            batches.extend(filling.finish());
            return (batches, filling.counts);
        }
        batches.extend(filling.finish());
    }
}

/// The same, packet by packet.
fn taken(mut bytes: &[u8], before_ns: i64, mut filling: PacketBatcher) -> (Vec<Packets>, Counts) {
    let (mut batches, mut number) = (Vec::new(), 0);
    while let Some((CapturedPacket { time_ns, link_type, original_length, data }, behind)) = first(bytes)
        && time_ns < before_ns
    {
        (bytes, number) = (behind, number + 1);
        filling.take_copy(Packet { time_ns, link_type, original_length, data, capture: 0, number });
        if filling.is_due() {
            batches.extend(filling.finish());
        }
    }
    batches.extend(filling.finish());
    (batches, filling.counts)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Wherever batches end, what is gathered at once is what is taken packet by packet.
    #[test]
    fn gathering_is_taking_one_by_one(
        runs in prop::collection::vec((0usize..6000, 0usize..3, 54usize..200), 1..6),
        of_process: bool, before in prop::option::of(0i64..8000),
    ) {
        let mut bytes = Vec::new();
        let mut time_ns = 0;
        for (foreign, own, length) in runs {
            for of_run in 0..foreign + own {
                let source = if of_run < foreign { [10, 0, 0, 1] } else { GATEWAY };
                bytes.extend(record(time_ns, source, length + of_run % 7, length + 3));
                time_ns += 1;
            }
        }
        let (bytes, before_ns) = (Arc::new(bytes), before.unwrap_or(i64::MAX));
        let batches = if of_process { BatchLimit::InProcess } else { BatchLimit::Contract };
        let (at_once, counts) = gathered(&bytes, before_ns, filling(batches));
        let (one_by_one, others) = taken(&bytes, before_ns, filling(batches));
        prop_assert!(at_once == one_by_one, "{at_once:?} {one_by_one:?}");
        prop_assert_eq!((counts.packets, counts.snaplen_cut), (others.packets, others.snaplen_cut));
    }
}
