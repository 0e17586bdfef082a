//! The table of identifications; frames of other kinds are lines between its rows.
//!
//! What all rows share stands above them, once: the day, and the gateway and the service as long as there is one.
//! Therefore a row fits 80 columns, unless it names many actions or twins. When a second gateway or service appears, or a
//! longer name, the headings are repeated, with a column for it. A line has the kind of its frame, its time and its fields.

use std::io::{self, Write};

use anstyle::Style;
use sizeleak_frame::{
    Actions, Command, Correction, Deviation, Direction, Flow, FlowId, Frame, Identification, Packet, Protocol, Record,
    Segment, Session, StageSummary, Summary,
};
use sizeleak_text::{counted, escaped, fitted, width};

use crate::answers::BestAnswer;
use crate::flow_names::{FlowEnds, FlowNames};
use crate::text_style::{TextFormat, hex, painted};
use crate::{TextStyle, TimeFormat};

pub(crate) struct IdentificationTable {
    style: TextStyle,
    gateways: NameColumn,
    services: NameColumn,
    /// The day of the row before, by the clock of the style.
    date: Option<String>,
}

/// Columns of names widen by this many characters, so that headings are seldom repeated.
const STEP: usize = 8;

#[derive(Default)]
enum NameColumn {
    #[default]
    Empty,
    Single(String),
    /// Several; a column for the longest, in steps of [`STEP`].
    Several(usize),
}

impl NameColumn {
    /// Takes the name in the next row; returns whether that changes the column.
    fn add(&mut self, name: &str) -> bool {
        *self = match self {
            Self::Empty => Self::Single(name.to_owned()),
            Self::Single(single) if single == name => return false,
            Self::Single(single) => Self::Several(width(single).max(width(name)).next_multiple_of(STEP)),
            Self::Several(widest) if width(name) <= *widest => return false,
            Self::Several(_) => Self::Several(width(name).next_multiple_of(STEP)),
        };
        true
    }

    fn cell(&self, text: &str) -> String {
        match self {
            Self::Several(widest) => format!("  {}", fitted(text, *widest)),
            Self::Empty | Self::Single(_) => String::new(),
        }
    }
}

impl IdentificationTable {
    pub(crate) fn new(style: TextStyle) -> Self {
        Self { style, gateways: NameColumn::Empty, services: NameColumn::Empty, date: None }
    }

    fn write_row(
        &mut self,
        identification: &Identification,
        names: &FlowNames,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let command = &identification.command;
        let ends = names.ends(command.flow);
        let gateway = ends.and_then(FlowEnds::gateway_name).unwrap_or_else(|| FlowId(command.flow).to_string());
        let service = ends.and_then(FlowEnds::service_name).unwrap_or_else(|| "-".to_owned());
        let (gateway, service) = (escaped(&gateway), escaped(&service));
        let is_new = self.gateways.add(&gateway) | self.services.add(&service);
        let date = Some(self.style.times.date(command.time_ns));
        if is_new || date != self.date {
            self.date = date;
            writeln!(output, "{}", painted(self.style.colours.heading(), &self.caption()))?;
        }
        if is_new {
            writeln!(output, "{}", painted(self.style.colours.heading(), &self.headings()))?;
        }
        writeln!(output, "{}", self.row(identification, &gateway, &service))
    }

    fn caption(&self) -> String {
        let shared = [("gateway", &self.gateways), ("service", &self.services)].map(|(what, names)| match names {
            NameColumn::Single(name) => format!("  {what} {name}"),
            NameColumn::Empty | NameColumn::Several(_) => String::new(),
        });
        format!("{}{}", self.date.as_deref().unwrap_or_default(), shared.concat())
    }

    fn headings(&self) -> String {
        let time = self.style.times.heading();
        let cells = self.cells([time, "gateway", "service", "size", "replies", "candidates"]);
        format!("{cells}  prob.  most probable actions")
    }

    fn row(&self, identification: &Identification, gateway: &str, service: &str) -> String {
        let command = &identification.command;
        let count = match identification.candidate_count {
            u64::MAX => "too many".to_owned(),
            count => count.to_string(),
        };
        let best = BestAnswer::new(identification);
        let (probability, actions) = match &best {
            Some(best) => (format!("{:.3}", best.probability()), best.words(named)),
            // Without a model for its flow there is no probability of its size.
            None if identification.size_probability.is_none() => ("-".to_owned(), "not answered".to_owned()),
            None => ("-".to_owned(), "no actions add up to this size".to_owned()),
        };
        let style = self.style.colours.probability(best.map(|best| best.probability()));
        let last = painted(style, &format!("{probability:>5}  {actions}"));
        let time = self.style.times.time_of_day(command.time_ns);
        let (size, replies) = (command.size.to_string(), command.replies.to_string());
        format!("{}  {last}", self.cells([&time, gateway, service, &size, &replies, &count]))
    }

    fn cells(&self, [time, gateway, service, size, replies, candidates]: [&str; 6]) -> String {
        let (gateway, service) = (self.gateways.cell(gateway), self.services.cell(service));
        let width = TimeFormat::TIME_OF_DAY_WIDTH;
        format!("{time:<width$}{gateway}{service}  {size:>5}  {replies:>7}  {candidates:>10}")
    }
}

