//! The content of a capture for measurements: a gateway's traffic among that of other hosts.

mod conversation;
mod wire;

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use clap::ValueEnum;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use self::conversation::{Conversation, Cut};
use self::wire::{FILE_HEADER, Wire};

/// The address whose traffic is wanted.
pub const GATEWAY: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 20);

/// Microseconds between packets.
const APART_US: u64 = 20;

/// How many connections the other hosts have; one in ten is IPv6.
const OTHERS: u32 = 4096;

const ACK: u8 = 16;

/// A kind of capture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Shape {
    /// An archive: full segments and acknowledgements, one packet in a hundred the gateway's
    Mtu,
    /// Short segments, one packet in a hundred the gateway's
    Small,
    /// All of it the gateway's: records split and joined over segments
    Records,
}

/// The gateway's connections.
#[derive(Debug, Clone, Copy)]
pub struct Connections {
    /// How many in all.
    pub flows: u32,
    /// How many are open at once.
    pub at_once: u32,
}

/// Traffic, packet by packet.
pub struct Traffic {
    shape: Shape,
    random: ChaCha8Rng,
    filler: Vec<u8>,
    conversations: Vec<Conversation>,
    at_once: usize,
    /// The share of the capture that was written, from 0 to 1.
    progress: f64,
    time_us: u64,
}

impl Traffic {
    pub fn new(shape: Shape, seed: u64, connections: Connections, begins: u32) -> Self {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut filler = vec![0; 64 << 10];
        random.fill_bytes(&mut filler);
        let conversations = (0..connections.flows.max(1)).map(|flow| {
            let gateway = SocketAddr::from((GATEWAY, 20_000 + (flow % 40_000) as u16));
            let service = Ipv4Addr::from(u32::from(Ipv4Addr::new(203, 0, 113, 1)) + flow / 40_000);
            Conversation::new(gateway, (service, 443).into(), random.random())
        });
        let conversations = conversations.collect();
        let (at_once, time_us) = (connections.at_once as usize, u64::from(begins) * 1_000_000);
        Self { shape, random, filler, conversations, at_once, progress: 0.0, time_us }
    }

    /// Writes a capture of about `bytes` bytes; returns the number of its packets.
    pub fn write(&mut self, mut output: impl Write, bytes: u64) -> io::Result<u64> {
        let mut capture = FILE_HEADER.to_vec();
        let (mut written, mut packets) = (0, 0);
        while written + (capture.len() as u64) < bytes {
            self.packet(&mut capture);
            packets += 1;
            self.progress = (written + capture.len() as u64) as f64 / bytes as f64;
            if capture.len() >= 1 << 20 {
                output.write_all(&capture)?;
                written += capture.len() as u64;
                capture.clear();
            }
        }
        output.write_all(&capture)?;
        Ok(packets)
    }

    fn packet(&mut self, capture: &mut Vec<u8>) {
        self.time_us += APART_US;
        let cut = if self.shape == Shape::Records { Cut::Anywhere } else { Cut::AtRecords };
        if self.shape == Shape::Records || self.random.random_bool(0.01) {
            let ended = (self.progress * (self.conversations.len() - self.at_once) as f64) as usize;
            let flow = ended + self.random.random_range(0..self.at_once);
            self.conversations[flow].write(capture, self.time_us, cut, &mut self.random, &self.filler);
            return;
        }
        let length = match self.shape {
            Shape::Small => self.random.random_range(0..=120),
            _ if self.random.random_bool(0.85) => 1460,
            _ => 0,
        };
        let (source, destination) = other(self.random.random_range(0..OTHERS));
        let payload = &self.filler[..length];
        let (time_us, sequence) = (self.time_us, self.random.random());
        Wire { time_us, source, destination, sequence, acknowledgement: 0, flags: ACK, payload }.write(capture);
    }
}

/// The ends of another host's connection.
fn other(number: u32) -> (SocketAddr, SocketAddr) {
    let port = 30_000 + number as u16;
    let ends: [IpAddr; 2] = if number.is_multiple_of(10) {
        let host = |net: u128| Ipv6Addr::from((0x2001_0db8_u128 << 96) | (net << 64) | u128::from(number));
        [host(1).into(), host(2).into()]
    } else {
        let host = |net: Ipv4Addr| u32::from(net) + number;
        [
            Ipv4Addr::from(host(Ipv4Addr::new(10, 1, 0, 0))).into(),
            Ipv4Addr::from(host(Ipv4Addr::new(198, 18, 0, 0))).into(),
        ]
    };
    ((ends[0], port).into(), (ends[1], 443).into())
}
