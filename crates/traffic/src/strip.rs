//! Removes the content of captures: every byte of payload becomes zero, unless the sizes of records are read from it.
//!
//! A [`Stripper`] sends packets through `flow-filter` and `record-sizer`, which says which bytes of the gateway's flows it
//! reads ([`sizeleak_record_sizer::ReadBytes`]: record headers, headers of handshake messages, hellos). It holds packets
//! back for a while, because a record boundary may be proven by what follows (`read_streams`), and then lets out only
//! their headers (`layout`), corrected checksums, and those bytes. What comes out goes through both stages
//! again, and the two results are compared : it is counted in how many flows they differ.
//!
//! [`CaptureWriter`] writes the packets as pcap or pcapng.
//!
//! ```
//! use sizeleak_frame::Packet;
//! use sizeleak_traffic::strip::{StripOptions, Stripper};
//!
//! // Ethernet, IPv4 and TCP from the service to the gateway; a record of 4 bytes.
//! let ethernet = [&[0; 12][..], &[8, 0]].concat();
//! let ip = [0x45, 0, 0, 49, 0, 0, 0, 0, 64, 6, 0, 0, 203, 0, 113, 1, 192, 168, 1, 20];
//! let tcp = [1, 187, 200, 0, 0, 0, 0, 9, 0, 0, 0, 7, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
//! let data = [&ethernet[..], &ip, &tcp, &[23, 3, 3, 0, 4, b'd', b'o', b'o', b'r']].concat();
//! let (time_ns, link_type, original_length, capture, number) = (0, 1, data.len() as u32, 0, 1);
//!
//! let mut stripper = Stripper::new(&StripOptions { gateway: vec!["192.168.1.20".into()], ..StripOptions::default() })?;
//! let mut written = Vec::new();
//! let mut write = |packet: Packet<'_>| -> std::io::Result<()> { Ok(written.push(packet.data.to_vec())) };
//! stripper.packet(Packet { time_ns, link_type, original_length, data: &data, capture, number }, &mut write)?;
//! let report = stripper.finish(&mut write)?;
//! assert_eq!(written[0][54..], [23, 3, 3, 0, 4, 0, 0, 0, 0]);
//! assert_eq!((report.kept_bytes, report.zeroed_bytes, report.differing_flows), (5, 4, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![warn(clippy::indexing_slicing)]

mod capture_writer;
mod layout;
mod read_streams;

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::ops::Range;

use sizeleak_flow_filter::FlowFilter;
use sizeleak_frame::{Frame, Packet, Packets, Segment, Segments};
use sizeleak_packet::AddressSet;
use sizeleak_platform::runtime::{ConfigureError, Stage, StageError};
use sizeleak_record_sizer::{RecordSizer, SizerInput};
use thiserror::Error;

use crate::strip::layout::Layout;
use crate::strip::read_streams::{ReadStreams, StreamKey};

pub use capture_writer::{CaptureFormat, CaptureWriter};

/// Whose sizes are kept, and what becomes of other packets.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StripOptions {
    /// The addresses and networks of the gateways, as `flow-filter` reads them.
    pub gateway: Vec<String>,
    /// The tunnels to open, as `flow-filter` reads them; all if there are none.
    pub tunnel: Vec<String>,
    /// Leave out packets that are not from or to the gateway, instead of zeroing them.
    pub drop_others: bool,
    /// Leave the gateway's DNS messages as they are, so that services can still be selected by name.
    pub keep_dns: bool,
}

#[derive(Debug, Error)]
pub enum StripError {
    #[error(transparent)]
    Configure(#[from] ConfigureError),
    /// A stage that looks for records failed: no packet is the gateway's, for example.
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error("the capture cannot be written")]
    Write(#[from] io::Error),
}

/// `flow-filter` and `record-sizer`.
#[derive(Debug)]
struct RecordPipeline {
    filter: FlowFilter,
    sizer: RecordSizer,
    /// How many datagrams there were. Each has its number, since the sizer may read it later.
    datagrams: u32,
    /// Of what both found.
    digests: FoundDigests,
}

impl RecordPipeline {
    fn new(options: &StripOptions) -> Result<Self, StripError> {
        let filter = sizeleak_flow_filter::Options {
            gateway: options.gateway.clone(),
            tunnel: options.tunnel.clone(),
            ..sizeleak_flow_filter::Options::default()
        };
        let sizer = RecordSizer::new(&sizeleak_record_sizer::Options::default())?.noting_read_bytes();
        Ok(Self { filter: FlowFilter::new(&filter)?, sizer, datagrams: 0, digests: FoundDigests::new() })
    }

