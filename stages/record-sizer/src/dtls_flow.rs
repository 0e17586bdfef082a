//! DTLS over UDP: its records, which are sized by what a handshake agreed on.
//!
//! Anybody can forge a hello, or a record of any epoch. Each record is of the session whose numbers it continues, so that
//! none ends another: a new one shows itself by records that are protected and begin to count anew.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, Protocol};

use crate::chunk::Chunk;
use crate::contenders::{Contenders, DatagramSession};
use crate::dtls::{DtlsRecord, Form, dtls_records, with_any_id};
use crate::handshake::Hello;
use crate::message::{Found, Message, MessageFramer, ReplayWindow};
use crate::per_direction::PerDirection;
use crate::record::Header;
use crate::session::RecordDetails;

/// Datagrams of each direction, one after the other, that are DTLS 1.3 without its handshake if all are filled by records
/// with ids of one length: of random bytes each is one time in 50,000, but other protocols have lengths in them, too.
const ENOUGH: u8 = 3;

/// The first protected record of a session that is seen has a number below this, as long as a receiver's window (RFC 6347,
/// section 4.1.2.6): keys that a later one is of were agreed elsewhere.
const FIRST_NUMBERS: u64 = 64;

/// Bytes of a `Finished`, the first protected record of each end: its header, and twelve that verify the handshake.
const FINISHED: u64 = 12 + 12;

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct DtlsFlow {
    sessions: Contenders<DtlsSession>,
    /// The length of the ids that were found by their datagrams, where no hellos say it.
    id_lengths: PerDirection<Option<u8>>,
    /// How many datagrams of each direction may have been anything, and the length of their ids. `None` once it is proven.
    unproven: Option<PerDirection<(u8, u8)>>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct DtlsSession {
    session: DatagramSession,
    /// The random bytes of the client's hello and of the server's.
    randoms: [Option<[u8; 8]>; 2],
    seen: PerDirection<ReplayWindow>,
    /// The bytes of ids in records of each direction, as hellos say.
    id_lengths: PerDirection<Option<u8>>,
    /// The epoch and the number of the last protected record.
    last: PerDirection<Option<(u16, u64)>>,
    /// The epoch of the last record of DTLS 1.3.
    epochs: PerDirection<u16>,
}

impl DtlsSession {
    fn is_protected(&self) -> bool {
        !self.last.all(Option::is_none) || !self.epochs.all(|epoch| *epoch == 0)
    }

    /// Whether a hello may be of its handshake: the first of its end, or a repetition.
    fn may_have(&self, (hello, random): &(Hello, [u8; 8])) -> bool {
        let [client, server] = self.randoms;
        let (known, is_next) = match hello {
            Hello::Client(_) => (client, client.is_none() && server.is_none()),
            Hello::Server(hello) => (server, server.is_none() || hello.retry),
        };
        !self.is_protected() && (is_next || known == Some(*random))
    }

    /// How far a protected record is from continuing this; `None` if it is of another session.
    fn distance(&self, direction: Direction, epoch: u16, number: u64) -> Option<u64> {
        match self.last.of(direction) {
            // Another time it is the same record.
            Some((last_epoch, last)) if *last_epoch == epoch => {
                Some(number.abs_diff(last.saturating_add(u64::from(number > *last))))
            }
            None if self.randoms != [None; 2] && number < FIRST_NUMBERS => Some(number),
            None if self.randoms != [None; 2] && !self.is_protected() => None,
            _ => Some(u64::MAX),
        }
    }

    /// Whether a record of the handshake has not the size of a `Finished` that is protected as this one's server has chosen.
    fn is_unlike_finished(&self, header: Header) -> bool {
        let plaintext = self.session.keys.protection.and_then(|protection| protection.plaintext(header.length));
        let is_finished = |[least, most]: [u64; 2]| (least..=most).contains(&FINISHED);
        header.content_type == ContentType::Handshake && !plaintext.is_some_and(is_finished)
    }

    /// The epoch of a record of DTLS 1.3: the one next to the last of which the low bits are these.
    fn epoch(&mut self, direction: Direction, bits: u8) -> u16 {
        let last = self.epochs.of_mut(direction);
        let next = last.saturating_sub(1)..=last.saturating_add(3);
        let epoch = next.into_iter().find(|epoch| epoch % 4 == u16::from(bits)).unwrap_or(*last);
        *last = epoch.max(*last);
        epoch
    }

    /// Takes the lengths of ids from hellos: each end says what it receives, and both have to (RFC 9146, section 3).
    fn agree_on_ids(&mut self, to_client: Direction) {
        let Some([of_client, of_server]) = self.session.negotiation.connection_ids() else { return };
        *self.id_lengths.of_mut(to_client) = Some(of_client);
        *self.id_lengths.of_mut(to_client.reversed()) = Some(of_server);
    }

    fn protocol(&self, form: Form) -> Protocol {
        let is_1_3 = self.session.keys.is_1_3 || matches!(form, Form::Unified { .. });
        if is_1_3 { Protocol::Dtls13 } else { Protocol::Dtls }
    }
}

impl DtlsFlow {
    /// A flow, if records fill the datagram.
    pub(crate) fn begin(chunk: &Chunk<'_>) -> Option<Self> {
        let proves = |records: &Vec<DtlsRecord>| !records.iter().all(DtlsRecord::is_unified);
        let with_ids = with_any_id(chunk).map(|(_, records)| records);
        let records = with_ids.or_else(|| dtls_records(chunk, 0).filter(proves))?;
        Some(Self { unproven: (!proves(&records)).then(PerDirection::default), ..Self::default() })
    }

    /// Whether more than headers of DTLS 1.3 in few datagrams has shown it.
    pub(crate) fn is_certain(&self) -> bool {
        self.unproven.is_none()
    }

    fn prove(&mut self, direction: Direction, chunk: &Chunk<'_>) {
        let Some(unproven) = &mut self.unproven else { return };
        let (count, known) = unproven.of_mut(direction);
        let id = with_any_id(chunk).map(|(id, _)| id);
        *count = id.map_or(0, |id| if id == *known { count.saturating_add(1) } else { 1 });
        *known = id.unwrap_or_default();
        if unproven.all(|(count, _)| *count >= ENOUGH) {
            self.unproven = None;
        }
    }

    /// The records of a datagram, with ids of the length that a session has agreed on, or that fits.
    fn records(&mut self, direction: Direction, chunk: &Chunk<'_>) -> Option<Vec<DtlsRecord>> {
        let agreed = |(at, _, known): (usize, u32, &DtlsSession)| {
            Some((self.sessions.current != Some(at), (*known.id_lengths.of(direction))?))
        };
        let mut agreed: Vec<_> = self.sessions.with_packets().filter_map(agreed).collect();
        agreed.sort_unstable();
        let agreed = agreed.into_iter().map(|(_, length)| length);
        let mut known = agreed.chain(*self.id_lengths.of(direction)).chain([0]);
        known.find_map(|length| dtls_records(chunk, length)).or_else(|| {
            let (length, records) = with_any_id(chunk)?;
            *self.id_lengths.of_mut(direction) = Some(length);
            Some(records)
        })
    }

    /// The session that a record is of.
    fn of_record(&mut self, direction: Direction, record: &DtlsRecord) -> usize {
        let DtlsRecord { header, form, hello, .. } = record;
        let sessions = &mut self.sessions;
        let others = sessions.current.or_else(|| sessions.newest(|_| true));
        let known = match (*form, hello) {
            // A hello behind protected records begins another.
            (_, Some(hello)) => sessions.newest(|known| known.may_have(hello)),
            (Form::Numbered { epoch: 0, .. }, None) => sessions.newest(|known| !known.is_protected()).or(others),
            (Form::Numbered { epoch, number, .. }, None) => {
                let rank = |(at, packets, known): (usize, u32, &DtlsSession)| {
                    let distance = known.distance(direction, epoch, number)?;
                    let last = *known.last.of(direction);
                    let is_repeated = last == Some((epoch, number));
                    // Of several as near: the one whose `Finished` has its size, that has begun, that has the most packets.
                    let is_unlike = known.is_unlike_finished(*header);
                    let most = (Reverse(packets), sessions.current != Some(at));
                    Some(((distance, is_unlike, last.is_none(), is_repeated, most), at))
                };
                sessions.with_packets().filter_map(rank).min().map(|(_, at)| at)
            }
            // The number is encrypted. Keys of a handshake are of the newest session, others of one that both ends use.
            (Form::Unified { epoch_bits: 2 }, None) => {
                let begins = |known: &DtlsSession| known.session.keys.is_1_3 && *known.epochs.of(direction) < 3;
                sessions.newest(begins).or(others)
            }
            (Form::Unified { .. }, None) => sessions.newest(|known| known.epochs.all(|epoch| *epoch > 0)).or(others),
        };
        known.unwrap_or_else(|| sessions.begin(DtlsSession::default()))
    }

    fn record(&mut self, direction: Direction, record: DtlsRecord, time_ns: i64, found: &mut Found) {
        let place = self.of_record(direction, &record);
        let DtlsRecord { header, form, hello, .. } = record;
        let is_first = self.sessions.newest(DtlsSession::is_protected).is_none();
        let Some(known) = self.sessions.with_packet(place) else { return };
        let is_clear = matches!(form, Form::Numbered { epoch: 0, .. });
        if let Form::Numbered { epoch, number, .. } = form {
            if !known.seen.of_mut(direction).insert(epoch.into(), number) {
                found.repeated += 1;
                return;
            }
            if !is_clear {
                *known.last.of_mut(direction) = Some((epoch, number));
            }
        }
        let mut is_due = !is_clear && !known.session.is_reported;
        if let Some(hello) = hello {
            let (hello, random) = hello;
            let is_server = matches!(hello, Hello::Server(_));
            match hello {
                Hello::Client(_) => known.randoms[0] = Some(random),
                Hello::Server(hello) if !hello.retry => known.randoms[1] = Some(random),
                Hello::Server(_) => {}
            }
            // Behind records of another session it may be forged: its own will show.
            is_due |= known.session.tls().hello(hello, direction, time_ns) && is_first;
            if is_server {
                known.agree_on_ids(direction);
            }
        }
        let protocol = known.protocol(form);
        if known.session.tls().starts_unanswered(header) || is_due {
            self.sessions.report(place, |known| &mut known.session, (protocol, time_ns), found);
        }
        let Some(known) = self.sessions.all_mut().nth(place) else { return };
        let details = match form {
            Form::Numbered { epoch, hides_type, .. } => {
                known.session.tls().dtls_record(header, direction, (epoch, hides_type), time_ns)
            }
            Form::Unified { epoch_bits } => {
                let epoch = known.epoch(direction, epoch_bits);
                known.session.tls().dtls13_record(header, epoch)
            }
        };
        if !is_clear {
            self.sessions.current = Some(place);
        }
        let message = Message::data(protocol, direction, [time_ns; 2], header.length.into());
        let RecordDetails { plaintext, handshake } = details;
        let is_hidden = !matches!(form, Form::Numbered { hides_type: false, .. });
        let content_type = if is_hidden && handshake { ContentType::Handshake } else { header.content_type };
        found.message(Message { content_type, plaintext, handshake, ..message });
    }
}

impl MessageFramer for DtlsFlow {
    fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        self.prove(direction, &chunk);
        let Some(records) = self.records(direction, &chunk) else { return false };
        if !records.iter().all(DtlsRecord::is_unified) {
            self.unproven = None;
        }
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
}
