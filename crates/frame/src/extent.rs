//! The limits of the contract: sizes of values and batches; and where a `MessagePack` value ends, found without decoding
//! it or trusting the lengths it claims.

use thiserror::Error;

/// The largest `MessagePack` value a stream may hold, in bytes. A reader rejects a larger one before storing it.
pub const MAX_VALUE_BYTES: usize = 16 << 20;

/// How deep maps and lists may nest inside a value of a known kind.
pub const MAX_DEPTH: usize = 32;

/// The most rows a `packets` or `segments` batch holds.
pub const BATCH_ROWS: usize = 256;

/// A batch is sent once its rows hold this many bytes of data, however few they are.
pub const BATCH_BYTES: usize = 64 << 10;

/// How large batches of packets and segments become.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BatchLimit {
    /// As large as the contract allows.
    #[default]
    Contract,
    /// Four times as many bytes, for fewer batches. Only stages of one process may see them.
    InProcess,
}

impl BatchLimit {
    /// A batch is due once its rows hold this many bytes of data.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Contract => BATCH_BYTES,
            Self::InProcess => 4 * BATCH_BYTES,
        }
    }
}

/// Finds the end of one value in bytes that arrive in parts; no byte is inspected twice.
#[derive(Debug, Clone)]
pub(crate) struct Extent {
    /// The offset of the next token in the value; may be beyond the bytes that have arrived.
    at: usize,
    pending: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub(crate) enum ExtentError {
    #[error("the byte 0x{0:02x} begins no MessagePack value")]
    Reserved(u8),
    #[error("a value claims more than the {MAX_VALUE_BYTES} bytes a frame may have")]
    TooLarge,
}

impl Extent {
    pub(crate) fn new() -> Self {
        Self { at: 0, pending: 1 }
    }

    pub(crate) fn is_new(&self) -> bool {
        self.at == 0
    }

    /// Inspects `value`, all bytes of the value that have arrived; returns its length once it is whole.
    pub(crate) fn advance(&mut self, value: &[u8]) -> Result<Option<usize>, ExtentError> {
        // Local copies stay in registers.
        let Self { mut at, mut pending } = *self;
        while pending > 0 {
            let Some(token) = value.get(at..).map(Token::read).transpose()?.flatten() else { break };
            pending = pending - 1 + token.values;
            // Each missing value takes at least one byte.
            if at as u64 + token.bytes + pending > MAX_VALUE_BYTES as u64 {
                return Err(ExtentError::TooLarge);
            }
            at += token.bytes as usize;
        }
        *self = Self { at, pending };
        if pending > 0 {
            return Ok(None);
        }
        Ok((self.at <= value.len()).then_some(self.at))
    }
}

/// A marker: its own bytes, and the number of values nested in it.
struct Token {
    bytes: u64,
    values: u64,
}

impl Token {
    /// Reads a marker and its length field; `None` if they are incomplete.
    #[inline]
    fn read(bytes: &[u8]) -> Result<Option<Self>, ExtentError> {
        let Some((&marker, rest)) = bytes.split_first() else { return Ok(None) };
        let plain = |bytes| Ok(Some(Self { bytes, values: 0 }));
        let sized = |width: usize, extra: u64| {
            Ok(big_endian(rest, width).map(|length| Self { bytes: 1 + width as u64 + extra + length, values: 0 }))
        };
        let nested = |width: usize, times: u64| {
            Ok(big_endian(rest, width).map(|length| Self { bytes: 1 + width as u64, values: length * times }))
        };
        match marker {
            0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => plain(1),
            0x80..=0x8f => Ok(Some(Self { bytes: 1, values: u64::from(marker & 0x0f) * 2 })),
            0x90..=0x9f => Ok(Some(Self { bytes: 1, values: u64::from(marker & 0x0f) })),
            0xa0..=0xbf => plain(1 + u64::from(marker & 0x1f)),
            0xc1 => Err(ExtentError::Reserved(marker)),
            0xc4 | 0xd9 => sized(1, 0),
            0xc5 | 0xda => sized(2, 0),
            0xc6 | 0xdb => sized(4, 0),
            0xc7 => sized(1, 1),
            0xc8 => sized(2, 1),
            0xc9 => sized(4, 1),
            0xcc | 0xd0 => plain(2),
            0xcd | 0xd1 => plain(3),
            0xca | 0xce | 0xd2 => plain(5),
            0xcb | 0xcf | 0xd3 => plain(9),
            0xd4..=0xd8 => plain(2 + (1 << (marker - 0xd4))),
            0xdc => nested(2, 1),
            0xdd => nested(4, 1),
            0xde => nested(2, 2),
            0xdf => nested(4, 2),
        }
    }
}

fn big_endian(bytes: &[u8], width: usize) -> Option<u64> {
    Some(bytes.get(..width)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}
