//! A frame as one line of text: its kind, its time and its fields.

use sizeleak_frame::{
    Command, Correction, Deviation, Direction, Flow, FlowId, Frame, Packet, Protocol, Record, Segment, Session, Summary,
};
use sizeleak_text::{counted, escaped};

use crate::text_style::hex;
use crate::{TextStyle, TimeFormat};

/// The lines of a frame: one, or one per row of a batch or stage of a summary.
pub(crate) fn lines(frame: &Frame, style: &TextStyle) -> Vec<String> {
    let times = &style.times;
    let text = match frame {
        Frame::Packets(batch) => return batch.iter().map(|row| kind("packet", &packet(&row, style))).collect(),
        Frame::Segments(batch) => return batch.iter().map(|row| kind("segment", &segment(&row, style))).collect(),
        Frame::Summary(summary) => return stages(summary),
        Frame::Hello(hello) => {
            let before = hello.upstream.join(", ");
            let after = if before.is_empty() { String::new() } else { format!(" after {before}") };
            format!("{} {}, schema {}{after}", hello.stage, hello.version, hello.schema)
        }
        Frame::Flow(body) => flow(body, times),
        Frame::Session(body) => session(body, times),
        Frame::Record(body) => record(body, times),
        Frame::Command(body) => command(body, times),
        Frame::Correction(body) => correction(body, times),
        Frame::Identification(body) => command(&body.command, times),
        Frame::Deviation(deviation) => {
            let Deviation { time_ns, gateway, .. } = &**deviation;
            let gateway = if gateway.is_empty() { String::new() } else { format!("  {gateway}") };
            format!("{}{gateway}  {}", times.format(*time_ns), deviation_words(deviation))
        }
        Frame::Notice(notice) => {
            let time = notice.time_ns.map_or_else(|| "-".to_owned(), |time| times.format(time));
            let flow = notice.flow.map_or_else(String::new, |flow| format!("  flow {}", FlowId(flow)));
            let bytes = notice.bytes.map_or_else(String::new, |bytes| format!("  {bytes} bytes"));
            let detail = notice.detail.as_deref().unwrap_or_default();
            let width = times.width();
            format!("{time:<width$}  {}: {}{flow}{bytes}  {detail}", notice.stage, notice.what)
        }
        Frame::Unknown(body) => format!("{} bytes  {}", body.value.len(), hex(&body.value, style.binary)),
    };
    vec![kind(frame.kind(), &text)]
}

/// What a deviation is: its kind, how strange it is, what was seen and what would have been usual.
pub(crate) fn deviation_words(deviation: &Deviation) -> String {
    let Deviation { what, p_value, expected, seen, .. } = deviation;
    format!("{what} (p {p_value:.3}): {seen}; usual: {expected}")
}

fn kind(kind: &str, text: &str) -> String {
    // Names and details come from captures and from foreign stages.
    format!("{:<10}  {}", escaped(kind), escaped(text))
}

fn packet(row: &Packet<'_>, style: &TextStyle) -> String {
    format!(
        "{}  capture {} packet {}  link type {}  {} of {} bytes  {}",
        style.times.format(row.time_ns),
        row.capture,
        row.number,
        row.link_type,
        row.data.len(),
        row.original_length,
        hex(row.data, style.binary)
    )
}

fn segment(row: &Segment<'_>, style: &TextStyle) -> String {
    format!(
        "{}  flow {}  {:<12}  sequence {:<10}  flags {:02x}  {:>5} bytes  {}",
        style.times.format(row.time_ns),
        FlowId(row.flow),
        row.direction.word(),
        row.sequence,
        row.flags,
        row.length,
        hex(row.payload, style.binary)
    )
}

fn flow(flow: &Flow, times: &TimeFormat) -> String {
    let transport = flow.transport.name().to_uppercase();
    let width = times.width();
    let id = FlowId(flow.flow);
    format!("{:<width$}  flow {id}  {} and {} over {transport}", "", flow.gateway, flow.service)
}

fn session(session: &Session, times: &TimeFormat) -> String {
    let shown = |part: &Option<String>| part.clone().unwrap_or_else(|| "-".to_owned());
    format!(
        "{}  flow {}  {}  {}  {}",
        times.format(session.time_ns),
        FlowId(session.flow),
        shown(&session.tls_version),
        shown(&session.cipher_suite),
        shown(&session.server_name)
    )
}

fn record(record: &Record, times: &TimeFormat) -> String {
    let protocol = match record.protocol {
        Protocol::Tls => String::new(),
        other => format!("  {}", other.name()),
    };
    format!(
        "{}  flow {}  {:<12}  type {}  {:>5} bytes  plaintext {}{}{protocol}",
        times.format(record.time_ns),
        FlowId(record.flow),
        record.direction.word(),
        u8::from(record.content_type),
        record.length,
        range(record.plaintext),
        if record.handshake { "  handshake" } else { "" }
    )
}

fn command(command: &Command, times: &TimeFormat) -> String {
    format!(
        "{}  flow {}  {:>5} bytes  plaintext {}  {}  {} of {}{}",
        times.format(command.time_ns),
        FlowId(command.flow),
        command.size,
        range(command.plaintext),
        counted(command.records, "record", "records"),
        counted(command.replies, "reply", "replies"),
        counted(command.reply_bytes, "byte", "bytes"),
        if command.direction == Direction::FromGateway { "  report" } else { "" }
    )
}

fn correction(correction: &Correction, times: &TimeFormat) -> String {
    let offered = correction.epsilons.iter().take(3).map(|value| format!("{:+} ({:.2})", value.epsilon, value.weight));
    let offered = offered.collect::<Vec<_>>().join(", ");
    let more = if correction.epsilons.len() > 3 { ", …" } else { "" };
    format!("{}  ε {offered}{more}", command(&correction.command, times))
}

fn stages(summary: &Summary) -> Vec<String> {
    let stage = |row: &sizeleak_frame::StageSummary| {
        let counters: Vec<String> = row.counters.iter().map(|(name, count)| format!("  {name} {count}")).collect();
        let text = format!(
            "{}: {} frames in, {} out, {} bytes{}",
            row.stage,
            row.frames_in,
            row.frames_out,
            row.bytes_in,
            counters.concat()
        );
        kind("summary", &text)
    };
    summary.stages.iter().map(stage).collect()
}

fn range(range: Option<[u64; 2]>) -> String {
    match range {
        None => "unknown".to_owned(),
        Some([least, most]) if least == most => least.to_string(),
        Some([least, most]) => format!("{least} to {most}"),
    }
}
