//! Connections at rest against those of which everything is kept, and batches against single segments.

use jiff::SignedDuration;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use sizeleak_frame::Frame;

use super::*;

/// What happens to a segment on its way into the capture.
#[derive(Debug, Clone, Copy)]
enum Way {
    Through,
    Lost,
    Twice,
    /// Behind the next one.
    Late,
    /// All but so many bytes are cut off.
    Cut(usize),
}

fn way() -> impl Strategy<Value = Way> {
    prop_oneof![
        40 => Just(Way::Through), 1 => Just(Way::Lost), 1 => Just(Way::Twice), 2 => Just(Way::Late),
        1 => (0usize..40).prop_map(Way::Cut),
    ]
}

/// A record with a body like that of its type, for TLS 1.2 or 1.3.
fn record(kind: u8, length: u16, version: u8) -> Vec<u8> {
    let body = match (kind, length % 4) {
        (22, 0) => [&[1, 0, 0, 43, 3, 3][..], &[7; 32], &[0, 0, 2, 0x13, 1, 1, 0, 0, 0]].concat(),
        (22, 1) if version == 4 => {
            [&[2, 0, 0, 46, 3, 3][..], &[7; 32], &[0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4]].concat()
        }
        (22, 1) => [&[2, 0, 0, 40, 3, 3][..], &[7; 32], &[0, 0xc0, 0x2f, 0, 0, 0]].concat(),
        (20, _) => vec![1],
        // What a handshake's last message looks like when it is encrypted.
        (22, 3) => vec![0; 40],
        _ => vec![kind; length.into()],
    };
    [&[kind, 3, 3][..], &(body.len() as u16).to_be_bytes(), &body].concat()
}

prop_compose! {
    /// The segments of one direction, with their number in the capture.
    fn direction(direction: Direction, version: u8)(
        kinds in prop::collection::vec((prop_oneof![20 => Just(23u8), 1 => Just(20), 2 => Just(22), 1 => 21u8..=24], 0u16..400), 0..30),
        garbage in prop::option::weighted(0.1, 0usize..400), missed in prop::option::weighted(0.3, 0usize..300),
        first: u32, cuts in prop::collection::vec((1usize..300, way(), 0u32..90, any::<bool>()), 1..60),
    ) -> Vec<(u32, Segment<'static>)> {
        let mut bytes: Vec<u8> = kinds.iter().flat_map(|(kind, length)| record(*kind, *length, version)).collect();
        if let Some(at) = garbage {
            let at = at.min(bytes.len());
            bytes.splice(at..at, [0; 9]);
        }
        let bytes: &'static [u8] = bytes.leak();
        let (mut segments, mut at, mut number) = (Vec::new(), missed.unwrap_or_default().min(bytes.len()), 0);
        let plain = Segment {
            time_ns: 0, flow: 7, direction, sequence: first, flags: Segment::ACK, length: 0, payload: &[]
        };
        if missed.is_none() {
            segments.push((0, Segment { flags: Segment::SYN, sequence: first.wrapping_sub(1), ..plain }));
        }
        for (cut, way, pause, repeats) in cuts {
            number += pause;
            let payload = &bytes[at..(at + cut).min(bytes.len())];
            let sequence = first.wrapping_add(at as u32);
            let segment = Segment { sequence, length: payload.len() as u32, payload, ..plain };
            at += payload.len();
            match way {
                Way::Lost => {}
                Way::Through => segments.push((number, segment)),
                Way::Twice => segments.extend([(number, segment), (number + 5, segment)]),
                Way::Late => segments.push((number + 120, segment)),
                Way::Cut(left) => {
                    segments.push((number, Segment { payload: &payload[..left.min(payload.len())], ..segment }));
                }
            }
            if repeats && missed.is_none() && number % 8 == 0 {
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

fn sized(segments: &[Segment<'_>], rest: Rest) -> (Vec<Frame>, Vec<(&'static str, u64)>, usize) {
    let mut sizer = RecordSizer { rest, ..RecordSizer::new(&Options::default()).unwrap() };
    let (mut out, mut resting) = (Vec::new(), 0);
    for segment in segments {
        let mut batch = Segments::new();
        batch.push(*segment);
        let place = sizer.places(&batch)[0];
        sizer.segments(&mut [(*segment, place)].into_iter(), &mut out).unwrap();
        resting += usize::from(matches!(sizer.connections.find(7), Some(Tracked::Steady(_))));
    }
    sizer.finish(&mut out).unwrap();
    (out, sizer.counters(), resting)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    /// A connection that rests whenever it can comes to the same as one of which everything is kept.
    #[test]
    fn rest_changes_nothing(segments in traffic()) {
        let ((found, counted, _), (expected, expected_counts, _)) =
            (sized(&segments, Rest::Taken), sized(&segments, Rest::Never));
        // What is amiss behind a record in the same segment is told before it where all is kept.
        let apart = |frames: Vec<Frame>| -> (Vec<Frame>, Vec<Frame>) {
            frames.into_iter().partition(|frame| matches!(frame, Frame::Notice(_)))
        };
        prop_assert_eq!(apart(found), apart(expected));
        prop_assert_eq!(counted, expected_counts);
    }
}

/// In batches of so many, or each by itself, without looking up its place first.
fn sized_in_batches(
    segments: &[Segment<'_>],
    of: Option<usize>,
    idle_timeout: SignedDuration,
) -> (Vec<Frame>, Vec<(&'static str, u64)>) {
    let mut sizer = RecordSizer::new(&Options { max_flows: 4, idle_timeout, ..Options::default() }).unwrap();
    let mut out = Vec::new();
    for rows in segments.chunks(of.unwrap_or(1)) {
        let mut batch = Segments::new();
        for row in rows {
            batch.push(*row);
        }
        match of {
            Some(_) => sizer.process(batch, &mut out).unwrap(),
            None => sizer.segments(&mut rows.iter().map(|row| (*row, Place::NOWHERE)), &mut out).unwrap(),
        }
    }
    sizer.finish(&mut out).unwrap();
    (out, sizer.counters())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// However segments are put into batches, they come to the same; also where flows are forgotten in the middle of one,
    /// because there are too many or because they were silent.
    #[test]
    fn batches_change_nothing(
        mut segments in traffic(), flows in prop::collection::vec(1u64..7, 1..30), of in 2usize..300, seconds in 1i64..60,
    ) {
        for (segment, flow) in segments.iter_mut().zip(flows.iter().cycle()) {
            segment.flow = *flow;
        }
        let sized = |of| sized_in_batches(&segments, of, SignedDuration::from_secs(seconds));
        let expected = sized(None);
        prop_assert_eq!(sized(Some(of)), expected.clone());
        prop_assert_eq!(sized(Some(1)), expected);
    }
}

/// Most of the traffic above finds its connection at rest, and something is found in it.
#[test]
fn connections_rest() {
    let mut runner = TestRunner::deterministic();
    let (mut segments, mut resting, mut records, mut sessions) = (0, 0, 0, 0);
    for _ in 0..200 {
        let traffic = traffic().new_tree(&mut runner).unwrap().current();
        let (out, counted, rested) = sized(&traffic, Rest::Taken);
        (segments, resting) = (segments + traffic.len(), resting + rested);
        records += out.iter().filter(|frame| matches!(frame, Frame::Record(_))).count();
        sessions += counted.iter().filter(|(name, _)| *name == "sessions").map(|(_, count)| count).sum::<u64>();
    }
    assert!(resting * 4 > segments && records > 1000 && sessions > 30, "{segments} {resting} {records} {sessions}");
}
