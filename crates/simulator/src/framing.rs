//! Encoding of the protocols inside TLS: bodies, HTTP/1.1 (RFC 9112) with the requests of a polling gateway and the
//! responses of the service, WebSocket (RFC 6455), which HTTP opens, and MQTT. Which messages are sent when
//! is decided in `application`.

use std::borrow::Cow;
use std::io::Write;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::write::ZlibEncoder;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use sha1::{Digest, Sha1};

use crate::SimulateError;
use crate::scenario::Compression;

/// How hard the encoder tries, from 0 to 9: the default of most libraries.
const LEVEL: u32 = 6;

pub(crate) fn compressed(body: &[u8], compression: Compression) -> Result<Cow<'_, [u8]>, SimulateError> {
    let failed = SimulateError::encoding("a compressed body");
    match compression {
        Compression::None => Ok(Cow::Borrowed(body)),
        Compression::Deflate => {
            let mut encoder = ZlibEncoder::new(Vec::new(), flate2::Compression::new(LEVEL));
            encoder.write_all(body).map_err(failed)?;
            encoder.finish().map(Cow::Owned).map_err(failed)
        }
    }
}

/// The gateway's request for the next command.
pub(crate) fn poll(host: &str) -> Vec<u8> {
    format!("GET /v1/next HTTP/1.1\r\nHost: {host}\r\nAccept: application/json\r\n\r\n").into_bytes()
}

/// The gateway's request with a body, which is already compressed, and with blanks in its head.
pub(crate) fn post(host: &str, body: &[u8], compression: Compression, blanks: usize) -> Vec<u8> {
    let head = format!(
        "POST /v1/state HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n{}Content-Length: {}{:blanks$}\r\n\r\n",
        content_encoding(compression),
        body.len(),
        ""
    );
    [head.as_bytes(), body].concat()
}

/// The service's response with a body, which is already compressed, and with blanks in its head: optional white space
/// after a value (RFC 9110 section 5.6.3).
pub(crate) fn found(time_ns: i64, body: &[u8], compression: Compression, blanks: usize) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nDate: {}\r\nContent-Type: application/json\r\n{}Content-Length: {}{:blanks$}\r\n\r\n",
        date(time_ns),
        content_encoding(compression),
        body.len(),
        ""
    );
    [head.as_bytes(), body].concat()
}

/// The service's response without content, and so without a length (RFC 9110 section 8.6).
pub(crate) fn nothing(time_ns: i64) -> Vec<u8> {
    format!("HTTP/1.1 204 No Content\r\nDate: {}\r\n\r\n", date(time_ns)).into_bytes()
}

/// The header of RFC 9110 section 8.4 where there is one.
fn content_encoding(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "",
        Compression::Deflate => "Content-Encoding: deflate\r\n",
    }
}

/// The fixed-length date of RFC 9110 section 5.6.7.
fn date(time_ns: i64) -> String {
    let time = Timestamp::from_nanosecond(i128::from(time_ns)).unwrap_or(Timestamp::UNIX_EPOCH);
    time.to_zoned(TimeZone::UTC).strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// The suffix of the client's key (RFC 6455 section 1.3).
const ACCEPT_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// The type of a frame (RFC 6455 section 11.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Opcode {
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

/// A message as one frame. Clients mask their frames, servers do not (section 5.1).
pub(crate) fn frame(opcode: Opcode, payload: &[u8], mask: Option<[u8; 4]>) -> Vec<u8> {
    let masked: u8 = if mask.is_some() { 128 } else { 0 };
    let mut frame = vec![0x80 | opcode as u8];
    match payload.len() {
        length @ 0..=125 => frame.push(masked + length as u8),
        length @ 126..=65_535 => {
            frame.push(masked + 126);
            frame.extend((length as u16).to_be_bytes());
        }
        length => {
            frame.push(masked + 127);
            frame.extend((length as u64).to_be_bytes());
        }
    }
    match mask {
        Some(mask) => {
            frame.extend(mask);
            frame.extend(payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask));
        }
        None => frame.extend(payload),
    }
    frame
}

/// The client's opening request (section 4.1).
pub(crate) fn upgrade_request(host: &str, key: [u8; 16]) -> Vec<u8> {
    format!(
        "GET /v1/gateway HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: {}\r\nSec-WebSocket-Version: 13\r\n\r\n",
        BASE64_STANDARD.encode(key)
    )
    .into_bytes()
}

