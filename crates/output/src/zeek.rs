//! Zeek's log format: the frames of one kind as tab-separated values, as `zeek-cut` and other readers of Zeek's logs take
//! them (<https://docs.zeek.org/en/master/log-formats.html>), by the rules of its ASCII writer.
//!
//! The gateway is the originator. `#open` is left out: a stage has no clock. `#close` has the time of the last row, and is
//! missing where the stream was cut, as after a crash of Zeek.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde_json::Value;
use sizeleak_frame::Frame;

use crate::columns::{Column, ColumnType, cell, entries, flat_columns, rows, typed_name};
use crate::flow_names::{FlowEnds, FlowNames};
use crate::text_style::TextFormat;
use crate::{HexLength, KindSelection, TimeFormat, json};

const UNSET: &str = "-";
/// What stands for a text or vector of nothing.
const EMPTY: &str = "(empty)";

/// The fields of every row, before those of its kind.
const FLOW_FIELDS: [(&str, &str); 8] = [
    ("ts", "time"),
    ("uid", "string"),
    ("id.orig_h", "addr"),
    ("id.orig_p", "port"),
    ("id.resp_h", "addr"),
    ("id.resp_p", "port"),
    ("proto", "enum"),
    ("server_name", "string"),
];

const FLOW_COLUMNS: [&str; 5] = ["time_ns", "flow", "gateway", "service", "server_name"];

pub(crate) struct ZeekLog {
    path: String,
    columns: Vec<Column>,
    binary: HexLength,
    has_header: bool,
    last_ns: i64,
}

/// Whether frames of a kind have the form of a Zeek log: they have a time and can name a flow.
pub fn has_zeek_form(kind: &str) -> bool {
    let has = |name: &str| flat_columns(kind).is_some_and(|columns| columns.iter().any(|column| column.name == name));
    has("time_ns") && has("flow")
}

impl ZeekLog {
    pub(crate) fn new(selection: &KindSelection, binary: HexLength) -> Self {
        let kind = selection.only().unwrap_or_default();
        let mut columns = flat_columns(kind).unwrap_or_default();
        columns.retain(|column| !FLOW_COLUMNS.contains(&column.name));
        Self {
            path: if kind == "identification" { "sizeleak".to_owned() } else { format!("sizeleak_{kind}") },
            columns,
            binary,
            has_header: false,
            last_ns: 0,
        }
    }

    fn row(&self, body: &Value, ends: Option<&FlowEnds>, output: &mut dyn Write) -> io::Result<()> {
        let own = |column: &str, content| cell(body, column).map(|value| shown(value, content));
        let service = ends.and_then(|ends| ends.service);
        let server_name = ends.and_then(|ends| ends.server_name.as_deref());
        let of_flow = [
            own("time_ns", ColumnType::Time),
            own("flow", ColumnType::Text),
            ends.and_then(FlowEnds::gateway_name),
            ends.and_then(|ends| ends.gateway_port).map(|port| port.to_string()),
            service.map(|service| service.ip().to_string()),
            service.map(|service| service.port().to_string()),
            ends.and_then(|ends| ends.transport).map(|transport| transport.name().to_owned()),
            server_name.map(|name| text(name, &[])),
        ];
        let of_kind = self.columns.iter().map(|column| own(column.name, column.content));
        let cells = of_flow.into_iter().chain(of_kind).map(|cell| cell.unwrap_or_else(|| UNSET.to_owned()));
        writeln!(output, "{}", cells.collect::<Vec<_>>().join("\t"))
    }
}

impl TextFormat for ZeekLog {
    fn write_header(&mut self, output: &mut dyn Write) -> io::Result<()> {
        if std::mem::replace(&mut self.has_header, true) {
            return Ok(());
        }
        let own = self.columns.iter().map(|column| (typed_name(column.name, column.content), type_of(column.content)));
        let (names, types): (Vec<_>, Vec<_>) = FLOW_FIELDS.into_iter().chain(own).unzip();
        writeln!(output, "#separator \\x09\n#set_separator\t,\n#empty_field\t{EMPTY}\n#unset_field\t{UNSET}")?;
        writeln!(output, "#path\t{}\n#fields\t{}\n#types\t{}", self.path, names.join("\t"), types.join("\t"))
    }

