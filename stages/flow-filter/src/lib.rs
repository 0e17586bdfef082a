//! TCP segments of a gateway's flows, out of packets.
