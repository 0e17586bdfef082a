//! A sizer that continues from a state is as if it had never stopped, and a state of any bytes does no harm.

use proptest::prelude::*;

use super::*;

/// Datagrams of a flow with DTLS and of one with QUIC, a second apart.
fn datagrams() -> Vec<Segment<'static>> {
    let hello = [&[1, 0, 0, 42, 0, 0, 0, 0, 0, 0, 0, 42, 0xfe, 0xfd][..], &[7; 32], &[0, 0, 0, 2, 0xc0, 0x2b, 1, 0]];
    let hello = hello.concat();
    let record = |kind: u8, number: u8, body: &[u8]| {
        [&[kind, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, number, 0, body.len() as u8][..], body].concat().leak()
            as &'static [u8]
    };
    let quic: &[u8] = [&[0xc3, 0, 0, 0, 1, 8][..], &[5; 100]].concat().leak();
    let payloads = [
        (50, record(22, 0, &hello)),
        (51, quic),
        (50, record(23, 1, &[9; 60])),
        (50, record(23, 1, &[9; 60])),
        (51, quic),
        (50, record(23, 2, &[9; 61])),
    ];
    let datagram = |(second, (flow, payload)): (i64, (u64, &'static [u8]))| Segment {
        time_ns: second * 1_000_000_000,
        flow,
        direction: Direction::FromGateway,
        sequence: 0,
        flags: 0,
        length: payload.len() as u32,
        payload,
        acknowledgement: None,
    };
    (0..).zip(payloads).map(datagram).collect()
}

prop_compose! {
    /// Segments of several flows and datagrams, some with odd times, and the options of their sizer.
    fn input()(
        segments in traffic(), flows in prop::collection::vec(1u64..7, 1..30), seconds in 1i64..60, one_flow: bool,
        plain_tcp: bool, few_flows: bool, max_bytes in prop_oneof![Just(12usize << 20), 100usize..4000],
        odd in prop::collection::vec((any::<prop::sample::Index>(), -9000i64..9000), 0..4),
        stepped in prop::option::weighted(0.2, any::<prop::sample::Index>()),
    ) -> (Options, Vec<Segment<'static>>) {
        let mut segments = segments;
        for (segment, flow) in segments.iter_mut().zip(flows.iter().cycle()).filter(|_| !one_flow) {
            segment.flow = *flow;
        }
        segments.extend(datagrams());
        segments.sort_by_key(|segment| segment.time_ns);
        for (index, seconds) in odd {
            let at = index.index(segments.len());
            segments[at].time_ns += seconds * 1_000_000_000;
        }
        if let Some(index) = stepped {
            let from = index.index(segments.len());
            segments[from..].iter_mut().for_each(|segment| segment.time_ns -= 3_600_000_000_000);
        }
        let idle_timeout = SignedDuration::from_secs(seconds);
        let max_flows = if few_flows { 4 } else { 100 };
        (Options { max_flows, max_bytes, idle_timeout, plain_tcp, ..Options::default() }, segments)
    }
}

