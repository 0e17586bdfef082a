//! Fragmented packets yield the segments that whole ones would.

use super::traffic::{
    GATEWAY, RAW, SERVICE, TestPacket, captured, ethernet, filter, notices, options, payloads, segments, tcp,
    tcp_over_ipv6, udp,
};
use proptest::prelude::*;

/// The fragments of an IPv4 or IPv6 packet, cut at these offsets in its payload, in units of 8 bytes.
fn fragments(packet: &[u8], cuts: &[usize], identification: u16) -> Vec<Vec<u8>> {
    let is_four = packet[0] >> 4 == 4;
    let (header, payload) = packet.split_at(if is_four { 20 } else { 40 });
    let mut ends: Vec<usize> =
        cuts.iter().map(|cut| cut * 8).filter(|end| *end < payload.len()).chain([payload.len()]).collect();
    ends.sort_unstable();
    ends.dedup();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let parts = starts.zip(ends.iter().copied()).filter(|(start, end)| start < end);
    let part = |(start, end): (usize, usize)| {
        let mut header = header.to_vec();
        let more = u16::from(end < payload.len());
        if is_four {
            header[2..4].copy_from_slice(&((20 + end - start) as u16).to_be_bytes());
            header[4..6].copy_from_slice(&identification.to_be_bytes());
            header[6..8].copy_from_slice(&(more << 13 | (start / 8) as u16).to_be_bytes());
        } else {
            let next = std::mem::replace(&mut header[6], 44);
            header[4..6].copy_from_slice(&((8 + end - start) as u16).to_be_bytes());
            header.extend([next, 0]);
            header.extend(((start as u16) | more).to_be_bytes());
            header.extend(u32::from(identification).to_be_bytes());
        }
        [&header[..], &payload[start..end]].concat()
    };
    parts.map(part).collect()
}

fn gateways() -> sizeleak_flow_filter::Options {
    let gateway = vec!["192.168.1.20".to_owned(), "2001:db8::20".to_owned()];
    sizeleak_flow_filter::Options { gateway, ..Default::default() }
}

#[test]
fn the_prefilter_lets_fragments_pass() {
    let packet = udp(GATEWAY, (50_000, 5684), SERVICE, &[7; 3000]);
    let parts = fragments(&packet[14..], &[185, 370], 9);
    let parts = parts.iter().map(|part| ethernet([&packet[..14], part].concat()));
    let (frames, counts) = filter(&gateways(), &parts.collect::<Vec<_>>());
    assert_eq!(payloads(&frames), [vec![7; 3000]]);
    assert_eq!((counts["fragments"], counts["gateway_packets"], counts["incomplete_fragments"]), (3, 3, 0));
}

#[test]
fn a_missing_fragment_is_reported() {
    let packet = tcp(GATEWAY, (5000, 443), SERVICE, 1, &[7; 100]);
    let mut parts = fragments(&packet[14..], &[4, 8], 9);
    parts.remove(1);
    let parts: Vec<TestPacket> = parts.into_iter().map(|part| captured(RAW, part)).collect();
    let (frames, counts) = filter(&gateways(), &parts);
    assert_eq!((segments(&frames).len(), counts["incomplete_fragments"]), (0, 1));
    assert!(notices(&frames, "gap")[0].contains("192.168.1.20 to 203.0.113.10"));
}

/// A mirror of two ports gives each packet twice, and networks may, too.
#[test]
fn fragments_that_come_again_once_their_packet_was_whole_are_not_missing() {
    let four = tcp(GATEWAY, (5000, 443), SERVICE, 1, &[7; 100]);
    for packet in [&four[14..], &tcp_over_ipv6(1, &[7; 100])] {
        let parts = fragments(packet, &[4, 8], 9);
        let counted = |order: &[usize]| {
            let packets = order.iter().map(|part| captured(RAW, parts[*part].clone()));
            let (frames, counts) = filter(&gateways(), &packets.collect::<Vec<_>>());
            (segments(&frames).len(), counts["incomplete_fragments"], notices(&frames, "gap").len())
        };
        assert_eq!(counted(&[0, 0, 1, 1, 2, 2]), (1, 0, 0), "each twice");
        assert_eq!(counted(&[2, 1, 0, 1]), (1, 0, 0), "one of them, late");
        assert_eq!(counted(&[0, 1, 2, 2, 1, 0]), (2, 0, 0), "the whole packet");
        assert_eq!(counted(&[0, 1, 1]), (0, 1, 1), "one without the last");
    }
}

