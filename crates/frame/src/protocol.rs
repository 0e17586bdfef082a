//! The protocol of a message, which says what its size is of.

use serde::{Deserialize, Serialize};

/// What a `record` is a message of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// A record of TLS over TCP.
    #[default]
    Tls,
    /// A record of DTLS up to 1.2 (RFC 6347, RFC 9146).
    Dtls,
    /// A record of DTLS 1.3 (RFC 9147).
    #[serde(rename = "dtls-1.3")]
    Dtls13,
    /// A packet of QUIC (RFC 9000).
    Quic,
    /// A message of Matter, over UDP or TCP (Matter core specification, section 4.4).
    Matter,
    /// A packet in a tunnel of WireGuard.
    #[serde(rename = "wireguard")]
    WireGuard,
    /// A packet in a tunnel of IPsec (RFC 4303).
    Esp,
    /// A burst of segments of a TCP connection that shows no records.
    Tcp,
    /// A message of a framing that was declared; the `session` of its flow has the framing's name.
    Framing,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Self::Tls => "tls",
            Self::Dtls => "dtls",
            Self::Dtls13 => "dtls-1.3",
            Self::Quic => "quic",
            Self::Matter => "matter",
            Self::WireGuard => "wireguard",
            Self::Esp => "esp",
            Self::Tcp => "tcp",
            Self::Framing => "framing",
        }
    }

    /// Whether the messages of a protocol of this name are protected as a handshake of TLS agrees, which may name a server.
    pub fn has_tls_handshake(name: &str) -> bool {
        [Self::Tls, Self::Dtls, Self::Dtls13, Self::Quic].iter().any(|protocol| protocol.name() == name)
    }

    /// Whether it is TLS over TCP, which frames do not say.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "it is called by reference")]
    pub(crate) fn is_tls(&self) -> bool {
        *self == Self::Tls
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_frames() {
        use Protocol::{Dtls, Dtls13, Esp, Framing, Matter, Quic, Tcp, Tls, WireGuard};
        for protocol in [Tls, Dtls, Dtls13, Quic, Matter, WireGuard, Esp, Tcp, Framing] {
            let written = rmp_serde::to_vec(&protocol).unwrap();
            assert_eq!(rmp_serde::from_slice::<String>(&written).unwrap(), protocol.name());
        }
    }
}
