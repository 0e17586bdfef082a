//! Frames as rows of columns, for CSV, Parquet and Arrow.

use serde_json::Value;

use ColumnType::{Bytes, Counts, Flag, Float, Signed, Structs, Text, Texts, Time, Unsigned};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) content: ColumnType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Nanoseconds since the epoch.
    Time,
    Unsigned,
    Signed,
    Float,
    Flag,
    Text,
    Bytes,
    Texts,
    Counts,
    Structs(&'static [(&'static str, ColumnType)]),
}

const COMMAND: &[(&str, ColumnType)] = &[
    ("time_ns", Time),
    ("end_ns", Time),
    ("flow", Text),
    ("size", Unsigned),
    ("plaintext_min", Unsigned),
    ("plaintext_max", Unsigned),
    ("records", Unsigned),
    ("replies", Unsigned),
    ("reply_bytes", Unsigned),
    ("direction", Text),
    ("single_replies", Structs(&[("after_ns", Unsigned), ("length", Unsigned)])),
];

/// The ends of a row's flow, which other frames name.
const ENDS: &[(&str, ColumnType)] = &[("gateway", Text), ("service", Text)];

const PACKETS: &[(&str, ColumnType)] = &[
    ("time_ns", Time),
    ("link_type", Unsigned),
    ("original_length", Unsigned),
    ("data", Bytes),
    ("capture", Unsigned),
    ("number", Unsigned),
];

const FLOW: &[(&str, ColumnType)] = &[
    ("flow", Text),
    ("gateway", Text),
    ("gateway_port", Unsigned),
    ("service", Text),
    ("transport", Text),
    ("encapsulation", Text),
];

const SESSION: &[(&str, ColumnType)] = &[
    ("time_ns", Time),
    ("flow", Text),
    ("server_name", Text),
    ("tls_version", Text),
    ("cipher_suite", Text),
    ("protocol", Text),
];

const DEVIATION: &[(&str, ColumnType)] = &[
    ("time_ns", Time),
    ("gateway", Text),
    ("what", Text),
    ("p_value", Float),
    ("expected", Text),
    ("seen", Text),
    ("commands", Structs(&[("flow", Text), ("time_ns", Time)])),
];

const NOTICE: &[(&str, ColumnType)] =
    &[("time_ns", Time), ("stage", Text), ("flow", Text), ("what", Text), ("bytes", Unsigned), ("detail", Text)];

const RECORD: &[(&str, ColumnType)] = &[
    ("time_ns", Time),
    ("start_ns", Time),
    ("flow", Text),
    ("direction", Text),
    ("content_type", Unsigned),
    ("length", Unsigned),
    ("plaintext_min", Unsigned),
    ("plaintext_max", Unsigned),
    ("handshake", Flag),
    ("protocol", Text),
];

const SEGMENT: &[(&str, ColumnType)] = &[
    ("time_ns", Time),
    ("flow", Text),
    ("direction", Text),
    ("sequence", Unsigned),
    ("flags", Unsigned),
    ("length", Unsigned),
    ("payload", Bytes),
    ("acknowledgement", Unsigned),
];

const SHIFTS: ColumnType =
    Structs(&[("bytes", Signed), ("reply_bytes", Signed), ("probability", Float), ("since_ns", Time)]);

/// The lists of which CSV shows the first entry, if any: those of the columns of the same names.
const LISTS: [&str; 4] = ["candidates", "epsilons", "shifts", "commands"];

/// Lists of which CSV shows nothing: they are sums over candidates.
const SUMS: [&str; 2] = ["numbers", "device_types"];

const CORRECTION: &[(&str, ColumnType)] = &[
    ("epsilon", Signed),
    ("weight", Float),
    ("epsilons", Structs(&[("epsilon", Signed), ("weight", Float)])),
    ("shifts", SHIFTS),
];

const IDENTIFICATION: &[(&str, ColumnType)] = &[
    ("candidate_count", Unsigned),
    ("listed", Unsigned),
    ("min_actions", Unsigned),
    ("max_actions", Unsigned),
    ("size_probability", Float),
    ("reply_probability", Float),
    ("actions", Counts),
    ("epsilon", Signed),
    ("probability", Float),
    ("candidates", Structs(&[("actions", Counts), ("epsilon", Signed), ("probability", Float), ("likelihood", Float)])),
    ("shifts", SHIFTS),
    ("numbers", Structs(&[("actions", Unsigned), ("probability", Float)])),
    ("device_types", Structs(&[("device", Text), ("probability", Float)])),
];