#[test]
fn fragments_cut_by_the_snaplen_keep_their_length() {
    let packet = tcp(GATEWAY, (5000, 443), SERVICE, 1, &[7; 1000]);
    let parts = fragments(&packet[14..], &[60], 9).into_iter().map(|part| {
        let original_length = part.len() as u32;
        TestPacket { original_length, ..captured(RAW, part[..80].to_vec()) }
    });
    let rows = segments(&filter(&options("192.168.1.20"), &parts.collect::<Vec<_>>()).0);
    assert_eq!((rows[0].length, rows[0].payload.len()), (1000, 40));
}

#[test]
fn fragments_of_other_hosts_are_neither_counted_nor_reported() {
    let packet = tcp([192, 168, 1, 21], (5000, 443), SERVICE, 1, &[7; 100]);
    let parts = fragments(&packet[14..], &[4], 9).into_iter().map(|part| captured(RAW, part));
    let (frames, counts) = filter(&gateways(), &parts.take(1).collect::<Vec<_>>());
    assert_eq!((counts["fragments"], notices(&frames, "gap").len()), (0, 0));
}

/// A flood between strangers that may be a tunnel, and one that a stranger sends to the gateway.
#[test]
fn fragments_of_strangers_do_not_evict_the_gateways() {
    let packet = tcp(GATEWAY, (5000, 443), SERVICE, 1, &[7; 100]);
    let parts = fragments(&packet[14..], &[4], 9);
    let flood = |to| {
        let of = move |identification| {
            let packet = udp([198, 51, 100, 7], (5000, 4789), to, &[7; 1400]);
            captured(RAW, fragments(&packet[14..], &[100], identification).remove(0))
        };
        (0..5_000).map(of)
    };
    let mut packets = vec![captured(RAW, parts[0].clone())];
    packets.extend(flood([198, 51, 100, 8]));
    packets.extend(flood(GATEWAY));
    packets.push(captured(RAW, parts[1].clone()));
    let (frames, _) = filter(&gateways(), &packets);
    assert_eq!(payloads(&frames), [vec![7; 100]]);
}

/// Fragments of IPv6 that name these next headers, in their order.
fn naming(mut parts: Vec<Vec<u8>>, next_headers: &[u8]) -> Vec<Vec<u8>> {
    for (part, next) in parts.iter_mut().zip(next_headers) {
        part[40] = *next;
    }
    parts
}

/// A packet of IPv6 between these hosts with a payload of this protocol.
fn ipv6(protocol: u8, hosts: [u8; 2], payload: &[u8]) -> Vec<u8> {
    let [source, destination] = hosts.map(|host| [&[0x20, 1, 0xd, 0xb8][..], &[0; 11], &[host]].concat());
    [&[0x60, 0, 0, 0][..], &(payload.len() as u16).to_be_bytes(), &[protocol, 64], &source, &destination, payload]
        .concat()
}

