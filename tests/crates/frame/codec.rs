//! Any frame survives a round trip; any bytes are frames or one error; the bytes themselves are fixed.

use std::io::{self, Read};
use std::sync::Arc;

use proptest::prelude::*;
use sizeleak_frame::{
    Actions, Candidate, Command, CommandAt, ContentType, Correction, Deviation, DeviceTypeProbability, Direction, Flow,
    Frame, FrameReader, FrameWriter, HabitFactors, Hello, Identification, MAX_VALUE_BYTES, Notice, NumberProbability,
    Packet, Packets, Protocol, ReadError, Record, RecurringClass, SCHEMA, Segment, Segments, Session, SharedList,
    Shift, SingleReply, StageSummary, Summary, Transport, Unknown, WeightedEpsilon,
};
use support::streams::stream_of;

pub(super) fn hello() -> Frame {
    Frame::from(Hello { schema: SCHEMA, stage: "capture".into(), version: "0.1.0".into(), upstream: vec![] })
}

/// A stream of these frames between `hello` and an empty `summary`.
fn whole_stream(bodies: Vec<Frame>) -> Vec<Frame> {
    std::iter::once(hello()).chain(bodies).chain([Frame::Summary(Summary::default())]).collect()
}

fn decode(bytes: impl Read) -> (Vec<Frame>, Option<ReadError>) {
    let mut reader = FrameReader::new(bytes);
    let mut frames = Vec::new();
    loop {
        match reader.next_frame() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return (frames, None),
            Err(error) => {
                assert!(matches!(reader.next_frame(), Ok(None)), "one error, then the end");
                return (frames, Some(error));
            }
        }
    }
}

/// Returns a few bytes at a time, like a slow pipe.
pub(super) struct SlowReader<'a>(pub(super) &'a [u8], pub(super) usize);

impl Read for SlowReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.1.min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

fn text() -> impl Strategy<Value = String> {
    "[a-z_ é\"]{0,12}"
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..80)
}

fn direction() -> impl Strategy<Value = Direction> {
    prop::sample::select(Direction::BOTH.to_vec())
}

prop_compose! {
    fn command()(
        time_ns: i64, end_ns: i64, flow: u64, size: u64, plaintext: Option<[u64; 2]>,
        records: u32, replies: u32, reply_bytes: u64, direction in direction(),
        single_replies in prop::collection::vec((any::<u64>(), any::<u32>()), 0..4),
        overlapped: bool, shared_replies in prop::collection::vec(any::<u32>(), 0..3),
        reworded in prop::collection::vec(any::<[u32; 2]>(), 0..3),
    ) -> Command {
        let single_replies = single_replies.into_iter().map(SingleReply::from).collect();
        let (shared_replies, reworded) = (shared_replies.into(), reworded.into());
        Command {
            time_ns, end_ns, flow, size, plaintext, records, replies, reply_bytes, direction, single_replies, overlapped,
            shared_replies, reworded,
        }
    }
}

fn shifts() -> impl Strategy<Value = SharedList<Shift>> {
    let shift = (any::<[i64; 2]>(), 0.0..=1.0f64, any::<Option<i64>>());
    let shift = shift.prop_map(|([bytes, reply_bytes], probability, since_ns)| Shift {
        bytes,
        action: None,
        reply_bytes,
        probability,
        since_ns,
    });
    prop::collection::vec(shift, 0..3).prop_map(SharedList::from)
}

prop_compose! {
    fn candidate()(
        actions in prop::collection::vec((text(), any::<u32>()), 0..5),
        epsilon: i64,
        probability in 0.0..=1.0f64,
        likelihood in prop::option::of(0.0..=1.0f64),
    ) -> Candidate {
        let actions = actions.into_iter().map(|(name, count)| (Arc::from(name), count)).collect::<Actions>();
        Candidate { actions, epsilon, probability, likelihood }
    }
}

fn packets() -> impl Strategy<Value = Frame> {
    prop::collection::vec((any::<i64>(), any::<u16>(), any::<u32>(), bytes(), any::<u32>(), any::<u64>()), 0..8)
        .prop_map(|rows| {
            let mut batch = Packets::new();
            for (time_ns, link_type, original_length, data, capture, number) in &rows {
                let (time_ns, link_type, original_length) = (*time_ns, *link_type, *original_length);
                batch.push(Packet { time_ns, link_type, original_length, data, capture: *capture, number: *number });
            }
            Frame::from(batch)
        })
}

