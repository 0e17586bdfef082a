//! Cuts the ordered stream of one direction into records: in step with the headers, searching for a boundary, or
//! waiting for TLS to start after something else.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, Protocol};

use crate::chunk::Chunk;
use crate::findings::{Conflict, EventKind, Findings, Incident, PayloadUse, ReadBytes, TlsEvent};
use crate::framing::LengthFramer;
use crate::handshake::{ClientHello, HandshakeReader, Hello};
use crate::message::{FlowEvent, Found, Message};
use crate::messages::{ConnectionMessages, MessageEnd, MessageSizer, SizedMessage};
use crate::reassembly::OrderedStream;
use crate::record::{GapEffect, HEADER, Header, OpenRecord, RecordWalker, SizedRecord, Step, WalkerState};
use crate::resync::{BoundarySearch, HELLO, HelloScan, ScanOutcome, SearchOutcome, is_hello, ssl2_hello_length};

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Framing {
    Unstarted,
    /// At the first byte of the stream, or in the first header.
    Beginning,
    /// In an SSL 2 `ClientHello`, of which `left` bytes are to come.
    Ssl2Hello {
        left: u64,
    },
    InStep,
    /// In something that is not TLS, which a hello may end.
    HelloScan(Box<HelloScan>),
    /// Out of step.
    Search(Box<BoundarySearch>),
    /// The capture holds headers alone.
    Hidden,
    OpenVpn,
}

impl Framing {
    /// The framing of a direction whose connection was at rest.
    pub(crate) fn of(walker: &RecordWalker) -> Self {
        if walker.version().is_some() { Self::InStep } else { Self::Unstarted }
    }

    /// Whether the direction needs no more than its walker, which is between two records or inside application data.
    pub(crate) fn is_idle(&self, walker: &RecordWalker) -> bool {
        match self {
            Self::Unstarted => true,
            Self::InStep => walker.version().is_some() && walker.is_at_data(),
            _ => false,
        }
    }

    pub(crate) fn is_inside_record(&self, walker: &RecordWalker) -> bool {
        match self {
            Self::InStep => walker.is_inside_record(),
            Self::Ssl2Hello { left } => *left > 0,
            _ => false,
        }
    }

    /// The record that the stream is inside, if its header was followed.
    pub(crate) fn open_record(&self, walker: &RecordWalker) -> Option<OpenRecord> {
        if matches!(self, Self::InStep) { walker.open_record() } else { None }
    }

    /// Whether record boundaries are looked for.
    pub(crate) fn is_searching(&self) -> bool {
        matches!(self, Self::Search(_))
    }

    fn search(version: Option<u8>) -> Self {
        Self::Search(Box::new(BoundarySearch::new(version)))
    }
}

pub(crate) struct Framer<'a> {
    pub(crate) direction: Direction,
    /// Whether the SYN was seen, so that the stream starts with its first byte.
    pub(crate) saw_syn: bool,
    pub(crate) is_tls: bool,
    pub(crate) walker: &'a mut RecordWalker,
    pub(crate) framing: &'a mut Framing,
    pub(crate) handshake: &'a mut HandshakeReader,
    pub(crate) follows_data: &'a mut bool,
    /// Sizes messages while no record was found, if their segments are to be used.
    pub(crate) messages: &'a mut Option<Box<ConnectionMessages>>,
    pub(crate) declared: &'a mut Option<Box<LengthFramer>>,
    pub(crate) payload: &'a mut PayloadUse,
    pub(crate) findings: &'a mut Findings,
}

