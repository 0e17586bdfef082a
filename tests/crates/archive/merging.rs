//! Two taps of one stream that lose segments, have clocks and snaplens of their own, and begin late: merged, they hold
//! everything that one of them captured, once.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use sizeleak_archive::tap_streams::{MergedStream, MergedTaps, TapCounts, TapPlan, TapProfile};
use sizeleak_frame::{
    Direction, Flow, Frame, FrameReader, FrameWriter, Hello, Record, SCHEMA, Segment, Segments, Summary, Transport,
};
use sizeleak_platform::runtime::{Closed, Emit, Stage};
use sizeleak_record_sizer::{Options, RecordSizer};

const MS: i64 = 1_000_000;

/// A record of application data every 20 ms, in turns from both sides.
const EVERY_NS: i64 = 20 * MS;

/// At most this late or early, in nanoseconds.
const JITTER_NS: i64 = 2 * MS;

/// The segments of a traffic: some connections of TLS records, each in segments of at most `most` bytes, and DTLS.
#[derive(Debug, Clone)]
struct Traffic {
    segments: Vec<Segment<'static>>,
}

fn record(length: usize) -> Vec<u8> {
    [&[23, 3, 3][..], &(length as u16).to_be_bytes(), &vec![7; length]].concat()
}

fn dtls_record(number: i64, length: usize) -> Vec<u8> {
    let numbered = number.to_be_bytes();
    [&[23, 254, 253, 0, 1][..], &numbered[2..], &(length as u16).to_be_bytes(), &vec![7; length]].concat()
}

/// Turns payload into a segment; the bytes live as long as the test program, which is short.
fn segment(time_ns: i64, flow: u64, direction: Direction, sequence: u32, payload: Vec<u8>) -> Segment<'static> {
    let (flags, length) = (if flow == 0 { 0 } else { Segment::ACK }, payload.len() as u32);
    let payload = payload.leak();
    Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement: None }
}

fn traffic() -> impl Strategy<Value = Traffic> {
    let records = prop::collection::vec((0u64..4, any::<bool>(), 20usize..900), 30..120);
    (records, prop::array::uniform8(any::<u32>()), 100usize..600).prop_map(|(records, firsts, most)| {
        let mut next = firsts;
        let mut segments = Vec::new();
        let mut is_new: BTreeSet<_> = (1..4).flat_map(|flow| [(flow, false), (flow, true)]).collect();
        for (number, (flow, to_gateway, length)) in (0..).zip(records) {
            let direction = if to_gateway { Direction::ToGateway } else { Direction::FromGateway };
            let time_ns = number * EVERY_NS;
            if flow == 0 {
                segments.push(segment(time_ns, flow, direction, 0, dtls_record(number, length)));
                continue;
            }
            // Where nothing shows the beginning of a stream, the first few segments have to be in order.
            let is_first = is_new.remove(&(flow, to_gateway));
            let length = if is_first { most.min(length) - 5 } else { length };
            let sequence = &mut next[flow as usize * 2 + usize::from(to_gateway)];
            for (at, part) in (0..).zip(record(length).chunks(most)) {
                segments.push(segment(time_ns + at * MS / 10, flow, direction, *sequence, part.to_vec()));
                *sequence = sequence.wrapping_add(part.len() as u32);
            }
        }
        Traffic { segments }
    })
}

/// How a tap captures a segment.
#[derive(Debug, Clone, Copy)]
struct Captured {
    by: [bool; 2],
    jitter_ns: [i64; 2],
}

fn captured(can_both_lose: bool) -> impl Strategy<Value = Captured> {
    let by = prop_oneof![
        6 => Just([true, true]), 2 => Just([true, false]), 2 => Just([false, true]),
        1 => Just([!can_both_lose, false]),
    ];
    let jitter = || -JITTER_NS..=JITTER_NS;
    (by, [jitter(), jitter()]).prop_map(|(by, jitter_ns)| Captured { by, jitter_ns })
}

