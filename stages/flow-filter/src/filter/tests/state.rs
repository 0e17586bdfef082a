//! A filter that continues from a state is as if it had never stopped.

use etherparse::IpNumber;
use proptest::prelude::*;

use super::*;

/// A packet of the test traffic: a TCP segment, a DNS query or its answer, a datagram, or ARP.
fn frame(kind: u8, host: u8, port: u16, sequence: u32) -> Vec<u8> {
    let (gateway, service, stranger) = ([10, 0, 0, 1 + host], [203, 0, 113, 1 + host], [192, 0, 2, 1]);
    let mut frame = Vec::new();
    let ethernet = || PacketBuilder::ethernet2([1; 6], [2; 6]);
    match kind {
        0 => {
            ethernet().ipv4(gateway, service, 64).tcp(5000 + port, 443, sequence, 9).ack(1).write(&mut frame, &[7; 90])
        }
        1 => {
            ethernet().ipv4(service, gateway, 64).tcp(443, 5000 + port, sequence, 9).ack(1).write(&mut frame, &[8; 300])
        }
        2 => ethernet().ipv4(gateway, service, 64).udp(5000 + port, 4433).write(&mut frame, &[9; 50]),
        3 => ethernet().ipv4(gateway, [10, 0, 0, 99], 64).udp(5353 + port, 53).write(&mut frame, &dns(false, host)),
        4 => ethernet().ipv4([10, 0, 0, 99], gateway, 64).udp(53, 5353 + port).write(&mut frame, &dns(true, host)),
        5 => ethernet().ipv4(stranger, service, 64).tcp(1, 443, sequence, 9).write(&mut frame, &[1; 30]),
        _ => {
            frame = [&[1; 6][..], &[2; 6], &[8, 6], &[0; 28]].concat();
            Ok(())
        }
    }
    .unwrap();
    frame
}

/// A query for the name of the service, or the answer to it.
fn dns(is_answer: bool, host: u8) -> Vec<u8> {
    let name = [&[3][..], b"hub", &[7], b"example", &[0]].concat();
    let (flags, answers) = if is_answer { (0x81, 1) } else { (1, 0) };
    let mut message = [&[0, 7, flags, 0, 0, 1, 0, answers, 0, 0, 0, 0][..], &name, &[0, 1, 0, 1]].concat();
    if is_answer {
        message.extend([&name[..], &[0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 203, 0, 113, 1 + host]].concat());
    }
    message
}

/// The frame inside a tunnel between two hosts.
fn tunnelled(frame: &[u8]) -> Vec<u8> {
    let mut outer = Vec::new();
    let headers = PacketBuilder::ethernet2([1; 6], [2; 6]).ipv4([198, 51, 100, 1], [198, 51, 100, 2], 64);
    headers.write(&mut outer, IpNumber(4), frame.get(14..).unwrap_or_default()).unwrap();
    outer
}

fn fragments(frame: &[u8], identification: u8) -> Vec<Vec<u8>> {
    let at = 24;
    let Some((first, second)) = frame.get(34..).and_then(|payload| payload.split_at_checked(at)) else {
        return vec![frame.to_vec()];
    };
    let fragment = |payload: &[u8], flags: [u8; 2]| {
        let mut fragment = [&frame[..34], payload].concat();
        fragment[16..18].copy_from_slice(&(20 + payload.len() as u16).to_be_bytes());
        (fragment[18], fragment[19]) = (3, identification);
        fragment[20..22].copy_from_slice(&flags);
        fragment
    };
    vec![fragment(first, [0x20, 0]), fragment(second, [0, at as u8 / 8])]
}

prop_compose! {
    /// The options of a filter, and its packets.
    fn input()(
        max_flows in 2usize..12, by_name: bool,
        packets in prop::collection::vec((0u8..7, 0u8..3, 0u16..5, 0u8..8, any::<bool>()), 1..80),
    ) -> (Options, Vec<Vec<u8>>) {
        let mut frames = Vec::new();
        for ((kind, host, port, form, loses), sequence) in packets.into_iter().zip(0u32..) {
            let plain = frame(kind, host, port, sequence);
            match form {
                0 if plain.len() > 42 => frames.push(tunnelled(&plain)),
                1 if plain.len() > 60 => {
                    let pieces = fragments(&plain, sequence as u8);
                    frames.extend(pieces.into_iter().take(if loses { 1 } else { 2 }));
                }
                _ => frames.push(plain),
            }
        }
        let service = if by_name { vec!["hub.example".to_owned()] } else { Vec::new() };
        let gateway = vec!["10.0.0.1".to_owned(), "10.0.0.2".to_owned()];
        (Options { gateway, service, max_flows, allow_absent: true, ..Options::default() }, frames)
    }
}

fn process(filter: &mut FlowFilter, frames: &[Vec<u8>], first: usize, out: &mut Vec<Frame>) {
    let mut batch = Packets::new();
    for (data, number) in frames.iter().zip(first as u64..) {
        let (time_ns, original_length) = (number.cast_signed() * 3_000_000_000, data.len() as u32);
        batch.push(Packet { time_ns, link_type: 1, original_length, data, capture: 0, number });
    }
    filter.process(batch, out).unwrap();
}

fn state(filter: &FlowFilter) -> Vec<u8> {
    filter.save().unwrap().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn a_filter_that_stops_and_continues_emits_the_same(
        (options, frames) in input(), stops in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
    ) {
        let mut once = FlowFilter::new(&options).unwrap();
        let mut expected = Vec::new();
        process(&mut once, &frames, 0, &mut expected);
        once.finish(&mut expected).unwrap();

        let mut stops: Vec<usize> = stops.iter().map(|stop| stop.index(frames.len() + 1)).collect();
        stops.push(frames.len());
        stops.sort_unstable();
        let (mut out, mut at, mut filter) = (Vec::new(), 0, FlowFilter::new(&options).unwrap());
        for stop in stops {
            process(&mut filter, &frames[at..stop], at, &mut out);
            let saved = state(&filter);
            filter = FlowFilter::new(&options).unwrap();
            filter.restore(&saved).unwrap();
            prop_assert_eq!(&state(&filter), &saved, "the same state has the same bytes");
            at = stop;
        }
        filter.finish(&mut out).unwrap();
        prop_assert_eq!(flattened(&out, &filter), flattened(&expected, &once));
    }
}

#[test]
fn generated_packets_have_fragments_tunnels_and_names_that_are_pending_at_a_stop() {
    let (mut tunnelled, mut fragments, mut names) = (0, 0, 0);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    for _ in 0..100 {
        let (options, frames) = proptest::strategy::ValueTree::current(&input().new_tree(&mut runner).unwrap());
        let mut filter = FlowFilter::new(&options).unwrap();
        process(&mut filter, &frames, 0, &mut Vec::new());
        let bytes = state(&filter);
        names += usize::from(bytes.windows(11).filter(|name| *name == b"hub.example").count() > 1);
        tunnelled += filter.counters.tunnelled;
        fragments += usize::from(!filter.gateway_fragments.finish().is_empty());
    }
    assert!(tunnelled > 100 && fragments > 20 && names > 10, "{tunnelled} {fragments} {names}");
}