impl OrderedStream for Framer<'_> {
    fn chunk(&mut self, mut chunk: Chunk<'_>) {
        // A receiver can read early segments only once the bytes before them have come, so time never runs backwards.
        chunk.time_ns = chunk.time_ns.max(self.walker.last_ns);
        self.payload.sent = self.payload.sent.saturating_add(chunk.length());
        if self.declared.is_some() {
            self.take_declared(chunk);
        } else {
            self.hide_or_show(&chunk);
            self.start();
            self.read(chunk);
            self.size_message(&chunk);
        }
        self.walker.last_ns = chunk.time_ns;
    }

    fn gap(&mut self, length: u64, time_ns: i64) {
        self.incident(time_ns, Incident::Gap { bytes: length });
        self.payload.doubt(length);
        if let Some(declared) = self.declared {
            return declared.gap(self.direction, length);
        }
        self.start();
        let message = self.sizer().and_then(|sizer| sizer.gap(length, time_ns));
        self.message(message);
        let length = if length == 0 { u64::MAX } else { length };
        match self.framing {
            Framing::Hidden | Framing::OpenVpn => {}
            Framing::InStep => {
                self.lose_handshake();
                self.payload.find(length.min(self.walker.body_left()));
                self.lose_partial_header();
                match self.walker.gap(length, time_ns) {
                    GapEffect::WithinBody => {
                        // It may end with the record.
                        self.walk(Chunk::fragment(time_ns, &[]));
                        return;
                    }
                    GapEffect::PastRecord(record) => self.record(record),
                    GapEffect::HeaderLost => {}
                }
                *self.framing = Framing::search(self.walker.version());
            }
            Framing::Search(search) => {
                let (records, believed) = (search.gap(length, time_ns), std::mem::take(&mut search.believed));
                self.read_headers(&believed);
                self.unproven(records);
            }
            Framing::HelloScan(scan) => scan.gap(),
            Framing::Unstarted | Framing::Beginning | Framing::Ssl2Hello { .. } => {
                *self.framing = Framing::search(None);
            }
        }
    }

    fn incident(&mut self, time_ns: i64, incident: Incident) {
        match incident {
            Incident::NotMissing { bytes } => {
                self.payload.sent = self.payload.sent.saturating_sub(bytes);
                self.payload.find(bytes);
            }
            Incident::Unconfirmed { bytes } => self.payload.doubt(bytes),
            Incident::Conflict(Conflict::Replaced) => {
                if let Some(declared) = self.declared {
                    declared.gap(self.direction, 0);
                } else {
                    self.lose_handshake();
                    *self.framing = Framing::search(self.walker.version());
                }
            }
            _ => {}
        }
        self.findings.incidents.push((time_ns, incident));
    }
}