/// What differs between two taps of one traffic.
#[derive(Debug, Clone)]
struct Taps {
    captured: Vec<Captured>,
    offset_ns: i64,
    /// The second tap captures nothing of this part of the traffic, from its beginning.
    late: f64,
    /// The most bytes of payload that the second tap captures of a segment.
    snaplen: usize,
}

fn taps(can_both_lose: bool) -> impl Strategy<Value = Taps> {
    let captured = prop::collection::vec(captured(can_both_lose), 700);
    let offset = prop_oneof![Just(0), -300_000..300_000i64, Just(3_600_000)];
    let snaplen = prop_oneof![Just(usize::MAX), 32usize..200];
    (captured, offset, prop_oneof![Just(0.0), 0.0..0.6], snaplen)
        .prop_map(|(captured, offset_ms, late, snaplen)| Taps { captured, offset_ns: offset_ms * MS, late, snaplen })
}

/// The segments that each tap captures, in the order of its own times. What begins before the second tap does is
/// captured by the first one, unless `both_lose`.
fn captures(traffic: &Traffic, taps: &Taps, both_lose: bool) -> [Vec<Segment<'static>>; 2] {
    let begin = (taps.late * traffic.segments.len() as f64) as usize;
    let mut captures = [Vec::new(), Vec::new()];
    for ((number, segment), captured) in traffic.segments.iter().enumerate().zip(&taps.captured) {
        let is_early = number < begin;
        let by = [captured.by[0] || (is_early && !both_lose), captured.by[1] && !is_early];
        for tap in [0, 1] {
            let offset_ns = if tap == 1 { taps.offset_ns } else { 0 };
            let time_ns = segment.time_ns + captured.jitter_ns[tap] + offset_ns;
            let kept = if tap == 1 { segment.payload.len().min(taps.snaplen) } else { segment.payload.len() };
            if by[tap] {
                captures[tap].push(Segment { time_ns, payload: &segment.payload[..kept], ..*segment });
            }
        }
    }
    for capture in &mut captures {
        capture.sort_by_key(|segment| segment.time_ns);
    }
    captures
}

