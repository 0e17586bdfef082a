//! Numbers of link types, protocols and ports that several parsers need.

pub(crate) const ETHERNET: u16 = 1;

// IP protocol numbers, by IANA's registry.
pub(crate) const IPV4: u8 = 4;
pub(crate) const TCP: u8 = 6;
pub const UDP: u8 = 17;
/// ESP, as an IP protocol (RFC 4303).
pub(crate) const ESP: u8 = 50;
pub(crate) const IPV6: u8 = 41;
pub const GRE: u8 = 47;
/// RFC 3378.
pub(crate) const ETHERIP: u8 = 97;
/// RFC 3931.
pub(crate) const L2TP: u8 = 115;
/// RFC 4023.
pub(crate) const MPLS: u8 = 137;

/// The ACK flag of TCP (RFC 9293, section 3.1).
pub(crate) const ACK: u8 = 16;

pub(crate) const DNS_PORT: u16 = 53;
/// RFC 7348.
pub(crate) const VXLAN_PORT: u16 = 4789;
/// The port of VXLAN before it had one of its own, which Linux still uses by default.
pub(crate) const OLD_VXLAN_PORT: u16 = 8472;
/// RFC 8926.
pub(crate) const GENEVE_PORT: u16 = 6081;
/// RFC 7510.
pub(crate) const MPLS_PORT: u16 = 6635;
/// RFC 8086.
pub(crate) const GRE_PORT: u16 = 4754;
/// draft-ietf-intarea-gue.
pub(crate) const GUE_PORT: u16 = 6080;
/// Where routers send TZSP by default.
pub(crate) const TZSP_PORT: u16 = 37008;
/// 3GPP TS 29.281.
pub(crate) const GTP_U_PORT: u16 = 2152;
/// draft-ietf-nvo3-vxlan-gpe.
pub(crate) const VXLAN_GPE_PORT: u16 = 4790;
/// RFC 2661.
pub(crate) const L2TP_PORT: u16 = 1701;
/// RFC 4380.
pub(crate) const TEREDO_PORT: u16 = 3544;

#[inline]
pub(crate) fn is_tunnel_port(port: u16) -> bool {
    let is_opened = matches!(port, VXLAN_PORT | OLD_VXLAN_PORT | GENEVE_PORT | TZSP_PORT)
        || matches!(port, MPLS_PORT | GRE_PORT | GUE_PORT);
    // The others are named, since they are not opened.
    is_opened || matches!(port, GTP_U_PORT | VXLAN_GPE_PORT | L2TP_PORT | TEREDO_PORT)
}

/// Whether this is one of IPv6's extension headers (RFC 8200, section 4; RFC 4302; RFC 6275; RFC 7401; RFC 5533).
pub(crate) fn is_ipv6_extension(protocol: u8) -> bool {
    matches!(protocol, 0 | 43 | 44 | 51 | 60 | 135 | 139 | 140)
}

/// Whether an IP packet of this protocol may be a tunnel or a fragment of one: IP in IP, GRE, UDP (VXLAN and the like), or an IPv6
/// extension header, which may precede any of them.
pub fn may_be_tunnel(protocol: u8) -> bool {
    matches!(protocol, IPV4 | IPV6 | UDP | GRE | ETHERIP | L2TP | MPLS) || is_ipv6_extension(protocol)
}
