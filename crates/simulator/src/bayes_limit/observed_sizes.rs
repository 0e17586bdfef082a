//! What an observer learns about the length of messages: the exact length, or under a block cipher the number of
//! blocks.

use std::collections::BTreeMap;

use crate::message_encoder::{self, MessageEncoder};
use crate::scenario::{Scenario, Suite};
use crate::tls::Side;
use crate::{SimulateError, application};

/// The bytes of an AES block.
const BLOCK: usize = 16;

/// Computes observable sizes of messages. Two messages look alike if and only if these numbers are equal.
#[derive(Debug)]
pub(super) struct ObservedSizes<'a> {
    scenario: &'a Scenario,
    /// Bytes of a command without actions and id, less the comma that the first action does not need.
    base: usize,
    /// Cache of bytes on the wire, by side and length of the body.
    wire_sizes: BTreeMap<(bool, usize), usize>,
}

impl<'a> ObservedSizes<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Self {
        let time_ns = scenario.epoch.as_second().saturating_mul(1_000_000_000);
        // Without the one digit of the id, and without one comma.
        let base = MessageEncoder::new(scenario).command(1, time_ns, &[]).len() - 2;
        Self { scenario, base, wire_sizes: BTreeMap::new() }
    }

    /// The size of a command with `actions` bytes of actions and an id of `digits` digits.
    pub(super) fn command(&mut self, actions: usize, digits: u32) -> Result<usize, SimulateError> {
        let length = actions + digits as usize;
        if self.scenario.tls.suite.is_padded() {
            self.on_the_wire(Side::Server, self.base + length)
        } else {
            Ok(length)
        }
    }

    /// The size of the reply to a whole command, which repeats its id.
    pub(super) fn reply(&mut self, digits: u32) -> Result<usize, SimulateError> {
        if !self.scenario.tls.suite.is_padded() {
            return Ok(digits as usize);
        }
        self.on_the_wire(Side::Client, message_encoder::done(0).len() - 1 + digits as usize)
    }

    /// The total length of the records of a message. It determines the length of each, since all but the last are full.
    fn on_the_wire(&mut self, side: Side, body: usize) -> Result<usize, SimulateError> {
        let key = (side == Side::Server, body);
        if let Some(size) = self.wire_sizes.get(&key) {
            return Ok(*size);
        }
        let tls = self.scenario.tls;
        let message = application::message_length(self.scenario, side, body)?;
        let most = if tls.chunk == 0 { message.max(1) } else { tls.chunk };
        let mac = if tls.suite == Suite::Aes128CbcSha256 { 32 } else { 20 };
        let record = |length: usize| BLOCK + (length + mac + 1).next_multiple_of(BLOCK);
        let last = message % most;
        let length = message / most * record(most) + if last > 0 { record(last) } else { 0 };
        self.wire_sizes.insert(key, length);
        Ok(length)
    }
}
