//! What a cipher suite adds to a record, for those who know the suite and not the session.

use tls_parser::TlsCipherSuite;

use crate::handshake::ServerHello;
use crate::plaintext::{Protection, TLS_1_3};

/// TLS 1.2.
const TLS_1_2: u16 = 0x0303;

/// The least and the most bytes a cipher suite, by its IANA name, adds to a record; they differ for CBC, by one block less
/// a byte. `None` for a name no suite has, and for a suite of which it is not known. TLS 1.2 is taken for the suites that
/// older versions have too (TLS 1.0 sends no initialization vector).
pub fn record_overhead(suite: &str) -> Option<[u32; 2]> {
    let known = TlsCipherSuite::from_name(suite)?;
    // Only TLS 1.3's suites leave the key exchange open (RFC 8446, appendix B.4).
    let version = if suite.contains("_WITH_") { TLS_1_2 } else { TLS_1_3 };
    let hello =
        ServerHello { version, cipher_suite: known.id.0, compressed: false, encrypt_then_mac: false, retry: false };
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
    fn what_suites_add() {
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

    /// The overhead and the range of plaintext say the same.
    #[test]
    fn agrees_with_the_sizes_of_plaintext() {
        let suite = TlsCipherSuite::from_name("TLS_RSA_WITH_AES_128_CBC_SHA").unwrap();
        let hello = ServerHello {
            version: TLS_1_2,
            cipher_suite: suite.id.0,
            compressed: false,
            encrypt_then_mac: false,
            retry: false,
        };
        let [least, most] = Protection::of(hello).plaintext(160).unwrap();
        let [least_added, most_added] = record_overhead(suite.name).unwrap();
        assert_eq!((160 - most, 160 - least), (least_added.into(), most_added.into()));
    }
}
