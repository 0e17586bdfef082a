//! JSON lines: exactly the frame, `{"identification": {…}}`; one line per row of a batch.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};
use sizeleak_frame::{Frame, Packet, Segment, StageSummary};

use crate::HexLength;
use crate::text_format::TextFormat;
use crate::text_style::hex;

/// JSON lines.
pub(crate) struct JsonLines {
    binary: HexLength,
}

impl JsonLines {
    pub(crate) fn new(binary: HexLength) -> Self {
        Self { binary }
    }
}

impl TextFormat for JsonLines {
    fn write(&mut self, frame: &Frame, output: &mut dyn Write) -> io::Result<()> {
        for (kind, body) in rows(frame, self.binary)? {
            let row = Value::Object(Map::from_iter([(kind, body)]));
            serde_json::to_writer(&mut *output, &row)?;
            output.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// A frame as JSON: its kind and body, or those of each row.
pub(crate) fn rows(frame: &Frame, binary: HexLength) -> io::Result<Vec<(String, Value)>> {
    let body = match frame {
        Frame::Packets(batch) => {
            return Ok(batch.iter().map(|row| ("packet".to_owned(), packet(&row, binary))).collect());
        }
        Frame::Segments(batch) => {
            return Ok(batch.iter().map(|row| ("segment".to_owned(), segment(&row, binary))).collect());
        }
        Frame::Hello(body) => value(body),
        Frame::Flow(body) => value(body),
        Frame::Session(body) => value(body),
        Frame::Record(body) => value(body),
        Frame::Command(body) => value(body),
        Frame::Correction(body) => value(body),
        Frame::Identification(body) => value(body),
        Frame::Notice(body) => value(body),
        Frame::Summary(body) => {
            let stages: Vec<Value> = body.stages.iter().map(|row| stage(row, binary)).collect();
            Ok(json!({ "stages": stages }))
        }
        Frame::Unknown(body) => Ok(unknown(&body.kind, &body.value, binary)),
    };
    Ok(vec![(frame.kind().to_owned(), body?)])
}

fn value(body: &impl Serialize) -> io::Result<Value> {
    Ok(serde_json::to_value(body)?)
}

fn packet(row: &Packet<'_>, binary: HexLength) -> Value {
    json!({
        "time_ns": row.time_ns,
        "link_type": row.link_type,
        "original_length": row.original_length,
        "data": hex(row.data, binary),
        "capture": row.capture,
        "number": row.number,
    })
}

fn segment(row: &Segment<'_>, binary: HexLength) -> Value {
    json!({
        "time_ns": row.time_ns,
        "flow": row.flow,
        "direction": row.direction.word(),
        "sequence": row.sequence,
        "flags": row.flags,
        "length": row.length,
        "payload": hex(row.payload, binary),
    })
}

fn stage(row: &StageSummary, binary: HexLength) -> Value {
    let mut fields = Map::new();
    fields.insert("stage".into(), row.stage.clone().into());
    fields.insert("frames_in".into(), row.frames_in.into());
    fields.insert("frames_out".into(), row.frames_out.into());
    fields.insert("bytes_in".into(), row.bytes_in.into());
    fields.extend(row.counters.iter().map(|(name, count)| (name.clone(), (*count).into())));
    fields.insert("latency".into(), hex(&row.latency, binary).into());
    fields.insert("queue".into(), hex(&row.queue, binary).into());
    fields.into()
}

/// A body of an unknown kind; hexadecimal digits where JSON cannot express it.
fn unknown(kind: &str, whole: &[u8], binary: HexLength) -> Value {
    let decoded: Result<Map<String, Value>, _> = rmp_serde::from_slice(whole);
    decoded.ok().and_then(|mut map| map.remove(kind)).unwrap_or_else(|| hex(whole, binary).into())
}

#[cfg(test)]
mod tests {
    use sizeleak_frame::{Direction, Packets, Segments, Summary, Unknown};

    use super::*;

    fn lines(frame: &Frame, binary: HexLength) -> Vec<String> {
        let mut output = Vec::new();
        JsonLines::new(binary).write(frame, &mut output).unwrap();
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
        });
        let line = lines(&segments.into(), HexLength::Whole).join("");
        assert!(line.contains("\"flow\":18446744073709551615,\"direction\":\"from_gateway\""), "{line}");
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
}