#[test]
fn of_the_fragments_of_ipv6_the_first_names_the_protocol() {
    let packet = tcp_over_ipv6(1, &[7; 100]);
    let whole = segments(&filter(&gateways(), &[captured(RAW, packet.clone())]).0);
    assert_eq!(whole.len(), 1);
    for next_headers in [[6, 6, 6], [6, 17, 6], [6, 0, 59], [6, 44, 60], [6, 255, 1]] {
        for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [1, 2, 0]] {
            let parts = naming(fragments(&packet, &[4, 8], 9), &next_headers);
            let parts: Vec<_> = order.iter().map(|at: &usize| captured(RAW, parts[*at].clone())).collect();
            let (frames, counts) = filter(&gateways(), &parts);
            assert_eq!(segments(&frames), whole, "{next_headers:?} {order:?}");
            assert_eq!((counts["incomplete_fragments"], counts["gateway_packets"]), (0, 3));
        }
    }
    // With an extension header in front, which only the first one names.
    let with_options = [&[6, 0, 1, 4, 0, 0, 0, 0][..], &packet[40..]].concat();
    let with_options = [&packet[..4], &(with_options.len() as u16).to_be_bytes(), &[60], &packet[7..40], &with_options];
    let parts = naming(fragments(&with_options.concat(), &[4, 8], 9), &[60, 6, 6]);
    let parts: Vec<_> = parts.into_iter().map(|part| captured(RAW, part)).collect();
    assert_eq!(segments(&filter(&gateways(), &parts).0), whole);
    // What is first named otherwise is something else: two packets of IPv4 with one identification are two.
    let parts = naming(fragments(&packet, &[4, 8], 9), &[59, 6, 6]);
    let parts: Vec<_> = parts.into_iter().map(|part| captured(RAW, part)).collect();
    assert_eq!(segments(&filter(&gateways(), &parts).0), []);
    let mut parts = fragments(&tcp(GATEWAY, (5000, 443), SERVICE, 1, &[7; 100])[14..], &[4, 8], 9);
    parts[1][9] = 17;
    let parts: Vec<_> = parts.into_iter().map(|part| captured(RAW, part)).collect();
    let (frames, counts) = filter(&gateways(), &parts);
    assert_eq!((segments(&frames), counts["incomplete_fragments"]), (vec![], 2));
}

#[test]
fn a_tunnel_in_fragments_of_ipv6_is_opened_whatever_later_ones_name() {
    let inside = tcp(GATEWAY, (5000, 443), SERVICE, 1, &[7; 100])[14..].to_vec();
    let packet = ipv6(4, [7, 8], &inside);
    let whole = segments(&filter(&gateways(), &[captured(RAW, packet.clone())]).0);
    assert_eq!(whole.len(), 1);
    for next_headers in [[4, 4, 4], [4, 6, 58], [4, 255, 6]] {
        let parts = naming(fragments(&packet, &[4, 8], 9), &next_headers);
        let parts: Vec<_> = parts.into_iter().map(|part| captured(RAW, part)).collect();
        assert_eq!(segments(&filter(&gateways(), &parts).0), whole, "{next_headers:?}");
    }
}

#[test]
fn a_fragment_beyond_the_longest_packet_is_damaged() {
    let packet = tcp(GATEWAY, (5000, 443), SERVICE, 1, &[7; 100]);
    let mut part = fragments(&packet[14..], &[4], 9).remove(0);
    part[6..8].copy_from_slice(&0x3fff_u16.to_be_bytes());
    let (_, counts) = filter(&gateways(), &[captured(RAW, part)]);
    assert_eq!(counts["damaged"], 1);
}

proptest! {
    #[test]
    fn fragments_in_any_size_and_order_yield_the_segments_of_whole_packets(
        sizes in prop::collection::vec(0usize..400, 1..6),
        six: bool,
        cuts in prop::collection::vec(0usize..50, 0..5),
        order in prop::collection::vec(any::<prop::sample::Index>(), 30),
        duplicate: bool,
    ) {
        let packets: Vec<Vec<u8>> = sizes
            .iter()
            .zip(0..)
            .map(|(size, number)| {
                let payload: Vec<u8> = (0..*size).map(|at| at as u8 ^ number as u8).collect();
                if six {
                    tcp_over_ipv6(number, &payload)
                } else {
                    tcp(GATEWAY, (5000, 443), SERVICE, number, &payload)[14..].to_vec()
                }
            })
            .collect();
        let mut parts: Vec<Vec<u8>> =
            packets.iter().zip(1..).flat_map(|(packet, id)| fragments(packet, &cuts, id)).collect();
        for (at, with) in order.iter().enumerate().take(parts.len()) {
            let with = with.index(parts.len());
            parts.swap(at, with);
        }
        // A duplicate right behind a fragment changes nothing, unless it is a packet of its own.
        if duplicate && parts.len() > sizes.len() {
            let again = parts[0].clone();
            parts.insert(1, again);
        }
        let raw = |packets: Vec<Vec<u8>>| packets.into_iter().map(|data| captured(RAW, data)).collect::<Vec<_>>();
        let sorted = |packets: Vec<Vec<u8>>| {
            let mut rows = segments(&filter(&gateways(), &raw(packets)).0);
            rows.sort_by_key(|row| row.sequence);
            rows.dedup();
            rows
        };
        prop_assert_eq!(sorted(parts), sorted(packets));
    }
}
