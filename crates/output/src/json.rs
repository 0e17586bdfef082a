//! JSON, as lines or as an array: the frame, `{"identification": {…}}`; one line per row of a batch. A flow's number is text, and rows of a
//! flow also have its gateway and service, if the stream says them.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Map, Value, json};
use sizeleak_frame::{Frame, Packet, Segment, StageSummary};
use sizeleak_text::escaped_json;

use crate::HexLength;
use crate::flow_names::FlowNames;
use crate::text_style::{TextFormat, hex};

pub(crate) struct JsonLines(pub(crate) HexLength);

impl TextFormat for JsonLines {
    fn write(&mut self, frame: &Frame, names: &FlowNames, output: &mut dyn Write) -> io::Result<()> {
        for (kind, mut body) in rows(frame, self.0)? {
            names.add_to(frame, &mut body);
            let row = Value::Object(Map::from_iter([(kind, body)]));
            output.write_all(escaped_json(&serde_json::to_string(&row)?).as_bytes())?;
            output.write_all(b"\n")?;
        }
        Ok(())
    }
}

pub(crate) struct JsonArray {
    lines: JsonLines,
    is_begun: bool,
}

impl JsonArray {
    pub(crate) fn new(binary: HexLength) -> Self {
        Self { lines: JsonLines(binary), is_begun: false }
    }
}

impl TextFormat for JsonArray {
    fn write(&mut self, frame: &Frame, names: &FlowNames, output: &mut dyn Write) -> io::Result<()> {
        let mut lines = Vec::new();
        self.lines.write(frame, names, &mut lines)?;
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            output.write_all(if std::mem::replace(&mut self.is_begun, true) { b",\n" } else { b"[\n" })?;
            output.write_all(line)?;
        }
        Ok(())
    }

    fn write_footer(&mut self, _is_complete: bool, output: &mut dyn Write) -> io::Result<()> {
        output.write_all(if self.is_begun { b"\n]\n" } else { b"[]\n" })
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
        Frame::Deviation(body) => value(body),
        Frame::Notice(body) => value(body),
        Frame::Summary(body) => {
            let stages = body.stages.iter().map(|row| stage(row, binary)).collect::<io::Result<Vec<Value>>>()?;
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
        "acknowledgement": row.acknowledgement,
    })
}

fn stage(row: &StageSummary, binary: HexLength) -> io::Result<Value> {
    let mut fields = value(row)?;
    for (name, histogram) in [("latency", &row.latency), ("queue", &row.queue)] {
        fields[name] = hex(histogram, binary).into();
    }
    Ok(fields)
}

/// A body of an unknown kind; hexadecimal digits where JSON cannot express it.
fn unknown(kind: &str, whole: &[u8], binary: HexLength) -> Value {
    let decoded: Result<Map<String, Value>, _> = rmp_serde::from_slice(whole);
    decoded.ok().and_then(|mut map| map.remove(kind)).unwrap_or_else(|| hex(whole, binary).into())
}

#[cfg(test)]
mod tests;