fn segments() -> impl Strategy<Value = Frame> {
    let row = (
        any::<i64>(),
        any::<u64>(),
        direction(),
        any::<u32>(),
        any::<u8>(),
        any::<u32>(),
        bytes(),
        any::<Option<u32>>(),
    );
    prop::collection::vec(row, 0..8).prop_map(|rows| {
        let mut batch = Segments::new();
        for (time_ns, flow, direction, sequence, flags, length, payload, acknowledgement) in &rows {
            let (time_ns, flow, direction, sequence) = (*time_ns, *flow, *direction, *sequence);
            let (flags, length, acknowledgement) = (*flags, *length, *acknowledgement);
            batch.push(Segment { time_ns, flow, direction, sequence, flags, length, payload, acknowledgement });
        }
        Frame::from(batch)
    })
}

fn summary() -> impl Strategy<Value = Frame> {
    let stage = (text(), any::<[u64; 3]>(), prop::collection::btree_map("[g-k]{1,5}", any::<u64>(), 0..4), bytes());
    prop::collection::vec(stage, 0..4).prop_map(|stages| {
        let stages = stages.into_iter().map(|(stage, [frames_in, frames_out, bytes_in], counters, latency)| {
            let queue = latency.clone();
            StageSummary { stage, frames_in, frames_out, bytes_in, counters, latency, queue }
        });
        Frame::Summary(Summary { stages: stages.collect() })
    })
}

fn body() -> impl Strategy<Value = Frame> {
    let flow = (any::<u64>(), any::<std::net::IpAddr>(), any::<std::net::IpAddr>(), any::<u16>(), any::<bool>());
    let flow = (flow, prop::option::of(text()));
    let session = (any::<i64>(), any::<u64>(), prop::array::uniform3(prop::option::of(text())));
    let record = (any::<[i64; 2]>(), any::<u64>(), direction(), 20u8..=24, any::<u32>(), any::<Option<[u64; 2]>>());
    let epsilon = (any::<i64>(), 0.0..=1.0f64).prop_map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight });
    let bounds = (any::<u64>(), any::<u64>(), any::<Option<u32>>(), any::<Option<u32>>());
    let notice = (any::<Option<i64>>(), text(), any::<Option<u64>>(), text(), prop::option::of(text()));
    prop_oneof![
        packets(),
        segments(),
        flow.prop_map(|((flow, gateway, service, port, tcp), encapsulation)| {
            let transport = if tcp { Transport::Tcp } else { Transport::Udp };
            Frame::from(Flow {
                flow,
                gateway,
                service: (service, port).into(),
                transport,
                encapsulation,
                among_several: tcp,
                gateway_port: tcp.then_some(443),
            })
        }),
        session.prop_map(|(time_ns, flow, [server_name, tls_version, cipher_suite])| {
            Frame::from(Session {
                time_ns,
                flow,
                tls_version,
                cipher_suite,
                protocol: server_name.clone(),
                server_name,
            })
        }),
        record.prop_map(|([time_ns, start_ns], flow, direction, content_type, length, plaintext)| {
            let content_type = ContentType::try_from(content_type).unwrap();
            let handshake = length % 2 == 0;
            let protocol = if length % 3 == 0 { Protocol::Matter } else { Protocol::Tls };
            Frame::Record(Record {
                time_ns,
                start_ns,
                flow,
                direction,
                content_type,
                length,
                plaintext,
                handshake,
                protocol,
            })
        }),
        command().prop_map(Frame::from),
        (command(), prop::collection::vec(epsilon, 0..5), shifts()).prop_map(|(command, epsilons, shifts)| {
            let own = |weight| HabitFactors { weight, actions: vec![weight; 3].into(), numbers: vec![1.0].into() };
            let habits = epsilons.iter().map(|epsilon: &WeightedEpsilon| own(epsilon.weight)).collect();
            let class = |one: &WeightedEpsilon| RecurringClass {
                bytes: one.epsilon,
                replies: vec![1; shifts.len()].into(),
                share: one.weight,
            };
            let recurring = epsilons.iter().map(class).collect();
            Frame::from(Correction { command, epsilons: epsilons.into(), shifts, habits, recurring })
        }),
        (command(), prop::collection::vec(candidate(), 0..5), bounds, shifts()).prop_map(
            |(command, candidates, (candidate_count, listed, min_actions, max_actions), shifts)| {
                let probability = f64::from(listed as u32 % 8) / 8.0;
                let numbers = vec![NumberProbability { actions: listed, probability }; candidates.len()];
                let device: Box<str> = candidate_count.to_string().into();
                let device_types = vec![DeviceTypeProbability { device, probability }; candidates.len()];
                Frame::from(Identification {
                    command,
                    candidates: candidates.into(),
                    candidate_count,
                    listed,
                    min_actions,
                    max_actions,
                    size_probability: min_actions.map(|count| f64::from(count) / 3.0),
                    reply_probability: min_actions.map(|count| f64::from(count) / 7.0),
                    shifts,
                    numbers: numbers.into(),
                    device_types: device_types.into(),
                })
            }
        ),
        (any::<i64>(), prop::array::uniform4(text()), 0.0..=1.0f64, prop::collection::vec(any::<(u64, i64)>(), 0..4))
            .prop_map(|(time_ns, [gateway, what, expected, seen], p_value, commands)| {
                let commands = commands.into_iter().map(|(flow, time_ns)| CommandAt { flow, time_ns }).collect();
                Frame::from(Deviation { time_ns, gateway, what, p_value, expected, seen, commands })
            }),
        notice.prop_map(|(time_ns, stage, flow, what, detail)| {
            Frame::from(Notice { time_ns, stage: stage.into(), flow, what: what.into(), bytes: flow, detail })
        }),
        bytes().prop_map(|data| {
            let mut value = vec![0x81, 0xa3, b'n', b'e', b'w', 0xc4, data.len() as u8];
            value.extend(data);
            Frame::Unknown(Unknown { kind: "new".into(), value })
        }),
    ]
}

