//! DTLS over UDP (RFC 6347, section 4.1): its records, those with connection ids (RFC 9146) and those of DTLS 1.3 (RFC
//! 9147, section 4) among them, which are sized by what a handshake agreed on.
//!
//! A datagram is taken for DTLS only if records fill it to its last byte: of random bytes, one datagram in 10¹⁰. The
//! headers of DTLS 1.3 say too little for that, so there several datagrams of both directions are needed.
//!
//! Anybody can forge a hello, or a record of any epoch. Each record is of the session whose numbers it continues, so
//! that none ends another: a new one shows itself by records that are protected and begin to count anew.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Direction, PerDirection, Protocol};

use crate::chunk::Chunk;
use crate::connection_id;
use crate::connection_id::{Contenders, DatagramSession};
use crate::handshake::{Hello, datagram_hello};
use crate::message::{Found, Message};
use crate::numbered::{Conversation, Holes};
use crate::record::{Header, MAX_BODY};
use crate::session::RecordDetails;

/// Bytes of a record header without a connection id.
const HEADER: usize = 13;

/// Bytes of a hello before its random ones: the header of the message, and a version.
const RANDOM: usize = 12 + 2;

/// The content type of records with a connection id, which hide their own (RFC 9146, section 4).
const WITH_ID: u8 = 25;

/// The minor version that stands for DTLS in a [`Header`]: record headers do not reliably distinguish 1.0 from 1.2.
const MINOR: u8 = 3;

/// The least bytes of a protected record: its content type, and the shortest tag.
const LEAST_PROTECTED: usize = 9;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DtlsRecord {
    pub(crate) header: Header,
    pub(crate) form: Form,
    pub(crate) header_bytes: usize,
    says_length: bool,
    /// The hello in it, if it is whole, and the first of its random bytes, which no other hello has.
    pub(crate) hello: Option<(Hello, [u8; 8])>,
}

