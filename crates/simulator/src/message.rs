//! The JSON that gateway and service exchange, inside whatever framing.

use serde::Serialize;
use serde_json::Value;

use crate::SimulateError;
use crate::plan::DeviceAction;
use crate::scenario::{DeviceIds, Scenario};

/// A command: the service tells the gateway what its devices shall do.
#[derive(Serialize)]
struct CommandBody<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: u64,
    /// Milliseconds since the epoch: 13 digits from 2001 to 2286.
    ts: i64,
    actions: Vec<ActionBody<'a>>,
}

#[derive(Serialize)]
struct ActionBody<'a> {
    id: String,
    set: &'a Value,
}

#[derive(Serialize)]
struct StatusBody {
    st: String,
    ok: u8,
}

#[derive(Serialize)]
struct DoneBody {
    done: u64,
}

#[derive(Serialize)]
struct ReadingBody {
    tele: String,
    w: u32,
}

#[derive(Serialize)]
struct ReceiptBody {
    ack: String,
}

/// Writes the messages of a scenario.
#[derive(Debug)]
pub(crate) struct MessageEncoder {
    /// What each action sets, in the order of [`Scenario::action_names`].
    values: Vec<Value>,
    /// Digits of a device's number.
    width: usize,
}

impl MessageEncoder {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let value = |name: &str| {
            let listed = scenario.actions.iter().find(|action| action.name == name);
            listed.map_or_else(|| Value::from(name), |action| action.set.clone())
        };
        let devices: u32 = scenario.devices.iter().map(|device| device.count).sum();
        let width = match scenario.command.device_ids {
            DeviceIds::Fixed => devices.to_string().len().max(2),
            DeviceIds::Varying => 1,
        };
        Self { values: scenario.action_names().into_iter().map(value).collect(), width }
    }

    /// The command with number `id`.
    pub(crate) fn command(&self, id: u64, time_ns: i64, orders: &[DeviceAction]) -> Result<Vec<u8>, SimulateError> {
        let setting = |order: &DeviceAction| {
            let set = self.values.get(order.action).unwrap_or(&Value::Null);
            ActionBody { id: self.node(order.device), set }
        };
        let actions = orders.iter().map(setting).collect();
        json(&CommandBody { kind: "command", id, ts: time_ns / 1_000_000, actions })
    }

    /// The gateway says that a device did as it was told.
    pub(crate) fn status(&self, device: u32) -> Result<Vec<u8>, SimulateError> {
        json(&StatusBody { st: self.node(device), ok: 1 })
    }

    /// The gateway says what a device draws, in milliwatts.
    pub(crate) fn reading(&self, device: u32, milliwatts: u32) -> Result<Vec<u8>, SimulateError> {
        json(&ReadingBody { tele: self.node(device), w: milliwatts })
    }

    /// The service has taken a reading.
    pub(crate) fn receipt(&self, device: u32) -> Result<Vec<u8>, SimulateError> {
        json(&ReceiptBody { ack: self.node(device) })
    }

    fn node(&self, device: u32) -> String {
        format!("node-{:0width$}", device + 1, width = self.width)
    }
}

/// The gateway says that the command with number `id` is done.
pub(crate) fn done(id: u64) -> Result<Vec<u8>, SimulateError> {
    json(&DoneBody { done: id })
}

fn json(message: &impl Serialize) -> Result<Vec<u8>, SimulateError> {
    serde_json::to_vec(message).map_err(|error| SimulateError::Format { what: "a message", reason: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_in_words() {
        let scenario = Scenario::default();
        let orders = [DeviceAction { device: 2, action: 0 }, DeviceAction { device: 15, action: 6 }];
        let command = MessageEncoder::new(&scenario).command(4711, 1_767_600_000_123_456_789, &orders).unwrap();
        assert_eq!(
            String::from_utf8(command).unwrap(),
            r#"{"type":"command","id":4711,"ts":1767600000123,"actions":[{"id":"node-03","set":"on"},{"id":"node-16","set":{"rgb":"ffa030"}}]}"#
        );
    }

    #[test]
    fn device_ids_of_varying_width() {
        let mut scenario = Scenario::default();
        scenario.command.device_ids = DeviceIds::Varying;
        let writer = MessageEncoder::new(&scenario);
        let lengths = [0, 8, 9, 15].map(|device| writer.status(device).unwrap().len());
        assert_eq!(lengths, [lengths[0], lengths[0], lengths[0] + 1, lengths[0] + 1]);
    }
}
