//! The bytes that a cipher suite adds to a record, for callers that know the suite and have no session.

use tls_parser::TlsCipherSuite;

use crate::handshake::ServerHello;
use crate::plaintext::{Protection, TLS_1_3};

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
mod tests {
    use super::*;

    #[test]
    fn suites_add_their_tags_vectors_macs_and_padding() {
        for (suite, overhead) in [
            ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", Some([24, 24])),
            ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", Some([16, 16])),
            ("TLS_AES_128_GCM_SHA256", Some([17, 17])),
            ("TLS_RSA_WITH_AES_128_CBC_SHA", Some([37, 52])),
            ("ROT13", None),
            ("", None),
        ] {
            assert_eq!(record_overhead(suite), overhead, "{suite}");
        }
    }

    #[test]
    fn overhead_agrees_with_the_plaintext_range() {
        let suite = TlsCipherSuite::from_name("TLS_RSA_WITH_AES_128_CBC_SHA").unwrap();
        let hello = ServerHello { version: TLS_1_2, cipher_suite: suite.id.0, ..ServerHello::default() };
        let [least, most] = Protection::of(hello).plaintext(160).unwrap();
        let [least_added, most_added] = record_overhead(suite.name).unwrap();
        assert_eq!((160 - most, 160 - least), (least_added.into(), most_added.into()));
    }
}
