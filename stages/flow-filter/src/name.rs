//! Host names, as the DNS answers in a capture resolve them. No name is ever asked for.

use std::collections::BTreeSet;
use std::net::IpAddr;

use simple_dns::Packet;
use simple_dns::rdata::RData;

/// So many addresses are remembered; more are an attack on memory, not a service.
const MOST_ADDRESSES: usize = 10_000;

/// The addresses that belong to some names.
#[derive(Debug, Default)]
pub(crate) struct ResolvedNames {
    /// Those asked for and, with them, the aliases they led to.
    names: BTreeSet<String>,
    addresses: BTreeSet<IpAddr>,
}

impl ResolvedNames {
    pub(crate) fn new(names: impl IntoIterator<Item = String>) -> Self {
        Self { names: names.into_iter().collect(), addresses: BTreeSet::new() }
    }

    /// Whether there is any name to resolve.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }

    /// Learns from an answer of a name server. What cannot be read resolves nothing.
    pub(crate) fn learn(&mut self, answer: &[u8]) {
        let Ok(packet) = Packet::parse(answer) else { return };
        for record in &packet.answers {
            let name = record.name.to_string().to_ascii_lowercase();
            if !self.names.contains(&name) || self.addresses.len() + self.names.len() >= MOST_ADDRESSES {
                continue;
            }
            match &record.rdata {
                RData::A(address) => {
                    self.addresses.insert(std::net::Ipv4Addr::from(address.address).into());
                }
                RData::AAAA(address) => {
                    self.addresses.insert(std::net::Ipv6Addr::from(address.address).into());
                }
                RData::CNAME(alias) => {
                    self.names.insert(alias.0.to_string().to_ascii_lowercase());
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use simple_dns::rdata::{A, CNAME};
    use simple_dns::{CLASS, Name, ResourceRecord};

    use super::*;

    fn answer() -> Vec<u8> {
        let name = |text: &'static str| Name::new(text).unwrap();
        let record = |at, rdata| ResourceRecord::new(name(at), CLASS::IN, 60, rdata);
        let address = |last: u32| RData::A(A { address: 0x0a00_0000 + last });
        let mut packet = Packet::new_reply(1);
        packet.answers.push(record("Hub.example", RData::CNAME(CNAME(name("cdn.example")))));
        packet.answers.push(record("cdn.example", address(1)));
        packet.answers.push(record("other.example", address(2)));
        packet.build_bytes_vec().unwrap()
    }

    #[test]
    fn aliases_are_followed_and_other_names_are_not() {
        let mut names = ResolvedNames::new(["hub.example".to_owned()]);
        names.learn(&answer());
        assert!(names.contains("10.0.0.1".parse().unwrap()));
        assert!(!names.contains("10.0.0.2".parse().unwrap()));
    }

    proptest! {
        #[test]
        fn any_bytes_do_no_harm(at: prop::sample::Index, byte: u8) {
            let mut answer = answer();
            let at = at.index(answer.len());
            answer[at] = byte;
            ResolvedNames::new(["hub.example".to_owned()]).learn(&answer);
        }
    }
}
