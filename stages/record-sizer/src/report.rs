//! From what was found in a flow to the frames and counters that say so.

use sizeleak_frame::{Direction, Record, Segment, what};
use sizeleak_runtime::{Closed, Emit};

use crate::association::{Association, Datagram};
use crate::connection::{Connection, Ending};
use crate::counts::Counts;
use crate::datagram::DatagramRecord;
use crate::finding::{Event, Findings, Incident};
use crate::handshake::Hello;
use crate::notices::{self, Notices};
use crate::plaintext::DTLS_1_3;
use crate::record::Sized;
use crate::session::{Marks, Session};

/// Makes frames, notices and counts.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) counts: Counts,
    pub(crate) notices: Notices,
}

impl Report {
    /// Reports what was found in a connection's segments, as far as it can be told yet.
    pub(crate) fn found(
        &mut self,
        flow: u64,
        connection: &mut Connection,
        findings: &mut Findings,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        self.counts.retransmitted += std::mem::take(&mut findings.repeated);
        self.counts.out_of_order += std::mem::take(&mut findings.early);
        if !findings.incidents.is_empty() {
            self.incidents(flow, connection, findings, out)?;
        }
        connection.settle(findings);
        for event in findings.events.drain(..) {
            self.event(flow, connection.session(), event, out)?;
        }
        Ok(())
    }

    fn incidents(
        &mut self,
        flow: u64,
        connection: &mut Connection,
        findings: &mut Findings,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        for (time_ns, incident) in findings.incidents.drain(..) {
            // A connection with records in one direction is TLS, whatever the other one is.
            if incident != Incident::NotTls || connection.may_be_called_not_tls() {
                self.incident(flow, time_ns, incident, out)?;
            }
        }
        Ok(())
    }

    /// Reports that a connection is over.
    pub(crate) fn ended(
        &mut self,
        flow: u64,
        time_ns: i64,
        connection: &mut Connection,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        let Ending { incomplete, without_tls } = connection.ending();
        if without_tls && connection.may_be_called_not_tls() {
            self.incident(flow, time_ns, Incident::NotTls, out)?;
        }
        if incomplete > 0 {
            self.counts.truncated += incomplete;
            let detail = "the last record is not complete".to_owned();
            self.notices.tell((flow, time_ns, self.counts.segments), (what::TRUNCATED, None, detail), out)?;
        }
        Ok(())
    }

    /// Reports what a datagram is.
    pub(crate) fn datagram(
        &mut self,
        segment: &Segment<'_>,
        association: &mut Association,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        let Segment { flow, time_ns, direction, .. } = *segment;
        let records = match association.datagram(segment) {
            Datagram::Dtls(records) => records,
            Datagram::Quic => {
                self.counts.quic_flows += 1;
                return self.unsupported(flow, time_ns, "QUIC: its records cannot be sized", out);
            }
            Datagram::Other => {
                self.counts.other_datagrams += 1;
                return Ok(());
            }
        };
        let session = &mut association.session;
        for DatagramRecord { header, epoch, hello, .. } in records {
            let is_1_3 = matches!(hello, Some(Hello::Server(hello)) if hello.version == DTLS_1_3);
            if let Some(hello) = hello
                && session.hello(hello, direction, time_ns)
            {
                self.session(flow, session, time_ns, out)?;
            }
            if is_1_3 {
                self.unsupported(flow, time_ns, "DTLS 1.3: its protected records cannot be sized", out)?;
            }
            if session.is_untold(header) {
                self.session(flow, session, time_ns, out)?;
            }
            let marks = session.datagram_record(header, direction, epoch, time_ns);
            self.record(flow, (direction, Sized { header, start_ns: time_ns, time_ns }), marks, out)?;
        }
        Ok(())
    }

    fn unsupported(&mut self, flow: u64, time_ns: i64, detail: &str, out: &mut dyn Emit) -> Result<(), Closed> {
        let said = (what::UNSUPPORTED, None, detail.to_owned());
        self.notices.tell((flow, time_ns, self.counts.segments), said, out)
    }

    /// Counts what the snaplen cut off a segment.
    #[inline]
    pub(crate) fn hidden(&mut self, segment: &Segment<'_>) {
        let captured = segment.payload.len() as u64;
        if captured < u64::from(segment.length) {
            let hidden = u64::from(segment.length) - captured;
            self.counts.hidden_bytes = self.counts.hidden_bytes.saturating_add(hidden);
        }
    }

    /// Reports a record.
    #[inline]
    pub(crate) fn record(
        &mut self,
        flow: u64,
        (direction, sized): (Direction, Sized),
        marks: Marks,
        out: &mut dyn Emit,
    ) -> Result<(), Closed> {
        let Sized { header, start_ns, time_ns } = sized;
        self.counts.records += 1;
        let record = Record {
            time_ns,
            start_ns,
            flow,
            direction,
            content_type: header.content_type,
            length: header.length.into(),
            plaintext: marks.plaintext,
            handshake: marks.handshake,
        };
        out.emit(record.into())
    }

    fn session(&mut self, flow: u64, session: &Session, time_ns: i64, out: &mut dyn Emit) -> Result<(), Closed> {
        self.counts.sessions += 1;
        out.emit(session.tell(flow, time_ns).into())
    }

    fn event(&mut self, flow: u64, session: &mut Session, event: Event, out: &mut dyn Emit) -> Result<(), Closed> {
        match event {
            Event::Record { direction, record } => {
                // Data show that no more of the handshake will be seen.
                if session.is_untold(record.header) {
                    self.session(flow, session, record.time_ns, out)?;
                }
                let marks = session.record(record.header, direction, record.time_ns);
                self.record(flow, (direction, record), marks, out)
            }
            Event::Hello { time_ns, direction, hello } => {
                if session.hello(*hello, direction, time_ns) {
                    self.session(flow, session, time_ns, out)?;
                }
                Ok(())
            }
        }
    }

    fn incident(&mut self, flow: u64, time_ns: i64, incident: Incident, out: &mut dyn Emit) -> Result<(), Closed> {
        match incident {
            Incident::Gap { bytes } => {
                self.counts.gaps += 1;
                self.counts.gap_bytes = self.counts.gap_bytes.saturating_add(bytes);
            }
            Incident::Resync { skipped } => {
                self.counts.resyncs += 1;
                self.counts.skipped_bytes += skipped;
                // A stream that begins with a record, though not with its SYN, is nothing to tell of.
                if skipped == 0 {
                    return Ok(());
                }
            }
            Incident::Conflict => self.counts.conflicts += 1,
            Incident::Malformed => self.counts.malformed += 1,
            Incident::NotTls => self.counts.not_tls += 1,
        }
        self.notices.tell((flow, time_ns, self.counts.segments), notices::incident(incident), out)
    }
}
