//! Counts addresses until the gateway appears, to report which ones were seen instead.

use std::collections::HashMap;
use std::net::IpAddr;

use foldhash::quality::RandomState;
use serde::{Deserialize, Serialize};
use sizeleak_platform::runtime::{MOST_COUNTED, sorted_table};

/// At most this many addresses are counted; those that appear later are not.
const MOST_ADDRESSES: usize = 4096;
const SHOWN: usize = 5;

/// How many packets were from or to each address.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct SeenAddresses {
    #[serde(with = "sorted_table")]
    packets: HashMap<IpAddr, u64, RandomState>,
}

impl SeenAddresses {
    /// Whether so many addresses are counted, and all can be counted on.
    pub(crate) fn are_valid(&self) -> bool {
        self.packets.len() <= MOST_ADDRESSES && self.packets.values().all(|count| *count <= MOST_COUNTED)
    }

    pub(crate) fn count(&mut self, addresses: [IpAddr; 2]) {
        for address in addresses {
            if self.packets.len() < MOST_ADDRESSES || self.packets.contains_key(&address) {
                *self.packets.entry(address).or_default() += 1;
            }
        }
    }

    /// The most frequent addresses, as text.
    pub(crate) fn most_frequent(&self) -> String {
        let mut counts: Vec<(u64, IpAddr)> = self.packets.iter().map(|(address, count)| (*count, *address)).collect();
        counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let shown: Vec<String> =
            counts.iter().take(SHOWN).map(|(count, address)| format!("{address} ({count} packets)")).collect();
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
    }
}
