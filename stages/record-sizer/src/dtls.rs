//! Parses the DTLS records of datagrams: those up to DTLS 1.2 (RFC 6347, section 4.1), with connection ids (RFC 9146),
//! and those of DTLS 1.3, which have a shorter header (RFC 9147, section 4).
//!
//! A datagram is taken for DTLS only if records fill it to its last byte: of random bytes, one datagram in 10¹⁰. The
//! headers of DTLS 1.3 say too little for that, so there several datagrams of both directions are needed.

use sizeleak_frame::ContentType;

use crate::chunk::Chunk;
use crate::connection_id;
use crate::handshake::{Hello, datagram_hello};
use crate::record::{Header, MAX_BODY};

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

/// What is at the place where a record should start.
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
