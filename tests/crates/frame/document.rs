//! `docs/frames.md` matches the types: every field with its type, the worked bytes, the words of notices, the limits,
//! and a stage in Python that works.

use std::collections::BTreeSet;

use super::samples::{Nulls, samples};
use super::specification::{code, section, table};
use rmpv::Value;
use sizeleak_frame::{
    BATCH_BYTES, BATCH_ROWS, Command, Correction, Direction, Frame, FrameReader, Hello, KINDS, MAX_DEPTH,
    MAX_VALUE_BYTES, Packet, Packets, ReadError, SCHEMA, Segment, Segments, SingleReply, StageSummary, Summary,
    WeightedEpsilon,
};
use support::streams::stream_of;

pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<Frame>, ReadError> {
    let mut reader = FrameReader::new(bytes);
    std::iter::from_fn(|| reader.next_frame().transpose()).collect()
}

/// The type of an encoded value in the document's words.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Nil => "null",
        Value::Boolean(_) => "bool",
        Value::F64(_) => "f64",
        Value::String(_) => "text",
        Value::Binary(_) => "bin",
        Value::Array(_) => "list",
        Value::Map(_) => "map",
        Value::Integer(number) => match number.as_u64() {
            None => "i64",
            Some(0..=0xff) => "u8",
            Some(0x100..=0xffff) => "u16",
            Some(0x1_0000..=0xffff_ffff) => "u32",
            Some(_) => "u64",
        },
        Value::F32(_) | Value::Ext(..) => "none of the contract's",
    }
}

