//! Background traffic on the home's network: DNS, NTP, firmware updates, and another host.

use std::net::IpAddr;

use rand::{Rng, RngExt};
use rand_chacha::ChaCha20Rng;

use crate::application::{Message, MessageRole};
use crate::live_home::LiveHome;
use crate::network::{Host, Hosts, SimulatedPacket, TcpRoute};
use crate::random_streams::{MILLISECOND, Purpose, Seed, nanoseconds, recurring_times};
use crate::scenario::{Compression, Suite, TlsSettings, Version};
use crate::simulation::{FIRMWARE, Simulator, WEBSITE};
use crate::tls::{ServerIdentity, Side};
use crate::tls_connection::TlsConnection;
use crate::{SimulateError, framing};

impl Simulator {
    pub(crate) fn background(
        &self,
        seed: Seed,
        from_ns: i64,
        until_ns: i64,
    ) -> Result<Vec<SimulatedPacket>, SimulateError> {
        let LiveHome { scenario, hosts, .. } = &self.home;
        let noise = scenario.noise;
        let stream = |index| seed.stream(Purpose::BackgroundTraffic, index);
        let mut packets = Vec::new();

        let mut random = stream(0);
        for time_ns in recurring_times(noise.dns_period, from_ns, until_ns, &mut random) {
            let Hosts { gateway, firmware, laptop, website, .. } = *hosts;
            let (host, name, named) =
                if random.random() { (gateway, FIRMWARE, firmware) } else { (laptop, WEBSITE, website) };
            packets.extend(self.dns_look_up(time_ns, host, (name, named), &mut random)?);
        }
        let mut random = stream(1);
        for time_ns in recurring_times(noise.ntp_period, from_ns, until_ns, &mut random) {
            packets.extend(self.ntp_query(time_ns, &mut random)?);
        }
        let of_firmware = TlsSettings { version: Version::Tls12, suite: Suite::Aes256Gcm, chunk: 0 };
        let of_website = TlsSettings { version: Version::Tls13, suite: Suite::Aes128Gcm, chunk: 0 };
        let (firmware, website) = ((&self.firmware, of_firmware), (&self.website, of_website));
        let fetched = [
            (noise.firmware_period, [hosts.gateway, hosts.firmware], firmware, noise.firmware_bytes),
            (noise.host_period, [hosts.laptop, hosts.website], website, noise.host_bytes),
        ];
        for ((period, ends, service, bytes), index) in fetched.into_iter().zip(2..) {
            let mut random = stream(index);
            for time_ns in recurring_times(period, from_ns, until_ns, &mut random) {
                packets.extend(self.fetch(seed, time_ns, ends, service, bytes, &mut random)?);
            }
        }
        Ok(packets)
    }

    /// A host asks the router for the address of a name (RFC 1035, RFC 3596).
    pub(crate) fn dns_look_up(
        &self,
        time_ns: i64,
        host: Host,
        (name, named): (&str, Host),
        random: &mut ChaCha20Rng,
    ) -> Result<[SimulatedPacket; 2], SimulateError> {
        let port = random.random_range(49_152..=65_535);
        let id: u16 = random.random();
        let mut question = Vec::new();
        for label in name.split('.') {
            question.push(label.len() as u8);
            question.extend(label.as_bytes());
        }
        let (kind, address) = match named.address {
            IpAddr::V4(address) => (1, address.octets().to_vec()),
            IpAddr::V6(address) => (28, address.octets().to_vec()),
        };
        // The root's empty label, type A or AAAA, class IN.
        question.extend([0, 0, kind, 0, 1]);
        let message = |flags: [u8; 2], answers: u8, rest: &[u8]| {
            let head = [0, 1, 0, answers, 0, 0, 0, 0];
            [&id.to_be_bytes(), &flags, head.as_slice(), &question, rest].concat()
        };
        let answer = [&[0xc0, 0x0c, 0, kind, 0, 1, 0, 0, 1, 0x2c, 0, address.len() as u8], &*address].concat();
        let (query, response) = (message([1, 0], 0, &[]), message([0x81, 0x80], 1, &answer));
        let response_ns = time_ns + random.random_range(MILLISECOND..30 * MILLISECOND);
        let router = self.home.hosts.router;
        Ok([
            SimulatedPacket::udp(time_ns, [host, router], [port, 53], random.random(), &query)?,
            SimulatedPacket::udp(response_ns, [router, host], [53, port], random.random(), &response)?,
        ])
    }

    /// The gateway queries the time (RFC 5905). Timestamps are random, as they may be in queries.
    fn ntp_query(&self, time_ns: i64, random: &mut ChaCha20Rng) -> Result<[SimulatedPacket; 2], SimulateError> {
        let port = random.random_range(49_152..=65_535);
        let (mut query, mut response) = ([0_u8; 48], [0_u8; 48]);
        // Version 4, mode client or server.
        query[0] = 0x23;
        response[0] = 0x24;
        random.fill_bytes(&mut query[40..]);
        random.fill_bytes(&mut response[16..]);
        let response_ns = time_ns + nanoseconds(self.home.scenario.network.round_trip);
        let Hosts { gateway, clock, .. } = self.home.hosts;
        Ok([
            SimulatedPacket::udp(time_ns, [gateway, clock], [port, 123], random.random(), &query)?,
            SimulatedPacket::udp(response_ns, [clock, gateway], [123, port], random.random(), &response)?,
        ])
    }

    /// A host downloads about `bytes` bytes over a separate TLS connection.
    fn fetch(
        &self,
        seed: Seed,
        open_ns: i64,
        hosts: [Host; 2],
        (identity, tls): (&ServerIdentity, TlsSettings),
        bytes: usize,
        random: &mut ChaCha20Rng,
    ) -> Result<Vec<SimulatedPacket>, SimulateError> {
        let ports = [random.random_range(49_152..=65_535), 443];
        let route = TcpRoute { hosts, ports, network: &self.home.scenario.network };
        let streams = [Purpose::FetchTls, Purpose::FetchTcp].map(|purpose| seed.stream(purpose, random.next_u32()));
        let connection = TlsConnection::open(route, identity, tls, "http/1.1", open_ns, streams)?;
        let query_ns = connection.ready_ns;
        let response_ns = query_ns + route.turnaround(Side::Server) + 10 * MILLISECOND;
        let length = bytes + random.random_range(0..=bytes / 4);
        let message = |time_ns, side, bytes| Message::new(time_ns, side, bytes, MessageRole::Other);
        let answer = framing::found(response_ns, &vec![b' '; length], Compression::None, 0);
        let messages = [
            message(query_ns, Side::Client, framing::poll(&identity.name)),
            message(response_ns, Side::Server, answer),
        ];
        Ok(connection.carry(&messages, response_ns + 100 * MILLISECOND)?.0)
    }
}
