//! Turns what was found in a flow into frames and counters.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, Protocol, Record, Session, what};
use sizeleak_platform::runtime::{Closed, Emit};

use crate::connection::{Connection, Ending};
use crate::counters::{PayloadUse, SizerCounters};
use crate::findings::{Conflict, Findings, Incident, StreamBytes, TlsEvent};
use crate::handshake::Hello;
use crate::message::{FlowEvent, Found, Message};
use crate::messages::{MessageEnd, SizedMessage};
use crate::notices::{self, Notices};
use crate::read_bytes::ReadBytes;
use crate::record::{HEADER, SizedRecord};
use crate::session::{RecordDetails, TlsSession};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Reporter {
    pub(crate) counters: SizerCounters,
    pub(crate) notices: Notices,
    /// The bytes that were read since they were last asked for, where somebody wants to know.
    #[serde(skip)]
    pub(crate) read: Vec<ReadBytes>,
    #[serde(skip)]
    pub(crate) datagram_read: Vec<Range<usize>>,
}

impl Reporter {
    /// Reports what was found in a connection, as far as its order is certain.
    pub(crate) fn findings(
        &mut self,
        flow: u64,
        connection: &mut Connection,
        findings: &mut Findings,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        connection.conclude(findings);
        for StreamBytes { direction, sequence, bytes } in findings.read.iter_mut().flat_map(|read| read.drain(..)) {
            self.read.push(ReadBytes { flow, direction, sequence, bytes });
        }
        self.counters.retransmitted += std::mem::take(&mut findings.retransmitted);
        self.counters.out_of_order += std::mem::take(&mut findings.out_of_order);
        for (time_ns, incident) in findings.incidents.drain(..) {
            self.incident(flow, time_ns, incident, out)?;
        }
        for event in findings.events.drain(..) {
            match event {
                TlsEvent::Message { direction, message, end } => {
                    let handshake = end == MessageEnd::Write && connection.is_handshake(direction);
                    self.sized_message(flow, direction, (message, end, handshake), out)?;
                }
                event => self.event(flow, &mut connection.session(), event, out)?,
            }
        }
        Ok(())
    }

    /// Reports a message of which only the segments' lengths are known: it is taken for one record, or a burst of a
    /// connection without TLS.
    fn sized_message(
        &mut self,
        flow: u64,
        direction: Direction,
        (message, end, handshake): (SizedMessage, MessageEnd, bool),
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        let SizedMessage { start_ns, time_ns, bytes } = message;
        let (count, header, protocol) = match end {
            MessageEnd::Write => (&mut self.counters.segment_records, HEADER as u64, Protocol::Tls),
            MessageEnd::Silence { .. } => (&mut self.counters.burst_records, 0, Protocol::Tcp),
        };
        // Shorter ones hold no record.
        let Some(length) = bytes.checked_sub(header).filter(|length| *length > 0) else { return Ok(()) };
        *count += 1;
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let message = Message { handshake, ..Message::data(protocol, direction, [start_ns, time_ns], length) };
        self.flow_event(flow, time_ns, FlowEvent::Message(message), out)
    }

    pub(crate) fn ending(&mut self, flow: u64, time_ns: i64, ending: Ending, out: &mut dyn Emit) -> Result<(), Closed> {
        if ending.is_not_tls {
            self.incident(flow, time_ns, Incident::NotTls, out)?;
        }
        if ending.incomplete > 0 {
            self.counters.truncated += ending.incomplete;
            self.notice(flow, time_ns, (what::TRUNCATED, None, "the last record is not complete".to_owned()), out)?;
        }
        match ending.payload {
            Some(payload) => self.payload_use(flow, time_ns, payload, out),
            None => Ok(()),
        }
    }

    /// Counts what was used of a connection's payload, and reports what was lost.
    pub(crate) fn payload_use(
        &mut self,
        flow: u64,
        time_ns: i64,
        payload: PayloadUse,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        let (PayloadUse { sent, lost }, millionths) = (payload, payload.lost_millionths());
        let counters = &mut self.counters;
        counters.payload_bytes = counters.payload_bytes.saturating_add(sent.max(lost));
        counters.lost_bytes = counters.lost_bytes.saturating_add(lost);
        counters.worst_loss_millionths = counters.worst_loss_millionths.max(millionths);
        if lost == 0 {
            return Ok(());
        }
        let percent = millionths as f64 / 10_000.0;
        let detail = format!("{percent:.2} % of the connection's {} bytes of payload were not used", sent.max(lost));
        self.notice(flow, time_ns, (what::LOSS, Some(lost), detail), out)
    }

    pub(crate) fn found(&mut self, flow: u64, time_ns: i64, found: Found, out: &mut dyn Emit) -> Result<(), Closed> {
        self.counters.retransmitted += found.repeated;
        self.counters.other_datagrams = self.counters.other_datagrams.saturating_sub(found.recognised);
        self.datagram_read = found.read;
        found.events.into_iter().try_for_each(|event| self.flow_event(flow, time_ns, event, out))
    }

