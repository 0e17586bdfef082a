//! Tables of sizes as frame streams: `tests/answers/real_gateways/*.sizes.csv`.
//!
//! A line is `flow,NUMBER,GATEWAY,SERVICE,TRANSPORT`, `session,TIME,FLOW,SERVER NAME,VERSION,SUITE`,
//! `record,TIME,DURATION,FLOW,DIRECTION,CONTENT TYPE,LENGTH,LEAST PLAINTEXT,MOST PLAINTEXT,HANDSHAKE` or
//! `segment,TIME,FLOW,DIRECTION,SEQUENCE,FLAGS,LENGTH,ACKNOWLEDGEMENT`. Times are microseconds after the second that
//! the head of the file names.

use std::fs;
use std::io::Write;
use std::path::Path;

use sizeleak_frame::{
    Direction, Flow, Frame, FrameWriter, Hello, Record, SCHEMA, Segment, Segments, Session, StageSummary, Summary,
    Transport,
};

/// The lines of a table as frames.
pub struct SizeTable {
    /// In the order of the lines.
    pub frames: Vec<Frame>,
    /// The stage that such a stream comes from.
    stage: &'static str,
}

impl SizeTable {
    /// Reads a table.
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let seconds = text.split_once("microseconds after ").unwrap().1.split_once(' ').unwrap().0;
        let base_ns = seconds.parse::<i64>().unwrap() * 1_000_000_000;
        let lines = || text.lines().filter(|line| !line.starts_with('#'));
        let stage = if lines().any(|line| line.starts_with("segment")) { "flow-filter" } else { "record-sizer" };
        let frames = lines().map(|line| frame(&line.split(',').collect::<Vec<_>>(), base_ns)).collect();
        Self { frames, stage }
    }

    /// Writes the stream that the stage would write.
    pub fn write(&self, output: impl Write) {
        let upstream = ["capture", "flow-filter"].map(str::to_owned);
        let upstream = upstream.into_iter().take_while(|stage| stage != self.stage).collect();
        let hello = Hello { schema: SCHEMA, stage: self.stage.to_owned(), version: "0.1.0".to_owned(), upstream };
        let mut writer = FrameWriter::new(output);
        writer.write(&Frame::Hello(Box::new(hello))).unwrap();
        writer.write_all(&self.frames).unwrap();
        let stage = |stage: &str| StageSummary { stage: stage.to_owned(), ..StageSummary::default() };
        let stages = ["capture", "flow-filter", "record-sizer"];
        let last = stages.iter().position(|name| *name == self.stage).unwrap();
        writer
            .write(&Frame::Summary(Summary { stages: stages[..=last].iter().map(|name| stage(name)).collect() }))
            .unwrap();
        writer.flush().unwrap();
    }
}

fn frame(fields: &[&str], base_ns: i64) -> Frame {
    let number = |at: usize| fields[at].parse::<u64>().unwrap();
    // Flows of several tables in one run are different ones.
    let flow = |at: usize| base_ns.unsigned_abs() / 1000 + number(at);
    let time_ns = |at: usize| base_ns + fields[at].parse::<i64>().unwrap() * 1000;
    let direction = |at: usize| if fields[at] == "to" { Direction::ToGateway } else { Direction::FromGateway };
    let text = |at: usize| Some(fields[at]).filter(|text| !text.is_empty()).map(str::to_owned);
    match fields[0] {
        "flow" => Frame::Flow(Box::new(Flow {
            flow: flow(1),
            gateway: fields[2].parse().unwrap(),
            service: fields[3].parse().unwrap(),
            transport: if fields[4] == "tcp" { Transport::Tcp } else { Transport::Udp },
            encapsulation: None,
            among_several: false,
            gateway_port: None,
        })),
        "session" => Frame::Session(Box::new(Session {
            time_ns: time_ns(1),
            flow: flow(2),
            server_name: text(3),
            tls_version: text(4),
            cipher_suite: text(5),
            protocol: None,
        })),
        "record" => Frame::Record(Record {
            time_ns: time_ns(1),
            start_ns: time_ns(1) - fields[2].parse::<i64>().unwrap() * 1000,
            flow: flow(3),
            direction: direction(4),
            content_type: (number(5) as u8).try_into().unwrap(),
            length: number(6) as u32,
            plaintext: text(7).map(|_| [number(7), number(8)]),
            handshake: number(9) == 1,
            protocol: sizeleak_frame::Protocol::Tls,
        }),
        _ => {
            let mut segments = Segments::new();
            segments.push(Segment {
                time_ns: time_ns(1),
                flow: flow(2),
                direction: direction(3),
                sequence: number(4) as u32,
                flags: number(5) as u8,
                length: number(6) as u32,
                payload: &[],
                acknowledgement: text(7).map(|_| number(7) as u32),
            });
            Frame::Segments(Box::new(segments))
        }
    }
}
