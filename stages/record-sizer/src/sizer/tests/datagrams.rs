//! Conversations over UDP with odd and forged datagrams among them: what is found of the others stays the same.

mod dtls;
mod quic;
mod recognition;

use sizeleak_frame::{Direction, Flow, Frame, Record, Segment, Segments, Transport};
use sizeleak_platform::runtime::Stage;

use super::super::{RecordSizer, SizerInput};
use crate::options::Options;

const TO: Direction = Direction::ToGateway;
const FROM: Direction = Direction::FromGateway;

/// A second between two datagrams of a conversation, in nanoseconds.
const STEP_NS: i64 = 1_000_000_000;

/// A datagram of a flow: when, its direction and its payload.
type Row = (i64, Direction, Vec<u8>);

/// Pseudo-random bytes, the same in every run.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// These datagrams, a second apart.
fn timed(datagrams: impl IntoIterator<Item = (Direction, Vec<u8>)>) -> Vec<Row> {
    (1..).zip(datagrams).map(|(at, (direction, payload))| (at * STEP_NS, direction, payload)).collect()
}

/// The rows with others before that at a place, milliseconds apart.
fn with(rows: &[Row], at: usize, others: &[(Direction, Vec<u8>)]) -> Vec<Row> {
    let before_ns = rows.get(at).map_or(i64::MAX / 2, |(time_ns, ..)| *time_ns) - STEP_NS / 2;
    let others =
        (0..).zip(others).map(|(at, (direction, payload))| (before_ns + at * 1_000_000, *direction, payload.clone()));
    let (before, behind) = rows.split_at(at);
    before.iter().cloned().chain(others).chain(behind.iter().cloned()).collect()
}

/// What is found in a flow with these ports of gateway and service, and how much of its payload is lost.
fn found(options: &Options, ports: [u16; 2], rows: &[Row]) -> (Vec<Frame>, u64) {
    let (gateway, service) = ("192.0.2.20".parse().unwrap(), format!("192.0.2.7:{}", ports[1]).parse().unwrap());
    let (mut sizer, mut out) = (RecordSizer::new(options).unwrap(), Vec::new());
    let flow = Flow { gateway_port: Some(ports[0]), ..Flow::new(1, gateway, service, Transport::Udp) };
    sizer.process(SizerInput::Flow(Box::new(flow)), &mut out).unwrap();
    for (number, (time_ns, direction, payload)) in rows.iter().enumerate() {
        if number % 7 == 3 {
            // It continues from a state as if nothing was.
            let state = sizer.save().unwrap().unwrap();
            sizer = RecordSizer::new(options).unwrap();
            sizer.restore(&state).unwrap();
        }
        let (time_ns, direction, length) = (*time_ns, *direction, payload.len() as u32);
        let mut batch = Segments::new();
        let row =
            Segment { time_ns, flow: 1, direction, sequence: 0, flags: 0, length, payload, acknowledgement: None };
        batch.push(row);
        sizer.process(batch.into(), &mut out).unwrap();
    }
    sizer.finish(&mut out).unwrap();
    assert_eq!(sizer.held_bytes(), 0, "nothing is held after the end");
    (out, sizer.reporter.counters.lost_bytes)
}

fn records(frames: &[Frame]) -> Vec<Record> {
    let of = |frame: &Frame| if let Frame::Record(record) = frame { Some(record.clone()) } else { None };
    frames.iter().filter_map(of).collect()
}

/// The records of a conversation's own datagrams: those that come at whole seconds.
fn own(frames: &[Frame]) -> Vec<Record> {
    records(frames).into_iter().filter(|record| record.time_ns % STEP_NS == 0).collect()
}

fn notices(frames: &[Frame], what: &str) -> Vec<String> {
    let of = |frame: &Frame| match frame {
        Frame::Notice(notice) if notice.what == what => notice.detail.clone(),
        _ => None,
    };
    frames.iter().filter_map(of).collect()
}

/// The names, versions and protocols of sessions.
fn sessions(frames: &[Frame]) -> Vec<(Option<String>, Option<String>, Option<String>)> {
    let of = |frame: &Frame| match frame {
        Frame::Session(session) => {
            Some((session.server_name.clone(), session.cipher_suite.clone(), session.protocol.clone()))
        }
        _ => None,
    };
    frames.iter().filter_map(of).collect()
}