    fn write(&mut self, frame: &Frame, names: &FlowNames, output: &mut dyn Write) -> io::Result<()> {
        self.write_header(output)?;
        for (_, mut body) in json::rows(frame, self.binary)? {
            let flow = body.get("flow").and_then(Value::as_u64);
            names.add_to(frame, &mut body);
            self.last_ns = body.get("time_ns").and_then(Value::as_i64).unwrap_or(self.last_ns);
            let ends = flow.and_then(|flow| names.ends(flow));
            rows(&body).try_for_each(|row| self.row(row, ends, output))?;
        }
        Ok(())
    }

    fn write_footer(&mut self, is_complete: bool, output: &mut dyn Write) -> io::Result<()> {
        if !is_complete {
            return Ok(());
        }
        writeln!(output, "#close\t{}", TimeFormat::default().strftime(self.last_ns, "%Y-%m-%d-%H-%M-%S"))
    }
}

fn type_of(content: ColumnType) -> &'static str {
    match content {
        ColumnType::Time => "time",
        ColumnType::Unsigned => "count",
        ColumnType::Signed => "int",
        ColumnType::Float => "double",
        ColumnType::Flag => "bool",
        ColumnType::Text | ColumnType::Bytes => "string",
        ColumnType::Texts | ColumnType::Counts => "vector[string]",
        // The lengths of single replies.
        ColumnType::Structs(_) => "vector[count]",
    }
}

fn shown(value: &Value, content: ColumnType) -> String {
    match content {
        ColumnType::Time => value.as_i64().map_or_else(|| UNSET.to_owned(), seconds),
        ColumnType::Flag => if value == &Value::Bool(true) { "T" } else { "F" }.to_owned(),
        ColumnType::Text | ColumnType::Bytes => text(value.as_str().unwrap_or_default(), &[]),
        ColumnType::Texts | ColumnType::Counts | ColumnType::Structs(_) => vector(&entries(value)),
        ColumnType::Unsigned | ColumnType::Signed | ColumnType::Float => value.to_string(),
    }
}

/// Seconds since 1970, to the microsecond.
fn seconds(time_ns: i64) -> String {
    let microseconds = time_ns.div_euclid(1000);
    let sign = if microseconds < 0 { "-" } else { "" };
    let microseconds = microseconds.unsigned_abs();
    format!("{sign}{}.{:06}", microseconds / 1_000_000, microseconds % 1_000_000)
}

fn vector(entries: &[String]) -> String {
    let texts: Vec<String> = entries.iter().map(|entry| text(entry, b",")).collect();
    if texts.is_empty() { EMPTY.to_owned() } else { texts.join(",") }
}

