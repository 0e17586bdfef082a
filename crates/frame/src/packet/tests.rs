//! What goes into a batch, against what comes out.

use proptest::prelude::*;

use super::*;

/// What comes before a packet: time, and whether its number, capture, link type and buffer follow.
type Step = (i64, [bool; 4]);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let after =
        prop_oneof![8 => 0i64..2_000_000_000, 1 => -5i64..0, 1 => Just(i64::MAX), 1 => Just(i64::from(u32::MAX) + 1)];
    let follows = prop::array::uniform4(prop::bool::weighted(0.85));
    prop::collection::vec((after, follows), 0..60)
}

/// A batch, and the packets that were put into it.
fn batch<'a>(steps: &[Step], buffers: &'a [Arc<Vec<u8>>; 2]) -> (Packets, Vec<Packet<'a>>) {
    let (mut batch, mut all, mut of) = (Packets::new(), Vec::new(), 0);
    let mut packet = Packet { time_ns: 0, link_type: 1, original_length: 0, data: &[], capture: 0, number: 1 };
    for (at, (after, [number, capture, link_type, buffer])) in steps.iter().enumerate() {
        packet.time_ns = packet.time_ns.wrapping_add(*after);
        packet.number = if *number { packet.number.wrapping_add(1) } else { packet.number.wrapping_mul(u64::MAX / 3) };
        packet.capture += u32::from(!capture);
        packet.link_type ^= u16::from(!link_type);
        of ^= usize::from(!buffer);
        packet.data = &buffers[of][at..2 * at];
        packet.original_length = 2000 - at as u32;
        all.push(packet);
        if at.is_multiple_of(13) { batch.push(packet) } else { batch.push_shared(packet, &buffers[of]) }
    }
    (batch, all)
}

proptest! {
    #[test]
    fn what_packets_have_in_common_is_kept_once(steps in steps(), ahead in 1usize..9) {
        let buffers = [3, 5].map(|factor| Arc::new((0..200).map(|at| (at * factor) as u8).collect::<Vec<_>>()));
        let (mut batch, all) = batch(&steps, &buffers);
        prop_assert!(batch.iter().eq(all.iter().copied()));
        prop_assert_eq!(batch.iter().len(), all.len());
        let mut rest = batch.iter();
        for (at, packet) in all.iter().enumerate() {
            prop_assert_eq!(rest.peek(), Some(*packet));
            let later = rest.data_ahead(ahead);
            prop_assert!(later.is_empty() || later == all[at + ahead].data);
            rest.pass();
        }
        prop_assert_eq!((rest.peek(), rest.data_ahead(0).len()), (None, 0));
        batch.detach();
        prop_assert!(batch.iter().eq(all.iter().copied()));
        prop_assert!(!batch.shares_buffers());
        if let Some(last) = all.last() {
            batch.push(*last);
            prop_assert_eq!(batch.iter().last(), Some(*last));
        }
    }
}

#[test]
fn a_row_is_a_quarter_of_a_cache_line() {
    assert_eq!(size_of::<Row>(), 16);
}