/// The server's response (section 4.2.2).
pub(crate) fn upgrade_response(key: [u8; 16]) -> Vec<u8> {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        accept(&BASE64_STANDARD.encode(key))
    )
    .into_bytes()
}

fn accept(key: &str) -> String {
    BASE64_STANDARD.encode(Sha1::digest(format!("{key}{ACCEPT_SUFFIX}")))
}

/// MQTT 3.1.1: the control packets between a gateway and its broker.
pub(crate) mod mqtt {
    use crate::SimulateError;

    /// The largest number of bytes after the fixed header, limited by four length bytes (section 2.2.3).
    const MAX_REMAINING: usize = 268_435_455;

    /// CONNECT with a clean session and a client identifier (section 3.1).
    pub(crate) fn connect(client: &str, keep_alive_seconds: u16) -> Result<Vec<u8>, SimulateError> {
        let mut body = string("MQTT");
        body.extend([4, 2]);
        body.extend(keep_alive_seconds.to_be_bytes());
        body.extend(string(client));
        packet(0x10, &body)
    }

    /// CONNACK: accepted (section 3.2).
    pub(crate) const CONNACK: [u8; 4] = [0x20, 2, 0, 0];

    /// SUBSCRIBE to one topic (section 3.8).
    pub(crate) fn subscribe(id: u16, topic: &str, quality: u8) -> Result<Vec<u8>, SimulateError> {
        let mut body = id.to_be_bytes().to_vec();
        body.extend(string(topic));
        body.push(quality);
        packet(0x82, &body)
    }

    /// SUBACK that grants the `QoS` `quality` (section 3.9).
    pub(crate) fn suback(id: u16, quality: u8) -> Vec<u8> {
        let [high, low] = id.to_be_bytes();
        vec![0x90, 3, high, low, quality]
    }

    /// PUBLISH (section 3.3): `QoS` 1 with an identifier, `QoS` 0 without.
    pub(crate) fn publish(topic: &str, id: Option<u16>, payload: &[u8]) -> Result<Vec<u8>, SimulateError> {
        let mut body = string(topic);
        body.extend(id.iter().flat_map(|id| id.to_be_bytes()));
        body.extend(payload);
        packet(if id.is_some() { 0x32 } else { 0x30 }, &body)
    }

    /// PUBACK (section 3.4).
    pub(crate) fn puback(id: u16) -> Vec<u8> {
        let [high, low] = id.to_be_bytes();
        vec![0x40, 2, high, low]
    }

    /// PINGREQ (section 3.12).
    pub(crate) const PINGREQ: [u8; 2] = [0xc0, 0];
    /// PINGRESP (section 3.13).
    pub(crate) const PINGRESP: [u8; 2] = [0xd0, 0];
    /// DISCONNECT (section 3.14).
    pub(crate) const DISCONNECT: [u8; 2] = [0xe0, 0];

    fn packet(first: u8, body: &[u8]) -> Result<Vec<u8>, SimulateError> {
        if body.len() > MAX_REMAINING {
            return Err(SimulateError(format!(
                "a message of {} bytes is too long for MQTT, whose limit is {MAX_REMAINING}: shorten the values of actions",
                body.len()
            )));
        }
        let mut packet = vec![first];
        packet.extend(remaining_length(body.len()));
        packet.extend(body);
        Ok(packet)
    }

    /// Seven bits in each byte, the lowest first; the eighth bit means that another byte follows (section 2.2.3).
    fn remaining_length(mut length: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        loop {
            let low = (length & 0x7f) as u8;
            length >>= 7;
            if length == 0 {
                bytes.push(low);
                return bytes;
            }
            bytes.push(low | 0x80);
        }
    }

