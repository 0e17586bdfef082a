//! Tests of `json`.

use sizeleak_frame::{Direction, Packets, Segments, Summary, Unknown};

use super::*;

fn lines(frame: &Frame, binary: HexLength) -> Vec<String> {
    let mut output = Vec::new();
    let mut names = FlowNames::default();
    names.observe(frame);
    JsonLines(binary).write(frame, &names, &mut output).unwrap();
    String::from_utf8(output).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn each_row_of_a_batch_is_a_line() {
    let mut packets = Packets::new();
    for number in 1..3 {
        let data = &[0xab; 3];
        packets.push(Packet { time_ns: 7, link_type: 1, original_length: 9, data, capture: 0, number });
    }
    let expected = |number| {
        format!(
            "{{\"packet\":{{\"time_ns\":7,\"link_type\":1,\"original_length\":9,\"data\":\"abab…\",\"capture\":0,\
                 \"number\":{number}}}}}"
        )
    };
    assert_eq!(lines(&packets.into(), HexLength::AtMost(2)), [expected(1), expected(2)]);
    let mut segments = Segments::new();
    let direction = Direction::FromGateway;
    segments.push(Segment {
        time_ns: 1,
        flow: u64::MAX,
        direction,
        sequence: 2,
        flags: 24,
        length: 9,
        payload: b"\0",
        acknowledgement: Some(7),
    });
    let line = lines(&segments.into(), HexLength::Whole).join("");
    assert!(line.contains("\"flow\":\"Fffffffffffffffff\",\"direction\":\"from_gateway\""), "{line}");
    assert!(line.contains("\"payload\":\"00\""), "{line}");
}

#[test]
fn counters_are_fields_and_histograms_hex() {
    let row = StageSummary {
        stage: "x".into(),
        counters: [("gaps".to_owned(), 3)].into(),
        latency: vec![1; 40],
        ..StageSummary::default()
    };
    let line = lines(&Summary { stages: vec![row] }.into(), HexLength::AtMost(1)).join("");
    assert!(line.starts_with("{\"summary\":{\"stages\":[{\"stage\":\"x\",\"frames_in\":0,"), "{line}");
    assert!(line.contains("\"gaps\":3,\"latency\":\"01…\",\"queue\":\"\""), "{line}");
}

#[test]
fn unknown_kinds_are_json_where_possible_else_hex() {
    let readable = [&[0x81, 0xa3][..], b"new", &[0x81, 0xa1, b'a', 0x01]].concat();
    let frame = Frame::Unknown(Unknown { kind: "new".into(), value: readable });
    assert_eq!(lines(&frame, HexLength::default()), ["{\"new\":{\"a\":1}}"]);
    // An extension type, which JSON does not have.
    let other = [&[0x81, 0xa3][..], b"new", &[0xd4, 0x05, 0x00]].concat();
    let frame = Frame::Unknown(Unknown { kind: "new".into(), value: other });
    assert_eq!(lines(&frame, HexLength::default()), ["{\"new\":\"81a36e6577d40500\"}"]);
}
