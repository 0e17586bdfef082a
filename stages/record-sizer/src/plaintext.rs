//! How many bytes of plaintext a protected record holds, given what its cipher suite adds to them.
//!
//! Exact for AEAD and stream ciphers; a range of one block for CBC, whose padding is taken to be minimal. TLS 1.3
//! lets a sender pad (RFC 8446 section 5.4); hardly any does, so padding counts as plaintext.

use serde::{Deserialize, Serialize};
use tls_parser::{TlsCipherEnc, TlsCipherEncMode, TlsCipherMac, TlsCipherSuite};

use crate::handshake::ServerHello;

pub(crate) const TLS_1_0: u16 = 0x0301;
pub(crate) const DTLS_1_3: u16 = 0xfefc;
pub(crate) const TLS_1_3: u16 = 0x0304;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Protection {
    /// A fixed number of bytes.
    Added(u8),
    /// An initialization vector, a MAC, and padding to the next block.
    Block {
        vector: u8,
        mac: u8,
        block: u8,
        order: Order,
    },
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Order {
    MacThenEncrypt,
    /// RFC 7366.
    EncryptThenMac,
}

impl Protection {
    pub(crate) fn of(hello: ServerHello) -> Self {
        let Some(suite) = TlsCipherSuite::from_id(hello.cipher_suite) else { return Self::Unknown };
        if hello.compressed {
            return Self::Unknown;
        }
        match (is_1_3(hello.version), tag(suite)) {
            // The tag and the content type byte.
            (true, Some(tag)) => Self::Added(tag + 1),
            (true, None) => Self::Unknown,
            (false, _) => Self::up_to_1_2(suite, hello),
        }
    }

    fn up_to_1_2(suite: &TlsCipherSuite, hello: ServerHello) -> Self {
        let (Ok(mac), Ok(block)) = (u8::try_from(suite.mac_length()), u8::try_from(suite.enc_block_size())) else {
            return Self::Unknown;
        };
        match (suite.enc, suite.enc_mode, tag(suite)) {
            (TlsCipherEnc::Chacha20_Poly1305, _, Some(tag)) => Self::Added(tag),
            // Eight bytes of the nonce are sent (RFC 5288, RFC 6655).
            (_, TlsCipherEncMode::Gcm | TlsCipherEncMode::Ccm, Some(tag)) => Self::Added(tag + 8),
            (TlsCipherEnc::Null | TlsCipherEnc::Rc4, _, _) => Self::Added(mac),
            (_, TlsCipherEncMode::Cbc, _) => {
                let vector = if hello.version <= TLS_1_0 { 0 } else { block };
                let order = if hello.encrypt_then_mac { Order::EncryptThenMac } else { Order::MacThenEncrypt };
                Self::Block { vector, mac, block, order }
            }
            _ => Self::Unknown,
        }
    }

    /// The least and the most bytes of plaintext in a record of this length; `None` if unknown or impossible.
    #[inline]
    pub(crate) fn plaintext(self, length: u16) -> Option<[u64; 2]> {
        match self {
            Self::Added(added) => length.checked_sub(added.into()).map(exactly),
            Self::Block { vector, mac, block, order } => {
                let [vector, mac, block] = [vector, mac, block].map(u16::from);
                let encrypted = match order {
                    Order::MacThenEncrypt => length.checked_sub(vector)?,
                    Order::EncryptThenMac => length.checked_sub(vector + mac)?,
                };
                if encrypted % block != 0 {
                    return None;
                }
                let content = match order {
                    Order::MacThenEncrypt => encrypted.checked_sub(mac)?,
                    Order::EncryptThenMac => encrypted,
                };
                // At least one byte, the length of the padding.
                Some([content.saturating_sub(block).into(), content.checked_sub(1)?.into()])
            }
            Self::Unknown => None,
        }
    }
}

#[inline]
pub(crate) fn exactly(length: u16) -> [u64; 2] {
    [length.into(); 2]
}

/// TLS 1.3, a draft of it, or DTLS 1.3.
#[inline]
pub(crate) fn is_1_3(version: u16) -> bool {
    version == TLS_1_3 || version == DTLS_1_3 || version >> 8 == 0x7f
}

/// Bytes of an AEAD's tag; `None` for other ciphers.
fn tag(suite: &TlsCipherSuite) -> Option<u8> {
    match (suite.enc, suite.mac) {
        // The parser's table has the hash of the key schedule in place of the tag; this suite's tag is an HMAC (RFC
        // 9150).
        (TlsCipherEnc::Null, TlsCipherMac::HmacSha256) if suite.name == "TLS_SHA256_SHA256" => Some(32),
        (TlsCipherEnc::Aegis, _) | (_, TlsCipherMac::Aead) => Some(if suite.name.contains("_CCM_8") { 8 } else { 16 }),
        _ => None,
    }
}

const TLS_1_2: u16 = 0x0303;

/// The least and the most bytes that a cipher suite adds to a record, by the suite's IANA name. They differ for CBC,
/// by one byte less than a block. `None` for unknown names, and for suites whose overhead is unknown. Suites that
/// older versions have too are taken for TLS 1.2 (TLS 1.0 sends no initialization vector).
pub fn record_overhead(suite: &str) -> Option<[u32; 2]> {
    let known = TlsCipherSuite::from_name(suite)?;
    // Only the names of TLS 1.3's suites do not say how keys are exchanged (RFC 8446, appendix B.4).
    let version = if suite.contains("_WITH_") { TLS_1_2 } else { TLS_1_3 };
    let hello = ServerHello { version, cipher_suite: known.id.0, ..ServerHello::default() };
    match Protection::of(hello) {
        Protection::Added(added) => Some([added.into(); 2]),
        Protection::Block { vector, mac, block, .. } => {
            let fixed = u32::from(vector) + u32::from(mac);
            Some([fixed + 1, fixed + u32::from(block)])
        }
        Protection::Unknown => None,
    }
}

#[cfg(test)]
mod tests;
