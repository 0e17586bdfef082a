//! The gateway's DNS queries for the selected names. Anybody can send an answer; only one that was asked for counts.

use std::net::{IpAddr, SocketAddr};

use serde::{Deserialize, Serialize};
use sizeleak_packet::{DnsMessage, Encapsulation};

use crate::two_generations::TwoGenerations;

/// At most this many queries are remembered, those asked last in any case.
const MAX_QUERIES: usize = 8192;

/// What a query and its answer have in common.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct QueryKey {
    client: SocketAddr,
    resolver: IpAddr,
    encapsulation: Option<Encapsulation>,
    id: u16,
    /// In lower case.
    name: String,
}

impl QueryKey {
    pub(crate) fn new(
        message: &DnsMessage<'_>,
        encapsulation: Option<Encapsulation>,
        packet: &simple_dns::Packet<'_>,
    ) -> Option<Self> {
        let name = packet.questions.first()?.qname.to_string().to_ascii_lowercase();
        Some(Self { client: message.client, resolver: message.resolver, encapsulation, id: packet.id(), name })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }
}

/// Queries that were seen. They stay after an answer: a mirrored answer comes twice, and the first may be forged.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct NameQueries {
    queries: TwoGenerations<QueryKey, ()>,
}

impl Default for NameQueries {
    fn default() -> Self {
        Self { queries: TwoGenerations::new(MAX_QUERIES) }
    }
}

impl NameQueries {
    pub(crate) fn add(&mut self, query: QueryKey) {
        if self.queries.get(&query).is_none() {
            self.queries.insert(query, ());
        }
    }

    pub(crate) fn contains(&mut self, query: &QueryKey) -> bool {
        self.queries.get(query).is_some()
    }
}