impl DtlsRecord {
    /// Whether it has a header of DTLS 1.3.
    pub(crate) fn is_unified(&self) -> bool {
        matches!(self.form, Form::Unified { .. })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// An epoch, zero while nothing is encrypted, a number within it, and whether the content type is hidden.
    Numbered { epoch: u16, number: u64, hides_type: bool },
    /// The low bits of an epoch; the number is encrypted.
    Unified { epoch_bits: u8 },
}

/// The records of a datagram; `None` unless all of it is DTLS. Records whose header was not captured are left out.
/// Connection ids have `id_length` bytes.
pub(crate) fn dtls_records(chunk: &Chunk<'_>, id_length: u8) -> Option<Vec<DtlsRecord>> {
    let mut records = Vec::new();
    let (mut rest, mut left) = (chunk.payload, chunk.length() as usize);
    while left > 0 {
        let Start::Record(record) = record(rest, left, id_length.into())? else {
            // Cut by the snaplen after whole records.
            let is_cut = chunk.hidden > 0 && left > 2 + LEAST_PROTECTED;
            return (is_cut && !records.is_empty()).then_some(records);
        };
        let whole = record.header_bytes + usize::from(record.header.length);
        left = left.checked_sub(whole)?;
        let (this, after) = rest.split_at(rest.len().min(whole));
        rest = after;
        let body = this.get(record.header_bytes..).unwrap_or_default();
        let is_clear = matches!(record.form, Form::Numbered { epoch: 0, hides_type: false, .. });
        let is_hello = is_clear && record.header.content_type == ContentType::Handshake;
        let random = body.get(RANDOM..).and_then(<[u8]>::first_chunk).copied().filter(|_| is_hello);
        let hello = random.and_then(|random| Some((datagram_hello(body)?, random)));
        records.push(DtlsRecord { hello, ..record });
    }
    (!records.is_empty()).then_some(records)
}

enum Start {
    Record(DtlsRecord),
    Cut,
}

/// The record that starts here, in the last `left` bytes of a datagram; `None` if none can.
fn record(bytes: &[u8], left: usize, id_length: usize) -> Option<Start> {
    let Some(first) = bytes.first() else { return Some(Start::Cut) };
    if first >> 5 == 1 {
        return unified(*first, bytes, left, id_length);
    }
    let id = if *first == WITH_ID { id_length } else { 0 };
    // A record with an id of no byte has the other form.
    if left < HEADER + id || (*first == WITH_ID && id == 0) {
        return None;
    }
    let (Some(&[content_type, major, minor, e0, e1, n0, n1, n2, n3, n4, n5]), Some(&[high, low])) =
        (bytes.first_chunk(), bytes.get(HEADER - 2 + id..).and_then(<[u8]>::first_chunk))
    else {
        return Some(Start::Cut);
    };
    // DTLS 1.0, 1.2, and the version before them, which some devices still use.
    if !matches!((major, minor), (0xfe, 0xff | 0xfd) | (1, 0)) {
        return None;
    }
    let (hides_type, length) = (content_type == WITH_ID, u16::from_be_bytes([high, low]));
    let content_type = if hides_type { ContentType::ApplicationData } else { content_type.try_into().ok()? };
    let is_empty = length == 0 && content_type != ContentType::ApplicationData;
    if length > MAX_BODY || is_empty || (hides_type && usize::from(length) < LEAST_PROTECTED) {
        return None;
    }
    let form = Form::Numbered {
        epoch: u16::from_be_bytes([e0, e1]),
        number: u64::from_be_bytes([0, 0, n0, n1, n2, n3, n4, n5]),
        hides_type,
    };
    let header = Header { content_type, minor: MINOR, length };
    Some(Start::Record(DtlsRecord { header, form, header_bytes: HEADER + id, says_length: true, hello: None }))
}

/// A record with the header of DTLS 1.3: `001CSLEE`, an id, one or two bytes of number, a length or none.
fn unified(first: u8, bytes: &[u8], left: usize, id_length: usize) -> Option<Start> {
    let has = |bit: u8| first & bit != 0;
    let id = if has(0x10) { id_length } else { 0 };
    if has(0x10) && id == 0 {
        return None;
    }
    let before = 1 + id + if has(0x08) { 2 } else { 1 };
    let (header_bytes, length) = if has(0x04) {
        let Some(&[high, low]) = bytes.get(before..).and_then(<[u8]>::first_chunk) else { return Some(Start::Cut) };
        (before + 2, usize::from(u16::from_be_bytes([high, low])))
    } else {
        (before, left.checked_sub(before)?)
    };
    if length < LEAST_PROTECTED || length > MAX_BODY.into() {
        return None;
    }
    let header = Header { content_type: ContentType::ApplicationData, minor: MINOR, length: length as u16 };
    let form = Form::Unified { epoch_bits: first & 0x03 };
    Some(Start::Record(DtlsRecord { header, form, header_bytes, says_length: has(0x04), hello: None }))
}

/// The records of a datagram whose ids have an unknown length, and that length: the only one, or the least, with which
/// records that say their lengths fill the datagram.
pub(crate) fn with_any_id(chunk: &Chunk<'_>) -> Option<(u8, Vec<DtlsRecord>)> {
    let says_length = matches!(chunk.payload.first(), Some(&WITH_ID)) || chunk.payload.first()? & 0xe4 == 0x24;
    let mut lengths = (0..=connection_id::LONGEST as u8).filter(|_| says_length);
    let say_lengths = |records: &Vec<DtlsRecord>| records.iter().all(|record| record.says_length);
    lengths.find_map(|length| Some((length, dtls_records(chunk, length).filter(say_lengths)?)))
}

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
    seen: Conversation,
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

