//! Turns what was found in a flow into frames and counters. Notices are limited, for each flow and in all.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{Direction, Notice, PerDirection, Protocol, Record, Session, what};
use sizeleak_platform::runtime::{Closed, Emit};

use crate::connection::{Connection, Ending};
use crate::findings::{Conflict, EventKind, Findings, Incident, PayloadUse, ReadBytes, SizerCounters, TlsEvent};
use crate::message::{FlowEvent, Found, Message};
use crate::messages::MessageEnd;
use crate::numbered::Holes;
use crate::record::SizedRecord;
use crate::session::{RecordDetails, TlsSession};

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Reporter {
    pub(crate) counters: SizerCounters,
    pub(crate) notices: Notices,
    /// The bytes that were read since they were last asked for, by flow, where somebody wants to know.
    #[serde(skip)]
    pub(crate) read: Vec<(u64, ReadBytes)>,
    /// Those of datagrams: the sequence number of each one's row, and their places in it.
    #[serde(skip)]
    pub(crate) datagram_read: Vec<(u32, Range<usize>)>,
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
        let read = findings.read.iter_mut().flat_map(|read| read.drain(..));
        self.read.extend(read.map(|read| (flow, read)));
        for (time_ns, incident) in findings.incidents.drain(..) {
            self.incident(flow, time_ns, incident, out)?;
        }
        for TlsEvent { direction, time_ns, kind } in findings.events.drain(..) {
            match kind {
                EventKind::Other(FlowEvent::Message(message)) if message.protocol == Protocol::Tls => {
                    let handshake = connection.is_handshake(direction);
                    self.flow_event(flow, time_ns, FlowEvent::Message(Message { handshake, ..message }), out)?;
                }
                EventKind::Other(event) => self.flow_event(flow, time_ns, event, out)?,
                EventKind::Record(record) => {
                    let mut session = connection.session();
                    if session.starts_unanswered(record.header) {
                        self.session(flow, &session, time_ns, out)?;
                    }
                    let details = session.record(record.header, direction, time_ns);
                    self.record(flow, direction, record, details, out)?;
                }
                // A handshake within a session is encrypted (RFC 5246 section 7.4.1.1; TLS 1.3 has none).
                EventKind::Hello { follows_data: true, .. } if !connection.session().negotiation.agrees_keys() => {
                    self.incident(flow, time_ns, Incident::Conflict(Conflict::Hello), out)?;
                }
                EventKind::Hello { hello, .. } => {
                    let mut session = connection.session();
                    if session.hello(*hello, direction, time_ns) {
                        self.session(flow, &session, time_ns, out)?;
                    }
                }
            }
        }
        Ok(())
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

    pub(crate) fn holes(
        &mut self,
        flow: u64,
        time_ns: i64,
        holes: PerDirection<Holes>,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        let [to, from] = holes.both().map(|holes| holes.missing);
        if to.max(from) == 0 {
            return Ok(());
        }
        let mut all = holes.to_gateway;
        all += holes.from_gateway;
        let Holes { numbers, missing } = all;
        self.counters.missing_messages = self.counters.missing_messages.saturating_add(missing);
        let detail = format!(
            "{missing} of {numbers} messages are missing by their numbers ({to} to the gateway, {from} from it): they \
             were lost on the way, or by the capture"
        );
        self.notice(flow, time_ns, (what::GAP, None, detail), out)
    }

    pub(crate) fn found(&mut self, flow: u64, time_ns: i64, found: Found, out: &mut dyn Emit) -> Result<(), Closed> {
        self.counters.retransmitted += found.repeated;
        self.counters.other_datagrams = self.counters.other_datagrams.saturating_sub(found.recognised);
        found.events.into_iter().try_for_each(|event| self.flow_event(flow, time_ns, event, out))
    }

    fn flow_event(&mut self, flow: u64, time_ns: i64, event: FlowEvent, out: &mut dyn Emit) -> Result<(), Closed> {
        match event {
            // Segments of so few bytes hold no record.
            FlowEvent::Message(Message { protocol: Protocol::Tls | Protocol::Tcp, length: 0, .. }) => Ok(()),
            FlowEvent::Message(message) => {
                match message.protocol {
                    Protocol::Tls => self.counters.segment_records += 1,
                    Protocol::Tcp => self.counters.burst_records += 1,
                    _ => {}
                }
                self.counters.records += 1;
                out.emit(message.frame(flow).into())
            }
            FlowEvent::Session(session) => {
                self.counters.sessions += 1;
                out.emit(Session { flow, ..*session }.into())
            }
            FlowEvent::Assumed(detail) => self.notice(flow, time_ns, (what::ASSUMED, None, detail), out),
            FlowEvent::Unsupported(detail) => self.notice(flow, time_ns, (what::UNSUPPORTED, None, detail), out),
        }
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
        let counters = &mut self.counters;
        let notice = match incident {
            Incident::Gap { bytes } => {
                counters.gaps += 1;
                counters.gap_bytes = counters.gap_bytes.saturating_add(bytes);
                if bytes == 0 {
                    let detail = "the stream goes on somewhere else: nobody knows how many bytes are missing";
                    (what::GAP, None, detail.into())
                } else {
                    (what::GAP, Some(bytes), format!("{bytes} bytes are missing from the capture"))
                }
            }
            Incident::NotMissing { bytes } => {
                counters.gap_bytes = counters.gap_bytes.saturating_sub(bytes);
                (what::GAP, Some(bytes), format!("{bytes} bytes that were missing came later"))
            }
            Incident::Retransmitted => {
                counters.retransmitted += 1;
                return Ok(());
            }
            Incident::OutOfOrder => {
                counters.out_of_order += 1;
                return Ok(());
            }
            Incident::Resync { skipped } => {
                counters.resyncs += 1;
                counters.skipped_bytes = counters.skipped_bytes.saturating_add(skipped);
                // The stream starts with a record although its SYN was not seen: nothing was lost.
                if skipped == 0 {
                    return Ok(());
                }
                let detail = format!("record boundaries were found again after {skipped} bytes that had to be skipped");
                (what::RESYNC, Some(skipped), detail)
            }
            Incident::Conflict(conflict) => {
                counters.conflicts += 1;
                let detail = match conflict {
                    Conflict::Kept => "retransmitted bytes differ from the first ones, which were kept",
                    Conflict::Replaced => {
                        "retransmitted bytes differ from the first ones, which did not fit the stream: \
                         record boundaries are looked for again"
                    }
                    Conflict::Hello => "a hello in the middle of a session, which goes on: the hello is ignored",
                };
                (what::CONFLICT, None, detail.into())
            }
            Incident::Unconfirmed { bytes } => {
                counters.unconfirmed_bytes = counters.unconfirmed_bytes.saturating_add(bytes);
                let detail =
                    format!("{bytes} bytes that do not fit the connection were not confirmed: they are not used");
                (what::UNCONFIRMED, Some(bytes), detail)
            }
            Incident::Malformed => {
                counters.malformed += 1;
                let detail = "no record header where one should be: boundaries are looked for again";
                (what::MALFORMED, None, detail.into())
            }
            Incident::SizedBySegments(MessageEnd::Write) => {
                let detail = "the capture holds no payload of it: the lengths of segments stand for records, one record \
                              a write, less the 5 bytes of its header";
                (what::ASSUMED, None, detail.into())
            }
            Incident::NotTls | Incident::OpenVpn | Incident::SizedBySegments(MessageEnd::Silence { .. }) => {
                counters.not_tls += 1;
                let detail = match incident {
                    Incident::OpenVpn => "it carries packets of OpenVPN, which are not sized",
                    Incident::NotTls => {
                        "no TLS record was found in it; the option `plain-tcp` of record-sizer sizes the messages of \
                         such connections"
                    }
                    _ => "no TLS record was found in it: each burst of segments stands for a record (`plain-tcp`)",
                };
                (what::NOT_TLS, None, detail.into())
            }
        };
        self.notice(flow, time_ns, notice, out)
    }

    pub(crate) fn notice(
        &mut self,
        flow: u64,
        time_ns: i64,
        (what, bytes, detail): (&'static str, Option<u64>, String),
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        let notice = Notice::new("record-sizer", what, detail);
        let notice = Notice { time_ns: Some(time_ns), flow: Some(flow), bytes, ..notice };
        self.notices.emit(notice, self.counters.segments, out)
    }
}

const MAX_PER_FLOW: u32 = 64;

/// The number of flows whose notices are counted one by one.
const MAX_FLOWS: usize = 4096;

/// The number of notices for any traffic; each [`SEGMENTS_PER_NOTICE`] segments allow another.
const BASE_ALLOWANCE: u64 = 1024;

const SEGMENTS_PER_NOTICE: u64 = 8;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Notices {
    by_flow: BTreeMap<u64, u32>,
    emitted: u64,
    pub(crate) suppressed: u64,
}

impl Notices {
    fn emit(&mut self, notice: Notice, segments: u64, out: &mut dyn Emit) -> Result<(), Closed> {
        let allowance = BASE_ALLOWANCE.saturating_add(segments / SEGMENTS_PER_NOTICE);
        // The notice of what a connection lost comes at its end, however many notices came before.
        let is_due = notice.what == what::LOSS || self.is_allowed(notice.flow.unwrap_or_default());
        if self.emitted >= allowance || !is_due {
            self.suppressed += 1;
            return Ok(());
        }
        self.emitted += 1;
        out.emit(notice.into())
    }

    fn is_allowed(&mut self, flow: u64) -> bool {
        if self.by_flow.len() >= MAX_FLOWS && !self.by_flow.contains_key(&flow) {
            self.by_flow.clear();
        }
        let emitted = self.by_flow.entry(flow).or_default();
        *emitted = emitted.saturating_add(1);
        *emitted <= MAX_PER_FLOW
    }
}
