//! How long messages are with their framing.

use rand::SeedableRng;
use rand_chacha::ChaCha20Rng;

use super::push_protocol::PushProtocol;
use crate::SimulateError;
use crate::framing::http;
use crate::scenario::{Compression, Scenario};
use crate::tls::Side;

/// The length of a message with a body of `body` bytes, which is not compressed.
pub(super) fn message_length(scenario: &Scenario, side: Side, body: usize) -> Result<usize, SimulateError> {
    let body = vec![b' '; body];
    // Random numbers are only drawn for a mask, which has a fixed length.
    let random = &mut ChaCha20Rng::seed_from_u64(0);
    let message = match (PushProtocol::new(scenario), side) {
        (Some(mut protocol), _) => protocol.message(side, &body, random)?.bytes,
        (None, Side::Server) => http::found(0, &body, Compression::None, 0),
        (None, Side::Client) => http::post(&scenario.network.name, &body, Compression::None, 0),
    };
    Ok(message.len())
}
