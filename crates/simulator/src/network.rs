//! The network below TLS: packets, TCP connections and captures, independent of their content.

mod capture;
mod host;
mod packet;
mod tcp;

pub(crate) use capture::write_pcap;
pub(crate) use host::{Host, Hosts};
pub(crate) use packet::SimulatedPacket;
pub(crate) use tcp::{TcpConnection, TcpRoute};