fn named(actions: &Actions) -> String {
    let each: Vec<String> = actions.iter().map(|(name, count)| format!("{count} {}", escaped(name))).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

impl TextFormat for IdentificationTable {
    fn write(&mut self, frame: &Frame, names: &FlowNames, output: &mut dyn Write) -> io::Result<()> {
        if let Frame::Identification(identification) = frame {
            return self.write_row(identification, names, output);
        }
        let colours = self.style.colours;
        let style = if matches!(frame, Frame::Notice(_)) { colours.notice() } else { Style::new() };
        let mut lines = lines(frame, &self.style).into_iter();
        lines.try_for_each(|line| writeln!(output, "{}", painted(style, line.trim_end())))
    }
}

/// The lines of a frame: one, or one per row of a batch or stage of a summary.
fn lines(frame: &Frame, style: &TextStyle) -> Vec<String> {
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

pub(crate) fn deviation_words(deviation: &Deviation) -> String {
    let Deviation { what, p_value, expected, seen, .. } = deviation;
    let p_value = if *p_value < 0.001 { "<0.001".to_owned() } else { format!("{p_value:.3}") };
    format!("{what} (p {p_value}): {seen}; usual: {expected}")
}

fn kind(kind: &str, text: &str) -> String {
    // Names and details come from captures and from foreign stages.
    format!("{:<10}  {}", escaped(kind), escaped(text))
}

fn packet(row: &Packet<'_>, style: &TextStyle) -> String {
    let Packet { time_ns, link_type, original_length, data, capture, number } = row;
    let (time, captured, shown) = (style.times.format(*time_ns), data.len(), hex(data, style.binary));
    let of_bytes = format!("{captured} of {original_length} bytes  {shown}");
    format!("{time}  capture {capture} packet {number}  link type {link_type}  {of_bytes}")
}

fn segment(row: &Segment<'_>, style: &TextStyle) -> String {
    let Segment { sequence, flags, length, .. } = row;
    let (time, flow, direction) = (style.times.format(row.time_ns), FlowId(row.flow), row.direction.word());
    let payload = hex(row.payload, style.binary);
    let header = format!("sequence {sequence:<10}  flags {flags:02x}  {length:>5} bytes");
    format!("{time}  flow {flow}  {direction:<12}  {header}  {payload}")
}

fn flow(flow: &Flow, times: &TimeFormat) -> String {
    let transport = flow.transport.name().to_uppercase();
    let width = times.width();
    let id = FlowId(flow.flow);
    format!("{:<width$}  flow {id}  {} and {} over {transport}", "", flow.gateway, flow.service)
}

fn session(session: &Session, times: &TimeFormat) -> String {
    let shown = [&session.tls_version, &session.cipher_suite, &session.server_name];
    let shown = shown.map(|part| part.as_deref().unwrap_or("-")).join("  ");
    format!("{}  flow {}  {shown}", times.format(session.time_ns), FlowId(session.flow))
}

fn record(record: &Record, times: &TimeFormat) -> String {
    let protocol = match record.protocol {
        Protocol::Tls => String::new(),
        other => format!("  {}", other.name()),
    };
    let handshake = if record.handshake { "  handshake" } else { "" };
    let (time, flow, direction) = (times.format(record.time_ns), FlowId(record.flow), record.direction.word());
    let (content, length, plaintext) = (u8::from(record.content_type), record.length, range(record.plaintext));
    let sizes = format!("type {content}  {length:>5} bytes  plaintext {plaintext}");
    format!("{time}  flow {flow}  {direction:<12}  {sizes}{handshake}{protocol}")
}

fn command(command: &Command, times: &TimeFormat) -> String {
    let (time, flow, plaintext) = (times.format(command.time_ns), FlowId(command.flow), range(command.plaintext));
    let (size, records) = (command.size, counted(command.records, "record", "records"));
    let replies = counted(command.replies, "reply", "replies");
    let bytes = counted(command.reply_bytes, "byte", "bytes");
    let report = if command.direction == Direction::FromGateway { "  report" } else { "" };
    format!("{time}  flow {flow}  {size:>5} bytes  plaintext {plaintext}  {records}  {replies} of {bytes}{report}")
}

fn correction(correction: &Correction, times: &TimeFormat) -> String {
    let offered = correction.epsilons.iter().take(3).map(|value| format!("{:+} ({:.2})", value.epsilon, value.weight));
    let offered = offered.collect::<Vec<_>>().join(", ");
    let more = if correction.epsilons.len() > 3 { ", …" } else { "" };
    format!("{}  ε {offered}{more}", command(&correction.command, times))
}

fn stages(summary: &Summary) -> Vec<String> {
    let stage = |row: &StageSummary| {
        let StageSummary { stage, frames_in, frames_out, bytes_in, .. } = row;
        let counters: Vec<String> = row.counters.iter().map(|(name, count)| format!("  {name} {count}")).collect();
        let counters = counters.concat();
        kind("summary", &format!("{stage}: {frames_in} frames in, {frames_out} out, {bytes_in} bytes{counters}"))
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

#[cfg(test)]
mod tests;
