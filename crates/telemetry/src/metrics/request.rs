//! What is answered to an HTTP request: the metrics, or why not.

use httparse::{EMPTY_HEADER, Request, Status};

/// No request that asks for metrics is longer, in bytes.
pub(super) const LONGEST: usize = 8 << 10;

/// Requests with more headers are refused.
const MOST_HEADERS: usize = 64;

/// Where the metrics are.
pub(super) const PATH: &str = "/metrics";

/// The answer to a request of which this has arrived; `None` while more must come. `metrics` makes the text.
pub(super) fn answer(request: &[u8], content_type: &str, metrics: impl FnOnce() -> String) -> Option<Vec<u8>> {
    let mut headers = [EMPTY_HEADER; MOST_HEADERS];
    let mut parsed = Request::new(&mut headers);
    let (status, body) = match parsed.parse(request) {
        Ok(Status::Partial) if request.len() < LONGEST => return None,
        Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => ("431 Request Header Fields Too Large", None),
        Err(_) => ("400 Bad Request", None),
        Ok(Status::Complete(_)) => {
            let path = parsed.path.unwrap_or_default().split('?').next().unwrap_or_default();
            match (parsed.method, path) {
                (Some("GET" | "HEAD"), PATH) => ("200 OK", Some(metrics())),
                (Some("GET" | "HEAD"), _) => ("404 Not Found", None),
                _ => ("405 Method Not Allowed\r\nAllow: GET, HEAD", None),
            }
        }
    };
    let is_head = parsed.method == Some("HEAD");
    let content_type = if body.is_some() { content_type } else { "text/plain; charset=utf-8" };
    let body = body.unwrap_or_else(|| format!("The metrics are at {PATH}.\n"));
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    if !is_head {
        answer.push_str(&body);
    }
    Some(answer.into_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn said(request: &[u8]) -> Option<String> {
        answer(request, "text/x", || "figures".to_owned()).map(|answer| String::from_utf8(answer).unwrap())
    }

    #[test]
    fn the_metrics_are_got() {
        let whole = b"GET /metrics?x=1 HTTP/1.1\r\nHost: here\r\n\r\n";
        assert_eq!(
            said(whole).unwrap(),
            "HTTP/1.1 200 OK\r\nContent-Type: text/x\r\nContent-Length: 7\r\nConnection: close\r\n\r\nfigures"
        );
        for end in 0..whole.len() {
            assert_eq!(said(&whole[..end]), None, "{end}");
        }
        let head = said(b"HEAD /metrics HTTP/1.0\r\n\r\n").unwrap();
        assert!(head.contains("Content-Length: 7") && head.ends_with("\r\n\r\n"), "{head}");
    }

    #[test]
    fn what_is_no_such_request_is_refused() {
        let long = [b"GET /metrics HTTP/1.1\r\nX: ".as_slice(), &[b'x'; LONGEST]].concat();
        let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(MOST_HEADERS + 1));
        for (request, status) in [
            (b"GET / HTTP/1.1\r\n\r\n".as_slice(), "404"),
            (b"POST /metrics HTTP/1.1\r\n\r\n", "405"),
            (b"\x16\x03\x01\x02\x00\x01\x00", "400"),
            (&long, "431"),
            (many.as_bytes(), "431"),
        ] {
            let answer = said(request).unwrap();
            assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
            assert!(!answer.contains("figures"), "{answer}");
        }
    }

    proptest! {
        /// Whatever comes is answered once it is as long as a request may be.
        #[test]
        fn anything_is_answered(request in prop::collection::vec(any::<u8>(), LONGEST..LONGEST + 9)) {
            prop_assert!(said(&request).is_some());
        }

        #[test]
        fn nothing_panics(request in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = said(&request);
            let _ = said(&[b"GET /metrics HTTP/1.1\r\n".as_slice(), &request].concat());
        }
    }
}