    /// A string with its two length bytes. Names and topics here are short.
    fn string(text: &str) -> Vec<u8> {
        let mut bytes = (text.len() as u16).to_be_bytes().to_vec();
        bytes.extend(text.as_bytes());
        bytes
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn remaining_length_grows_as_in_table_2_4() {
            assert_eq!(remaining_length(0), [0]);
            assert_eq!(remaining_length(127), [0x7f]);
            assert_eq!(remaining_length(128), [0x80, 0x01]);
            assert_eq!(remaining_length(16_383), [0xff, 0x7f]);
            assert_eq!(remaining_length(16_384), [0x80, 0x80, 0x01]);
            assert_eq!(remaining_length(2_097_151), [0xff, 0xff, 0x7f]);
            assert_eq!(remaining_length(2_097_152), [0x80, 0x80, 0x80, 0x01]);
            assert_eq!(remaining_length(268_435_455), [0xff, 0xff, 0xff, 0x7f]);
        }

        #[test]
        fn packets_are_encoded_as_specified() {
            assert_eq!(publish("a/b", Some(10), b"hi").unwrap(), [0x32, 9, 0, 3, b'a', b'/', b'b', 0, 10, b'h', b'i']);
            assert_eq!(publish("a/b", None, b"hi").unwrap(), [0x30, 7, 0, 3, b'a', b'/', b'b', b'h', b'i']);
            assert_eq!(subscribe(1, "t", 1).unwrap(), [0x82, 6, 0, 1, 0, 1, b't', 1]);
            let connect = connect("g", 60).unwrap();
            assert_eq!(connect, [0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0, 60, 0, 1, b'g']);
            assert_eq!(puback(258), [0x40, 2, 1, 2]);
        }

        #[test]
        fn the_length_takes_a_second_byte_from_128_on() {
            assert_eq!(publish("abcd", None, &[0; 121]).unwrap().len(), 2 + 6 + 121);
            assert_eq!(publish("abcd", None, &[0; 122]).unwrap().len(), 3 + 6 + 122);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use flate2::read::ZlibDecoder;

    use super::*;

    #[test]
    fn compressed_bodies_are_zlib_streams() {
        let body =
            br#"{"actions":[{"id":"node-01","set":"on"},{"id":"node-02","set":"on"},{"id":"node-03","set":"on"}]}"#;
        let packed = compressed(body, Compression::Deflate).unwrap();
        assert!(packed.len() < body.len());
        let mut unpacked = Vec::new();
        ZlibDecoder::new(&*packed).read_to_end(&mut unpacked).unwrap();
        assert_eq!(unpacked, body);
        assert_eq!(compressed(body, Compression::None).unwrap(), &body[..]);
    }

    #[test]
    fn responses_have_dates_and_lengths() {
        let text = String::from_utf8(found(784_111_777_900_000_000, b"{}", Compression::None, 0)).unwrap();
        // The example of RFC 9110 section 5.6.7.
        assert!(text.contains("\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\n"), "{text}");
        assert!(text.ends_with("\r\nContent-Length: 2\r\n\r\n{}"), "{text}");
        let size = |length: usize| found(0, &vec![b'x'; length], Compression::None, 0).len() - length;
        assert_eq!((size(99) + 1, size(999) + 1), (size(100), size(1000)));
        assert_eq!(nothing(0), b"HTTP/1.1 204 No Content\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n\r\n");
        assert!(post("h", b"{}", Compression::None, 0).ends_with(b"Content-Length: 2\r\n\r\n{}"));
        assert!(post("h", b"{}", Compression::None, 2).ends_with(b"Content-Length: 2  \r\n\r\n{}"));
        let packed = String::from_utf8(post("h", b"{}", Compression::Deflate, 0)).unwrap();
        assert!(packed.contains("\r\nContent-Encoding: deflate\r\nContent-Length: 2\r\n"), "{packed}");
        assert!(poll("h").ends_with(b"\r\n\r\n"));
    }

    #[test]
    fn the_length_field_grows_at_126_and_65536() {
        let head = |length: usize| {
            let frame = frame(Opcode::Text, &vec![b'x'; length], None);
            frame[..frame.len() - length].to_vec()
        };
        assert_eq!(head(0), [0x81, 0]);
        assert_eq!(head(125), [0x81, 125]);
        assert_eq!(head(126), [0x81, 126, 0, 126]);
        assert_eq!(head(65_535), [0x81, 126, 0xff, 0xff]);
        assert_eq!(head(65_536), [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
    }

    #[test]
    fn frames_and_accept_keys_equal_the_examples_of_the_rfc() {
        // Section 5.7: an unmasked and a masked "Hello"; section 1.3: the accept key.
        assert_eq!(frame(Opcode::Text, b"Hello", None), [0x81, 5, 0x48, 0x65, 0x6c, 0x6c, 0x6f]);
        let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
        assert_eq!(frame(Opcode::Text, b"Hello", Some([0x37, 0xfa, 0x21, 0x3d])), masked);
        assert_eq!(frame(Opcode::Ping, b"", None), [0x89, 0]);
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }
}
