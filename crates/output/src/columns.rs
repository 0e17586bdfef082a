//! Frames as rows of columns, for CSV and Parquet.

use serde_json::Value;

use ColumnType::{Bytes, Flag, Float, Signed, Text, Time, Unsigned};

/// A column of the frames of one kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) content: ColumnType,
}

/// The type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnType {
    /// Nanoseconds since the epoch.
    Time,
    Unsigned,
    Signed,
    Float,
    Flag,
    Text,
    /// Captured bytes.
    Bytes,
}

const COMMAND: &[(&str, ColumnType)] = &[
    ("time_ns", Time),
    ("end_ns", Time),
    ("flow", Unsigned),
    ("size", Unsigned),
    ("plaintext_min", Unsigned),
    ("plaintext_max", Unsigned),
    ("records", Unsigned),
    ("replies", Unsigned),
    ("reply_bytes", Unsigned),
    ("direction", Text),
    ("single_replies", Text),
];

/// The ends of a result's flow, which other frames name.
const ENDS: &[(&str, ColumnType)] = &[("gateway", Text), ("service", Text)];

const RECORD: &[(&str, ColumnType)] = &[
    ("time_ns", Time),
    ("start_ns", Time),
    ("flow", Unsigned),
    ("direction", Text),
    ("content_type", Unsigned),
    ("length", Unsigned),
    ("plaintext_min", Unsigned),
    ("plaintext_max", Unsigned),
    ("handshake", Flag),
];

const IDENTIFICATION: &[(&str, ColumnType)] = &[
    ("candidate_count", Unsigned),
    ("listed", Unsigned),
    ("min_actions", Unsigned),
    ("max_actions", Unsigned),
    ("actions", Text),
    ("epsilon", Signed),
    ("probability", Float),
];

/// The columns of a kind in order; `None` for an unknown kind.
pub(crate) fn columns(kind: &str) -> Option<Vec<Column>> {
    // The columns of its command, its own, and those of its flow for a result.
    let (of_command, own): (&[_], &[_]) = match kind {
        "hello" => (&[], &[("schema", Unsigned), ("stage", Text), ("version", Text), ("upstream", Text)]),
        "packets" => (
            &[],
            &[
                ("time_ns", Time),
                ("link_type", Unsigned),
                ("original_length", Unsigned),
                ("data", Bytes),
                ("capture", Unsigned),
                ("number", Unsigned),
            ],
        ),
        "flow" => (
            &[],
            &[("flow", Unsigned), ("gateway", Text), ("service", Text), ("transport", Text), ("encapsulation", Text)],
        ),
        "segments" => (
            &[],
            &[
                ("time_ns", Time),
                ("flow", Unsigned),
                ("direction", Text),
                ("sequence", Unsigned),
                ("flags", Unsigned),
                ("length", Unsigned),
                ("payload", Bytes),
                ("acknowledgement", Unsigned),
            ],
        ),
        "session" => (
            &[],
            &[
                ("time_ns", Time),
                ("flow", Unsigned),
                ("server_name", Text),
                ("tls_version", Text),
                ("cipher_suite", Text),
            ],
        ),
        "record" => (&[], RECORD),
        "command" => (COMMAND, &[]),
        // Only the first entry of each list, the most probable; JSON has them all.
        "correction" => (COMMAND, &[("epsilon", Signed), ("weight", Float)]),
        "identification" => (COMMAND, IDENTIFICATION),
        "notice" => (
            &[],
            &[
                ("time_ns", Time),
                ("stage", Text),
                ("flow", Unsigned),
                ("what", Text),
                ("bytes", Unsigned),
                ("detail", Text),
            ],
        ),
        "summary" => {
            (&[], &[("stage", Text), ("frames_in", Unsigned), ("frames_out", Unsigned), ("bytes_in", Unsigned)])
        }
        _ => return None,
    };
    let ends = if of_command.is_empty() { &[] } else { ENDS };
    Some(of_command.iter().chain(own).chain(ends).map(|(name, content)| Column { name, content: *content }).collect())
}

/// Whether frames of a kind have columns.
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

/// The value of a column in a row; `None` if it is null.
pub(crate) fn cell(row: &Value, column: &str) -> Option<Value> {
    let first = |list: &str| row.get(list).and_then(|list| list.get(0));
    let found = match column {
        "plaintext_min" => row.get("plaintext").and_then(|range| range.get(0)),
        "plaintext_max" => row.get("plaintext").and_then(|range| range.get(1)),
        "epsilon" | "weight" | "probability" => {
            first("candidates").or(first("epsilons")).and_then(|entry| entry.get(column))
        }
        "single_replies" => return row.get(column).map(lengths),
        "actions" => return first("candidates").and_then(|candidate| candidate.get("actions")).map(actions),
        _ => row.get(column),
    };
    found.filter(|value| !value.is_null()).cloned()
}

/// The lengths of single replies: `114 118`.
fn lengths(replies: &Value) -> Value {
    let lengths = replies.as_array().into_iter().flatten().filter_map(|reply| reply.get(1));
    lengths.map(ToString::to_string).collect::<Vec<_>>().join(" ").into()
}

/// `on=2 colour=1`.
fn actions(counts: &Value) -> Value {
    let counts = counts.as_object().into_iter().flatten();
    counts.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ").into()
}

/// A value as text; the entries of a list are separated by spaces.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(text).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
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
