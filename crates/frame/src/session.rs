//! `session`: what a TLS handshake revealed of its session.

use serde::{Deserialize, Serialize};

/// The observed parts of a TLS handshake; a part that was not observed is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// When its last part was captured, in nanoseconds since the epoch.
    pub time_ns: i64,
    /// The flow that carries the session.
    pub flow: u64,
    /// The server name the client asked for (RFC 6066, section 3).
    pub server_name: Option<String>,
    /// The negotiated version, such as `TLS 1.2`.
    pub tls_version: Option<String>,
    /// The negotiated cipher suite by its IANA name, such as `TLS_AES_128_GCM_SHA256`; an unassigned one as `0x1a2b`.
    pub cipher_suite: Option<String>,
}
