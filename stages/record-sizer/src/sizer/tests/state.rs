//! A sizer that continues from a state is as if it had never stopped.

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

/// Messages of the framings that need no declaration, each in a segment that ends within the next message, and what each
/// connection begins with. Flows from 52 on.
fn framed() -> Vec<Segment<'static>> {
    let homekit: &[u8] = &[&[30, 0][..], &[9; 46]].concat();
    let tuya: &[u8] = &[&[0, 0, 0x55, 0xaa, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 20][..], &[9; 20]].concat();
    let tuya_35: &[u8] = &[&[0, 0, 0x66, 0x99, 0, 0, 0, 0, 0, 1, 0, 0, 0, 7, 0, 0, 0, 20][..], &[9; 24]].concat();
    let begins = b"POST /pair-verify HTTP/1.1\r\n\r\n".as_slice();
    let streams = [(begins, homekit), (&[][..], tuya), (&[][..], tuya_35)];
    let segments = (52..).zip(streams).flat_map(|(flow, (begins, message))| {
        let bytes: &'static [u8] = message.repeat(6).leak();
        let cuts = if begins.is_empty() { vec![] } else { vec![begins.to_vec().leak() as &[u8]] };
        let cuts = cuts.into_iter().chain(bytes.chunks(message.len() + 20));
        let mut sequence = 0u32;
        (50i64..).zip(cuts).map(move |(second, payload)| {
            let length = payload.len() as u32;
            sequence += length;
            Segment {
                time_ns: second * 1_000_000_000,
                flow,
                direction: Direction::ToGateway,
                sequence: sequence - length,
                flags: Segment::ACK,
                length,
                payload,
                acknowledgement: None,
            }
        })
    });
    segments.collect()
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
        segments.extend(framed());
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

#[test]
fn each_framing_is_found_in_what_is_stopped() {
    let (frames, _) = fast(&Options::default(), &framed());
    let records = [52, 53, 54].map(|flow| {
        frames.iter().filter(|frame| matches!(frame, Frame::Record(record) if record.flow == flow)).count()
    });
    assert_eq!(records, [6; 3], "{frames:?}");
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
}
