//! Tests of `plaintext`.

use super::*;

fn range(name: &str, version: u16, length: u16) -> Option<[u64; 2]> {
    protection(name, version, false).plaintext(length)
}

fn protection(name: &str, version: u16, encrypt_then_mac: bool) -> Protection {
    let cipher_suite = TlsCipherSuite::from_name(name).unwrap().id.0;
    Protection::of(ServerHello { version, cipher_suite, encrypt_then_mac, ..ServerHello::default() })
}

#[test]
fn plaintext_of_aead_is_exact() {
    let cases = [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", 0x0303, 24),
        ("TLS_PSK_WITH_AES_128_CCM", 0x0303, 24),
        ("TLS_PSK_WITH_AES_128_CCM_8", 0xfefd, 16),
        ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", 0x0303, 16),
        ("TLS_AES_256_GCM_SHA384", 0x0304, 17),
        ("TLS_CHACHA20_POLY1305_SHA256", 0x0304, 17),
        ("TLS_AES_128_CCM_8_SHA256", 0x0304, 9),
        ("TLS_AEGIS_256_SHA512", 0x0304, 17),
        ("TLS_SHA256_SHA256", 0x0304, 33),
        ("TLS_RSA_WITH_RC4_128_SHA", 0x0301, 20),
        ("TLS_RSA_WITH_NULL_SHA256", 0x0303, 32),
    ];
    for (name, version, added) in cases {
        assert_eq!(range(name, version, 100 + added), Some([100, 100]), "{name}");
        assert_eq!(range(name, version, added - 1), None, "{name}");
    }
}

/// The range of a record made from a plaintext contains that plaintext's length.
#[test]
fn plaintext_of_cbc_is_within_one_block() {
    let cases = [
        ("TLS_RSA_WITH_AES_128_CBC_SHA", 0x0301, 0, 20, 16),
        ("TLS_RSA_WITH_AES_128_CBC_SHA", 0x0302, 16, 20, 16),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", 0x0303, 16, 48, 16),
        ("TLS_RSA_WITH_3DES_EDE_CBC_SHA", 0xfeff, 8, 20, 8),
    ];
    for (name, version, vector, mac, block) in cases {
        for plaintext in 0..200u16 {
            let padded = |content: u16| content / block * block + block;
            let then_encrypt = vector + padded(plaintext + mac);
            let then_mac = vector + padded(plaintext) + mac;
            for (length, after) in [(then_encrypt, false), (then_mac, true)] {
                let [least, most] = protection(name, version, after).plaintext(length).unwrap();
                assert!((least..=most).contains(&plaintext.into()), "{name} {plaintext}");
                assert!(most - least < block.into());
            }
        }
    }
    assert_eq!(range("TLS_RSA_WITH_AES_128_CBC_SHA", 0x0303, 65), None);
}

#[test]
fn unknown_and_compressed_suites_have_no_range() {
    let hello = ServerHello { version: 0x0303, cipher_suite: 0x1a2b, ..ServerHello::default() };
    assert_eq!(Protection::of(hello), Protection::Unknown);
    assert_eq!(Protection::of(ServerHello { cipher_suite: 0xc02f, compressed: true, ..hello }), Protection::Unknown);
    assert_eq!(Protection::Unknown.plaintext(100), None);
}

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
