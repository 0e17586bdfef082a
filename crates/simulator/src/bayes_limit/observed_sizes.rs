//! What an observer learns about the length of messages: the exact length, or under a block cipher the number of
//! blocks.

use std::collections::BTreeMap;

use crate::message_encoder::{self, BodyForm, MessageEncoder};
use crate::scenario::Scenario;
use crate::tls::{Side, wire_lengths};
use crate::{SimulateError, application};

/// Computes observable sizes of messages. Two messages of one side look alike if and only if these numbers are equal.
#[derive(Debug)]
pub(super) struct ObservedSizes<'a> {
    scenario: &'a Scenario,
    /// The form of all bodies.
    form: BodyForm,
    /// The bytes of a reply to an action without padding.
    status: usize,
    /// The bytes of a reply to a command, without its id.
    done: usize,
    /// Cache of bytes on the wire, by side and length of the body.
    wire_sizes: BTreeMap<(bool, usize), usize>,
}

impl<'a> ObservedSizes<'a> {
    /// For bodies that new firmware lengthens by some bytes.
    pub(super) fn new(scenario: &'a Scenario, added_bytes: usize) -> Self {
        let form = BodyForm { added_bytes, ..BodyForm::default() };
        let status = MessageEncoder::new(scenario).status(form, 0, 0).len();
        Self { scenario, form, status, done: message_encoder::done(form, 0).len() - 1, wire_sizes: BTreeMap::new() }
    }

    /// The size of a command with a JSON body of `body` bytes, without those of new firmware.
    pub(super) fn command(&mut self, body: usize) -> Result<usize, SimulateError> {
        self.size(Side::Server, body + self.form.added_bytes)
    }

    /// The size of a reply to an action.
    pub(super) fn status(&mut self, padding: u32) -> Result<usize, SimulateError> {
        self.size(Side::Client, self.status + padding as usize)
    }

    /// The size of the reply to a whole command, which repeats its id.
    pub(super) fn done(&mut self, digits: u32) -> Result<usize, SimulateError> {
        self.size(Side::Client, self.done + digits as usize)
    }

    /// Longer messages are longer in every framing, so without padding and a block cipher the length itself will do.
    fn size(&mut self, side: Side, body: usize) -> Result<usize, SimulateError> {
        if self.scenario.rounds_sizes() { self.on_the_wire(side, body) } else { Ok(body) }
    }

    /// The total length of the records of a message. It determines the length of each, since all but the last are full.
    fn on_the_wire(&mut self, side: Side, body: usize) -> Result<usize, SimulateError> {
        let key = (side == Side::Server, body);
        if let Some(size) = self.wire_sizes.get(&key) {
            return Ok(*size);
        }
        let tls = self.scenario.tls;
        let padding = &self.scenario.padding;
        let policy = if side == Side::Server { &padding.policy } else { &padding.replies };
        let padded = |size| policy.padded(size).unwrap_or(size);
        let message = application::padded_length(self.scenario, side, body, padded)?;
        if !tls.suite.is_padded() {
            self.wire_sizes.insert(key, message);
            return Ok(message);
        }
        let length = wire_lengths(tls, message, &[]).into_iter().sum();
        self.wire_sizes.insert(key, length);
        Ok(length)
    }
}
