//! What is seen of messages: with an authenticated cipher their very lengths, with a block cipher how many blocks.

use std::collections::BTreeMap;

use crate::message::{self, MessageEncoder};
use crate::scenario::{Scenario, Suite};
use crate::tls::Side;
use crate::{SimulateError, application};

/// The bytes of an AES block.
const BLOCK: usize = 16;

/// Turns what messages are made of into what is seen of them. Two messages look alike where these numbers are the same.
#[derive(Debug)]
pub(super) struct ObservedSizes<'a> {
    scenario: &'a Scenario,
    /// The bytes of a command without actions and number, less the comma that the first action lacks.
    frame: usize,
    /// Bytes on the wire by side and body, as far as they were asked for.
    known: BTreeMap<(bool, usize), usize>,
}

impl<'a> ObservedSizes<'a> {
    pub(super) fn new(scenario: &'a Scenario) -> Result<Self, SimulateError> {
        let time_ns = scenario.epoch.as_second().saturating_mul(1_000_000_000);
        // One digit of number is in it, and one comma too many would be.
        let frame = MessageEncoder::new(scenario).command(1, time_ns, &[])?.len() - 2;
        Ok(Self { scenario, frame, known: BTreeMap::new() })
    }

    /// Of a command whose actions take so many bytes, with a number of so many digits.
    pub(super) fn command(&mut self, actions: usize, digits: u32) -> Result<usize, SimulateError> {
        let length = actions + digits as usize;
        if self.scenario.tls.suite.is_padded() {
            self.on_the_wire(Side::Server, self.frame + length)
        } else {
            Ok(length)
        }
    }

    /// Of the reply to a whole command, which repeats its number.
    pub(super) fn reply(&mut self, digits: u32) -> Result<usize, SimulateError> {
        if !self.scenario.tls.suite.is_padded() {
            return Ok(digits as usize);
        }
        self.on_the_wire(Side::Client, message::done(0)?.len() - 1 + digits as usize)
    }

    /// The bytes of the records that carry a body. The same from two bodies only where all records are of the same length:
    /// all but the last are full.
    fn on_the_wire(&mut self, side: Side, body: usize) -> Result<usize, SimulateError> {
        let key = (side == Side::Server, body);
        if let Some(known) = self.known.get(&key) {
            return Ok(*known);
        }
        let tls = self.scenario.tls;
        let message = application::message_length(self.scenario, side, body)?;
        let most = if tls.chunk == 0 { message.max(1) } else { tls.chunk };
        let mac = if tls.suite == Suite::Aes128CbcSha256 { 32 } else { 20 };
        let record = |length: usize| BLOCK + (length + mac + 1).next_multiple_of(BLOCK);
        let last = message % most;
        let length = message / most * record(most) + if last > 0 { record(last) } else { 0 };
        self.known.insert(key, length);
        Ok(length)
    }
}