/// A text with `\xHH` for each byte that is not printable ASCII or one of `escaped`, and for the first byte of one that
/// would mean null or nothing.
fn text(text: &str, escaped: &[u8]) -> String {
    if text.is_empty() {
        return EMPTY.to_owned();
    }
    let is_reserved = [UNSET, EMPTY].contains(&text);
    let mut shown = String::with_capacity(text.len());
    for (at, byte) in text.bytes().enumerate() {
        if byte == b'\\' {
            shown.push_str("\\\\");
        } else if (b' '..=b'~').contains(&byte) && !escaped.contains(&byte) && !(is_reserved && at == 0) {
            shown.push(byte.into());
        } else {
            let _never_fails = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::Notice;
    use sizeleak_frame::{Actions, Candidate, Command, Flow, Identification, Session, SingleReply, Summary, Transport};

    use super::*;

    fn written(kind: &str, frames: &[Frame]) -> String {
        let mut output = Vec::new();
        let mut log = ZeekLog::new(&KindSelection::Kinds(vec![kind.to_owned()]), HexLength::default());
        let mut names = FlowNames::default();
        for frame in frames {
            names.observe(frame);
            if frame.kind() == kind {
                log.write(frame, &names, &mut output).unwrap();
            }
        }
        let is_complete = frames.iter().any(|frame| matches!(frame, Frame::Summary(_)));
        log.write_header(&mut output).unwrap();
        log.write_footer(is_complete, &mut output).unwrap();
        String::from_utf8(output).unwrap()
    }

    fn flow() -> Frame {
        let (gateway, service) = ("2001:db8::20".parse().unwrap(), "[2001:db8::7]:443".parse().unwrap());
        Flow::new(3, gateway, service, Transport::Tcp).into()
    }

    fn identification() -> Frame {
        let command = Command {
            time_ns: 1_767_600_000_012_345_678,
            end_ns: 1_767_600_000_500_000_000,
            flow: 3,
            size: 4,
            records: 7,
            replies: 2,
            reply_bytes: 9,
            single_replies: [4, 5].map(|length| SingleReply { after_ns: 1, length }).into_iter().collect(),
            ..Command::default()
        };
        let actions = Actions::from(vec![(Arc::from("on"), 2), (Arc::from("a,b"), 1)]);
        let candidates = [Candidate { actions, epsilon: -1, probability: 0.5, likelihood: None }].into_iter().collect();
        Identification { candidates, candidate_count: u64::MAX, listed: 1, ..Identification::unanswered(command) }
            .into()
    }

    #[test]
    fn log_has_the_header_rows_and_end_of_zeek() {
        let text = written("identification", &[flow(), identification(), Summary::default().into()]);
        let expected = "\
#separator \\x09
#set_separator\t,
#empty_field\t(empty)
#unset_field\t-
#path\tsizeleak
#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tserver_name\tend\tsize\tplaintext_min\t\
plaintext_max\trecords\treplies\treply_bytes\tdirection\tsingle_replies\tcandidate_count\tlisted\tmin_actions\t\
max_actions\tsize_probability\treply_probability\tactions\tepsilon\tprobability
#types\ttime\tstring\taddr\tport\taddr\tport\tenum\tstring\ttime\tcount\tcount\tcount\tcount\tcount\tcount\tstring\t\
vector[count]\tcount\tcount\tcount\tcount\tdouble\tdouble\tvector[string]\tint\tdouble
1767600000.012345\tF0000000000000003\t2001:db8::20\t-\t2001:db8::7\t443\ttcp\t-\t1767600000.500000\t4\t-\t-\t7\t2\t9\t\
to_gateway\t4,5\t18446744073709551615\t1\t-\t-\t-\t-\ton=2,a\\x2cb=1\t-1\t0.5
#close\t2026-01-05-08-00-00
";
        assert_eq!(text, expected);
        let Frame::Flow(mut known) = flow() else { panic!("a flow") };
        known.gateway_port = Some(43_426);
        let text = written("identification", &[Frame::Flow(known), identification(), Summary::default().into()]);
        assert_eq!(text, expected.replace("\t2001:db8::20\t-\t", "\t2001:db8::20\t43426\t"), "older streams lack it");
    }

    #[test]
    fn log_of_a_cut_stream_is_not_closed() {
        let text = written("identification", &[identification()]);
        assert!(text.starts_with("#separator") && !text.contains("#close"), "{text}");
        let empty = written("record", &[Summary::default().into()]);
        assert!(
            empty.contains("#path\tsizeleak_record\n") && empty.ends_with("#close\t1970-01-01-00-00-00\n"),
            "{empty}"
        );
    }

    #[test]
    fn texts_hold_no_separators_and_say_no_null() {
        let shown = ["", "-", "(empty)", "--", "a\tb\\\n", "é\u{1b}", "a,b"].map(|it| text(it, &[]));
        assert_eq!(shown, ["(empty)", "\\x2d", "\\x28empty)", "--", "a\\x09b\\\\\\x0a", "\\xc3\\xa9\\x1b", "a,b"]);
        let server_name = Some("#a\tb".to_owned());
        let session = Session {
            time_ns: -1_500_000,
            flow: 3,
            server_name,
            tls_version: None,
            cipher_suite: None,
            protocol: None,
        };
        let text = written("session", &[flow(), session.into()]);
        let row = "-0.001500\tF0000000000000003\t2001:db8::20\t-\t2001:db8::7\t443\ttcp\t#a\\x09b\t-\t-\t-";
        assert_eq!(text.lines().last(), Some(row));
    }

    #[test]
    fn notice_of_no_flow_has_unset_addresses() {
        let (stage, what) = ("x".into(), "gap".into());
        let notice = Notice { time_ns: None, stage, flow: None, what, bytes: Some(3), detail: None };
        let text = written("notice", &[notice.into()]);
        assert_eq!(text.lines().last(), Some("-\t-\t-\t-\t-\t-\t-\t-\tx\tgap\t3\t-"));
    }

    #[test]
    fn kinds_of_flows_have_this_form() {
        let of_flows = ["segments", "session", "record", "command", "correction", "identification", "notice"];
        assert!(of_flows.iter().all(|kind| has_zeek_form(kind)));
        assert!(["hello", "packets", "flow", "summary", "new"].iter().all(|kind| !has_zeek_form(kind)));
    }
}
