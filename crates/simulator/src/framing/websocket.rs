//! WebSocket (RFC 6455): the opening handshake and frames.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha1::{Digest, Sha1};

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

#[cfg(test)]
mod tests {
    use super::*;

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
