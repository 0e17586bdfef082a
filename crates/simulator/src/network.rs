//! The network below TLS: packets, TCP connections and captures, independent of their content.

mod capture;
mod packet;
mod tcp;

pub(crate) use capture::{PCAP_HEADER, write_pcap};
pub(crate) use packet::{Host, Hosts, SimulatedPacket};
pub(crate) use tcp::{TcpConnection, TcpRoute};
