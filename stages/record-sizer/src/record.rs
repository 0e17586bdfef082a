//! The TLS record layer: plausible headers, and the walk from one to the next along a stream.
//!
//! Only the 5-byte header of a record is read; its length says where the next one is (RFC 8446 section 5.1, RFC 5246
//! section 6.2.1).

use serde::{Deserialize, Serialize};
use sizeleak_frame::{ContentType, Segment};

use crate::chunk::Chunk;

/// The largest body of a record: 2¹⁴ + 2048 bytes (RFC 5246 section 6.2.3; TLS 1.3 allows less).
pub(crate) const MAX_BODY: u16 = (1 << 14) + 2048;

pub(crate) const HEADER: usize = 5;

/// Stands for version 1.1, that of TLCP (GB/T 38636), where only the second byte of version 3.x is kept.
pub(crate) const TLCP: u8 = 0x11;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    pub(crate) content_type: ContentType,
    /// The second byte of the version, whose first is 3; or [`TLCP`].
    pub(crate) minor: u8,
    pub(crate) length: u16,
}

impl Header {
    /// Parses a header; `None` where no TLS record can start with these bytes.
    #[inline]
    pub(crate) fn parse([content_type, major, minor, high, low]: [u8; HEADER]) -> Option<Self> {
        let content_type = ContentType::try_from(content_type).ok()?;
        let length = u16::from_be_bytes([high, low]);
        let (plausible, minor) = if major == 3 { (minor <= 4, minor) } else { (major == 1 && minor == 1, TLCP) };
        (plausible && length <= MAX_BODY).then_some(Self { content_type, minor, length })
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let [high, low] = self.length.to_be_bytes();
        let [major, minor] = if self.minor == TLCP { [1, 1] } else { [3, self.minor] };
        [self.content_type.into(), major, minor, high, low]
    }
}

/// Whether a segment, of which all was captured, holds whole records and nothing else.
pub(crate) fn has_whole_records(segment: &Segment<'_>) -> bool {
    let mut bytes = segment.payload;
    if segment.length as usize != bytes.len() {
        return false;
    }
    while let Some((header, rest)) = bytes.split_first_chunk() {
        let Some(body) = Header::parse(*header).and_then(|header| rest.get(usize::from(header.length)..)) else {
            return false;
        };
        if body.is_empty() {
            return true;
        }
        bytes = body;
    }
    false
}

/// The start of a record whose end is still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OpenRecord {
    /// Bytes of it so far, header included.
    pub(crate) bytes: u32,
    /// Its header, of which no more than `bytes` were seen.
    header: [u8; HEADER],
}

impl OpenRecord {
    /// How many bytes of it are to come, where its header was seen.
    pub(crate) fn left(self) -> Option<u32> {
        let [.., high, low] = self.header;
        let whole = HEADER as u32 + u32::from(u16::from_be_bytes([high, low]));
        whole.checked_sub(self.bytes).filter(|left| *left > 0 && self.has_header())
    }

    pub(crate) fn has_header(self) -> bool {
        self.bytes >= HEADER as u32
    }

