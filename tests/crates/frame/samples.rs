//! A frame of every kind.

use sizeleak_frame::{
    Actions, Candidate, Command, CommandAt, ContentType, Correction, Deviation, DeviceTypeProbability, Direction, Flow,
    Frame, HabitFactors, Hello, Identification, Notice, NumberProbability, Packet, Packets, Protocol, Record,
    RecurringClass, Segment, Segments, Session, SharedList, Shift, SingleReply, StageSummary, Summary, Transport,
    WeightedEpsilon,
};

/// What may be null in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nulls {
    Given,
    Null,
}

impl Nulls {
    fn of<T>(self, value: T) -> Option<T> {
        (self == Self::Given).then_some(value)
    }
}

fn command(nulls: Nulls) -> Command {
    Command {
        time_ns: i64::MIN,
        end_ns: i64::MIN,
        flow: u64::MAX,
        size: u64::MAX,
        plaintext: nulls.of([u64::MAX; 2]),
        records: u32::MAX,
        replies: u32::MAX,
        reply_bytes: u64::MAX,
        single_replies: [SingleReply { after_ns: u64::MAX, length: u32::MAX }].into(),
        overlapped: true,
        shared_replies: [u32::MAX; 2].into(),
        reworded: [[u32::MAX, 0]].into(),
        ..Command::default()
    }
}

fn shifts(nulls: Nulls) -> SharedList<Shift> {
    let since_ns = nulls.of(i64::MIN);
    [Shift { bytes: i64::MIN, action: Some("dim".into()), reply_bytes: i64::MIN, probability: 0.5, since_ns }].into()
}

fn packets() -> Packets {
    let mut packets = Packets::new();
    packets.push(Packet {
        time_ns: i64::MIN,
        link_type: u16::MAX,
        original_length: u32::MAX,
        data: &[1],
        capture: u32::MAX,
        number: u64::MAX,
    });
    packets
}

/// A frame of every kind. Integers are as large as their type allows, or as small where it is signed.
pub(crate) fn samples(nulls: Nulls) -> Vec<Frame> {
    let text = || "x".to_owned();
    let (time_ns, flow) = (i64::MIN, u64::MAX);
    let mut segments = Segments::new();
    let direction = Direction::FromGateway;
    let (sequence, flags, length) = (u32::MAX, u8::MAX, u32::MAX);
    let acknowledgement = nulls.of(u32::MAX);
    segments.push(Segment { time_ns, flow, direction, sequence, flags, length, payload: &[1], acknowledgement });
    let plaintext = nulls.of([u64::MAX; 2]);
    let (content_type, protocol) = (ContentType::Heartbeat, Protocol::Quic);
    let actions = Actions::from(vec![("on".into(), u32::MAX)]);
    let stage = StageSummary {
        stage: text(),
        frames_in: u64::MAX,
        frames_out: u64::MAX,
        bytes_in: u64::MAX,
        latency: vec![1],
        queue: vec![1],
        ..StageSummary::default()
    };
    vec![
        Hello { schema: u32::MAX, stage: text(), version: text(), upstream: vec![text()] }.into(),
        packets().into(),
        Flow {
            flow,
            gateway: [1, 2, 3, 4].into(),
            service: ([1, 2, 3, 4], 5).into(),
            transport: Transport::Udp,
            encapsulation: nulls.of(text()),
            among_several: true,
            gateway_port: Some(u16::MAX),
        }
        .into(),
        segments.into(),
        Session {
            time_ns,
            flow,
            server_name: nulls.of(text()),
            tls_version: nulls.of(text()),
            cipher_suite: nulls.of(text()),
            protocol: nulls.of(text()),
        }
        .into(),
        Record {
            time_ns,
            start_ns: time_ns,
            flow,
            direction,
            content_type,
            length,
            plaintext,
            handshake: true,
            protocol,
        }
        .into(),
        command(nulls).into(),
        Correction {
            command: command(nulls),
            epsilons: vec![WeightedEpsilon { epsilon: i64::MIN, weight: 0.5 }].into(),
            shifts: shifts(nulls),
            habits: [HabitFactors { weight: 0.5, actions: [2.0].into(), numbers: [0.5].into() }].into(),
            recurring: [RecurringClass { bytes: i64::MIN, replies: [1, 0].into(), share: 0.5 }].into(),
        }
        .into(),
        Identification {
            command: command(nulls),
            candidates: vec![Candidate { actions, epsilon: i64::MIN, probability: 0.5, likelihood: Some(0.25) }].into(),
            candidate_count: u64::MAX,
            listed: u64::MAX,
            min_actions: nulls.of(u32::MAX),
            max_actions: nulls.of(u32::MAX),
            size_probability: nulls.of(0.25),
            reply_probability: nulls.of(0.125),
            shifts: shifts(nulls),
            numbers: [NumberProbability { actions: u64::MAX, probability: 0.5 }].into(),
            device_types: [DeviceTypeProbability { device: "x".into(), probability: 0.5 }].into(),
        }
        .into(),
        Deviation {
            time_ns,
            gateway: text(),
            what: "x".into(),
            p_value: 0.5,
            expected: text(),
            seen: text(),
            commands: vec![CommandAt { flow, time_ns }],
        }
        .into(),
        Notice {
            time_ns: nulls.of(time_ns),
            stage: "x".into(),
            flow: nulls.of(flow),
            what: "x".into(),
            bytes: nulls.of(u64::MAX),
            detail: nulls.of(text()),
        }
        .into(),
        Summary { stages: vec![stage] }.into(),
    ]
}
