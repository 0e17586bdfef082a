//! The network below TLS: packets, TCP connections and captures, independent of their content.

mod packet;
mod tcp;

pub(crate) use packet::{Host, Hosts, SimulatedPacket, captured, pcap_file};
pub(crate) use tcp::{TcpConnection, TcpRoute};
