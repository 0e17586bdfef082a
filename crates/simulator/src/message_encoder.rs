//! The JSON messages between gateway and service, without their framing.

use serde_json::Value;

use crate::command_generator::DeviceAction;
use crate::scenario::{DeviceIds, Scenario};

/// Encodes the messages of a scenario.
#[derive(Debug)]
pub(crate) struct MessageEncoder {
    /// The JSON value that each action sets, in the order of [`Scenario::action_names`].
    values: Vec<String>,
    /// Digits of a device's number.
    width: usize,
}

impl MessageEncoder {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let value = |name: &str| {
            let listed = scenario.actions.iter().find(|action| action.name == name);
            listed.map_or_else(|| Value::from(name), |action| action.set.clone()).to_string()
        };
        let width = match scenario.command.device_ids {
            DeviceIds::Fixed => scenario.device_count().to_string().len().max(2),
            DeviceIds::Varying => 1,
        };
        Self { values: scenario.action_names().into_iter().map(value).collect(), width }
    }

    /// A command: the service requests actions from devices. The timestamp has 13 digits from 2001 to 2286.
    pub(crate) fn command(&self, id: u64, time_ns: i64, actions: &[DeviceAction]) -> Vec<u8> {
        let action = |action: &DeviceAction| {
            let value = self.values.get(action.action).map_or("null", String::as_str);
            format!(r#"{{"id":"{}","set":{value}}}"#, self.node(action.device))
        };
        let actions: Vec<String> = actions.iter().map(action).collect();
        let (milliseconds, actions) = (time_ns / 1_000_000, actions.join(","));
        format!(r#"{{"type":"command","id":{id},"ts":{milliseconds},"actions":[{actions}]}}"#).into_bytes()
    }

    /// The gateway reports that a device executed its action.
    pub(crate) fn status(&self, device: u32) -> Vec<u8> {
        format!(r#"{{"st":"{}","ok":1}}"#, self.node(device)).into_bytes()
    }

    /// The gateway reports the power of a device, in milliwatts.
    pub(crate) fn reading(&self, device: u32, milliwatts: u32) -> Vec<u8> {
        format!(r#"{{"tele":"{}","w":{milliwatts}}}"#, self.node(device)).into_bytes()
    }

    /// The service acknowledges a reading.
    pub(crate) fn acknowledgement(&self, device: u32) -> Vec<u8> {
        format!(r#"{{"ack":"{}"}}"#, self.node(device)).into_bytes()
    }

    fn node(&self, device: u32) -> String {
        format!("node-{:0width$}", device + 1, width = self.width)
    }
}

/// The gateway reports that the command with number `id` is done.
pub(crate) fn done(id: u64) -> Vec<u8> {
    format!(r#"{{"done":{id}}}"#).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_compact_json() {
        let scenario = Scenario::default();
        let actions = [DeviceAction { device: 2, action: 0 }, DeviceAction { device: 15, action: 6 }];
        let command = MessageEncoder::new(&scenario).command(4711, 1_767_600_000_123_456_789, &actions);
        assert_eq!(
            String::from_utf8(command).unwrap(),
            concat!(
                r#"{"type":"command","id":4711,"ts":1767600000123,"#,
                r#""actions":[{"id":"node-03","set":"on"},{"id":"node-16","set":{"rgb":"ffa030"}}]}"#
            )
        );
    }

    #[test]
    fn varying_device_ids_have_no_leading_zeros() {
        let mut scenario = Scenario::default();
        scenario.command.device_ids = DeviceIds::Varying;
        let encoder = MessageEncoder::new(&scenario);
        let lengths = [0, 8, 9, 15].map(|device| encoder.status(device).len());
        assert_eq!(lengths, [lengths[0], lengths[0], lengths[0] + 1, lengths[0] + 1]);
    }
}
