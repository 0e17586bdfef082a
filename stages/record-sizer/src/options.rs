//! The options of `record-sizer`: its flags and its keys in `pipeline.toml`.

use std::time::Duration;

use clap::Args;
use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sizeleak_platform::runtime::ConfigureError;

use crate::connection_id;
use crate::framing::{self, Framing};
use crate::message::FlowEnds;

/// Limits of memory and time, and what is sized besides TLS.
#[derive(Debug, Clone, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Options {
    /// Flows kept at once; beyond that, those idle for longest are evicted
    #[arg(long, value_name = "N", default_value_t = Options::default().max_flows)]
    pub max_flows: usize,

    /// Bytes held for one flow whose segments are incomplete or out of order
    #[arg(long, value_name = "BYTES", default_value_t = Options::default().max_flow_bytes)]
    pub max_flow_bytes: usize,

    /// Bytes held for all flows together
    #[arg(long, value_name = "BYTES", default_value_t = Options::default().max_bytes)]
    pub max_bytes: usize,

    /// How long to wait for a missing segment, in capture time
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().hole_wait))]
    pub hole_wait: SignedDuration,

    /// A flow idle for this long may be evicted
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().idle_timeout))]
    pub idle_timeout: SignedDuration,

    /// Also size TCP connections that carry no TLS: a burst of segments stands for a record
    #[arg(long)]
    pub plain_tcp: bool,

    /// With `plain-tcp`: segments of one side that follow each other within this time are one burst, unless the other
    /// side sends in between
    #[arg(long, value_name = "TIME", default_value = format!("{:#}", Options::default().burst_gap))]
    pub burst_gap: SignedDuration,

    /// Messages over TCP that begin with a header with their length, as `name = "hub", port = [9000], length-bytes = 2,
    /// header = 2`; in pipeline.toml tables `[[stage.framing]]`
    ///
    /// HomeKit and Tuya need no declaration. docs/captures.md lists the keys.
    #[arg(long, value_name = "KEYS")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [[{ "name": "hub", "port": [9000], "length-bytes": 2, "header": 2 }]]))]
    pub framing: Vec<Framing>,

    /// Ports of Matter besides 5540, over UDP and TCP
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub matter_port: Vec<u16>,

    /// Ports of QUIC besides 443
    ///
    /// On these it is sized without its handshake, too.
    #[arg(long, value_name = "N", num_args = 1.., value_delimiter = ',')]
    pub quic_port: Vec<u16>,

    /// Bytes of the connection ids in QUIC packets from the gateway, and in those to it, where no handshake says so
    #[arg(long, value_name = "N", num_args = 1..=2, value_delimiter = ',')]
    pub quic_cid: Vec<u8>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_flows: 65_536,
            max_flow_bytes: 4 << 20,
            max_bytes: 12 << 20,
            hole_wait: SignedDuration::from_secs(3),
            idle_timeout: SignedDuration::from_hours(4),
            plain_tcp: false,
            burst_gap: SignedDuration::from_millis(40),
            framing: Vec::new(),
            matter_port: Vec::new(),
            quic_port: Vec::new(),
            quic_cid: Vec::new(),
        }
    }
}

#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_field_names, reason = "the unit")]
pub(crate) struct Limits {
    pub(crate) hole_wait_ns: i64,
    pub(crate) idle_timeout_ns: i64,
    /// The pause within bursts that stand for records, if connections without TLS are sized.
    pub(crate) burst_gap_ns: Option<i64>,
}

impl Options {
    /// These options if they are valid, with the framings that need no declaration behind those of the user.
    pub(crate) fn checked(&self) -> Result<Self, ConfigureError> {
        self.framing.iter().try_for_each(Framing::check)?;
        if let Some(length) = self.quic_cid.iter().find(|length| usize::from(**length) > connection_id::LONGEST) {
            return Err(ConfigureError::Usage(format!("`quic-cid` is {length}: an id has at most 20 bytes")));
        }
        let framing = self.framing.iter().cloned().chain(framing::shipped()).collect();
        Ok(Self { framing, ..self.clone() })
    }

    pub(crate) fn framing_of(&self, ends: &FlowEnds) -> Option<&Framing> {
        self.framing.iter().find(|framing| framing.port.iter().any(|port| ends.has_port(*port)))
    }

    pub(crate) fn limits(&self) -> Result<Limits, ConfigureError> {
        if self.max_flows < 2 {
            return Err(ConfigureError::Usage(format!("`max-flows` is {}: it must be at least 2", self.max_flows)));
        }
        let burst_gap_ns = nanoseconds("burst-gap", self.burst_gap)?;
        Ok(Limits {
            hole_wait_ns: nanoseconds("hole-wait", self.hole_wait)?,
            idle_timeout_ns: nanoseconds("idle-timeout", self.idle_timeout)?,
            burst_gap_ns: self.plain_tcp.then_some(burst_gap_ns),
        })
    }
}

fn nanoseconds(name: &str, time: SignedDuration) -> Result<i64, ConfigureError> {
    let limit = Duration::from_hours(24 * 366);
    let time_ns = Duration::try_from(time).ok().filter(|time| *time <= limit).map(|time| time.as_nanos() as i64);
    time_ns.ok_or_else(|| ConfigureError::Usage(format!("`{name}` is {time}: it must be between 0 s and a year")))
}