    /// Whether a hello may be of its handshake: the first of its end, or a repetition, which may come late.
    fn may_have(&self, (hello, random): &(Hello, [u8; 8])) -> bool {
        let [client, server] = self.randoms;
        let (known, is_next) = match hello {
            Hello::Client(_) => (client, client.is_none() && server.is_none()),
            Hello::Server(hello) => (server, server.is_none() || hello.retry),
        };
        known == Some(*random) || is_next && !self.is_protected()
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

    /// Those of all its sessions; numbers of DTLS 1.3 are encrypted.
    pub(crate) fn holes(&self) -> PerDirection<Holes> {
        let mut all = PerDirection::<Holes>::default();
        for (_, _, known) in self.sessions.with_packets() {
            let PerDirection { to_gateway, from_gateway } = known.seen.holes();
            all.to_gateway += to_gateway;
            all.from_gateway += from_gateway;
        }
        all
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

    fn of_record(&mut self, direction: Direction, record: &DtlsRecord) -> usize {
        let DtlsRecord { header, form, hello, .. } = record;
        let sessions = &mut self.sessions;
        let others = sessions.current.or_else(|| sessions.newest(|_| true));
        let known = match (*form, hello) {
            // Another hello behind protected records begins another.
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
            if !known.seen.insert(direction, epoch.into(), number) {
                found.repeated += 1;
                return;
            }
            if !is_clear {
                *known.last.of_mut(direction) = Some((epoch, number));
            }
        }
        let mut is_due = !is_clear && !known.session.is_reported;
        // One that comes again behind protected records changes nothing: anybody can forge it.
        if let Some((hello, random)) = hello.filter(|_| !known.is_protected()) {
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

    pub(crate) fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(content_type: u8, epoch: u8, number: u8, body: &[u8]) -> Vec<u8> {
        let header = [content_type, 0xfe, 0xfd, 0, epoch, 0, 0, 0, 0, 0, number, 0, body.len() as u8];
        [&header, body].concat()
    }

    fn records(datagram: &[u8], length: usize, id_length: u8) -> Option<Vec<(u16, Form)>> {
        let hidden = (length - datagram.len()) as u32;
        let found = dtls_records(&Chunk { hidden, ..Chunk::fragment(0, datagram) }, id_length)?;
        Some(found.iter().map(|record| (record.header.length, record.form)).collect())
    }

    #[test]
    fn dtls_records_must_fill_the_datagram() {
        let datagram = [bytes(20, 0, 3, &[1]), bytes(22, 1, 0, &[9; 40])].concat();
        let form = |epoch, number| Form::Numbered { epoch, number, hides_type: false };
        assert_eq!(records(&datagram, 67, 0), Some(vec![(1, form(0, 3)), (40, form(1, 0))]));
        assert_eq!(records(&datagram, 68, 0), None, "a byte too many");
        assert_eq!(records(&datagram[..30], 67, 0).map(|records| records.len()), Some(2));
        assert_eq!(records(&datagram[..20], 67, 0).map(|records| records.len()), Some(1));
        assert_eq!(records(&[0x17; 60], 60, 0), None);
        assert_eq!(records(&[], 0, 0), None);
    }

    #[test]
    fn connection_ids_are_read_with_the_length_that_was_agreed_or_found() {
        let header = [25, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0, 0, 7, b'i', b'd', 0, 30];
        let datagram = [&header[..], &[9; 30]].concat();
        let expected = vec![(30, Form::Numbered { epoch: 1, number: 7, hides_type: true })];
        assert_eq!(records(&datagram, 45, 2), Some(expected));
        assert_eq!(records(&datagram, 45, 3), None);
        let found = with_any_id(&Chunk::fragment(0, &datagram)).map(|(length, _)| length);
        assert_eq!(found, Some(2));
    }

    #[test]
    fn headers_of_dtls_1_3_have_optional_parts() {
        let form = |epoch_bits| Form::Unified { epoch_bits };
        let short = [&[0x23, 1][..], &[9; 30]].concat();
        assert_eq!(records(&short, 32, 0), Some(vec![(30, form(3))]));
        let both = [&[0x2e, 1, 2, 0, 10][..], &[9; 10], &[0x3f, b'i', 1, 2, 0, 20], &[9; 20]].concat();
        assert_eq!(records(&both, both.len(), 1), Some(vec![(10, form(2)), (20, form(3))]));
        assert_eq!(records(&both, both.len(), 0), None, "the id is not known");
    }
}
