//! Who was there instead, when the gateway never appears.

use std::collections::HashMap;
use std::net::IpAddr;

use foldhash::quality::RandomState;

/// So many addresses are counted; later ones are not.
const MOST_ADDRESSES: usize = 4096;
const SHOWN: usize = 5;

/// How often each address was seen.
#[derive(Debug, Default)]
pub(crate) struct SeenAddresses {
    counts: HashMap<IpAddr, u64, RandomState>,
}

impl SeenAddresses {
    pub(crate) fn count(&mut self, address: IpAddr) {
        if self.counts.len() < MOST_ADDRESSES || self.counts.contains_key(&address) {
            *self.counts.entry(address).or_default() += 1;
        }
    }

    /// The most frequent ones, as text.
    pub(crate) fn most_frequent(&self) -> String {
        let mut counts: Vec<(u64, IpAddr)> = self.counts.iter().map(|(address, count)| (*count, *address)).collect();
        counts.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
        let shown: Vec<String> =
            counts.iter().take(SHOWN).map(|(count, address)| format!("{address} ({count} packets)")).collect();
        if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
    }
}
