//! The table of identifications; frames of other kinds are lines between its rows.

use std::collections::BTreeMap;
use std::io::{self, Write};

use anstyle::Style;
use sizeleak_frame::{Actions, Flow, Frame, Identification};

use crate::colours::painted;
use crate::text_format::TextFormat;
use crate::{TextStyle, line};

/// The gateways of at most this many flows are kept; beyond that the flow with the lowest number is evicted.
const MAX_FLOWS: usize = 100_000;

/// A table for people.
pub(crate) struct IdentificationTable {
    style: TextStyle,
    gateways: BTreeMap<u64, String>,
    has_headings: bool,
}

impl IdentificationTable {
    pub(crate) fn new(style: TextStyle) -> Self {
        Self { style, gateways: BTreeMap::new(), has_headings: false }
    }

    fn remember(&mut self, flow: &Flow) {
        if self.gateways.len() >= MAX_FLOWS {
            self.gateways.pop_first();
        }
        self.gateways.insert(flow.flow, flow.gateway.to_string());
    }

    fn row(&self, identification: &Identification) -> String {
        let command = &identification.command;
        let unknown = || format!("flow {:08x}", command.flow >> 32);
        let gateway = self.gateways.get(&command.flow).cloned().unwrap_or_else(unknown);
        let count = match identification.candidate_count {
            u64::MAX => "too many".to_owned(),
            count => count.to_string(),
        };
        let best = identification.candidates.first();
        let (probability, actions) = match best {
            Some(best) => (format!("{:.3}", best.probability), named(&best.actions)),
            None => ("-".to_owned(), "no actions add up to this size".to_owned()),
        };
        let time = self.style.times.format(command.time_ns);
        let style = self.style.colours.probability(best.map(|best| best.probability));
        let last = painted(style, &format!("{probability:>11}  {actions}"));
        self.cells([&time, &gateway, &command.size, &command.replies, &count], &last)
    }

    fn headings(&self) -> String {
        let last = format!("{:>11}  most probable actions", "probability");
        let heading = self.style.times.heading();
        let all = self.cells([&heading, &"gateway", &"size", &"replies", &"candidates"], &last);
        painted(self.style.colours.heading(), &all)
    }

    fn cells(&self, cells: [&dyn std::fmt::Display; 5], last: &str) -> String {
        let [time, gateway, size, replies, candidates] = cells.map(ToString::to_string);
        let width = self.style.times.width();
        format!("{time:<width$}  {gateway:<15}  {size:>6}  {replies:>7}  {candidates:>10}  {last}")
    }
}