    /// Whether some bytes begin as it does, as far as its header was seen.
    pub(crate) fn begins(self, bytes: &[u8]) -> bool {
        self.header.iter().take(self.bytes as usize).zip(bytes).all(|(own, other)| own == other)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SizedRecord {
    pub(crate) header: Header,
    pub(crate) start_ns: i64,
    /// When its last byte was captured, or known to be sent.
    pub(crate) time_ns: i64,
}

impl SizedRecord {
    /// Bytes on the wire, header included.
    pub(crate) fn bytes(self) -> u64 {
        HEADER as u64 + u64::from(self.header.length)
    }
}

/// Walks from header to header. It never searches for one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct RecordWalker {
    /// When the first byte of the present record was captured.
    pub(crate) start_ns: i64,
    /// When the last byte of the stream was captured, or known to be sent.
    pub(crate) last_ns: i64,
    pub(crate) state: WalkerState,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum WalkerState {
    /// Before a header of which the first `count` bytes were `seen`, after records of `version` 3.x, if any.
    Header {
        seen: [u8; HEADER - 1],
        count: u8,
        version: Option<u8>,
    },
    Body {
        header: Header,
        left: u16,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step<'a> {
    More,
    /// The end of a header; its body follows.
    Header(Header),
    /// Some bytes of a body; `whole` unless others of them are hidden.
    Body {
        header: Header,
        bytes: &'a [u8],
        whole: bool,
    },
    Record(SizedRecord),
    Implausible([u8; HEADER]),
    Hidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GapEffect {
    /// The gap is within a body: the position of the next header is still known.
    WithinBody,
    /// The gap ends a record whose header was seen, and hides the next header.
    PastRecord(SizedRecord),
    HeaderLost,
}

impl Default for RecordWalker {
    fn default() -> Self {
        Self::new(None)
    }
}

impl RecordWalker {
    /// A walk that starts before a header, after records of this version, if any.
    pub(crate) fn new(version: Option<u8>) -> Self {
        let state = WalkerState::Header { seen: [0; HEADER - 1], count: 0, version };
        Self { start_ns: i64::MIN, last_ns: i64::MIN, state }
    }

    /// A walk that starts before a header whose first bytes were seen at `time_ns`.
    pub(crate) fn within_header(first_bytes: &[u8], time_ns: i64) -> Self {
        let mut seen = [0; HEADER - 1];
        let count = seen.iter_mut().zip(first_bytes).map(|(seen, byte)| *seen = *byte).count() as u8;
        let state = WalkerState::Header { seen, count, version: None };
        Self { start_ns: time_ns, last_ns: time_ns, state }
    }

    pub(crate) fn is_inside_record(&self) -> bool {
        !matches!(self.state, WalkerState::Header { count: 0, .. })
    }

    pub(crate) fn open_record(&self) -> Option<OpenRecord> {
        match self.state {
            WalkerState::Header { count: 0, .. } => None,
            WalkerState::Header { seen: [kind, major, minor, high], count, .. } => {
                Some(OpenRecord { bytes: count.into(), header: [kind, major, minor, high, 0] })
            }
            WalkerState::Body { header, left } => {
                let bytes = HEADER as u32 + u32::from(header.length) - u32::from(left);
                Some(OpenRecord { bytes, header: header.to_bytes() })
            }
        }
    }

    pub(crate) fn body_left(&self) -> u64 {
        if let WalkerState::Body { left, .. } = self.state { left.into() } else { 0 }
    }

    /// Whether it is between two records or in the body of application data.
    pub(crate) fn is_at_data(&self) -> bool {
        match self.state {
            WalkerState::Header { count, .. } => count == 0,
            WalkerState::Body { header, left } => header.content_type == ContentType::ApplicationData && left > 0,
        }
    }

    /// The version 3.x of the last header, if any was seen.
    pub(crate) fn version(&self) -> Option<u8> {
        match self.state {
            WalkerState::Header { version, .. } => version,
            WalkerState::Body { header, .. } => Some(header.minor),
        }
    }

    pub(crate) fn step<'a>(&mut self, chunk: &mut Chunk<'a>) -> Step<'a> {
        match self.state {
            WalkerState::Body { header, left: 0 } => Step::Record(self.end_record(header)),
            _ if chunk.is_empty() => Step::More,
            WalkerState::Body { header, left } => {
                let (bytes, taken) = chunk.advance(left.into());
                self.last_ns = self.last_ns.max(chunk.time_ns);
                self.state = WalkerState::Body { header, left: left - taken as u16 };
                Step::Body { header, bytes, whole: bytes.len() as u64 == taken }
            }
            WalkerState::Header { seen, count, version } => self.read_header(seen, count, version, chunk),
        }
    }

    fn read_header<'a>(
        &mut self,
        mut seen: [u8; HEADER - 1],
        mut count: u8,
        version: Option<u8>,
        chunk: &mut Chunk<'a>,
    ) -> Step<'a> {
        if count == 0 {
            (self.start_ns, self.last_ns) = (chunk.time_ns, chunk.time_ns);
        }
        self.last_ns = self.last_ns.max(chunk.time_ns);
        let known = usize::from(count);
        let (bytes, _) = chunk.advance((HEADER - known).min(chunk.payload.len()) as u64);
        for (place, byte) in seen.iter_mut().skip(known).zip(bytes) {
            (*place, count) = (*byte, count + 1);
        }
        let [first, second, third, fourth] = seen;
        if let Some(fifth) = bytes.get(HEADER - 1 - known) {
            let bytes = [first, second, third, fourth, *fifth];
            let Some(header) = Header::parse(bytes) else { return Step::Implausible(bytes) };
            self.state = WalkerState::Body { header, left: header.length };
            return Step::Header(header);
        }
        self.state = WalkerState::Header { seen, count, version };
        if chunk.is_empty() { Step::More } else { Step::Hidden }
    }

    /// Passes over missing bytes, which were sent by `time_ns`.
    pub(crate) fn gap(&mut self, length: u64, time_ns: i64) -> GapEffect {
        self.last_ns = self.last_ns.max(time_ns);
        match self.state {
            WalkerState::Body { header, left } if length <= left.into() => {
                self.state = WalkerState::Body { header, left: left - length as u16 };
                GapEffect::WithinBody
            }
            WalkerState::Body { header, .. } => GapEffect::PastRecord(self.end_record(header)),
            WalkerState::Header { .. } => GapEffect::HeaderLost,
        }
    }

    #[inline]
    pub(crate) fn end_record(&mut self, header: Header) -> SizedRecord {
        let record = SizedRecord { header, start_ns: self.start_ns, time_ns: self.last_ns };
        self.state = Self::new(Some(header.minor)).state;
        record
    }
}

#[cfg(test)]
mod tests;
