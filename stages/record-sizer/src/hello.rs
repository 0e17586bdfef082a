//! How a TLS connection begins: patterns specific enough to find it in a stream that began with something else.

use crate::record::HEADER;

/// Bytes that [`is_hello`] looks at.
pub(crate) const HELLO: usize = 11;

/// Whether these bytes begin a handshake record with a `ClientHello` or a `ServerHello` (RFC 8446 section 4). Of random
/// bytes, fewer than one in 2⁵⁸ places look so.
pub(crate) fn is_hello(bytes: &[u8]) -> bool {
    let [22, 3, 0..=4, high, low, 1 | 2, message @ .., 3, 0..=4] = bytes else { return false };
    let [long, middle, short] = message else { return false };
    let record = u32::from_be_bytes([0, 0, *high, *low]);
    let message = u32::from_be_bytes([0, *long, *middle, *short]);
    // A version, 32 random bytes and four lengths at least. A message may go on in more records, and more messages
    // may follow it in its record: a server's do.
    let fits = record >= 42 && record <= crate::record::MOST_BODY.into() && (38..=MOST_MESSAGE).contains(&message);
    fits && (bytes.get(HEADER) == Some(&2) || record <= message + 4)
}

/// No hello is longer.
pub(crate) const MOST_MESSAGE: u32 = 1 << 15;

/// The whole length of an SSL 2 `ClientHello` that begins with these bytes (RFC 5246 appendix E.2).
pub(crate) fn old_client_hello(bytes: [u8; HEADER]) -> Option<u64> {
    let [high, low, 1, 3, 0..=4] = bytes else { return None };
    let length = u16::from_be_bytes([high & 0x7f, low]);
    // Version, three lengths, a cipher suite of 3 bytes and a challenge of 16.
    (high & 0x80 != 0 && length >= 9 + 3 + 16).then_some(u64::from(length) + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hellos_and_what_looks_alike() {
        let client = [22, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        assert!(is_hello(&client));
        assert!(is_hello(&[22, 3, 3, 0x10, 0, 2, 0, 0, 70, 3, 3]), "a certificate follows in the record");
        assert!(!is_hello(&[22, 3, 3, 0x10, 0, 1, 0, 0, 70, 3, 3]), "nothing follows a client's hello");
        assert!(!is_hello(&[22, 3, 1, 2, 0, 11, 0, 1, 0xfc, 3, 3]), "a certificate");
        assert!(!is_hello(&client[..10]));
    }

    #[test]
    fn ssl_2_hellos() {
        assert_eq!(old_client_hello([0x80, 46, 1, 3, 1]), Some(48));
        assert_eq!(old_client_hello([0x80, 10, 1, 3, 1]), None);
        assert_eq!(old_client_hello([0x00, 46, 1, 3, 1]), None);
        assert_eq!(old_client_hello([0x80, 46, 4, 3, 1]), None);
    }
}