proptest! {
    #[test]
    fn any_frames_round_trip(bodies in prop::collection::vec(body(), 0..6), end in summary(), step in 1usize..50) {
        let frames: Vec<Frame> = std::iter::once(hello()).chain(bodies).chain([end]).collect();
        let bytes = stream_of(&frames);
        let (read, error) = decode(SlowReader(&bytes, step));
        prop_assert!(error.is_none(), "{}", error.unwrap());
        prop_assert_eq!(read, frames);
    }

    #[test]
    fn cut_stream_returns_its_whole_frames(bodies in prop::collection::vec(body(), 0..6), at: prop::sample::Index) {
        let frames = whole_stream(bodies);
        let bytes = stream_of(&frames);
        let at = at.index(bytes.len());
        let (read, error) = decode(&bytes[..at]);
        let cut = matches!(error, Some(ReadError::Cut { .. }));
        prop_assert!(cut);
        prop_assert_eq!(&frames[..read.len()], &read[..]);
        prop_assert!(stream_of(&frames[..=read.len()]).len() > at, "no whole frame is left out");
    }

    /// A program that passes a stream on undecoded needs the bytes of each value and everything after the last one.
    #[test]
    fn bytes_of_all_values_and_the_rest_are_the_stream(
        bodies in prop::collection::vec(body(), 0..6),
        step in 1usize..50,
    ) {
        let frames: Vec<Frame> = std::iter::once(hello()).chain(bodies).collect();
        let bytes = stream_of(&frames);
        let mut reader = FrameReader::new(SlowReader(&bytes, step));
        let mut read = Vec::new();
        for at in 0..frames.len() - 1 {
            reader.next_frame().unwrap();
            prop_assert_eq!(reader.last_value(), &stream_of(&frames[..=at])[read.len()..]);
            read.extend_from_slice(reader.last_value());
        }
        let (rest, mut input) = reader.into_rest();
        read.extend(rest);
        input.read_to_end(&mut read).unwrap();
        prop_assert_eq!(read, bytes);
    }

    #[test]
    fn any_bytes_are_frames_or_one_error(bytes in prop::collection::vec(any::<u8>(), 0..300), step in 1usize..64) {
        let (frames, error) = decode(SlowReader(&bytes, step));
        prop_assert!(error.is_some() || !frames.is_empty());
    }

    #[test]
    fn changed_byte_never_panics(bodies in prop::collection::vec(body(), 1..4), at: prop::sample::Index, byte: u8) {
        let frames = whole_stream(bodies);
        let mut bytes = stream_of(&frames);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        decode(&bytes[..]);
    }
}

