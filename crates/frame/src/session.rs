//! `session`: what a handshake, or the first message, revealed of a session.

use serde::{Deserialize, Serialize};

/// The observed parts of a handshake; a part that was not observed is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// When its last part was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    pub flow: u64,
    /// The server name the client asked for (RFC 6066, section 3).
    pub server_name: Option<String>,
    /// The negotiated version, such as `TLS 1.2`.
    pub tls_version: Option<String>,
    /// The negotiated cipher suite by its IANA name, such as `TLS_AES_128_GCM_SHA256`; an unassigned one as `0x1a2b`.
    pub cipher_suite: Option<String>,
    /// The protocol of its messages: that of its records, or the name of a declared framing. Streams of older programs
    /// lack it.
    #[serde(default)]
    pub protocol: Option<String>,
}
