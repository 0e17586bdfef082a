//! A DTLS session over UDP: its records, which are sized by what the handshake agreed on.

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, Protocol};

use crate::chunk::Chunk;
use crate::connection_id::IdLength;
use crate::datagram_session::DatagramSession;
use crate::dtls::{DtlsRecord, Form, dtls_records, with_any_id};
use crate::handshake::Hello;
use crate::message::{Found, Message, MessageFramer, ReplayWindow};
use crate::per_direction::PerDirection;
use crate::session::RecordDetails;

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
    session: DatagramSession,
    seen: PerDirection<ReplayWindow>,
    /// The ids in records of each direction.
    ids: PerDirection<IdLength>,
    /// The epoch of the last record of DTLS 1.3.
    epochs: PerDirection<u16>,
    proof: Proof,
}

impl DtlsFlow {
    /// A flow, if records fill the datagram.
    pub(crate) fn begin(chunk: &Chunk<'_>) -> Option<Self> {
        let may_be_anything = |records: &[DtlsRecord]| records.iter().all(DtlsRecord::is_unified);
        let proof = match with_any_id(chunk) {
            Some((id, records)) if may_be_anything(&records) => Proof::Awaited(Some(id)),
            Some(_) => Proof::Certain,
            None => dtls_records(chunk, 0).filter(|records| !may_be_anything(records)).map(|_| Proof::Certain)?,
        };
        Some(Self { proof, ..Self::default() })
    }

    /// Whether more than one datagram has shown it.
    pub(crate) fn is_certain(&self) -> bool {
        self.proof == Proof::Certain
    }

    /// Begins anew where a client does, after keys were in use: another connection has the same ports.
    fn begin_again(&mut self, hello: Option<&Hello>) {
        let is_clear = self.seen.all(|seen| !seen.is_protected()) && self.epochs.all(|epoch| *epoch == 0);
        if matches!(hello, Some(Hello::Client(_))) && !is_clear {
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
        let Some([of_client, of_server]) = self.session.negotiation.connection_ids() else { return };
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
            let is_complete = self.session.tls().hello(hello, direction, time_ns);
            if is_server {
                self.agree_on_ids(direction);
            }
            if is_complete {
                self.session.report(self.protocol(form), time_ns, found);
            }
        }
        let is_clear = matches!(form, Form::Numbered { epoch: 0, .. });
        if self.session.tls().starts_unanswered(header) || !(is_clear || self.session.is_reported) {
            self.session.report(self.protocol(form), time_ns, found);
        }
        let details = match form {
            Form::Numbered { epoch, hides_type, .. } => {
                self.session.tls().dtls_record(header, direction, (epoch, hides_type), time_ns)
            }
            Form::Unified { epoch_bits } => {
                let epoch = self.epoch(direction, epoch_bits);
                self.session.tls().dtls13_record(header, epoch)
            }
        };
        let protocol = self.protocol(form);
        let message = Message::data(protocol, direction, [time_ns; 2], header.length.into());
        let RecordDetails { plaintext, handshake } = details;
        let is_hidden = !matches!(form, Form::Numbered { hides_type: false, .. });
        let content_type = if is_hidden && handshake { ContentType::Handshake } else { header.content_type };
        found.message(Message { content_type, plaintext, handshake, ..message });
    }

    fn protocol(&self, form: Form) -> Protocol {
        let is_1_3 = self.session.keys.is_1_3 || matches!(form, Form::Unified { .. });
        if is_1_3 { Protocol::Dtls13 } else { Protocol::Dtls }
    }
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
        self.session.is_valid() && self.ids.all(IdLength::is_valid)
    }
}