    fn flow_event(&mut self, flow: u64, time_ns: i64, event: FlowEvent, out: &mut dyn Emit) -> Result<(), Closed> {
        match event {
            FlowEvent::Message(message) => {
                self.counters.records += 1;
                out.emit(message.frame(flow).into())
            }
            FlowEvent::Session(session) => {
                self.counters.sessions += 1;
                out.emit(Session { flow, ..*session }.into())
            }
            FlowEvent::Assumed(detail) => self.notice(flow, time_ns, (what::ASSUMED, None, detail), out),
            FlowEvent::Unsupported(detail) => self.notice(flow, time_ns, (what::UNSUPPORTED, None, detail), out),
            FlowEvent::Malformed => self.incident(flow, time_ns, Incident::Malformed, out),
            FlowEvent::Skipped(skipped) => self.incident(flow, time_ns, Incident::Resync { skipped }, out),
        }
    }

    fn event(
        &mut self,
        flow: u64,
        session: &mut TlsSession<'_>,
        event: TlsEvent,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        match event {
            TlsEvent::Record { direction, record } => {
                if session.starts_unanswered(record.header) {
                    self.session(flow, session, record.time_ns, out)?;
                }
                let details = session.record(record.header, direction, record.time_ns);
                self.record(flow, direction, record, details, out)
            }
            // A handshake within a session is encrypted (RFC 5246 section 7.4.1.1; TLS 1.3 has none).
            TlsEvent::Hello { time_ns, follows_data: true, .. } if !session.is_handshake_under_way() => {
                self.incident(flow, time_ns, Incident::Conflict(Conflict::Hello), out)
            }
            TlsEvent::Hello { time_ns, direction, hello, .. } => {
                self.hello(flow, session, (*hello, direction, time_ns), out)
            }
            TlsEvent::Other { time_ns, event, .. } => self.flow_event(flow, time_ns, event, out),
            // Of no session.
            TlsEvent::Message { .. } => Ok(()),
        }
    }

    fn hello(
        &mut self,
        flow: u64,
        session: &mut TlsSession<'_>,
        (hello, direction, time_ns): (Hello, Direction, i64),
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        if session.hello(hello, direction, time_ns) { self.session(flow, session, time_ns, out) } else { Ok(()) }
    }

    fn session(&mut self, flow: u64, session: &TlsSession<'_>, time_ns: i64, out: &mut dyn Emit) -> Result<(), Closed> {
        self.counters.sessions += 1;
        out.emit(session.frame(flow, time_ns, Protocol::Tls).into())
    }

    #[inline]
    pub(crate) fn record(
        &mut self,
        flow: u64,
        direction: Direction,
        record: SizedRecord,
        details: RecordDetails,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        let SizedRecord { header, start_ns, time_ns } = record;
        let RecordDetails { plaintext, handshake } = details;
        let (content_type, length, protocol) = (header.content_type, header.length.into(), Protocol::Tls);
        self.counters.records += 1;
        out.emit(
            Record { time_ns, start_ns, flow, direction, content_type, length, plaintext, handshake, protocol }.into(),
        )
    }

    fn incident(&mut self, flow: u64, time_ns: i64, incident: Incident, out: &mut dyn Emit) -> Result<(), Closed> {
        match incident {
            Incident::Gap { bytes } => {
                self.counters.gaps += 1;
                self.counters.gap_bytes = self.counters.gap_bytes.saturating_add(bytes);
            }
            Incident::NotMissing { bytes } => {
                self.counters.gap_bytes = self.counters.gap_bytes.saturating_sub(bytes);
            }
            Incident::Resync { skipped } => {
                self.counters.resyncs += 1;
                self.counters.skipped_bytes = self.counters.skipped_bytes.saturating_add(skipped);
                // The stream starts with a record although its SYN was not seen: nothing was lost.
                if skipped == 0 {
                    return Ok(());
                }
            }
            Incident::Conflict(_) => self.counters.conflicts += 1,
            Incident::Unconfirmed { bytes } => {
                self.counters.unconfirmed_bytes = self.counters.unconfirmed_bytes.saturating_add(bytes);
            }
            Incident::Malformed => self.counters.malformed += 1,
            Incident::NotTls | Incident::OpenVpn | Incident::SizedBySegments(MessageEnd::Silence { .. }) => {
                self.counters.not_tls += 1;
            }
            Incident::SizedBySegments(MessageEnd::Write) => {}
        }
        self.notice(flow, time_ns, notices::incident(incident), out)
    }

    /// Emits a notice about a flow, with its word, bytes and detail, unless there were too many.
    pub(crate) fn notice(
        &mut self,
        flow: u64,
        time_ns: i64,
        (what, bytes, detail): (&'static str, Option<u64>, String),
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        let notice = notices::notice(time_ns, Some(flow), what, bytes, detail);
        self.notices.emit(notice, self.counters.segments, out)
    }
}