    fn packet(&mut self, packet: Packet<'_>) -> Result<Option<Segments>, StageError> {
        let (mut packets, mut frames, mut found) = (Packets::with_capacity(1), Vec::new(), Vec::new());
        packets.push(packet);
        self.filter.process(packets, &mut frames)?;
        let mut segments = None;
        for frame in frames {
            match frame {
                Frame::Segments(batch) => {
                    let batch = self.numbered(&batch);
                    segments = Some(batch.clone());
                    self.sizer.process(batch.into(), &mut found)?;
                }
                Frame::Flow(flow) => self.sizer.process(SizerInput::Flow(flow), &mut found)?,
                frame => found.push(frame),
            }
        }
        self.digests.add(&found);
        Ok(segments)
    }

    fn numbered(&mut self, batch: &Segments) -> Segments {
        let mut numbered = Segments::with_capacity(batch.len());
        for segment in batch {
            let is_datagram = segment.flags == 0;
            self.datagrams = self.datagrams.wrapping_add(is_datagram.into());
            let sequence = if is_datagram { self.datagrams } else { segment.sequence };
            numbered.push(Segment { sequence, ..segment });
        }
        numbered
    }

    fn finish(&mut self) -> Result<(), StageError> {
        let mut found = Vec::new();
        self.filter.finish(&mut found)?;
        self.sizer.finish(&mut found)?;
        self.digests.add(&found);
        Ok(())
    }
}

/// Packets are held back as long as they need no more memory than this: until then it must be known what they are read
/// for.
const MAX_HELD_BYTES: usize = 32 << 20;

#[derive(Debug)]
pub struct Stripper {
    options: StripOptions,
    gateways: AddressSet,
    /// Finds the records of the packets that come in, and of those that are let out.
    original: RecordPipeline,
    stripped: RecordPipeline,
    read: ReadStreams,
    held: VecDeque<HeldPacket>,
    held_bytes: usize,
    report: StripReport,
}

impl Stripper {
    pub fn new(options: &StripOptions) -> Result<Self, StripError> {
        let original = RecordPipeline::new(options)?;
        let invalid = |error: sizeleak_packet::InvalidAddress| ConfigureError::Usage(error.to_string());
        Ok(Self {
            options: options.clone(),
            gateways: AddressSet::parse(&options.gateway).map_err(invalid)?,
            original,
            stripped: RecordPipeline::new(options)?,
            read: ReadStreams::default(),
            held: VecDeque::new(),
            held_bytes: 0,
            report: StripReport::default(),
        })
    }