#[test]
fn encoding_of_a_record_is_fixed() {
    let record = Record {
        time_ns: 1_700_000_000_000_000_001,
        start_ns: 1_700_000_000_000_000_000,
        flow: 7,
        direction: Direction::ToGateway,
        content_type: ContentType::ApplicationData,
        length: 300,
        plaintext: Some([276, 276]),
        handshake: false,
        protocol: Protocol::Tls,
    };
    let golden = "81a67265636f726488\
        a774696d655f6e73cf17979cfe362a0001\
        a873746172745f6e73cf17979cfe362a0000\
        a4666c6f7707\
        a9646972656374696f6eaa746f5f67617465776179\
        ac636f6e74656e745f7479706517\
        a66c656e677468cd012c\
        a9706c61696e7465787492cd0114cd0114\
        a968616e647368616b65c2";
    let golden: Vec<u8> =
        (0..golden.len()).step_by(2).map(|at| u8::from_str_radix(&golden[at..at + 2], 16).unwrap()).collect();
    assert_eq!(stream_of(&[Frame::Record(record)]), golden);
}

#[test]
fn encoding_of_a_segment_row_is_a_list_with_binary_payload() {
    let mut batch = Segments::new();
    batch.push(Segment {
        time_ns: 5,
        flow: 1,
        direction: Direction::FromGateway,
        sequence: 9,
        flags: 24,
        length: 3,
        payload: &[1, 2],
        acknowledgement: Some(300),
    });
    assert_eq!(
        stream_of(&[Frame::from(batch)]),
        [b"\x81\xa8segments\x91\x98\x05\x01\x01\x09\x18\x03\xc4\x02\x01\x02\xcd\x01\x2c".as_slice()].concat()
    );
}

#[test]
fn unknown_fields_and_row_entries_are_ignored() {
    let mut bytes = stream_of(&[hello()]);
    bytes.extend(b"\x81\xa7packets\x91\x98\x01\x01\x02\xc4\x01\xff\x00\x01\xa3new\x90");
    bytes.extend(b"\x81\xa7session\x86\xa7time_ns\x01\xa4flow\x02\xabserver_name\xc0");
    bytes.extend(b"\xabtls_version\xc0\xaccipher_suite\xc0\xa3new\x81\x01\x02");
    bytes.extend(
        b"\x81\xa7summary\x82\xa3new\x07\xa6stages\x91\x84\xa5stage\xa1x\xa7skipped\x05\xa4name\xa1y\xa4list\x91\x01",
    );
    let (frames, error) = decode(&bytes[..]);
    assert!(error.is_none(), "{}", error.unwrap());
    let Frame::Packets(batch) = &frames[1] else { panic!("{:?}", frames[1]) };
    assert_eq!(batch.iter().next().unwrap().data, [0xff]);
    let Frame::Summary(summary) = &frames[3] else { panic!("{:?}", frames[3]) };
    assert_eq!(summary.stages[0].counters.get("skipped"), Some(&5));
    assert_eq!(summary.stages[0].counters.len(), 1);
}

#[test]
fn errors_describe_the_fault() {
    let message = |bytes: &[u8]| decode(bytes).1.unwrap().to_string();
    let framed = |value: &[u8]| [&stream_of(&[hello()]), value].concat();
    assert!(message(b"\xd4\xc3\xb2\xa1aaaaaaaaaaaaaaaa").contains("captures go through `capture` first"));
    assert!(message(b"").contains("is empty"));
    assert!(message(&stream_of(&[Frame::Summary(Summary::default())])).contains("must begin with `hello`"));
    assert!(message(&framed(&stream_of(&[hello()]))).contains("second `hello`"));
    assert!(message(&framed(b"\x81\xa6record\x80")).contains("`record` that cannot be read: missing field"));
    assert!(message(&framed(b"\x82\xa1a\x01\xa1b\x02")).contains("one entry"));
    let newer = Frame::from(Hello { schema: 2, stage: "x".into(), version: "9".into(), upstream: vec![] });
    assert!(message(&stream_of(&[newer])).contains("schema 2"));
    let deep = framed(&[b"\x81\xa6record".as_slice(), &[0x91; 5000], b"\x01"].concat());
    assert!(message(&deep).contains("cannot be read"));
}

#[test]
fn frame_above_the_size_limit_is_not_written() {
    let unknown = Frame::Unknown(Unknown { kind: "big".into(), value: vec![0xc0; MAX_VALUE_BYTES + 1] });
    let mut bytes = Vec::new();
    let mut writer = FrameWriter::new(&mut bytes);
    assert!(writer.write(&unknown).unwrap_err().to_string().contains("more than the 16777216"));
    writer.write(&hello()).unwrap();
    writer.flush().unwrap();
    drop(writer);
    assert_eq!(bytes, stream_of(&[hello()]));
}
