//! Tests of `table`.

use std::sync::Arc;

use sizeleak_frame::{
    Candidate, Command, ContentType, Correction, Direction, Flow, Hello, Notice, Packet, Packets, Record, Segment,
    Segments, Session, StageSummary, Summary, Transport, Unknown, WeightedEpsilon,
};

use super::*;

fn written(frames: &[Frame]) -> String {
    let mut table = IdentificationTable::new(TextStyle::default());
    let (mut names, mut output) = (FlowNames::default(), Vec::new());
    for frame in frames {
        names.observe(frame);
        table.write(frame, &names, &mut output).unwrap();
    }
    String::from_utf8(output).unwrap()
}

fn command() -> Command {
    Command {
        time_ns: 1_767_600_000_012_345_678,
        end_ns: 0,
        flow: 1 << 32,
        size: 314,
        plaintext: Some([290, 290]),
        records: 1,
        replies: 2,
        reply_bytes: 90,
        ..Command::default()
    }
}

fn identification(candidates: Vec<Candidate>, count: u64) -> Frame {
    Frame::from(Identification {
        listed: candidates.len() as u64,
        candidates: candidates.into(),
        candidate_count: count,
        ..Identification::unanswered(command())
    })
}

fn flow(number: u64, gateway: &str, service: &str) -> Frame {
    let (gateway, service) = (gateway.parse().unwrap(), service.parse().unwrap());
    Flow::new(number, gateway, service, Transport::Tcp).into()
}

fn best() -> Candidate {
    let actions = Actions::from(vec![(Arc::from("on"), 2), (Arc::from("colour"), 1)]);
    Candidate { actions, epsilon: 0, probability: 0.41249, likelihood: None }
}

fn names(flows: &[Frame]) -> FlowNames {
    let mut names = FlowNames::default();
    for flow in flows {
        names.observe(flow);
    }
    names
}

/// The rows of commands at these times in these flows.
fn rows(flows: &[Frame], commands: &[(i64, u64)]) -> String {
    let (mut table, names) = (IdentificationTable::new(TextStyle::default()), names(flows));
    let mut output = Vec::new();
    for (time_ns, flow) in commands {
        let Frame::Identification(mut found) = identification(vec![best()], 18) else { panic!("an identification") };
        (found.command.time_ns, found.command.flow) = (*time_ns, *flow);
        table.write(&Frame::Identification(found), &names, &mut output).unwrap();
    }
    String::from_utf8(output).unwrap()
}

#[test]
fn identifications_are_aligned_rows_below_headings() {
    let mut table = IdentificationTable::new(TextStyle::default());
    let names = names(&[flow(1 << 32, "192.168.1.20", "203.0.113.1:443")]);
    let mut output = Vec::new();
    table.write(&identification(vec![best()], 18), &names, &mut output).unwrap();
    let without = |size_probability| {
        let Frame::Identification(mut found) = identification(vec![], 0) else { panic!("an identification") };
        found.size_probability = size_probability;
        Frame::Identification(found)
    };
    table.write(&without(Some(0.0)), &names, &mut output).unwrap();
    table.write(&without(None), &names, &mut output).unwrap();
    table.write(&identification(vec![], u64::MAX), &names, &mut output).unwrap();
    let text = String::from_utf8(output).unwrap();
    let expected = "\
2026-01-05  gateway 192.168.1.20  service 203.0.113.1:443
time (UTC)     size  replies  candidates  prob.  most probable actions
08:00:00.012    314        2          18  0.412  2 on, 1 colour
08:00:00.012    314        2           0      -  no actions add up to this size
08:00:00.012    314        2           0      -  not answered
08:00:00.012    314        2    too many      -  not answered
";
    assert_eq!(text, expected);
    assert!(text.lines().all(|line| line.len() <= 80));
    assert!(written(&[identification(vec![], 0)]).contains("gateway F0000000100000000  service -"), "an unknown flow");
}

#[test]
fn a_new_day_is_a_line() {
    let flows = [flow(1, "192.168.1.20", "203.0.113.1:443")];
    let day = 86_400_000_000_000;
    let expected = "\
1970-01-02  gateway 192.168.1.20  service 203.0.113.1:443
time (UTC)     size  replies  candidates  prob.  most probable actions
00:00:00.000    314        2          18  0.412  2 on, 1 colour
1970-01-04  gateway 192.168.1.20  service 203.0.113.1:443
00:00:00.000    314        2          18  0.412  2 on, 1 colour
00:00:00.001    314        2          18  0.412  2 on, 1 colour
";
    assert_eq!(rows(&flows, &[(day, 1), (3 * day, 1), (3 * day + 1_000_000, 1)]), expected);
}

