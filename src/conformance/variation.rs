//! Variations of a stream at the level of `MessagePack` values: valid ones that every stage must accept, and invalid
//! ones.

use rmpv::Value;
use sizeleak_frame::{Frame, KINDS, Notice};

use crate::conformance::recorded_stream::encode;

#[cfg(test)]
mod tests;

/// An unknown kind. Its frames hold every type of value.
pub(crate) const UNKNOWN: &str = "check_weather";

pub(crate) fn values(frames: &[Frame]) -> Vec<Value> {
    let bytes = encode(frames);
    let mut rest = &*bytes;
    let next = || rmpv::decode::read_value(&mut rest).ok();
    std::iter::from_fn(next).collect()
}

pub(crate) fn bytes(values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for value in values {
        // Writing to a vector does not fail.
        let written = rmpv::encode::write_value(&mut bytes, value);
        debug_assert!(written.is_ok(), "{written:?}");
    }
    bytes
}

/// A frame of the unknown kind. Different numbers show whether the order is kept.
fn unknown(number: u64) -> Value {
    let pairs = [
        ("number", number.into()),
        ("negative", (-5).into()),
        ("large", u64::MAX.into()),
        ("nothing", Value::Nil),
        ("truth", true.into()),
        ("ratio", 0.1.into()),
        ("text", "größer".into()),
        ("data", Value::Binary(vec![0, 255])),
        ("list", Value::Array(vec![1.into(), Value::Array(Vec::new())])),
        ("map", Value::Map(vec![(1.into(), "one".into()), ("two".into(), Value::Map(Vec::new()))])),
    ];
    frame(UNKNOWN, map(pairs))
}

pub(crate) fn large_unknown(bytes: usize) -> Value {
    frame(UNKNOWN, map([("data", Value::Binary(vec![7; bytes]))]))
}

fn frame(kind: &str, body: Value) -> Value {
    map([(kind, body)])
}

fn map<const N: usize>(pairs: [(&str, Value); N]) -> Value {
    Value::Map(pairs.map(|(key, value)| (key.into(), value)).into())
}

/// The stream with frames of the unknown kind at the start, in the middle and before the end, and a notice behind each:
/// what goes well makes none, so that a recorded stream may have none to pass on.
pub(crate) fn with_unknown_kinds(frames: &[Frame]) -> Vec<Value> {
    let mut values = values(frames);
    let notices = values_of_notices();
    for (at, number) in [(values.len().saturating_sub(1), 3), (values.len() / 2, 2), (1, 1)] {
        let at = at.min(values.len());
        values.splice(at..at, std::iter::once(unknown(number)).chain(notices.iter().cloned()));
    }
    values
}

/// A notice of a stage that is not in the stream.
fn values_of_notices() -> Vec<Value> {
    values(&[Notice::new("check-stage", "check_notice", "a notice that is to be passed on".into()).into()])
}

/// The stream with an unknown field in every frame and an unknown entry in every row.
pub(crate) fn with_unknown_fields(frames: &[Frame]) -> Vec<Value> {
    let extend = |body: &mut Value| match body {
        Value::Map(fields) => fields.push(("check_extra".into(), Value::Array(vec!["new".into()]))),
        Value::Array(rows) => {
            rows.iter_mut().filter_map(entries_of).for_each(|entries| entries.push("new".into()));
        }
        _ => {}
    };
    let mut values = values(frames);
    values.iter_mut().filter_map(body_of).for_each(extend);
    values
}

fn body_of(frame: &mut Value) -> Option<&mut Value> {
    let Value::Map(entries) = frame else { return None };
    entries.first_mut().map(|(_, body)| body)
}

fn entries_of(row: &mut Value) -> Option<&mut Vec<Value>> {
    if let Value::Array(entries) = row { Some(entries) } else { None }
}

/// The first frame of `kind` with a string for every value, so every field has the wrong type.
pub(crate) fn mistyped(frames: &[Frame], kind: &str) -> Option<Value> {
    let first = frames.iter().find(|frame| frame.kind() == kind)?;
    let mut value = values(std::slice::from_ref(first)).pop()?;
    match body_of(&mut value)? {
        Value::Map(fields) => fields.iter_mut().for_each(|(_, value)| *value = "?".into()),
        Value::Array(rows) => rows.iter_mut().filter_map(entries_of).for_each(|entries| entries.fill("?".into())),
        _ => {}
    }
    Some(value)
}

/// The stream in an equivalent encoding: the longest form of everything, fields in reverse order, and fields that are
/// null left out.
pub(crate) fn reencoded(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for mut value in values(frames) {
        let known = value.as_map().and_then(|frame| frame.first()).and_then(|(kind, _)| kind.as_str());
        if known.is_some_and(|kind| KINDS.contains(&kind))
            && let Some(Value::Map(fields)) = body_of(&mut value)
        {
            fields.retain(|(_, value)| !value.is_nil());
            fields.reverse();
        }
        write_long(&mut bytes, &value);
    }
    bytes
}

/// The stream with null for every `plaintext`, like that of sessions whose handshake was not captured.
pub(crate) fn without_plaintext(frames: &[Frame]) -> Vec<Frame> {
    let mut frames = frames.to_vec();
    for frame in &mut frames {
        match frame {
            Frame::Record(record) => record.plaintext = None,
            Frame::Command(command) => command.plaintext = None,
            Frame::Correction(correction) => correction.command.plaintext = None,
            Frame::Identification(identification) => identification.command.plaintext = None,
            _ => {}
        }
    }
    frames
}

fn write_long(out: &mut Vec<u8>, value: &Value) {
    let head = |out: &mut Vec<u8>, marker: u8, length: usize| {
        out.push(marker);
        out.extend((length as u32).to_be_bytes());
    };
    match value {
        Value::Integer(number) => match (number.as_u64(), number.as_i64()) {
            (Some(number), _) => {
                out.push(0xcf);
                out.extend(number.to_be_bytes());
            }
            (None, number) => {
                out.push(0xd3);
                out.extend(number.unwrap_or(0).to_be_bytes());
            }
        },
        Value::String(text) => {
            head(out, 0xdb, text.as_bytes().len());
            out.extend(text.as_bytes());
        }
        Value::Binary(data) => {
            head(out, 0xc6, data.len());
            out.extend(data);
        }
        Value::Array(values) => {
            head(out, 0xdd, values.len());
            for value in values {
                write_long(out, value);
            }
        }
        Value::Map(entries) => {
            head(out, 0xdf, entries.len());
            for (key, value) in entries {
                write_long(out, key);
                write_long(out, value);
            }
        }
        other => out.extend(bytes(std::slice::from_ref(other))),
    }
}
