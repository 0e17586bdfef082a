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

fn buffers() -> [Arc<Vec<u8>>; 2] {
    [3, 5].map(|factor| Arc::new((0..200).map(|at| (at * factor) as u8).collect()))
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

/// Those with a number, of which those that follow each other in one buffer are gathered. Some are elsewhere, as if they had been read
/// over the end of it.
fn gathered<'a>(all: &[Packet<'a>], buffers: &'a [Arc<Vec<u8>>; 2]) -> (Packets, Vec<Packet<'a>>) {
    let of = |packet: &Packet<'_>| usize::from(!buffers[0].as_ptr_range().contains(&packet.data.as_ptr()));
    let goes_on = |packet: &Packet<'_>, next: &Packet<'_>| {
        (packet.capture, packet.number.checked_add(1), of(packet)) == (next.capture, Some(next.number), of(next))
    };
    let (mut batch, mut expected) = (Packets::new(), Vec::new());
    let numbered: Vec<Packet<'_>> = all.iter().filter(|packet| packet.number > 0).copied().collect();
    for packets in numbered.chunk_by(goes_on) {
        let shared = &buffers[of(&packets[0])];
        let other = &buffers[1 - of(&packets[0])];
        let (capture, first) = (packets[0].capture, packets[0].number);
        let mut following = batch.appender(capture, first - 1, Some(shared));
        for (at, packet) in packets.iter().enumerate() {
            let data = if at % 7 == 3 { &other[..packet.data.len()] } else { packet.data };
            following.push(packet.time_ns, packet.link_type, packet.original_length, data);
            expected.push(Packet { data, ..*packet });
        }
        assert_eq!(following.number(), packets[packets.len() - 1].number);
    }
    (batch, expected)
}

proptest! {
    #[test]
    fn what_is_gathered_is_what_followed(steps in steps()) {
        let buffers = buffers();
        let (batch, expected) = gathered(&batch(&steps, &buffers).1, &buffers);
        prop_assert!(batch.iter().eq(expected.iter().copied()));
        prop_assert_eq!(batch.data_bytes(), expected.iter().map(|packet| packet.data.len()).sum::<usize>());
    }

    #[test]
    fn what_packets_have_in_common_is_kept_once(steps in steps(), ahead in 1usize..9) {
        let buffers = buffers();
        let (mut batch, all) = batch(&steps, &buffers);
        prop_assert!(batch.iter().eq(all.iter().copied()));
        prop_assert_eq!(batch.iter().len(), all.len());
        let mut rest = batch.iter();
        for (at, packet) in all.iter().enumerate() {
            prop_assert_eq!(rest.peek(), Some(*packet));
            let later = rest.data_ahead(ahead);
            prop_assert!(later.is_empty() || later == all[at + ahead].data);
            rest.advance();
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
fn data_of_packets_ahead_are_told_where_they_follow() {
    let [buffer, _] = buffers();
    let elsewhere = [7; 3];
    let all: Vec<&[u8]> = (0..8).map(|at| if at < 6 { &buffer[at..2 * at] } else { &elsewhere }).collect();
    let mut batch = Packets::new();
    let mut following = batch.appender(0, 0, Some(&buffer));
    for data in &all {
        following.push(5, 1, 60, data);
    }
    let mut rest = batch.iter();
    rest.next();
    let told: Vec<&[u8]> = (0..8).map(|ahead| rest.data_ahead(ahead)).collect();
    let none: &[u8] = &[];
    assert_eq!(told, [&all[1..6], &[none; 3]].concat());
}

#[test]
fn a_row_is_a_quarter_of_a_cache_line() {
    assert_eq!(size_of::<Row>(), 16);
}
