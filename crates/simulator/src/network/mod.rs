//! The network under TLS: packets, TCP connections and the capture of them. Knows nothing of what they carry.

mod capture;
mod host;
mod packet;
mod tcp;

pub(crate) use capture::write;
pub(crate) use host::{Host, Hosts};
pub(crate) use packet::SimulatedPacket;
pub(crate) use tcp::{TcpConnection, TcpRoute};