/// The columns of a kind in order; `None` for an unknown kind.
pub(crate) fn columns(kind: &str) -> Option<Vec<Column>> {
    let own: &[_] = match kind {
        "hello" => &[("schema", Unsigned), ("stage", Text), ("version", Text), ("upstream", Texts)],
        "packets" => PACKETS,
        "flow" => FLOW,
        "segments" => SEGMENT,
        "session" => SESSION,
        "record" => RECORD,
        "command" => &[],
        "correction" => CORRECTION,
        "identification" => IDENTIFICATION,
        "deviation" => DEVIATION,
        "notice" => NOTICE,
        "summary" => &[("stage", Text), ("frames_in", Unsigned), ("frames_out", Unsigned), ("bytes_in", Unsigned)],
        _ => return None,
    };
    let of_command: &[_] = if matches!(kind, "command" | "correction" | "identification") { COMMAND } else { &[] };
    let ends = if matches!(kind, "hello" | "packets" | "flow" | "deviation" | "summary") { &[] } else { ENDS };
    Some(of_command.iter().chain(own).chain(ends).map(|(name, content)| Column { name, content: *content }).collect())
}

/// The name of a column whose type says the unit of times, or where they are seconds: `time` for `time_ns`.
pub(crate) fn typed_name(name: &str, content: ColumnType) -> &str {
    if content == Time { name.strip_suffix("_ns").unwrap_or(name) } else { name }
}

/// The columns of a kind that are text or a number; a list of which they show the first entry, or nothing, is left out.
pub(crate) fn flat_columns(kind: &str) -> Option<Vec<Column>> {
    let is_flat = |column: &Column| !LISTS.contains(&column.name) && !SUMS.contains(&column.name);
    columns(kind).map(|columns| columns.into_iter().filter(is_flat).collect())
}

pub fn has_columns(kind: &str) -> bool {
    columns(kind).is_some()
}

/// The rows of a body: one, or one per stage of a summary.
pub(crate) fn rows(body: &Value) -> impl Iterator<Item = &Value> {
    match body.get("stages").and_then(Value::as_array) {
        Some(stages) => stages.iter(),
        None => std::slice::from_ref(body).iter(),
    }
}

pub(crate) fn cell<'a>(row: &'a Value, column: &str) -> Option<&'a Value> {
    let first = |list: &str| row.get(list).and_then(|list| list.get(0));
    let found = match column {
        "plaintext_min" => row.get("plaintext").and_then(|range| range.get(0)),
        "plaintext_max" => row.get("plaintext").and_then(|range| range.get(1)),
        "epsilon" | "weight" | "probability" | "actions" => {
            first("candidates").or(first("epsilons")).and_then(|entry| entry.get(column))
        }
        _ => row.get(column),
    };
    found.filter(|value| !value.is_null())
}

/// The value of the field at this place in an entry of a list or, with its key, of a map; `None` if it is null.
#[cfg(any(feature = "parquet", feature = "arrow"))]
pub(crate) fn entry_value<'a>(
    content: ColumnType,
    key: Option<&'a Value>,
    entry: &'a Value,
    name: &str,
    at: usize,
) -> Option<&'a Value> {
    let value = match (key, at) {
        (Some(key), 0) => Some(key),
        // A struct is a map of its fields, or a list of them in order.
        _ if matches!(content, Structs(_)) => entry.get(name).or_else(|| entry.get(at)),
        _ => Some(entry),
    };
    value.filter(|value| !value.is_null())
}

/// A value as text; the entries of a list are separated by spaces.
pub(crate) fn cell_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(_) | Value::Object(_) => entries(value).join(" "),
        other => other.to_string(),
    }
}

/// The entries of a list, or of a map, as `on=2`. Of structs, of which single replies are the only ones, the lengths.
pub(crate) fn entries(value: &Value) -> Vec<String> {
    let counts = value.as_object().into_iter().flatten().map(|(name, count)| format!("{name}={count}"));
    let listed = value.as_array().into_iter().flatten().map(|entry| cell_text(entry.get(1).unwrap_or(entry)));
    counts.chain(listed).collect()
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::KINDS;

    use super::*;

    #[test]
    fn every_kind_has_columns() {
        assert!(KINDS.iter().all(|kind| has_columns(kind)) && !has_columns("new"));
    }
}
