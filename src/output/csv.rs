//! CSV: the frames of one kind, with a header that is the same for every stream.

use std::io::{self, Write};

use serde_json::Value;
use sizeleak_frame::Frame;

use super::{Binary, Form, Selection, json};

const COMMAND: &[&str] =
    &["time_ns", "end_ns", "flow", "size", "plaintext_min", "plaintext_max", "records", "replies", "reply_bytes"];

/// The columns of a kind beyond those of a command.
fn columns(kind: &str) -> Option<(&'static [&'static str], &'static [&'static str])> {
    Some(match kind {
        "hello" => (&[], &["schema", "stage", "version", "upstream"]),
        "packets" => (&[], &["time_ns", "link_type", "original_length", "data", "capture", "number"]),
        "flow" => (&[], &["flow", "gateway", "service", "transport"]),
        "segments" => (&[], &["time_ns", "flow", "direction", "sequence", "flags", "length", "payload"]),
        "session" => (&[], &["time_ns", "flow", "server_name", "tls_version", "cipher_suite"]),
        "record" => (
            &[],
            &[
                "time_ns",
                "start_ns",
                "flow",
                "direction",
                "content_type",
                "length",
                "plaintext_min",
                "plaintext_max",
                "handshake",
            ],
        ),
        "command" => (COMMAND, &[]),
        // Of the lists the first entry, which is the likeliest; JSON has them whole.
        "correction" => (COMMAND, &["epsilon", "weight"]),
        "identification" => {
            (COMMAND, &["candidate_count", "listed", "min_actions", "max_actions", "actions", "epsilon", "probability"])
        }
        "notice" => (&[], &["time_ns", "stage", "flow", "what", "bytes", "detail"]),
        "summary" => (&[], &["stage", "frames_in", "frames_out", "bytes_in"]),
        _ => return None,
    })
}

/// Whether frames of a kind can be written as CSV.
pub(crate) fn has_columns(kind: &str) -> bool {
    columns(kind).is_some()
}

/// CSV of the one kind that is selected.
pub(super) struct Csv {
    columns: Vec<&'static str>,
    binary: Binary,
    begun: bool,
}

impl Csv {
    pub(super) fn new(selection: &Selection, binary: Binary) -> Self {
        let (of_command, own) = selection.only().and_then(columns).unwrap_or_default();
        Self { columns: [of_command, own].concat(), binary, begun: false }
    }

    fn row(&self, body: &Value, output: &mut dyn Write) -> io::Result<()> {
        let cells = self.columns.iter().map(|column| cell(body, column));
        write_record(cells, output)
    }
}

impl Form for Csv {
    fn begin(&mut self, output: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        write_record(self.columns.iter(), output)
    }

    fn write(&mut self, frame: &Frame, output: &mut dyn Write) -> io::Result<()> {
        self.begin(output)?;
        for (_, body) in json::rows(frame, self.binary)? {
            match body.get("stages").and_then(Value::as_array) {
                Some(stages) => stages.iter().try_for_each(|stage| self.row(stage, output))?,
                None => self.row(&body, output)?,
            }
        }
        Ok(())
    }
}

fn write_record(cells: impl Iterator<Item = impl AsRef<[u8]>>, output: &mut dyn Write) -> io::Result<()> {
    let mut writer = csv::Writer::from_writer(output);
    writer.write_record(cells)?;
    writer.flush()
}

fn cell(body: &Value, column: &str) -> String {
    let first = |list: &str| body.get(list).and_then(|list| list.get(0));
    match column {
        "plaintext_min" => text(body.get("plaintext").and_then(|range| range.get(0))),
        "plaintext_max" => text(body.get("plaintext").and_then(|range| range.get(1))),
        "epsilon" | "weight" | "probability" => {
            text(first("candidates").or(first("epsilons")).and_then(|entry| entry.get(column)))
        }
        "actions" => actions(first("candidates").and_then(|candidate| candidate.get("actions"))),
        _ => text(body.get(column)),
    }
}

/// `on=2 colour=1`.
fn actions(counts: Option<&Value>) -> String {
    let counts = counts.and_then(Value::as_object).into_iter().flatten();
    counts.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
}

/// A value as a cell; nothing for null.
fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(values)) => values.iter().map(|value| text(Some(value))).collect::<Vec<_>>().join(" "),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::{Actions, Candidate, Command, Hello, Identification, KINDS, Notice};

    use super::*;

    fn written(kind: &str, frames: &[Frame]) -> String {
        let mut output = Vec::new();
        let mut csv = Csv::new(&Selection::Kinds(vec![kind.to_owned()]), Binary::default());
        csv.begin(&mut output).unwrap();
        for frame in frames {
            csv.write(frame, &mut output).unwrap();
        }
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn every_kind_has_columns() {
        assert!(KINDS.iter().all(|kind| has_columns(kind)) && !has_columns("new"));
    }

    #[test]
    fn the_header_is_there_without_frames() {
        assert_eq!(written("flow", &[]), "flow,gateway,service,transport\n");
    }

    #[test]
    fn the_best_candidate_is_the_row() {
        let command = Command {
            time_ns: 1,
            end_ns: 2,
            flow: 3,
            size: 4,
            plaintext: Some([5, 6]),
            records: 7,
            replies: 8,
            reply_bytes: 9,
        };
        let actions = Actions(vec![(Arc::from("on"), 2), (Arc::from("a b"), 1)]);
        let candidates = vec![Candidate { actions, epsilon: -1, probability: 0.5 }];
        let (min_actions, max_actions) = (Some(1), None);
        let frame = Identification { command, candidates, candidate_count: 10, listed: 1, min_actions, max_actions };
        let text = written("identification", &[frame.into()]);
        assert_eq!(text.lines().nth(1), Some("1,2,3,4,5,6,7,8,9,10,1,1,,on=2 a b=1,-1,0.5"));
    }

    #[test]
    fn lists_and_quotes() {
        let hello = Hello { schema: 1, stage: "c".into(), version: "1".into(), upstream: vec!["a".into(), "b".into()] };
        assert!(written("hello", &[hello.into()]).ends_with("1,c,1,a b\n"));
        let notice = Notice {
            time_ns: None,
            stage: "x".into(),
            flow: None,
            what: "gap".into(),
            bytes: None,
            detail: Some("a, \"b\"".into()),
        };
        assert!(written("notice", &[notice.into()]).ends_with(",x,,gap,,\"a, \"\"b\"\"\"\n"));
    }
}
