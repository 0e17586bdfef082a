//! Tests of `ip_reassembly`.

use proptest::prelude::*;

use sizeleak_packet::{CapturedBytes, IpPayload};

use super::*;

const LIMITS: FragmentLimits = FragmentLimits::GATEWAYS;

fn packet(last_of_source: u8, payload: &[u8]) -> IpPacket<'_> {
    IpPacket {
        source: [10, 0, 0, last_of_source].into(),
        destination: [10, 0, 0, 1].into(),
        payload: IpPayload { protocol: 6, bytes: CapturedBytes::frame(payload, 0) },
        fragment: None,
    }
}

fn fragment(identification: u32, offset: u32, is_last: bool) -> Fragment {
    Fragment { identification, offset, is_last }
}

#[test]
fn the_first_bytes_for_a_position_win_and_data_ends_at_the_first_cut() {
    let mut reassembly = IpReassembly::new(FragmentLimits::GATEWAYS);
    assert_eq!(reassembly.add(0, &packet(2, &[1; 16]), None, fragment(7, 8, false), &mut Vec::new()), Ok(None));
    let mut cut = packet(2, &[2; 20]);
    cut.payload.bytes = CapturedBytes::new(&[2; 6], 20);
    assert_eq!(reassembly.add(0, &cut, None, fragment(7, 20, true), &mut Vec::new()), Ok(None));
    let whole = reassembly.add(0, &packet(2, &[3; 16]), None, fragment(7, 0, false), &mut Vec::new()).unwrap().unwrap();
    assert_eq!(whole.length, 40);
    assert_eq!(whole.data, [&[3; 8][..], &[1; 16], &[2; 2]].concat());
    assert!(reassembly.partial.is_empty());
}

#[test]
fn incomplete_packets_are_given_up_after_the_timeout() {
    let mut reassembly = IpReassembly::new(FragmentLimits::GATEWAYS);
    let mut incomplete = Vec::new();
    reassembly.add(0, &packet(2, &[1; 16]), None, fragment(7, 0, false), &mut incomplete).unwrap();
    reassembly
        .add(TIMEOUT_NS.cast_signed(), &packet(3, &[1; 24]), None, fragment(7, 0, false), &mut incomplete)
        .unwrap();
    reassembly
        .add(TIMEOUT_NS.cast_signed() + 1, &packet(4, &[1; 8]), None, fragment(7, 0, false), &mut incomplete)
        .unwrap();
    incomplete.extend(reassembly.finish());
    assert_eq!(incomplete.iter().map(|packet| packet.bytes).collect::<Vec<_>>(), [16, 24, 8]);
    let invalid = reassembly.add(0, &packet(2, &[1; 16]), None, fragment(7, 65_528, false), &mut Vec::new());
    assert_eq!(invalid, Err(InvalidFragment));
}

#[test]
fn a_number_that_is_used_again_later_is_of_another_packet() {
    for (later_ns, missing) in [(REPETITION_NS, 0), (REPETITION_NS + 1, 1)] {
        let mut reassembly = IpReassembly::new(LIMITS);
        let mut incomplete = Vec::new();
        let mut add = |time_ns: u64, offset, is_last| {
            let fragment = fragment(7, offset, is_last);
            reassembly.add(time_ns.cast_signed(), &packet(2, &[1; 16]), None, fragment, &mut incomplete).unwrap()
        };
        assert!(add(0, 0, false).is_none() && add(0, 16, true).is_some() && add(later_ns, 16, true).is_none());
        assert_eq!(reassembly.finish().len(), missing);
    }
}

/// Bytes of memory that the packets need.
fn bytes(reassembly: &IpReassembly) -> usize {
    reassembly.partial.iter().map(|partial| partial.bytes).sum()
}

#[test]
fn memory_is_bounded() {
    let mut reassembly = IpReassembly::new(FragmentLimits::GATEWAYS);
    let mut incomplete = Vec::new();
    for identification in 0..5_000 {
        let size = if identification < 2_500 { 8 } else { 60_000 };
        let data = vec![1; size];
        reassembly.add(0, &packet(2, &data), None, fragment(identification, 0, false), &mut incomplete).unwrap();
        assert!(reassembly.partial.len() <= LIMITS.packets && bytes(&reassembly) <= LIMITS.bytes);
    }
    assert_eq!(incomplete.len() + reassembly.partial.len(), 5_000);
}