#[test]
fn several_gateways_and_services_are_columns_also_of_ipv6() {
    let flows = [
        flow(1, "192.168.1.20", "203.0.113.1:443"),
        flow(2, "192.168.1.20", "203.0.113.129:8443"),
        flow(3, "2001:db8::20", "[2001:db8:1:2:3:4:5:6]:443"),
    ];
    let expected = "\
1970-01-01  gateway 192.168.1.20  service 203.0.113.1:443
time (UTC)     size  replies  candidates  prob.  most probable actions
00:00:00.000    314        2          18  0.412  2 on, 1 colour
1970-01-01  gateway 192.168.1.20
time (UTC)    service                    size  replies  candidates  prob.  most probable actions
00:00:00.000  203.0.113.129:8443          314        2          18  0.412  2 on, 1 colour
00:00:00.000  203.0.113.1:443             314        2          18  0.412  2 on, 1 colour
1970-01-01
time (UTC)    gateway           service                            size  replies  candidates  prob.  most probable actions
00:00:00.000  2001:db8::20      [2001:db8:1:2:3:4:5:6]:443          314        2          18  0.412  2 on, 1 colour
00:00:00.000  192.168.1.20      203.0.113.1:443                     314        2          18  0.412  2 on, 1 colour
";
    assert_eq!(rows(&flows, &[(0, 1), (0, 2), (0, 1), (0, 3), (0, 1)]), expected);
}

#[test]
fn every_other_kind_is_a_line_that_starts_with_its_name() {
    let mut packets = Packets::new();
    packets.push(Packet { time_ns: 0, link_type: 1, original_length: 60, data: &[1, 2], capture: 0, number: 1 });
    let mut segments = Segments::new();
    let direction = Direction::ToGateway;
    segments.push(Segment {
        time_ns: 0,
        flow: 1,
        direction,
        sequence: 1,
        flags: 24,
        length: 2,
        payload: &[1, 2],
        acknowledgement: None,
    });
    let record = Record {
        time_ns: 0,
        start_ns: 0,
        flow: 1,
        direction,
        content_type: ContentType::ApplicationData,
        length: 100,
        plaintext: Some([70, 76]),
        handshake: true,
        protocol: sizeleak_frame::Protocol::Tls,
    };
    let session = Session {
        time_ns: 0,
        flow: 1,
        server_name: None,
        tls_version: None,
        cipher_suite: Some("X".into()),
        protocol: None,
    };
    let hello = Hello { schema: 1, stage: "capture".into(), version: "1".into(), upstream: vec![] };
    let epsilons = [0, 1, -2, 3].map(|epsilon| WeightedEpsilon { epsilon, weight: 0.25 }).into();
    let notice = Notice {
        time_ns: None,
        stage: "record-sizer".into(),
        flow: Some(1),
        what: "gap".into(),
        bytes: Some(3),
        detail: None,
    };
    let row =
        StageSummary { stage: "capture".into(), counters: [("files".into(), 2)].into(), ..StageSummary::default() };
    let unknown = Unknown { kind: "new".into(), value: vec![0x81] };
    for (frame, words) in [
        (Frame::from(packets), "packet 1  link type 1  2 of 60 bytes  0102"),
        (segments.into(), "to_gateway    sequence 1           flags 18      2 bytes  0102"),
        (record.into(), "type 23    100 bytes  plaintext 70 to 76  handshake"),
        (session.into(), "-  X  -"),
        (hello.into(), "capture 1, schema 1"),
        (command().into(), "314 bytes  plaintext 290  1 record  2 replies of 90 bytes"),
        (Correction::unshifted(command(), epsilons).into(), "ε +0 (0.25), +1 (0.25), -2 (0.25), …"),
        (notice.into(), "record-sizer: gap  flow F0000000000000001  3 bytes"),
        (Summary { stages: vec![row] }.into(), "capture: 0 frames in, 0 out, 0 bytes  files 2"),
        (Frame::Unknown(unknown), "1 bytes  81"),
    ] {
        let text = written(std::slice::from_ref(&frame));
        let kind = frame.kind().trim_end_matches('s');
        assert!(text.starts_with(kind) && text.ends_with('\n') && text.contains(words), "{text}");
    }
}

/// A probability that rounds to 0 is none of 0.
#[test]
fn a_small_p_value_is_not_shown_as_zero() {
    let deviation = |p_value| Deviation {
        time_ns: 0,
        gateway: "g".into(),
        what: "burst".into(),
        p_value,
        expected: "none".into(),
        seen: "many".into(),
        commands: Vec::new(),
    };
    let shown = [0.0, 1e-9, 0.000_99, 0.001, 0.1071].map(|p_value| deviation_words(&deviation(p_value)));
    let expected = ["<0.001", "<0.001", "<0.001", "0.001", "0.107"];
    assert_eq!(shown, expected.map(|p_value| format!("burst (p {p_value}): many; usual: none")));
}