fn process(sizer: &mut RecordSizer, segments: &[Segment<'_>], out: &mut Vec<Frame>) {
    let mut batch = Segments::new();
    for segment in segments {
        batch.push(*segment);
    }
    sizer.process(batch.into(), out).unwrap();
}

fn state(sizer: &RecordSizer) -> Vec<u8> {
    sizer.save().unwrap().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn a_sizer_that_stops_and_continues_emits_the_same(
        (options, segments) in input(), stops in prop::collection::vec(any::<prop::sample::Index>(), 1..6),
    ) {
        let mut stops: Vec<usize> = stops.iter().map(|stop| stop.index(segments.len() + 1)).collect();
        stops.push(segments.len());
        stops.sort_unstable();
        let (mut out, mut at, mut worst, mut sizer) = (Vec::new(), 0, 0, RecordSizer::new(&options).unwrap());
        for stop in stops {
            process(&mut sizer, &segments[at..stop], &mut out);
            worst = worst.max(std::mem::take(&mut sizer.reporter.counters.worst_loss_millionths));
            let saved = state(&sizer);
            sizer = RecordSizer::new(&options).unwrap();
            sizer.restore(&saved).unwrap();
            prop_assert_eq!(&state(&sizer), &saved, "the same state has the same bytes");
            at = stop;
        }
        sizer.finish(&mut out).unwrap();
        sizer.reporter.counters.worst_loss_millionths = worst.max(sizer.reporter.counters.worst_loss_millionths);
        let (expected, counters) = fast(&options, &segments);
        prop_assert_eq!(out, expected);
        prop_assert_eq!(sizer.counters(), counters);
    }

    /// Nor does it hang: a test that never ends fails too.
    #[test]
    fn a_state_of_other_bytes_never_panics(
        (options, segments) in input(), stop: prop::sample::Index,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..3), 1..6),
    ) {
        let stop = stop.index(segments.len() + 1);
        let mut sizer = RecordSizer::new(&options).unwrap();
        process(&mut sizer, &segments[..stop], &mut Vec::new());
        let mut bytes = state(&sizer);
        for (index, byte, way) in changes {
            let at = index.index(bytes.len());
            match way {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => bytes.truncate(at.max(1)),
            }
        }
        let mut sizer = RecordSizer::new(&options).unwrap();
        if sizer.restore(&bytes).is_ok() {
            let mut out = Vec::new();
            process(&mut sizer, &segments[stop..], &mut out);
            sizer.finish(&mut out).unwrap();
        }
    }
}

#[test]
fn extreme_numbers_in_a_state_never_panic() {
    let mut runner = TestRunner::deterministic();
    let mut accepted = 0;
    for _ in 0..40 {
        let (options, segments) = input().new_tree(&mut runner).unwrap().current();
        let stop = segments.len() / 2;
        let mut sizer = RecordSizer::new(&options).unwrap();
        process(&mut sizer, &segments[..stop], &mut Vec::new());
        let bytes = state(&sizer);
        for at in (0..bytes.len()).step_by(3) {
            // A number of any width: the marker, and the bytes behind it.
            let extremes: [&[u8]; 4] =
                [&[0xcf, 255, 255, 255, 255, 255, 255, 255, 255], &[0xd3, 128, 0, 0, 0, 0, 0, 0, 0], &[0], &[0x7f]];
            for extreme in extremes {
                let width = match bytes[at] {
                    0x00..=0x7f | 0xe0..=0xff => 1,
                    0xcc | 0xd0 => 2,
                    0xcd | 0xd1 => 3,
                    0xce | 0xd2 => 5,
                    0xcf | 0xd3 => 9,
                    _ => continue,
                };
                let behind = bytes.get(at + width..).unwrap_or_default();
                let mut sizer = RecordSizer::new(&options).unwrap();
                if sizer.restore(&[&bytes[..at], extreme, behind].concat()).is_ok() {
                    accepted += 1;
                    let mut out = Vec::new();
                    process(&mut sizer, &segments[stop..], &mut out);
                    sizer.finish(&mut out).unwrap();
                }
            }
        }
    }
    assert!(accepted > 100, "{accepted} such states are accepted");
}

#[test]
fn a_state_beyond_the_limits_of_other_options_is_refused() {
    let segments: Vec<Segment<'_>> = (1..=20).map(|flow| Segment { flow, ..record_segment() }).collect();
    let sizer = |max_flows| RecordSizer::new(&Options { max_flows, ..Options::default() }).unwrap();
    let mut many = sizer(100);
    process(&mut many, &segments, &mut Vec::new());
    assert!(sizer(100).restore(&state(&many)).is_ok());
    assert!(matches!(sizer(10).restore(&state(&many)), Err(StateError::Impossible)));
}

fn record_segment() -> Segment<'static> {
    let payload: &[u8] = record(23, 50, 3).leak();
    Segment {
        time_ns: 0,
        flow: 0,
        direction: Direction::FromGateway,
        sequence: 9,
        flags: Segment::ACK,
        length: payload.len() as u32,
        payload,
        acknowledgement: None,
    }
}