/// A body as tables: `kind` for itself, and `kind.field` for each of its fields that is a list of maps.
fn tables(kind: &str, body: &Value) -> Vec<(String, Vec<(String, &'static str)>)> {
    let fields = body.as_map().unwrap_or_else(|| panic!("`{kind}` is no map"));
    let named = fields.iter().map(|(name, value)| (name.as_str().unwrap().to_owned(), type_of(value))).collect();
    let inner = fields.iter().filter_map(|(name, value)| {
        let entry = value.as_array()?.first().filter(|entry| entry.is_map())?;
        Some(tables(&format!("{kind}.{}", name.as_str().unwrap()), entry))
    });
    [vec![(kind.to_owned(), named)], inner.flatten().collect()].concat()
}

/// Every table of every kind, as it is encoded. Rows have no names on the wire: the document names them by position.
fn encoded(nulls: Nulls) -> Vec<(String, Vec<(String, &'static str)>)> {
    let frames = samples(nulls);
    assert_eq!(frames.iter().map(Frame::kind).collect::<Vec<_>>(), KINDS, "a sample of every kind");
    let whole = |frame: &Frame| {
        let value = rmpv::decode::read_value(&mut &stream_of(std::slice::from_ref(frame))[..]).unwrap();
        let (kind, body) = value.as_map().unwrap()[0].clone();
        let kind = kind.as_str().unwrap().to_owned();
        match body.as_array() {
            None => tables(&kind, &body),
            Some(rows) => {
                let names = table(&section(&kind)).into_iter().map(|field| field.name);
                let row = rows[0].as_array().unwrap();
                assert_eq!(names.len(), row.len(), "`{kind}` has rows of {} entries", row.len());
                vec![(kind, names.zip(row.iter().map(type_of)).collect())]
            }
        }
    };
    frames.iter().flat_map(whole).collect()
}

#[test]
fn every_field_is_documented_with_its_type() {
    for nulls in [Nulls::Given, Nulls::Null] {
        for (heading, fields) in encoded(nulls) {
            let text = section(&heading);
            let mut documented = table(&text);
            for (sentence, other) in [
                ("\nAll fields of `command`, and:\n", "command"),
                ("\nThe fields of `correction.shifts`.\n", "correction.shifts"),
            ] {
                if text.contains(sentence) {
                    documented.splice(0..0, table(&section(other)));
                }
            }
            let expected: Vec<(String, &str)> = documented
                .iter()
                .map(|field| {
                    let null = nulls == Nulls::Null && field.nullable;
                    (field.name.clone(), if null { "null" } else { &*field.kind })
                })
                .collect();
            assert_eq!(fields, expected, "what is encoded, and what the table of `{heading}` says");
        }
    }
}

/// The entries of rows are distinguished by their content.
#[test]
fn rows_are_in_the_documented_order() {
    let mut packets = Packets::new();
    packets.push(Packet { time_ns: 1, link_type: 2, original_length: 3, data: &[4], capture: 5, number: 6 });
    let mut segments = Segments::new();
    let direction = Direction::FromGateway;
    let acknowledgement = Some(8);
    segments.push(Segment {
        time_ns: 2,
        flow: 3,
        direction,
        sequence: 4,
        flags: 5,
        length: 6,
        payload: &[7],
        acknowledgement,
    });
    let named = [
        ("packets", Frame::from(packets), "time_ns=1 link_type=2 original_length=3 data=4 capture=5 number=6"),
        (
            "segments",
            segments.into(),
            "time_ns=2 flow=3 direction=1 sequence=4 flags=5 length=6 payload=7 acknowledgement=8",
        ),
    ];
    for (kind, frame, expected) in named {
        let value = rmpv::decode::read_value(&mut &stream_of(&[frame])[..]).unwrap();
        let row = value[kind][0].as_array().unwrap().clone();
        let number = |value: &Value| value.as_u64().unwrap_or_else(|| value.as_slice().unwrap()[0].into());
        let cells = table(&section(kind)).into_iter().zip(&row);
        let cells: Vec<String> = cells.map(|(field, value)| format!("{}={}", field.name, number(value))).collect();
        assert_eq!(cells.join(" "), expected);
    }
}

fn worked_stream() -> Vec<Frame> {
    let time_ns = 1_767_600_000_000_000_000;
    let command = Command {
        time_ns,
        end_ns: time_ns,
        flow: 7,
        size: 300,
        plaintext: Some([276, 276]),
        records: 1,
        replies: 2,
        reply_bytes: 180,
        single_replies: [(20_000_000, 90), (40_000_000, 90)].map(SingleReply::from).into(),
        ..Command::default()
    };
    let stage = StageSummary { stage: "demo".into(), frames_out: 1, ..StageSummary::default() };
    vec![
        Hello { schema: SCHEMA, stage: "demo".into(), version: "1.0".into(), upstream: Vec::new() }.into(),
        command.into(),
        Summary { stages: vec![stage] }.into(),
    ]
}

/// The lines of the worked stream: bytes and their explanation.
fn worked_lines() -> Vec<(Vec<u8>, String)> {
    let line = |line: &str| {
        let (hex, comment) = line.split_once('#').expect("bytes, then what they say");
        let bytes = hex.split_whitespace().map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
        (bytes, comment.trim().to_owned())
    };
    code("hex").lines().map(line).collect()
}

#[test]
fn worked_example_decodes_to_its_frames() {
    let bytes: Vec<u8> = worked_lines().into_iter().flat_map(|(bytes, _)| bytes).collect();
    assert_eq!(decode(&bytes).unwrap(), worked_stream());
    assert_eq!(stream_of(&worked_stream()), bytes);
    let mut rest = &bytes[..];
    let values = std::iter::from_fn(|| (!rest.is_empty()).then(|| rmpv::decode::read_value(&mut rest).unwrap()));
    let lines: Vec<String> = values.map(|value| super::specification::json(&value)).collect();
    assert_eq!(code("json").lines().collect::<Vec<_>>(), lines);
}

#[test]
fn every_worked_byte_is_explained() {
    for (bytes, comment) in worked_lines() {
        let explained = comment.split(';').next().unwrap();
        assert_eq!(super::specification::tokens(&bytes), explained, "what {bytes:02x?} say");
    }
}

#[test]
fn every_kind_of_notice_is_documented() {
    let source = include_str!("../../../crates/frame/src/summary.rs");
    let words: BTreeSet<&str> = source
        .lines()
        .filter_map(|line| line.trim().strip_prefix("pub const ")?.split_once('"')?.1.strip_suffix("\";"))
        .collect();
    assert!(words.contains(sizeleak_frame::what::GAP) && words.contains(sizeleak_frame::what::SUPPRESSED));
    let documented = super::specification::words();
    assert_eq!(documented.iter().map(String::as_str).collect::<BTreeSet<_>>(), words);
}

#[test]
fn documented_limits_match_the_code() {
    let limits = super::specification::chapter("7. Limits");
    let mebibytes = format!("| a value | {} MiB:", MAX_VALUE_BYTES >> 20);
    let rows = format!("| rows of a batch | {BATCH_ROWS} at most |");
    let data = format!("its rows carry {} KiB", BATCH_BYTES >> 10);
    let depth = format!("at most {MAX_DEPTH} deep");
    for limit in [mebibytes, rows, data, depth] {
        assert!(limits.contains(&limit), "the limits do not say: {limit}");
    }
    assert!(super::specification::chapter("8. Versions").contains(&format!("`schema` is {SCHEMA}.")));
    assert!(section("hello").contains(&format!("the version of this contract: {SCHEMA}.")));
}

/// Section 1 lists the choices a writer has.
#[test]
fn documented_variants_of_encoding_are_accepted() {
    let [hello, _, summary] = &worked_stream()[..] else { panic!() };
    let stream = |value: &Value| {
        let mut bytes = stream_of(std::slice::from_ref(hello));
        rmpv::encode::write_value(&mut bytes, value).unwrap();
        bytes.extend(stream_of(std::slice::from_ref(summary)));
        decode(&bytes).map(|frames| frames[1].clone())
    };
    let map = |entries: &[(&str, Value)]| {
        Value::Map(entries.iter().map(|(name, value)| (Value::from(*name), value.clone())).collect())
    };
    let epsilon = map(&[("weight", 1.into()), ("epsilon", 0.into())]);
    let fields = ["reply_bytes", "replies", "records", "size", "flow", "end_ns", "time_ns"];
    let mut entries: Vec<(&str, Value)> = vec![("new", Value::Nil), ("epsilons", Value::Array(vec![epsilon]))];
    entries.extend(fields.map(|name| (name, Value::from(5))));
    let command = Command {
        time_ns: 5,
        end_ns: 5,
        flow: 5,
        size: 5,
        records: 5,
        replies: 5,
        reply_bytes: 5,
        ..Command::default()
    };
    let epsilons = [WeightedEpsilon { epsilon: 0, weight: 1.0 }].into();
    let read = stream(&map(&[("correction", map(&entries))])).unwrap();
    assert_eq!(read, Correction::unshifted(command, epsilons).into());
    *entries.last_mut().unwrap() = ("time_ns", Value::from(5.0));
    assert!(stream(&map(&[("correction", map(&entries))])).is_err(), "a float is no time");
    entries.pop();
    assert!(stream(&map(&[("correction", map(&entries))])).is_err(), "a time must be there");
}