    /// Takes a packet, and lets others out that came before it.
    pub fn packet(
        &mut self,
        packet: Packet<'_>,
        write: &mut dyn FnMut(Packet<'_>) -> io::Result<()>,
    ) -> Result<(), StripError> {
        let segments = self.original.packet(packet)?;
        let layout = Layout::of(packet.link_type, packet.data, packet.original_length);
        let is_gateways = layout.addresses.iter().any(|address| self.gateways.contains(*address));
        if !is_gateways && self.options.drop_others {
            self.report.dropped_packets += 1;
            return Ok(());
        }
        let payload = packet.data.get(layout.headers..layout.headers + layout.payload).unwrap_or_default();
        let keeps_dns = is_gateways && layout.is_dns && self.options.keep_dns;
        let mut held = HeldPacket::new(packet, layout);
        if keeps_dns {
            held.keep(payload, 0..payload.len());
        }
        for segment in segments.iter().flat_map(|segments| segments.iter()) {
            if segment.payload != payload {
                self.report.fragmented_segments += 1;
            } else if segment.flags == 0 {
                held.datagram = Some((segment.sequence, payload.into()));
            } else if !payload.is_empty() {
                let is_syn = segment.flags & Segment::SYN != 0;
                let sequence = segment.sequence.wrapping_add(is_syn.into());
                let stream = (segment.flow, segment.direction);
                held.payload = Some(StreamPayload { stream, sequence, bytes: payload.into() });
            }
        }
        self.held_bytes += held.held_bytes();
        self.held.push_back(held);
        self.note_read();
        while self.held_bytes > MAX_HELD_BYTES {
            self.let_out(write)?;
        }
        Ok(())
    }

    /// Notes which bytes the stages have read by now: of streams by their places there, of datagrams in the packets.
    fn note_read(&mut self) {
        self.original.sizer.take_read_bytes().iter().for_each(|(flow, read)| self.read.add(*flow, read));
        for (number, place) in self.original.sizer.take_datagram_read_bytes() {
            let is_of = |held: &&mut HeldPacket| held.datagram.as_ref().is_some_and(|(of_held, _)| *of_held == number);
            if let Some(held) = self.held.iter_mut().rev().find(is_of) {
                held.keep_of_datagram(place);
            }
        }
    }

    /// Lets out what is held, and compares what is found in the packets that were let out with what was found before.
    pub fn finish(mut self, write: &mut dyn FnMut(Packet<'_>) -> io::Result<()>) -> Result<StripReport, StripError> {
        self.original.finish()?;
        self.note_read();
        while !self.held.is_empty() {
            self.let_out(write)?;
        }
        self.stripped.finish()?;
        let (differing_flows, differing_notices) = self.original.digests.differences(&self.stripped.digests);
        let records = self.original.digests.found;
        Ok(StripReport { records, differing_flows, differing_notices, ..self.report })
    }

    fn let_out(&mut self, write: &mut dyn FnMut(Packet<'_>) -> io::Result<()>) -> Result<(), StripError> {
        let Some(mut held) = self.held.pop_front() else { return Ok(()) };
        self.held_bytes -= held.held_bytes();
        let (kept, zeroed) = held.complete(&self.read);
        self.report.packets += 1;
        self.report.kept_bytes += kept;
        self.report.zeroed_bytes += zeroed;
        self.stripped.packet(held.packet())?;
        self.stripped.sizer.take_read_bytes();
        self.stripped.sizer.take_datagram_read_bytes();
        Ok(write(held.packet())?)
    }
}

/// The number of digests that flows share by their numbers.
const DIGESTS: usize = 1 << 16;

#[derive(Debug)]
struct FoundDigests {
    records: Vec<u64>,
    notices: Vec<u64>,
    found: u64,
}

impl FoundDigests {
    fn new() -> Self {
        Self { records: vec![0; DIGESTS], notices: vec![0; DIGESTS], found: 0 }
    }

    fn add(&mut self, frames: &[Frame]) {
        for frame in frames {
            match frame {
                Frame::Flow(flow) => add(&mut self.records, flow.flow, frame),
                Frame::Session(session) => add(&mut self.records, session.flow, frame),
                Frame::Record(record) => {
                    self.found += 1;
                    add(&mut self.records, record.flow, frame);
                }
                Frame::Notice(notice) => {
                    if let Some(flow) = notice.flow {
                        add(&mut self.notices, flow, frame);
                    }
                }
                _ => {}
            }
        }
    }

    /// In how many flows other records are found, and in how many others only the notices differ.
    fn differences(&self, other: &Self) -> (u64, u64) {
        let records = self.records.iter().zip(&other.records).map(|(one, other)| one != other);
        let notices = self.notices.iter().zip(&other.notices).map(|(one, other)| one != other);
        let (mut differing_records, mut differing_notices) = (0, 0);
        for (records, notices) in records.zip(notices) {
            differing_records += u64::from(records);
            differing_notices += u64::from(notices && !records);
        }
        (differing_records, differing_notices)
    }
}

fn add(digests: &mut [u64], flow: u64, frame: &Frame) {
    let Some(digest) = digests.get_mut((flow % DIGESTS as u64) as usize) else { return };
    let mut hasher = DefaultHasher::new();
    (*digest, format!("{frame:?}")).hash(&mut hasher);
    *digest = hasher.finish();
}

/// What became of a capture, in packets and bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StripReport {
    pub packets: u64,
    /// Packets that were left out, because they are not the gateway's.
    pub dropped_packets: u64,
    /// Captured bytes of payload that stay: record headers, hellos, and DNS messages on request.
    pub kept_bytes: u64,
    pub zeroed_bytes: u64,
    /// Records of the gateway that were found before.
    pub records: u64,
    /// Segments of the gateway that came in fragments of IP: of these, everything became zero.
    pub fragmented_segments: u64,
    /// Flows of the gateway in which other records are found than before; at least, if there are more than 60,000
    /// flows.
    pub differing_flows: u64,
    /// Flows in which the same records are found, with other notices.
    pub differing_notices: u64,
}

const PACKET_OVERHEAD_BYTES: usize = 256;

#[derive(Debug)]
struct HeldPacket {
    time_ns: i64,
    link_type: u16,
    original_length: u32,
    capture: u32,
    number: u64,
    /// Its bytes, of which all behind the headers are zero.
    data: Vec<u8>,
    layout: Layout,
    /// Its payload, where some of it may have to stay.
    payload: Option<StreamPayload>,
    /// Its number among the datagrams, and its payload, if it is one.
    datagram: Option<(u32, Box<[u8]>)>,
    kept_bytes: u64,
}

#[derive(Debug)]
struct StreamPayload {
    stream: StreamKey,
    sequence: u32,
    bytes: Box<[u8]>,
}

impl HeldPacket {
    /// A packet whose payload is all zero.
    fn new(packet: Packet<'_>, layout: Layout) -> Self {
        let mut data = vec![0; packet.data.len()];
        data.iter_mut().zip(packet.data).take(layout.headers).for_each(|(zero, byte)| *zero = *byte);
        for at in &layout.other_checksums {
            if let Some(field) = data.get_mut(*at..at + 2) {
                field.fill(0);
            }
        }
        let Packet { time_ns, link_type, original_length, capture, number, .. } = packet;
        let (payload, datagram, kept_bytes) = (None, None, 0);
        Self { time_ns, link_type, original_length, capture, number, data, layout, payload, datagram, kept_bytes }
    }

    fn held_bytes(&self) -> usize {
        let of_datagram = self.datagram.as_ref().map_or(0, |(_, bytes)| bytes.len());
        PACKET_OVERHEAD_BYTES
            + self.data.len()
            + self.payload.as_ref().map_or(of_datagram, |payload| payload.bytes.len())
    }

    fn keep_of_datagram(&mut self, place: Range<usize>) {
        if let Some((number, bytes)) = self.datagram.take() {
            self.keep(&bytes, place);
            self.datagram = Some((number, bytes));
        }
    }

    fn keep(&mut self, payload: &[u8], place: Range<usize>) {
        let start = self.layout.headers;
        let target = self.data.get_mut(start + place.start..start + place.end);
        if let (Some(target), Some(bytes)) = (target, payload.get(place)) {
            target.copy_from_slice(bytes);
            self.kept_bytes += bytes.len() as u64;
        }
    }

    /// Puts the bytes back that were read, and corrects the checksum. Returns how many bytes of payload stay, and how
    /// many are zero.
    fn complete(&mut self, read: &ReadStreams) -> (u64, u64) {
        if let Some(StreamPayload { stream, sequence, bytes }) = self.payload.take() {
            for place in read.places(stream, sequence, &bytes) {
                self.keep(&bytes, place);
            }
        }
        let payload_end = self.layout.headers + self.layout.payload;
        if let Some(checksum) = self.layout.checksum {
            checksum.correct(&mut self.data, payload_end);
        }
        let behind_headers = self.data.len().saturating_sub(self.layout.headers) as u64;
        (self.kept_bytes, behind_headers.saturating_sub(self.kept_bytes))
    }

    fn packet(&self) -> Packet<'_> {
        let Self { time_ns, link_type, original_length, capture, number, .. } = *self;
        Packet { time_ns, link_type, original_length, data: &self.data, capture, number }
    }
}
