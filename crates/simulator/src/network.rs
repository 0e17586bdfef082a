//! The network below TLS: packets, TCP connections and captures, independent of their content.

mod capture;
mod packet;
mod tcp;

pub(crate) use capture::{captured, pcap_file};
pub(crate) use packet::{Host, Hosts, SimulatedPacket};
pub(crate) use tcp::{TcpConnection, TcpRoute};
