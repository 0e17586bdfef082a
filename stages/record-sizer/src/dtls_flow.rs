//! A DTLS session over UDP: its records, which are sized by what the handshake agreed on.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, Protocol};

use crate::chunk::Chunk;
use crate::connection_id::IdLength;
use crate::dtls::{DtlsRecord, Form, dtls_records, with_any_id};
use crate::handshake::Hello;
use crate::message::{FlowEvent, Found, Message, MessageFramer, ReplayWindow};
use crate::per_direction::PerDirection;
use crate::session::{Negotiation, RecordDetails, TlsSession};
use crate::session_keys::SessionKeys;

/// Whether datagrams have shown that the flow carries DTLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Proof {
    #[default]
    Certain,
    /// All of them may have been anything. The last one had headers of DTLS 1.3 with ids of this length, if it had any.
    Awaited(Option<u8>),
}

/// A session and its records so far.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DtlsFlow {
    keys: SessionKeys,
    negotiation: Negotiation,
    seen: PerDirection<ReplayWindow>,
    /// The ids in records of each direction.
    ids: PerDirection<IdLength>,
    /// The epoch of the last record of DTLS 1.3.
    epochs: PerDirection<u16>,
    proof: Proof,
    is_reported: bool,
}

impl DtlsFlow {
    /// A flow, if records fill the datagram.
    pub(crate) fn begin(chunk: &Chunk<'_>) -> Option<Self> {
        let (id, records) = with_any_id(chunk).or_else(|| Some((0, dtls_records(chunk, 0)?)))?;
        let awaits_proof = records.iter().all(DtlsRecord::is_unified);
        (!awaits_proof || says_length(chunk)).then(|| Self {
            proof: if awaits_proof { Proof::Awaited(Some(id)) } else { Proof::Certain },
            ..Self::default()
        })
    }

    /// Whether more than one datagram has shown it.
    pub(crate) fn is_certain(&self) -> bool {
        self.proof == Proof::Certain
    }

    /// Begins anew where a client does, after keys were in use: another connection has the same ports.
    fn begin_again(&mut self, hello: Option<&Hello>) {
        let is_protected =
            |seen: &ReplayWindow| seen.is_protected() || self.epochs.to_gateway.max(self.epochs.from_gateway) > 0;
        if matches!(hello, Some(Hello::Client(_))) && !self.seen.all(|seen| !is_protected(seen)) {
            *self = Self::default();
        }
    }

    fn records(&mut self, direction: Direction, chunk: &Chunk<'_>) -> Option<Vec<DtlsRecord>> {
        let id = self.ids.of_mut(direction);
        if let IdLength::Known(length) = id {
            return dtls_records(chunk, *length);
        }
        dtls_records(chunk, 0).or_else(|| {
            let (length, records) = with_any_id(chunk)?;
            *id = IdLength::Known(length);
            Some(records)
        })
    }

    /// Takes the lengths of ids from hellos: each end says what it receives, and both have to (RFC 9146, section 3).
    fn agree_on_ids(&mut self, to_client: Direction) {
        let Some([of_client, of_server]) = self.negotiation.connection_ids() else { return };
        *self.ids.of_mut(to_client) = IdLength::Known(of_client);
        *self.ids.of_mut(to_client.reversed()) = IdLength::Known(of_server);
    }

    /// The epoch of a record of DTLS 1.3: the one next to the last of which the low bits are these.
    fn epoch(&mut self, direction: Direction, bits: u8) -> u16 {
        let last = self.epochs.of_mut(direction);
        let next = last.saturating_sub(1)..=last.saturating_add(3);
        let epoch = next.into_iter().find(|epoch| epoch % 4 == u16::from(bits)).unwrap_or(*last);
        *last = epoch.max(*last);
        epoch
    }

    fn record(&mut self, direction: Direction, record: DtlsRecord, time_ns: i64, found: &mut Found) {
        let DtlsRecord { header, form, hello, .. } = record;
        self.begin_again(hello.as_ref());
        if let Form::Numbered { epoch, number, .. } = form
            && !self.seen.of_mut(direction).insert(epoch.into(), number)
        {
            found.repeated += 1;
            return;
        }
        if let Some(hello) = hello {
            let is_server = matches!(hello, Hello::Server(_));
            let is_complete = self.session().hello(hello, direction, time_ns);
            if is_server {
                self.agree_on_ids(direction);
            }
            if is_complete {
                self.report_session(self.protocol(form), time_ns, found);
            }
        }
        let is_clear = matches!(form, Form::Numbered { epoch: 0, .. });
        if self.session().starts_unanswered(header) || !(is_clear || self.is_reported) {
            self.report_session(self.protocol(form), time_ns, found);
        }
        let epoch = if let Form::Unified { epoch_bits } = form { self.epoch(direction, epoch_bits) } else { 0 };
        let details = match form {
            Form::Numbered { epoch, hides_type, .. } => {
                self.session().dtls_record(header, direction, (epoch, hides_type), time_ns)
            }
            Form::Unified { .. } => self.session().dtls13_record(header, epoch),
        };
        let protocol = self.protocol(form);
        let message = Message::data(protocol, direction, [time_ns; 2], header.length.into());
        let RecordDetails { plaintext, handshake } = details;
        let is_hidden = !matches!(form, Form::Numbered { hides_type: false, .. });
        let content_type = if is_hidden && handshake { ContentType::Handshake } else { header.content_type };
        found.message(Message { content_type, plaintext, handshake, ..message });
    }

    fn protocol(&self, form: Form) -> Protocol {
        let is_1_3 = self.keys.is_1_3 || matches!(form, Form::Unified { .. });
        if is_1_3 { Protocol::Dtls13 } else { Protocol::Dtls }
    }

    fn report_session(&mut self, protocol: Protocol, time_ns: i64, found: &mut Found) {
        self.is_reported = true;
        let session = self.session().frame(0, time_ns, protocol);
        found.events.push(FlowEvent::Session(Box::new(session)));
    }

    fn session(&mut self) -> TlsSession<'_> {
        TlsSession { keys: &mut self.keys, negotiation: &mut self.negotiation }
    }
}

/// Whether the first record says its length, if it has a header of DTLS 1.3.
fn says_length(chunk: &Chunk<'_>) -> bool {
    chunk.payload.first().is_some_and(|first| first & 0x04 != 0)
}

impl MessageFramer for DtlsFlow {
    fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        if let Proof::Awaited(last) = self.proof {
            let id = with_any_id(&chunk).map(|(id, _)| id);
            if last.is_none() || id != last {
                self.proof = Proof::Awaited(id);
                return false;
            }
            self.proof = Proof::Certain;
        }
        let Some(records) = self.records(direction, &chunk) else { return false };
        let mut start = 0;
        for record in records {
            let body = start + record.header_bytes;
            let end = body + usize::from(record.header.length);
            found.read.push(start..if record.hello.is_some() { end } else { body });
            start = end;
            self.record(direction, record, chunk.time_ns, found);
        }
        true
    }

    fn is_valid(&self) -> bool {
        self.keys.is_valid() && self.negotiation.is_valid() && self.ids.all(IdLength::is_valid)
    }
}
