//! The hosts: the gateway, the services, and the other hosts of the home. Their addresses are from documentation and
//! private ranges.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::scenario::NetworkSettings;

/// A host as seen by the capture, on the home's side of the router.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Host {
    pub(crate) mac: [u8; 6],
    pub(crate) address: IpAddr,
    /// Remaining time to live of its packets in the capture.
    pub(crate) time_to_live: u8,
}

const ROUTER_MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 0x01];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Hosts {
    pub(crate) gateway: Host,
    pub(crate) service: Host,
    /// The home's router, which resolves names.
    pub(crate) router: Host,
    /// Another host of the home.
    pub(crate) laptop: Host,
    /// The gateway's update service.
    pub(crate) firmware: Host,
    /// The service of the laptop.
    pub(crate) website: Host,
    /// The gateway's NTP server.
    pub(crate) clock: Host,
}

impl Hosts {
    pub(crate) fn new(network: &NetworkSettings) -> Self {
        let near = |mac: u8, address| Host { mac: [0x02, 0, 0, 0, 0, mac], address, time_to_live: 64 };
        let far = |address| Host { mac: ROUTER_MAC, address, time_to_live: 53 };
        let (router, laptop, firmware, website, clock) = if network.gateway.is_ipv4() {
            let home = |last| IpAddr::from(Ipv4Addr::new(192, 168, 1, last));
            let world = |last| IpAddr::from(Ipv4Addr::new(198, 51, 100, last));
            (home(1), home(50), world(20), world(80), world(123))
        } else {
            let home = |last| IpAddr::from(Ipv6Addr::new(0xfd00, 0, 0, 1, 0, 0, 0, last));
            let world = |last| IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, 0xffff, 0, 0, 0, 0, last));
            (home(1), home(0x50), world(0x20), world(0x80), world(0x123))
        };
        Self {
            gateway: near(0x14, network.gateway),
            service: far(network.service),
            router: near(0x01, router),
            laptop: near(0x32, laptop),
            firmware: far(firmware),
            website: far(website),
            clock: far(clock),
        }
    }
}