#[test]
fn a_flood_between_two_hosts_evicts_only_its_own_packets() {
    for size in [8, 60_000] {
        let mut reassembly = IpReassembly::new(LIMITS);
        let (mut incomplete, flood) = (Vec::new(), vec![1; size]);
        reassembly.add(0, &packet(2, &[1; 1480]), None, fragment(7, 0, false), &mut incomplete).unwrap();
        for identification in 0..5_000 {
            let added =
                reassembly.add(0, &packet(3, &flood), None, fragment(identification, 0, false), &mut incomplete);
            assert_eq!(added, Ok(None));
        }
        assert!(incomplete.iter().all(|packet| packet.source == std::net::Ipv4Addr::new(10, 0, 0, 3)));
        let whole = reassembly.add(0, &packet(2, &[2; 20]), None, fragment(7, 1480, true), &mut incomplete);
        assert_eq!(whole.unwrap().unwrap().length, 1500, "{size}");
        assert!(reassembly.partial.iter().all(|partial| partial.key.source == std::net::Ipv4Addr::new(10, 0, 0, 3)));
    }
}

#[test]
fn fragments_of_another_encapsulation_are_of_another_packet() {
    let tunnel = Encapsulation {
        kind: sizeleak_packet::TunnelKind::Gre,
        id: None,
        ends: ["10.9.9.1".parse().unwrap(), "10.9.9.2".parse().unwrap()],
    };
    let mut reassembly = IpReassembly::new(LIMITS);
    reassembly.add(0, &packet(2, &[6; 16]), Some(tunnel), fragment(7, 0, false), &mut Vec::new()).unwrap();
    reassembly.add(0, &packet(2, &[1; 16]), None, fragment(7, 0, false), &mut Vec::new()).unwrap();
    let whole = reassembly.add(0, &packet(2, &[2; 4]), None, fragment(7, 16, true), &mut Vec::new()).unwrap().unwrap();
    assert_eq!(whole.data, [&[1; 16][..], &[2; 4]].concat());
}

proptest! {
    #[test]
    fn fragments_in_any_size_order_and_overlap_make_the_whole(
        whole in prop::collection::vec(any::<u8>(), 1..200),
        cuts in prop::collection::vec((any::<prop::sample::Index>(), 1usize..60), 0..12),
        order: prop::sample::Index,
    ) {
        let mut parts: Vec<(usize, usize)> = (0..whole.len()).step_by(24).map(|at| (at, 24)).collect();
        parts.extend(cuts.iter().map(|(at, length)| (at.index(whole.len()), *length)));
        let first = order.index(parts.len());
        parts.rotate_left(first);
        let mut reassembly = IpReassembly::new(FragmentLimits::GATEWAYS);
        let mut reassembled = None;
        for (at, length) in parts {
            let end = (at + length).min(whole.len());
            let fragment = fragment(1, at as u32, end == whole.len());
            let added = reassembly.add(0, &packet(2, &whole[at..end]), None, fragment, &mut Vec::new());
            if let Some(payload) = added.unwrap() {
                reassembled.get_or_insert(payload);
            }
        }
        prop_assert_eq!(reassembled.map(|payload| payload.data), Some(whole));
    }
}

#[test]
fn one_odd_time_gives_up_no_packet_but_its_own() {
    let mut reassembly = IpReassembly::new(LIMITS);
    let mut incomplete = Vec::new();
    let hour_ns = 3_600_000_000_000;
    for odd_ns in [hour_ns, -hour_ns] {
        reassembly.add(0, &packet(2, &[1; 16]), None, fragment(7, 0, false), &mut incomplete).unwrap();
        reassembly.add(odd_ns, &packet(3, &[1; 24]), None, fragment(7, 0, false), &mut incomplete).unwrap();
        let whole = reassembly.add(1, &packet(2, &[2; 16]), None, fragment(7, 16, true), &mut incomplete).unwrap();
        assert_eq!(whole.unwrap().length, 32);
        assert_eq!(reassembly.add(1, &packet(3, &[2; 8]), None, fragment(7, 24, true), &mut incomplete), Ok(None));
        assert_eq!(
            incomplete.pop().map(|packet| packet.bytes),
            Some(24),
            "the packet of another time is not continued"
        );
        reassembly.finish();
    }
    assert_eq!(incomplete, []);
}
