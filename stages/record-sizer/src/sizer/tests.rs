//! Tests of `sizer`.

use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sizeleak_frame::{Direction, Frame};

use super::*;

mod datagrams;
mod state;

/// What happens to a segment on its way into the capture.
#[derive(Debug, Clone, Copy)]
enum Impairment {
    Captured,
    Lost,
    Repeated,
    /// Captured after later segments.
    Late,
    /// The snaplen leaves this many bytes.
    Cut(usize),
}

fn impairment() -> impl Strategy<Value = Impairment> {
    prop_oneof![
        40 => Just(Impairment::Captured), 1 => Just(Impairment::Lost), 1 => Just(Impairment::Repeated),
        2 => Just(Impairment::Late),
        1 => (0usize..40).prop_map(Impairment::Cut),
    ]
}

/// A record with a body that fits its type, for TLS 1.2 or 1.3.
fn record(kind: u8, length: u16, version: u8) -> Vec<u8> {
    let body = match (kind, length % 4) {
        (22, 0) => [&[1, 0, 0, 43, 3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0, 0, 0]].concat(),
        (22, 1) if version == 4 => {
            [&[2, 0, 0, 46, 3, 3][..], &[7; 32], &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat()
        }
        (22, 1) => [&[2, 0, 0, 40, 3, 3][..], &[7; 32], &[0, 0xc0, 0x2f, 0, 0, 0]].concat(),
        (20, _) => vec![1],
        // The length of an encrypted `Finished`.
        (22, 3) => vec![0; 40],
        _ => vec![kind; length.into()],
    };
    [&[kind, 3, 3][..], &(body.len() as u16).to_be_bytes(), &body].concat()
}

prop_compose! {
    /// The segments of one direction, each with its place in the capture.
    fn direction(direction: Direction, version: u8)(
        kinds in prop::collection::vec(
            (prop_oneof![20 => Just(23u8), 1 => Just(20), 2 => Just(22), 1 => 21u8..=24], 0u16..400),
            0..30,
        ),
        garbage in prop::option::weighted(0.1, 0usize..400), missed in prop::option::weighted(0.3, 0usize..300),
        first: u32, cuts in prop::collection::vec((1usize..300, impairment(), 0u32..90, any::<bool>()), 1..60),
    ) -> Vec<(u32, Segment<'static>)> {
        let mut bytes: Vec<u8> = kinds.iter().flat_map(|(kind, length)| record(*kind, *length, version)).collect();
        if let Some(at) = garbage {
            let at = at.min(bytes.len());
            bytes.splice(at..at, [0; 9]);
        }
        let bytes: &'static [u8] = bytes.leak();
        let (mut segments, mut at, mut number) = (Vec::new(), missed.unwrap_or_default().min(bytes.len()), 0);
        let plain = Segment {
            time_ns: 0, flow: 7, direction, sequence: first, flags: Segment::ACK, length: 0, payload: &[],
            acknowledgement: None,
        };
        if missed.is_none() {
            segments.push((0, Segment { flags: Segment::SYN, sequence: first.wrapping_sub(1), ..plain }));
        }
        for (cut, impairment, pause, repeats_syn) in cuts {
            number += pause;
            let payload = &bytes[at..(at + cut).min(bytes.len())];
            let sequence = first.wrapping_add(at as u32);
            let segment = Segment { sequence, length: payload.len() as u32, payload, ..plain };
            at += payload.len();
            match impairment {
                Impairment::Lost => {}
                Impairment::Captured => segments.push((number, segment)),
                Impairment::Repeated => segments.extend([(number, segment), (number + 5, segment)]),
                Impairment::Late => segments.push((number + 120, segment)),
                Impairment::Cut(left) => {
                    segments.push((number, Segment { payload: &payload[..left.min(payload.len())], ..segment }));
                }
            }
            if repeats_syn && missed.is_none() && number % 8 == 0 {
                segments.push((number, Segment { flags: Segment::SYN, sequence: first.wrapping_sub(1), ..plain }));
            }
        }
        segments
    }
}

fn traffic() -> impl Strategy<Value = Vec<Segment<'static>>> {
    let both = |version| (direction(Direction::ToGateway, version), direction(Direction::FromGateway, version));
    (3u8..=4).prop_flat_map(both).prop_map(|(to_gateway, from_gateway)| {
        let mut all = [to_gateway, from_gateway].concat();
        all.sort_by_key(|(number, _)| *number);
        let timed =
            |(number, segment): (u32, Segment<'static>)| Segment { time_ns: i64::from(number) * 20_000_000, ..segment };
        all.into_iter().map(timed).collect()
    })
}

/// What a sizer emits and counts, with the fast path.
fn fast(options: &Options, segments: &[Segment<'_>]) -> (Vec<Frame>, Vec<(&'static str, u64)>) {
    let mut sizer = RecordSizer::new(options).unwrap();
    let (mut batch, mut out) = (Segments::new(), Vec::new());
    for segment in segments {
        batch.push(*segment);
    }
    sizer.process(batch.into(), &mut out).unwrap();
    sizer.finish(&mut out).unwrap();
    (out, sizer.counters())
}

/// What a sizer emits and counts without the fast path.
fn plain(options: &Options, segments: &[Segment<'_>]) -> (Vec<Frame>, Vec<(&'static str, u64)>) {
    let mut sizer = RecordSizer::new(options).unwrap();
    let mut out = Vec::new();
    for segment in segments {
        if sizer.clock.follows(segment.flow, segment.time_ns) {
            sizer.segment(segment, &mut out).unwrap();
        } else {
            sizer.segment_of_odd_time(segment, &mut out).unwrap();
        }
    }
    sizer.finish(&mut out).unwrap();
    (out, sizer.counters())
}

/// Sessions and records, and notices: the fast path reports records before a fault that follows in the same segment.
fn separate_notices(frames: Vec<Frame>) -> (Vec<Frame>, Vec<Frame>) {
    frames.into_iter().partition(|frame| !matches!(frame, Frame::Notice(_)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// Also where flows are evicted, because there are too many or because they are idle.
    #[test]
    fn fast_path_equals_the_plain_way(
        mut segments in traffic(), flows in prop::collection::vec(1u64..7, 1..30), seconds in 1i64..60,
        one_flow: bool, plain_tcp: bool,
    ) {
        for (segment, flow) in segments.iter_mut().zip(flows.iter().cycle()).filter(|_| !one_flow) {
            segment.flow = *flow;
        }
        let idle_timeout = SignedDuration::from_secs(seconds);
        let options = Options { max_flows: 4, idle_timeout, plain_tcp, ..Options::default() };
        let ((found, counted), (expected, expected_counts)) = (fast(&options, &segments), plain(&options, &segments));
        prop_assert_eq!(separate_notices(found), separate_notices(expected));
        prop_assert_eq!(counted, expected_counts);
    }
}

#[test]
fn generated_traffic_finds_connections_at_rest_and_has_sessions_and_records() {
    let mut runner = TestRunner::deterministic();
    let (mut count, mut resting, mut records, mut sessions) = (0, 0, 0, 0);
    for _ in 0..200 {
        let segments = traffic().new_tree(&mut runner).unwrap().current();
        let (mut sizer, mut out) = (RecordSizer::new(&Options::default()).unwrap(), Vec::new());
        for segment in &segments {
            let connection = sizer.connections.find(segment.flow);
            resting +=
                usize::from(connection.is_some_and(|connection| connection.at_rest(segment.direction).is_some()));
            let mut batch = Segments::new();
            batch.push(*segment);
            sizer.process(batch.into(), &mut out).unwrap();
        }
        count += segments.len();
        records += out.iter().filter(|frame| matches!(frame, Frame::Record(_))).count();
        sessions += out.iter().filter(|frame| matches!(frame, Frame::Session(_))).count();
    }
    assert!(resting * 4 > count && records > 1000 && sessions > 30, "{count} {resting} {records} {sessions}");
}
