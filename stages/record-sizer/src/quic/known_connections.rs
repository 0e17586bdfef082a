//! What shows a connection whose handshake was on another flow: it goes on between other ports or addresses (RFC 9000,
//! section 9). Behind a NAT that has forgotten it, its ids are the same; where it has new ones, its service is.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

use crate::connection_id::{SHORT_READ, SURE};

const MOST: usize = 8192;

/// What shows a connection.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Sign {
    Id(Vec<u8>),
    Service(SocketAddr),
}

/// Signs with the flows that had them last, the oldest forgotten first.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct KnownConnections {
    flows: BTreeMap<Sign, u64>,
    order: VecDeque<Sign>,
}

impl KnownConnections {
    pub(crate) fn insert(&mut self, sign: Sign, flow: u64) {
        let is_short = matches!(&sign, Sign::Id(id) if !(SURE..SHORT_READ).contains(&id.len()));
        if is_short || self.flows.insert(sign.clone(), flow).is_some() {
            return;
        }
        self.order.push_back(sign);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.flows.remove(&oldest);
        }
    }

    /// The flow with the connection that a packet with a short header is of, and what shows it: its id, or else its
    /// service and the fixed bit.
    pub(crate) fn flow(&self, packet: &[u8], service: Option<SocketAddr>) -> Option<(&Sign, u64)> {
        let first = packet.first()?;
        if self.flows.is_empty() || first & 0x80 != 0 {
            return None;
        }
        let known = |sign: Sign| self.flows.get_key_value(&sign).map(|(sign, flow)| (sign, *flow));
        let by_id = (SURE..SHORT_READ).find_map(|length| known(Sign::Id(packet.get(1..=length)?.to_vec())));
        by_id.or_else(|| known(Sign::Service(service.filter(|_| first & 0x40 != 0)?)))
    }
}
