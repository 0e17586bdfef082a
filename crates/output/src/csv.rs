//! CSV: the frames of one kind, with the same header for every stream.

use std::io::{self, Write};

use serde_json::Value;
use sizeleak_frame::Frame;
use sizeleak_text::utc;

use crate::columns::{Column, ColumnType, cell, cell_text, flat_columns, rows};
use crate::flow_names::FlowNames;
use crate::text_style::TextFormat;
use crate::{HexLength, KindSelection, json};

/// The column of when something was; before it, the same time is written as RFC 3339 in UTC.
const TIME: &str = "time_ns";

pub(crate) struct Csv {
    columns: Vec<Column>,
    binary: HexLength,
    has_header: bool,
}

impl Csv {
    pub(crate) fn new(selection: &KindSelection, binary: HexLength) -> Self {
        Self { columns: selection.only().and_then(flat_columns).unwrap_or_default(), binary, has_header: false }
    }

    fn row(&self, body: &Value, output: &mut dyn Write) -> io::Result<()> {
        let cells = self.columns.iter().flat_map(|column| {
            let value = cell(body, column.name);
            let text = value.map(|value| written(value, column.content)).unwrap_or_default();
            let time = (column.name == TIME).then(|| value.and_then(Value::as_i64).map(utc).unwrap_or_default());
            time.into_iter().chain([text])
        });
        write_record(cells, output)
    }
}

/// A value as text that a spreadsheet takes for what it is.
fn written(value: &Value, content: ColumnType) -> String {
    let text = cell_text(value);
    match content {
        // Anything can be in a text, such as a formula in the name of a server.
        ColumnType::Text | ColumnType::Texts | ColumnType::Counts => sizeleak_text::cell(&text).into_owned(),
        _ => text,
    }
}

impl TextFormat for Csv {
    fn write_header(&mut self, output: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.has_header, true) {
            return Ok(());
        }
        let names = self.columns.iter().map(|column| column.name);
        write_record(names.flat_map(|name| (name == TIME).then_some("time").into_iter().chain([name])), output)
    }

    fn write(&mut self, frame: &Frame, names: &FlowNames, output: &mut dyn Write) -> io::Result<()> {
        self.write_header(output)?;
        for (_, mut body) in json::rows(frame, self.binary)? {
            names.add_to(frame, &mut body);
            rows(&body).try_for_each(|row| self.row(row, output))?;
        }
        Ok(())
    }
}

fn write_record(cells: impl Iterator<Item = impl AsRef<[u8]>>, output: &mut dyn Write) -> io::Result<()> {
    // A writer of CSV on the output itself would flush that after each row.
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(cells)?;
    output.write_all(&writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::{Actions, Candidate, Command, Hello, Identification, Notice, Session};

    use super::*;

    fn text(kind: &str, frames: &[Frame]) -> String {
        let mut output = Vec::new();
        let mut csv = Csv::new(&KindSelection::Kinds(vec![kind.to_owned()]), HexLength::default());
        let mut names = FlowNames::default();
        csv.write_header(&mut output).unwrap();
        for frame in frames {
            names.observe(frame);
            csv.write(frame, &names, &mut output).unwrap();
        }
        String::from_utf8(output).unwrap()
    }

    #[test]
    fn header_is_written_without_frames() {
        assert_eq!(text("flow", &[]), "flow,gateway,gateway_port,service,transport,encapsulation\n");
    }

    #[test]
    fn row_holds_the_best_candidate() {
        let command = Command {
            time_ns: 1,
            end_ns: 2,
            flow: 3,
            size: 4,
            plaintext: Some([5, 6]),
            records: 7,
            replies: 8,
            reply_bytes: 9,
            ..Command::default()
        };
        let actions = Actions::from(vec![(Arc::from("on"), 2), (Arc::from("a b"), 1)]);
        let candidates = vec![Candidate { actions, epsilon: -1, probability: 0.5, likelihood: None }].into();
        let frame = Identification {
            candidates,
            candidate_count: 10,
            listed: 1,
            min_actions: Some(1),
            ..Identification::unanswered(command)
        };
        let csv = text("identification", &[frame.into()]);
        assert_eq!(
            csv.lines().nth(1),
            Some(
                "1970-01-01T00:00:00.000000Z,1,2,F0000000000000003,4,5,6,7,8,9,to_gateway,,10,1,1,,,,on=2 a b=1,-1,0.5,,"
            )
        );
    }

    #[test]
    fn texts_are_no_formulas_and_numbers_stay_numbers() {
        let session = Session {
            time_ns: -5,
            flow: 3,
            tls_version: Some("1.3".into()),
            cipher_suite: None,
            protocol: None,
            server_name: Some("=HYPERLINK(\"http://x\",\"a\u{1b}[2J\")".into()),
        };
        let expected = "1969-12-31T23:59:59.999999Z,-5,F0000000000000003,\"'=HYPERLINK(\"\"http://x\"\",\"\"a\\u{1b}[2J\"\")\",1.3,,,,\"'=HYPERLINK(\"\"http://x\"\",\"\"a\\u{1b}[2J\"\")\"\n";
        assert!(text("session", &[session.into()]).ends_with(expected));
    }

    #[test]
    fn lists_are_joined_and_quotes_escaped() {
        let hello = Hello { schema: 1, stage: "c".into(), version: "1".into(), upstream: vec!["a".into(), "b".into()] };
        assert!(text("hello", &[hello.into()]).ends_with("1,c,1,a b\n"));
        let notice = Notice {
            time_ns: None,
            stage: "x".into(),
            flow: None,
            what: "gap".into(),
            bytes: None,
            detail: Some("a, \"b\"".into()),
        };
        assert!(text("notice", &[notice.into()]).ends_with(",,x,,gap,,\"a, \"\"b\"\"\",,\n"));
    }
}
