//! A UDP or ESP flow by its protocol, which its first datagrams show.

use serde::{Deserialize, Serialize};
use sizeleak_frame::Direction;

use crate::chunk::Chunk;
use crate::dtls_flow::DtlsFlow;
use crate::esp::EspFlow;
use crate::matter::MatterFlow;
use crate::message::{FlowEnds, Found, MessageFramer};
use crate::options::Declared;
use crate::quic::QuicFlow;
use crate::wireguard::WireGuardFlow;

/// A flow of datagrams with messages of one protocol.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum DatagramFlow {
    Dtls(DtlsFlow),
    Quic(QuicFlow),
    Matter(MatterFlow),
    WireGuard(WireGuardFlow),
    Esp(EspFlow),
}

impl DatagramFlow {
    /// A flow that begins with this datagram, if its protocol is one of these. Ports decide before shapes, and of shapes
    /// those that say most.
    pub(crate) fn begin(chunk: &Chunk<'_>, ends: Option<&FlowEnds>, declared: &Declared) -> Option<Self> {
        EspFlow::begin(chunk, ends)
            .map(Self::Esp)
            .or_else(|| MatterFlow::begin(chunk, ends, &declared.matter_ports).map(Self::Matter))
            .or_else(|| WireGuardFlow::begin(chunk, ends).map(Self::WireGuard))
            .or_else(|| DtlsFlow::begin(chunk).map(Self::Dtls))
            .or_else(|| QuicFlow::begin(chunk, ends, &declared.quic_ids).map(Self::Quic))
    }

    /// Whether one datagram has shown its protocol.
    pub(crate) fn is_certain(&self) -> bool {
        match self {
            Self::Quic(flow) => flow.is_certain(),
            Self::Dtls(flow) => flow.is_certain(),
            Self::Matter(_) | Self::WireGuard(_) | Self::Esp(_) => true,
        }
    }

    /// What finds its messages.
    fn framer(&self) -> &dyn MessageFramer {
        match self {
            Self::Dtls(flow) => flow,
            Self::Quic(flow) => flow,
            Self::Matter(flow) => flow,
            Self::WireGuard(flow) => flow,
            Self::Esp(flow) => flow,
        }
    }

    fn framer_mut(&mut self) -> &mut dyn MessageFramer {
        match self {
            Self::Dtls(flow) => flow,
            Self::Quic(flow) => flow,
            Self::Matter(flow) => flow,
            Self::WireGuard(flow) => flow,
            Self::Esp(flow) => flow,
        }
    }
}

impl MessageFramer for DatagramFlow {
    fn take(&mut self, direction: Direction, chunk: Chunk<'_>, found: &mut Found) -> bool {
        self.framer_mut().take(direction, chunk, found)
    }

    fn is_valid(&self) -> bool {
        self.framer().is_valid()
    }
}