fn frames(segments: &[Segment<'static>]) -> Vec<Frame> {
    let mut frames: Vec<Frame> = Vec::new();
    let mut announced = BTreeSet::new();
    for batch in segments.chunks(50) {
        for segment in batch.iter().filter(|segment| announced.insert(segment.flow)) {
            let transport = if segment.flow == 0 { Transport::Udp } else { Transport::Tcp };
            let (gateway, service) = ("10.0.0.2".parse().unwrap(), "203.0.113.1:443".parse().unwrap());
            frames.push(Flow::new(segment.flow, gateway, service, transport).into());
        }
        let mut rows = Segments::new();
        for segment in batch {
            rows.push(*segment);
        }
        frames.push(rows.into());
    }
    frames
}

fn stream(segments: &[Segment<'static>]) -> Vec<u8> {
    let (stage, upstream) = ("flow-filter".to_owned(), vec!["capture".to_owned()]);
    let hello = Hello { schema: SCHEMA, stage, version: String::new(), upstream };
    let mut writer = FrameWriter::new(Vec::new());
    writer.write(&hello.into()).unwrap();
    writer.write_all(&frames(segments)).unwrap();
    writer.write(&Summary::default().into()).unwrap();
    writer.into_output().unwrap()
}

/// The merged stream of taps, and what became of the segments of each.
fn merged(taps: &[Vec<Segment<'static>>]) -> (Vec<Frame>, Vec<TapCounts>) {
    let profiles = (1..).zip(taps).map(|(number, segments)| {
        let mut profile = TapProfile::new(format!("tap{number}"));
        for frame in frames(segments) {
            profile.add(&frame);
        }
        profile
    });
    let plan = TapPlan::of(profiles.collect());
    let streams: Vec<Vec<u8>> = taps.iter().map(|segments| stream(segments)).collect();
    let (bytes, counts) = MergedStream::new(MergedTaps::new(plan, streams.iter().map(Vec::as_slice)));
    let mut reader = FrameReader::new(bytes);
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.push(frame);
    }
    (frames, counts.recv().unwrap())
}

fn segments_of(frames: &[Frame]) -> Vec<Segment<'_>> {
    let batches = frames.iter().filter_map(|frame| match frame {
        Frame::Segments(segments) => Some(segments.iter()),
        _ => None,
    });
    batches.flatten().collect()
}

#[derive(Default)]
struct Records(Vec<Record>);

impl Emit for Records {
    fn emit(&mut self, frame: Frame) -> Result<(), Closed> {
        if let Frame::Record(record) = frame {
            self.0.push(record);
        }
        Ok(())
    }
}

/// The records of each flow and direction, in order: their lengths, and when they ended.
fn records(frames: Vec<Frame>) -> BTreeMap<(u64, u8), Vec<(u32, i64)>> {
    let (mut sizer, mut out) = (RecordSizer::new(&Options::default()).unwrap(), Records::default());
    for frame in frames {
        if let Frame::Segments(segments) = frame {
            sizer.process((*segments).into(), &mut out).unwrap();
        }
    }
    sizer.finish(&mut out).unwrap();
    let mut records: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for record in out.0 {
        records.entry((record.flow, record.direction.number())).or_default().push((record.length, record.time_ns));
    }
    records
}

/// Bytes of payload by flow, direction and sequence number; of a datagram the number of its record.
fn bytes_of(segments: &[Segment<'_>]) -> Vec<(u64, u8, u64)> {
    let bytes = segments.iter().flat_map(|segment| {
        let (flow, direction, first) = (segment.flow, segment.direction.number(), segment.sequence);
        if flow == 0 {
            let number = segment.payload[5..11].iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            return vec![(flow, direction, number)];
        }
        (0..segment.length).map(|at| (flow, direction, u64::from(first.wrapping_add(at)))).collect()
    });
    let mut bytes: Vec<_> = bytes.collect();
    bytes.sort_unstable();
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn records_are_those_of_the_whole_traffic_where_one_tap_has_every_byte(
        traffic in traffic(), taps in taps(false),
    ) {
        let expected = records(frames(&traffic.segments));
        let captures = captures(&traffic, &taps, false);
        let (frames, _) = merged(&captures);
        let found = records(frames);
        prop_assert_eq!(found.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>());
        for (key, expected) in &expected {
            let lengths = |records: &[(u32, i64)]| records.iter().map(|(length, _)| *length).collect::<Vec<_>>();
            if key.0 != 0 {
                prop_assert_eq!(lengths(&found[key]), lengths(expected), "{:?}", key);
            }
            // Datagrams may change places.
            let mut sorted = [lengths(&found[key]), lengths(expected)];
            for lengths in &mut sorted {
                lengths.sort_unstable();
            }
            prop_assert_eq!(&sorted[0], &sorted[1]);
            if key.0 != 0 {
                for ((_, found_ns), (_, expected_ns)) in found[key].iter().zip(expected) {
                    // The jitter of the segment, and that of the clock's offset.
                    prop_assert!((found_ns - expected_ns).abs() <= 4 * JITTER_NS, "{} {}", found_ns, expected_ns);
                }
            }
        }
    }

    #[test]
    fn every_captured_byte_goes_on_once(traffic in traffic(), taps in taps(true)) {
        let captures = captures(&traffic, &taps, true);
        let (frames, counts) = merged(&captures);
        let found = bytes_of(&segments_of(&frames));
        let mut expected = bytes_of(&captures.concat());
        expected.dedup();
        prop_assert_eq!(found, expected);
        for (counts, capture) in counts.iter().zip(&captures) {
            let bytes: u64 = capture.iter().map(|segment| u64::from(segment.length)).sum();
            prop_assert_eq!(counts.primary_bytes + counts.filled_bytes + counts.duplicate_bytes, bytes);
        }
    }

    #[test]
    fn one_tap_goes_on_as_it_is(traffic in traffic()) {
        let (frames, counts) = merged(std::slice::from_ref(&traffic.segments));
        prop_assert_eq!(segments_of(&frames), &*traffic.segments);
        prop_assert_eq!((counts[0].duplicate_segments, counts[0].filled_segments), (0, 0));
    }
}
