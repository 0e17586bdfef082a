//! How the length of a message's body shows in the message's size beyond itself.

use std::fmt;

/// How the length of the body shows in the size of a command beyond itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LengthFields {
    /// No length field, or one of fixed width.
    None,
    /// WebSocket's extended payload length (RFC 6455): two more bytes from a payload of 126 on, eight from 65,536.
    WebSocket,
    /// The remaining length of MQTT: one more byte from 128, 16,384 and 2,097,152 bytes on.
    Mqtt,
    /// The decimal digits of HTTP's Content-Length.
    Http {
        /// Bytes of a message with a Content-Length of two digits, without its body.
        head: i64,
    },
    /// The Huffman-coded digits of Content-Length in HTTP/2 (RFC 7541), and a frame header for each 16,384 bytes.
    Http2 {
        /// Bytes of a message with a Content-Length of two digits, without its body.
        head: i64,
    },
}

impl fmt::Display for LengthFields {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::None => "messages without a length field, or with one of fixed width",
            Self::WebSocket => "WebSocket",
            Self::Mqtt => "MQTT",
            Self::Http { .. } => "HTTP/1.1",
            Self::Http2 { .. } => "HTTP/2",
        })
    }
}

impl LengthFields {
    /// The bytes that length fields add to a command of this size, in bytes, relative to short messages.
    pub fn grown(self, size: i64) -> i64 {
        match self {
            Self::None => 0,
            // A header of two bytes before a payload of at most 125.
            Self::WebSocket => match size {
                ..=127 => 0,
                128..=65_539 => 2,
                _ => 8,
            },
            // A type and a length of one byte before at most 127.
            Self::Mqtt => match size {
                ..=129 => 0,
                130..=16_386 => 1,
                16_387..=2_097_155 => 2,
                _ => 3,
            },
            Self::Http { head } => {
                let rest = size.saturating_sub(head);
                // A body of 10ⁿ bytes or more has n + 1 digits, which are n − 1 more than two.
                match rest {
                    ..=8 => -1,
                    9..=100 => 0,
                    101..=1000 => 1,
                    1001..=10_001 => 2,
                    10_002..=100_002 => 3,
                    _ => 4,
                }
            }
            Self::Http2 { head } => http2_growth(size.saturating_sub(head)),
        }
    }
}

/// The growth of a message of `rest` bytes beyond its head: of the shortest body that explains it.
fn http2_growth(rest: i64) -> i64 {
    let explains = |growth: &i64| {
        let body = rest.saturating_sub(*growth);
        body >= 0 && content_length_bytes(body) - 2 + 9 * (body / 16_384) == *growth
    };
    let frames = 9 * (rest.max(0) / 16_384);
    (-1..=3).rev().map(|digits| digits + frames).find(explains).unwrap_or(frames)
}

/// Bytes of the decimal number in HPACK's Huffman code: 0, 1 and 2 take five bits, other digits six.
fn content_length_bytes(body: i64) -> i64 {
    let bits: i64 = body.to_string().bytes().map(|digit| if digit <= b'2' { 5 } else { 6 }).sum();
    (bits + 7) / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_grow_where_their_protocols_say() {
        let websocket = |payload: i64| payload + if payload < 126 { 2 } else { 4 };
        assert_eq!([125, 126].map(|payload| LengthFields::WebSocket.grown(websocket(payload))), [0, 2]);
        let mqtt = |remaining: i64| remaining + if remaining < 128 { 2 } else { 3 };
        assert_eq!([127, 128].map(|remaining| LengthFields::Mqtt.grown(mqtt(remaining))), [0, 1]);
        let digits = |body: i64| i64::from(body.ilog10()) + 1;
        let http = |body: i64| 80 + digits(body) + body;
        let growth = [9, 10, 99, 100, 999, 1000].map(|body| LengthFields::Http { head: 82 }.grown(http(body)));
        assert_eq!(growth, [-1, 0, 0, 1, 1, 2]);
    }

    #[test]
    fn http2_digits_are_huffman_coded() {
        let http2 = |body: i64| 40 + content_length_bytes(body) + body;
        let growth = [55, 122, 133, 212].map(|body| LengthFields::Http2 { head: 42 }.grown(http2(body)));
        assert_eq!(growth, [0, 0, 1, 0]);
    }

    #[test]
    fn any_size_has_a_growth() {
        for size in [i64::MIN, -1, 0, i64::MAX] {
            for head in [i64::MIN, 0, i64::MAX] {
                let fields = [LengthFields::WebSocket, LengthFields::Mqtt, LengthFields::Http { head }];
                assert!(fields.into_iter().all(|fields| (-1..=8).contains(&fields.grown(size))));
                LengthFields::Http2 { head }.grown(size);
            }
        }
    }
}
