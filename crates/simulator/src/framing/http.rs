//! HTTP/1.1 (RFC 9112): the requests of a polling gateway, and the responses of the service.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::scenario::Compression;

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

#[cfg(test)]
mod tests {
    use super::*;

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
}
