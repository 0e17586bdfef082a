//! What a survey says, as it is printed and written as JSON. Texts from the capture are as they were seen: whoever
//! shows them escapes them.

use std::net::{IpAddr, SocketAddr};

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SurveyReport {
    /// The version of this form: 1.
    pub schema: u32,
    /// The times of the first and the last record, in nanoseconds since the epoch; `None` if there was none.
    pub span_ns: Option<[i64; 2]>,
    /// The addresses that opened connections with messages, the most likely gateway first.
    pub addresses: Vec<SurveyedAddress>,
    /// The addresses that connections with messages were opened to, and which opened none, of private networks or with
    /// many clients; those with the most messages first.
    pub servers: Vec<Server>,
    /// Connections without any message or handshake: unanswered, of other protocols over UDP, or empty.
    pub silent_connections: u64,
    /// Connections and addresses with few messages that were left out, because there were too many.
    pub left_out: u64,
    /// Notices of stages that were only counted, because there were too many: what the survey calls TLS may be none.
    pub suppressed_notices: u64,
    /// What was recognised but is not sized: a sentence for each protocol, with addresses.
    pub not_sized: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SurveyedAddress {
    pub address: IpAddr,
    /// Whether it is a gateway, by its score and by how much was seen.
    pub verdict: Verdict,
    /// The sum of the reasons' points, from 0 to 100.
    pub score: u32,
    /// What speaks for a gateway and against one, in the order of [`SurveyedAddress::score`]'s parts.
    pub reasons: Vec<Reason>,
    /// How many connections it opened, those without messages included.
    pub connections: u64,
    /// Its services, those with the most messages first.
    pub services: Vec<SurveyedService>,
    /// Ports that it opened connections to, none of which is in `services`.
    pub other_ports: Vec<OtherPort>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Its traffic is like that of a gateway. So is that of any single device with a connection of its own to a cloud.
    Likely,
    Possible,
    /// Too little was seen to tell.
    Unclear,
    Unlikely,
}

/// What speaks for a gateway, or against one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reason {
    /// What it adds to the score; less than 0 speaks against a gateway.
    pub points: i32,
    /// What was seen, in words that hold no control characters.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Server {
    pub address: IpAddr,
    /// How many addresses opened connections with messages to it; counted up to 64.
    pub clients: u64,
    /// The messages on them, in both directions.
    pub messages: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OtherPort {
    /// `tcp` or `udp`.
    pub transport: &'static str,
    pub port: u16,
    pub connections: u64,
}

/// A service: connections to the same server name, or address, and port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SurveyedService {
    /// The name that clients asked for (SNI), if a handshake was seen.
    pub server_name: Option<String>,
    pub ends: Vec<SocketAddr>,
    /// `tcp`, `udp` or `esp`.
    pub transport: &'static str,
    /// What its connections carry, by its name in frames: `tls`, `quic`, or the name of a framing; `tcp` where bursts of
    /// segments stand for messages. `None` if nothing of it was recognised.
    pub protocol: Option<String>,
    pub tls_versions: Vec<String>,
    /// The cipher suites of its handshakes; empty if none was seen.
    pub cipher_suites: Vec<String>,
    /// Connections that had been open when the capture began, or whose handshake is missing: their suite is unknown
    /// unless they negotiate again.
    pub joined_mid_stream: u64,
    /// Connections whose handshake the service began: it is the client, and the gateway the server.
    pub opened_by_service: u64,
    /// Connections of which the lengths of segments stand for records, because the capture holds no payload.
    pub sized_by_segments: u64,
    pub traffic: Traffic,
    /// Its connections, those with the most messages first.
    pub connections: Vec<SurveyedConnection>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SurveyedConnection {
    /// Its number in frames, as text: it has more digits than JSON numbers keep in many programs.
    pub flow: String,
    pub service: SocketAddr,
    pub tunnel: Option<String>,
    /// The times of its first and last record, in nanoseconds since the epoch.
    pub span_ns: Option<[i64; 2]>,
    /// The negotiated version, if the handshake was seen.
    pub tls_version: Option<String>,
    /// The negotiated cipher suite, if the handshake was seen.
    pub cipher_suite: Option<String>,
    /// Whether application data came before any handshake; `None` without TLS or application data.
    pub joined_mid_stream: Option<bool>,
    pub traffic: Traffic,
}

/// Messages: records of application data, or what stands for them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Traffic {
    pub to_gateway: u64,
    pub from_gateway: u64,
    pub bytes_to_gateway: u64,
    pub bytes_from_gateway: u64,
    /// How many messages have which sizes; ranges without messages are left out.
    pub histogram: Vec<SizeBin>,
    pub kinds: Vec<MessageKind>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct SizeBin {
    /// The least bytes on the wire.
    pub from: u64,
    /// The most bytes on the wire; `None` for the last range.
    pub to: Option<u64>,
    pub to_gateway: u64,
    pub from_gateway: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MessageKind {
    /// `to_gateway` or `from_gateway`.
    pub direction: &'static str,
    /// What they look like: `commands`, `answers`, `keep-alives`, `reports`, `replies`, `polls`, `small`, `other`.
    pub kind: &'static str,
    /// How many there are: of commands and reports whole messages, of all others records.
    pub count: u64,
    /// Of commands and reports: how many had a reply.
    pub replied: Option<u64>,
    /// Their most frequent sizes in bytes on the wire.
    pub sizes: Vec<TimesOfSize>,
    pub other_sizes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TimesOfSize {
    /// Bytes on the wire.
    pub size: u64,
    pub times: u64,
}