impl Framer<'_> {
    fn start(&mut self) {
        if matches!(self.framing, Framing::Unstarted) {
            *self.framing = if self.saw_syn { Framing::Beginning } else { Framing::search(None) };
        }
    }

    /// Notes that the capture holds no record headers, where nothing was read yet, or that it holds them after all.
    fn hide_or_show(&mut self, chunk: &Chunk<'_>) {
        let is_hidden = chunk.hidden > 0 && chunk.payload.len() < HEADER;
        let is_unread = match self.framing {
            Framing::Unstarted => true,
            Framing::Search(search) => search.searched == 0,
            _ => false,
        };
        if is_unread && is_hidden && !self.is_tls {
            *self.framing = Framing::Hidden;
            let sizers = &mut self.messages.get_or_insert_default().sizers;
            *sizers.of_mut(self.direction) = Some(MessageSizer::new(MessageEnd::Write));
        } else if matches!(self.framing, Framing::Hidden) && chunk.starts_segment && chunk.payload.len() >= HEADER {
            self.end_message();
            self.drop_sizer();
            *self.framing = Framing::search(None);
        }
    }

    fn take_declared(&mut self, chunk: Chunk<'_>) {
        let (mut found, mut incidents) = (Found::default(), Vec::new());
        let Some(declared) = self.declared else { return };
        declared.take(self.direction, chunk, &mut found, &mut incidents);
        for place in found.read {
            let bytes = chunk.payload.get(place.clone()).unwrap_or_default();
            self.note_read(chunk.sequence.wrapping_add(place.start as u32), bytes);
        }
        for incident in incidents {
            if let Incident::Resync { skipped } = incident {
                self.payload.lose(skipped);
            }
            self.incident(chunk.time_ns, incident);
        }
        for _ in 0..found.repeated {
            self.incident(chunk.time_ns, Incident::Retransmitted);
        }
        found.events.into_iter().for_each(|event| self.event(chunk.time_ns, EventKind::Other(event)));
    }

    fn size_message(&mut self, chunk: &Chunk<'_>) {
        if self.walker.version().is_some() {
            return self.drop_sizer();
        }
        let Some(sizer) = self.sizer() else { return };
        let [over, complete] = sizer.chunk(chunk);
        self.message(over);
        self.message(complete);
    }

    pub(crate) fn sizer(&mut self) -> Option<&mut MessageSizer> {
        self.messages.as_mut()?.sizers.of_mut(self.direction).as_mut()
    }

    /// Messages of this direction stand for records no longer.
    fn drop_sizer(&mut self) {
        if let Some(messages) = self.messages {
            *messages.sizers.of_mut(self.direction) = None;
        }
    }

    pub(crate) fn end_message(&mut self) {
        let message = self.sizer().and_then(MessageSizer::end);
        self.message(message);
    }

    /// Takes a message of which only the segments' lengths are known for one record, or for a burst of a connection without
    /// TLS.
    fn message(&mut self, message: Option<SizedMessage>) {
        let (Some(message), Some(end)) = (message, self.sizer().map(|sizer| sizer.end)) else { return };
        let SizedMessage { start_ns, time_ns, bytes } = message;
        self.incident(time_ns, Incident::SizedBySegments(end));
        let (header, protocol) = match end {
            MessageEnd::Write => (HEADER as u64, Protocol::Tls),
            MessageEnd::Silence { .. } => (0, Protocol::Tcp),
        };
        let length = u32::try_from(bytes.saturating_sub(header)).unwrap_or(u32::MAX);
        let message = Message::data(protocol, self.direction, [start_ns, time_ns], length);
        self.event(time_ns, EventKind::Other(FlowEvent::Message(message)));
    }

    fn read(&mut self, mut chunk: Chunk<'_>) {
        loop {
            let rest = match self.framing {
                Framing::Unstarted | Framing::Beginning | Framing::InStep => self.walk(chunk),
                Framing::Ssl2Hello { left } => {
                    *left -= chunk.advance(*left).1;
                    (*left == 0).then(|| self.tls_starts(chunk))
                }
                Framing::HelloScan(scan) => {
                    let before = scan.scanned;
                    let outcome = scan.chunk(chunk);
                    self.scanned(outcome, before, chunk)
                }
                Framing::Search(search) => {
                    self.payload.lose(chunk.length());
                    let (outcome, believed) = (search.chunk(chunk), std::mem::take(&mut search.believed));
                    self.searched(outcome, &believed, chunk)
                }
                Framing::Hidden | Framing::OpenVpn => None,
            };
            match rest {
                Some(rest) => chunk = rest,
                None => return,
            }
        }
    }

    fn walk<'a>(&mut self, mut chunk: Chunk<'a>) -> Option<Chunk<'a>> {
        loop {
            let sequence = chunk.sequence;
            match self.walker.step(&mut chunk) {
                Step::More => return None,
                Step::Header(header) => {
                    self.read_header_before(chunk.sequence, header);
                    *self.framing = Framing::InStep;
                }
                Step::Body { header, bytes, whole } if header.content_type == ContentType::Handshake => {
                    self.handshake_bytes(bytes, sequence, chunk.time_ns);
                    if !whole {
                        self.lose_handshake();
                    }
                }
                Step::Body { .. } => {}
                Step::Record(record) => self.record(record),
                Step::Hidden => {
                    self.lose_partial_header();
                    self.search_from(&[], chunk.time_ns);
                    return Some(chunk);
                }
                Step::Implausible(bytes) => {
                    self.implausible(bytes, chunk.sequence, chunk.time_ns);
                    return Some(chunk);
                }
            }
        }
    }

    /// Decides what follows five bytes that are not a header and end before a sequence number.
    fn implausible(&mut self, bytes: [u8; HEADER], sequence: u32, time_ns: i64) {
        if !matches!(self.framing, Framing::Beginning) {
            self.incident(time_ns, Incident::Malformed);
            self.payload.lose(HEADER as u64);
            self.lose_handshake();
            self.search_from(bytes.get(1..).unwrap_or_default(), time_ns);
        } else if let Some(length) = ssl2_hello_length(bytes) {
            self.note_read(sequence.wrapping_sub(HEADER as u32), &bytes);
            self.hello(time_ns, Hello::Client(ClientHello::default()));
            *self.framing = Framing::Ssl2Hello { left: length - HEADER as u64 };
        } else {
            *self.framing = Framing::HelloScan(Box::new(HelloScan::new(bytes, time_ns)));
        }
    }

    fn search_from(&mut self, bytes: &[u8], time_ns: i64) {
        let mut search = BoundarySearch::new(self.walker.version());
        // They are too few for a header.
        search.chunk(Chunk::fragment(time_ns, bytes));
        *self.framing = Framing::Search(Box::new(search));
    }

    /// Takes what the scan of a chunk found, after `scanned` bytes before it.
    fn scanned<'a>(&mut self, outcome: ScanOutcome<'a>, scanned: u64, chunk: Chunk<'a>) -> Option<Chunk<'a>> {
        match outcome {
            ScanOutcome::Hello { .. } if is_openvpn(&chunk) => self.openvpn(chunk.time_ns),
            ScanOutcome::Hello { before, before_ns, rest } => {
                let rest = self.tls_starts(rest);
                let sequence = rest.sequence.wrapping_sub(before.len() as u32);
                self.walk(Chunk { sequence, ..Chunk::fragment(before_ns, &before) });
                Some(rest)
            }
            // The other side speaks TLS: this one does too, and its hello is missing or damaged.
            ScanOutcome::Nothing { .. } if self.is_tls => {
                self.payload.lose(scanned);
                *self.framing = Framing::search(None);
                Some(chunk)
            }
            ScanOutcome::Nothing { is_exhausted } => {
                if is_exhausted {
                    self.incident(chunk.time_ns, Incident::NotTls);
                }
                None
            }
        }
    }

    /// Takes what the search of a chunk found, whose bytes count as lost so far, with the headers that it believes.
    fn searched<'a>(
        &mut self,
        outcome: SearchOutcome<'a>,
        believed: &[(u32, Header)],
        chunk: Chunk<'a>,
    ) -> Option<Chunk<'a>> {
        if let SearchOutcome::Boundary { rest, .. } = &outcome
            && rest.payload.get(..HELLO).is_some_and(is_hello)
            && is_openvpn(&chunk)
        {
            return self.openvpn(chunk.time_ns);
        }
        self.read_headers(believed);
        match outcome {
            SearchOutcome::Boundary { walker, record, skipped, rest } => {
                (*self.walker, *self.framing) = (walker, Framing::InStep);
                if let WalkerState::Body { header, .. } = walker.state {
                    self.read_header_before(rest.sequence, header);
                }
                let open = walker.open_record().map_or(0, |record| record.bytes.into());
                self.payload.find(rest.length() + open + record.map_or(0, SizedRecord::bytes));
                *self.handshake = HandshakeReader::default();
                *self.follows_data = false;
                self.incident(chunk.time_ns, Incident::Resync { skipped });
                if let Some(record) = record {
                    self.record(record);
                }
                Some(rest)
            }
            SearchOutcome::Nothing { unproven, is_exhausted } => {
                if is_exhausted {
                    self.incident(chunk.time_ns, Incident::NotTls);
                }
                self.unproven(unproven);
                None
            }
        }
    }

    /// Takes records whose proof the capture does not hold.
    fn unproven(&mut self, records: Vec<SizedRecord>) {
        for record in records {
            self.payload.find(record.bytes());
            self.record(record);
        }
    }

    /// What looks like TLS is the control channel of `OpenVPN`, which shares the stream with its other packets.
    fn openvpn<'a>(&mut self, time_ns: i64) -> Option<Chunk<'a>> {
        self.incident(time_ns, Incident::OpenVpn);
        *self.framing = Framing::OpenVpn;
        None
    }

    fn tls_starts<'a>(&mut self, chunk: Chunk<'a>) -> Chunk<'a> {
        (*self.walker, *self.framing) = (RecordWalker::default(), Framing::InStep);
        chunk
    }

    fn handshake_bytes(&mut self, bytes: &[u8], sequence: u32, time_ns: i64) {
        let (direction, follows_data) = (self.direction, *self.follows_data);
        let Findings { events, read, .. } = &mut *self.findings;
        let found = |hello| {
            let kind = EventKind::Hello { hello: Box::new(hello), follows_data };
            events.push(TlsEvent { direction, time_ns, kind });
        };
        self.handshake.bytes(bytes, found, |offset, bytes| {
            if let Some(read) = read {
                let sequence = sequence.wrapping_add(offset as u32);
                read.push(ReadBytes { direction, sequence, bytes: bytes.into() });
            }
        });
    }

    /// Passes over bytes of a handshake; a hello counts as far as it was seen.
    pub(crate) fn lose_handshake(&mut self) {
        if let Some(hello) = self.handshake.bytes_lost() {
            self.hello(self.walker.last_ns, hello);
        }
    }

    /// The bytes of a header whose rest is not there belong to no record.
    pub(crate) fn lose_partial_header(&mut self) {
        if let Some(record) = self.walker.open_record().filter(|record| !record.has_header()) {
            self.payload.lose(record.bytes.into());
        }
    }

    fn note_read(&mut self, sequence: u32, bytes: &[u8]) {
        if let Some(read) = &mut self.findings.read {
            read.push(ReadBytes { direction: self.direction, sequence, bytes: bytes.into() });
        }
    }

    fn read_header_before(&mut self, sequence: u32, header: Header) {
        self.note_read(sequence.wrapping_sub(HEADER as u32), &header.to_bytes());
    }

    fn read_headers(&mut self, believed: &[(u32, Header)]) {
        for (sequence, header) in believed {
            self.note_read(*sequence, &header.to_bytes());
        }
    }

    fn hello(&mut self, time_ns: i64, hello: Hello) {
        let follows_data = *self.follows_data;
        self.event(time_ns, EventKind::Hello { hello: Box::new(hello), follows_data });
    }

    fn record(&mut self, record: SizedRecord) {
        self.handshake.end_of_record();
        *self.follows_data |= record.header.content_type == ContentType::ApplicationData;
        self.event(record.time_ns, EventKind::Record(record));
    }

    fn event(&mut self, time_ns: i64, kind: EventKind) {
        self.findings.events.push(TlsEvent { direction: self.direction, time_ns, kind });
    }
}

/// Whether a segment in which a hello was found consists of packets of `OpenVPN` over TCP: each begins with its length, an
/// opcode and a key's number. Of random bytes fewer than one in 10⁵ segments do, so that it takes a hello, too.
fn is_openvpn(segment: &Chunk<'_>) -> bool {
    const OPCODES: std::ops::RangeInclusive<u8> = 1..=11;
    let (mut rest, mut is_any) = (segment.payload, false);
    while let [high, low, opcode, ..] = *rest {
        let length = usize::from(u16::from_be_bytes([high, low]));
        let Some(next) = rest.get(2 + length..).filter(|_| OPCODES.contains(&(opcode >> 3)) && length > 0) else {
            return false;
        };
        (rest, is_any) = (next, true);
    }
    is_any && rest.is_empty() && segment.starts_segment && segment.hidden == 0
}
