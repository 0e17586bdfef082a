//! The first three stages in process: from a capture file to the frames of `record-sizer`.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use sizeleak_capture::Capture;
use sizeleak_flow_filter::FlowFilter;
use sizeleak_frame::{Direction, Flow, Frame, Notice, Record, Segment, Session, Transport};
use sizeleak_platform::runtime::{Interrupt, Source, Stage};
use sizeleak_record_sizer::RecordSizer;

/// What the three stages made of a capture.
#[derive(Debug, Default)]
#[allow(dead_code, reason = "each test uses a part of it")]
pub struct Sized {
    /// The flows by their identifiers.
    pub flows: BTreeMap<u64, Flow>,
    /// The segments as `record-sizer` got them, without their payload.
    pub segments: Vec<Carrier>,
    /// The records in the order they were found.
    pub records: Vec<Record>,
    /// The sessions.
    pub sessions: Vec<Session>,
    /// The stages' notices.
    pub notices: Vec<Notice>,
    /// Why the capture could not be read completely.
    pub damage: Option<String>,
}

/// A segment without its payload, in the terms of tshark.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Carrier {
    pub time_ns: i64,
    pub sequence: u32,
    pub direction: Direction,
    pub flow: u64,
    pub flags: u8,
    pub length: u32,
    pub captured: u32,
}

impl Sized {
    /// Sizes the TLS records in a capture, those of every flow if `gateway` is `None`.
    pub fn of(capture: &Path, gateway: Option<IpAddr>) -> Self {
        let mut sized = Self::default();
        let mut packets: Vec<Frame> = Vec::new();
        let read = Capture::new(vec![capture.to_owned()]).run(&mut packets, &Interrupt::new());
        sized.damage = read.err().map(|error| error.to_string());

        let gateway = match gateway {
            Some(address) => vec![address.to_string()],
            None => vec!["0.0.0.0/0".to_owned(), "::/0".to_owned()],
        };
        let options = sizeleak_flow_filter::Options { gateway, allow_absent: true, ..Default::default() };
        let segments = through(FlowFilter::new(&options).unwrap(), packets);
        for frame in &segments {
            match frame {
                Frame::Segments(batch) => sized.segments.extend(batch.iter().map(|row| Carrier::of(&row))),
                Frame::Flow(flow) => drop(sized.flows.insert(flow.flow, Flow::clone(flow))),
                _ => {}
            }
        }
        for frame in through(record_sizer(), segments) {
            match frame {
                Frame::Record(record) => sized.records.push(record),
                Frame::Session(session) => sized.sessions.push(*session),
                Frame::Notice(notice) => sized.notices.push(*notice),
                _ => {}
            }
        }
        sized
    }

    /// Each direction of each flow with its records, in order.
    pub fn by_direction(&self) -> BTreeMap<(u64, Direction), Vec<&Record>> {
        let mut all: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for record in &self.records {
            all.entry((record.flow, record.direction)).or_default().push(record);
        }
        all
    }

    /// Whether a flow is UDP.
    #[allow(dead_code, reason = "not every test has DTLS")]
    pub fn is_udp(&self, flow: u64) -> bool {
        self.flows.get(&flow).is_some_and(|flow| flow.transport == Transport::Udp)
    }
}

impl Carrier {
    fn of(segment: &Segment<'_>) -> Self {
        Self {
            time_ns: segment.time_ns,
            sequence: segment.sequence,
            direction: segment.direction,
            flow: segment.flow,
            flags: segment.flags,
            length: segment.length,
            captured: segment.payload.len() as u32,
        }
    }
}

/// Finds the flow and direction of a packet by its ends, its time and its sequence number.
#[derive(Debug)]
#[allow(dead_code, reason = "only comparisons with another program need it")]
pub struct FlowFinder {
    /// A flow does not include the gateway's port, so several may fit.
    fitting: BTreeMap<SegmentKey, Vec<u64>>,
    known: BTreeMap<(SocketAddr, SocketAddr), u64>,
}

/// What identifies a segment of a flow.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SegmentKey {
    gateway: IpAddr,
    service: SocketAddr,
    direction: Direction,
    time_ns: i64,
    sequence: u32,
}

#[allow(dead_code, reason = "only comparisons with another program need it")]
impl FlowFinder {
    /// Knows all segments of a capture.
    pub fn new(sized: &Sized) -> Self {
        let mut fitting: BTreeMap<SegmentKey, Vec<u64>> = BTreeMap::new();
        for carrier in &sized.segments {
            let Some(flow) = sized.flows.get(&carrier.flow) else { continue };
            let (gateway, service) = (flow.gateway, flow.service);
            let Carrier { time_ns, sequence, direction, .. } = *carrier;
            let key = SegmentKey { gateway, service, direction, time_ns, sequence };
            fitting.entry(key).or_default().push(carrier.flow);
        }
        Self { fitting, known: BTreeMap::new() }
    }

    /// The flow and direction of a packet.
    pub fn find(
        &mut self,
        source: SocketAddr,
        destination: SocketAddr,
        time_ns: i64,
        sequence: u32,
    ) -> Option<(u64, Direction)> {
        let to = (destination, source, Direction::ToGateway);
        let from = (source, destination, Direction::FromGateway);
        [to, from].into_iter().find_map(|(gateway, service, direction)| {
            let ends = (gateway, service);
            let gateway = gateway.ip();
            let fitting = self.fitting.get(&SegmentKey { gateway, service, direction, time_ns, sequence })?;
            let flow = match self.known.get(&ends) {
                Some(flow) => *flow,
                None => *fitting.iter().find(|flow| !self.known.values().any(|taken| taken == *flow))?,
            };
            self.known.insert(ends, flow);
            Some((flow, direction))
        })
    }
}

fn record_sizer() -> RecordSizer {
    RecordSizer::new(&sizeleak_record_sizer::Options::default()).unwrap()
}

fn through<S: Stage>(mut stage: S, frames: Vec<Frame>) -> Vec<Frame> {
    let mut out: Vec<Frame> = Vec::new();
    for frame in frames {
        match S::Input::try_from(frame) {
            Ok(input) => stage.process(input, &mut out).unwrap(),
            Err(other) => out.push(other),
        }
    }
    stage.finish(&mut out).unwrap();
    out
}