/// `2 on, 1 colour`.
fn named(actions: &Actions) -> String {
    let each: Vec<String> = actions.iter().map(|(name, count)| format!("{count} {name}")).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

impl TextFormat for IdentificationTable {
    fn write(&mut self, frame: &Frame, output: &mut dyn Write) -> io::Result<()> {
        self.observe(frame);
        let Frame::Identification(identification) = frame else {
            let colours = self.style.colours;
            let style = if matches!(frame, Frame::Notice(_)) { colours.notice() } else { Style::new() };
            let mut lines = line::lines(frame, &self.style).into_iter();
            return lines.try_for_each(|line| writeln!(output, "{}", painted(style, line.trim_end())));
        };
        if !std::mem::replace(&mut self.has_headings, true) {
            writeln!(output, "{}", self.headings())?;
        }
        writeln!(output, "{}", self.row(identification))
    }

    fn observe(&mut self, frame: &Frame) {
        if let Frame::Flow(flow) = frame {
            self.remember(flow);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_frame::{
        Candidate, Command, ContentType, Correction, Direction, Hello, Notice, Packet, Packets, Record, Segment,
        Segments, Session, StageSummary, Summary, Transport, Unknown, WeightedEpsilon,
    };

    use super::*;

    fn written(frames: &[Frame]) -> String {
        let mut table = IdentificationTable::new(TextStyle::default());
        let mut output = Vec::new();
        for frame in frames {
            table.write(frame, &mut output).unwrap();
        }
        String::from_utf8(output).unwrap()
    }

    fn command() -> Command {
        Command {
            time_ns: 1_767_600_000_012_345_678,
            end_ns: 0,
            flow: 1 << 32,
            size: 314,
            plaintext: Some([290, 290]),
            records: 1,
            replies: 2,
            reply_bytes: 90,
        }
    }

    fn identification(candidates: Vec<Candidate>, count: u64) -> Frame {
        Frame::from(Identification {
            command: command(),
            listed: candidates.len() as u64,
            candidates: candidates.into(),
            candidate_count: count,
            min_actions: None,
            max_actions: None,
        })
    }

    #[test]
    fn identifications_are_aligned_rows_below_headings() {
        let flow = Flow {
            flow: 1 << 32,
            gateway: "192.168.1.20".parse().unwrap(),
            service: "203.0.113.1:443".parse().unwrap(),
            transport: Transport::Tcp,
        };
        let mut table = IdentificationTable::new(TextStyle::default());
        table.observe(&flow.into());
        let actions = Actions::from(vec![(Arc::from("on"), 2), (Arc::from("colour"), 1)]);
        let best = Candidate { actions, epsilon: 0, probability: 0.41249 };
        let mut output = Vec::new();
        table.write(&identification(vec![best], 18), &mut output).unwrap();
        table.write(&identification(vec![], u64::MAX), &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        let expected = "\
time (UTC)                  gateway            size  replies  candidates  probability  most probable actions
2026-01-05 08:00:00.012345  192.168.1.20        314        2          18        0.412  2 on, 1 colour
2026-01-05 08:00:00.012345  192.168.1.20        314        2    too many            -  no actions add up to this size
";
        assert_eq!(text, expected);
        assert!(written(&[identification(vec![], 0)]).contains("flow 00000001"), "an unknown flow");
    }

    #[test]
    fn every_other_kind_is_a_line_that_starts_with_its_name() {
        let mut packets = Packets::new();
        packets.push(Packet { time_ns: 0, link_type: 1, original_length: 60, data: &[1, 2], capture: 0, number: 1 });
        let mut segments = Segments::new();
        let direction = Direction::ToGateway;
        segments.push(Segment { time_ns: 0, flow: 1, direction, sequence: 1, flags: 24, length: 2, payload: &[1, 2] });
        let record = Record {
            time_ns: 0,
            start_ns: 0,
            flow: 1,
            direction,
            content_type: ContentType::ApplicationData,
            length: 100,
            plaintext: Some([70, 76]),
            handshake: true,
        };
        let session =
            Session { time_ns: 0, flow: 1, server_name: None, tls_version: None, cipher_suite: Some("X".into()) };
        let hello = Hello { schema: 1, stage: "capture".into(), version: "1".into(), upstream: vec![] };
        let epsilons = [0, 1, -2, 3].map(|epsilon| WeightedEpsilon { epsilon, weight: 0.25 }).into();
        let notice = Notice {
            time_ns: None,
            stage: "record-sizer".into(),
            flow: Some(1),
            what: "gap".into(),
            bytes: Some(3),
            detail: None,
        };
        let row =
            StageSummary { stage: "capture".into(), counters: [("files".into(), 2)].into(), ..StageSummary::default() };
        let unknown = Unknown { kind: "new".into(), value: vec![0x81] };
        for (frame, words) in [
            (Frame::from(packets), "packet 1  link type 1  2 of 60 bytes  0102"),
            (segments.into(), "to_gateway    sequence 1           flags 18      2 bytes  0102"),
            (record.into(), "type 23    100 bytes  plaintext 70 to 76  handshake"),
            (session.into(), "-  X  -"),
            (hello.into(), "capture 1, schema 1"),
            (command().into(), "314 bytes  plaintext 290  1 records  2 replies of 90 bytes"),
            (Correction { command: command(), epsilons }.into(), "ε +0 (0.25), +1 (0.25), -2 (0.25), …"),
            (notice.into(), "record-sizer: gap  flow 1  3 bytes"),
            (Summary { stages: vec![row] }.into(), "capture: 0 frames in, 0 out, 0 bytes  files 2"),
            (Frame::Unknown(unknown), "1 bytes  81"),
        ] {
            let text = written(std::slice::from_ref(&frame));
            let kind = frame.kind().trim_end_matches('s');
            assert!(text.starts_with(kind) && text.ends_with('\n') && text.contains(words), "{text}");
        }
    }
}
