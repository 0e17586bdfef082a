//! The JSON messages between gateway and service, without their framing.

use serde_json::Value;

use crate::command_generator::DeviceAction;
use crate::scenario::{DeviceIds, Parameter, ReplyPadding, Scenario};

/// The app that sends a command. Each has its own keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum App {
    #[default]
    First,
    Second,
}

/// The form of a command's body and of the replies to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BodyForm {
    pub(crate) app: App,
    /// The bytes that new firmware adds to a body.
    pub(crate) added_bytes: usize,
}

#[derive(Debug)]
struct EncodedAction {
    /// The JSON value that it sets.
    value: String,
    parameter: Option<Parameter>,
    replies: Vec<ReplyPadding>,
}

#[derive(Debug)]
pub(crate) struct MessageEncoder {
    /// In the order of [`Scenario::action_names`].
    actions: Vec<EncodedAction>,
    width: usize,
}

impl MessageEncoder {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let action = |name: &str| {
            let listed = scenario.actions.iter().find(|action| action.name == name);
            EncodedAction {
                value: listed.map_or_else(|| Value::from(name), |action| action.set.clone()).to_string(),
                parameter: listed.and_then(|action| action.parameter.clone()),
                replies: listed.and_then(|action| action.replies.clone()).unwrap_or_else(|| vec![ReplyPadding::NONE]),
            }
        };
        let width = match scenario.command.device_ids {
            DeviceIds::Fixed => scenario.device_count().to_string().len().max(2),
            DeviceIds::Varying => 1,
        };
        Self { actions: scenario.action_names().into_iter().map(action).collect(), width }
    }

    /// A command: the service requests actions from devices. The timestamp has 13 digits from 2001 to 2286.
    pub(crate) fn command(&self, form: BodyForm, id: u64, time_ns: i64, actions: &[DeviceAction]) -> Vec<u8> {
        let action = |action: &DeviceAction| {
            let (node, value) = (self.node(action.device), self.value(*action));
            match form.app {
                App::First => format!(r#"{{"id":"{node}","set":{value}}}"#),
                App::Second => format!(r#"{{"device":"{node}","state":{value}}}"#),
            }
        };
        let actions: Vec<String> = actions.iter().map(action).collect();
        let (milliseconds, actions) = (time_ns / 1_000_000, actions.join(","));
        let body = match form.app {
            App::First => format!(r#"{{"type":"command","id":{id},"ts":{milliseconds},"actions":[{actions}]}}"#),
            App::Second => format!(r#"{{"app":"panel","v":2,"msg":{id},"time":{milliseconds},"do":[{actions}]}}"#),
        };
        lengthened(body, form.added_bytes)
    }

    /// The value that an action sets, with its parameter.
    fn value(&self, action: DeviceAction) -> String {
        let Some(encoded) = self.actions.get(action.action) else { return "null".to_owned() };
        let value = &encoded.value;
        match &encoded.parameter {
            None => value.clone(),
            Some(parameter) => format!(r#"{value},"value":{}"#, parameter.json(action.parameter)),
        }
    }

    pub(crate) fn replies(&self, action: usize) -> &[ReplyPadding] {
        self.actions.get(action).map_or(&[], |action| &action.replies)
    }

    pub(crate) fn parameter(&self, action: usize) -> Option<&Parameter> {
        self.actions.get(action).and_then(|action| action.parameter.as_ref())
    }

    /// The gateway reports that a device executed its action. The padding is a longer number.
    pub(crate) fn status(&self, form: BodyForm, device: u32, padding: u32) -> Vec<u8> {
        let state: String = (1..=padding).map(|digit| char::from(b'0' + (digit % 10) as u8)).collect();
        lengthened(format!(r#"{{"st":"{}","ok":1{state}}}"#, self.node(device)), form.added_bytes)
    }

    /// The gateway reports the power of a device, in milliwatts.
    pub(crate) fn reading(&self, added_bytes: usize, device: u32, milliwatts: u32) -> Vec<u8> {
        lengthened(format!(r#"{{"tele":"{}","w":{milliwatts}}}"#, self.node(device)), added_bytes)
    }

    /// The service acknowledges a reading.
    pub(crate) fn acknowledgement(&self, added_bytes: usize, device: u32) -> Vec<u8> {
        lengthened(format!(r#"{{"ack":"{}"}}"#, self.node(device)), added_bytes)
    }

    fn node(&self, device: u32) -> String {
        format!("node-{:0width$}", device + 1, width = self.width)
    }
}

/// The gateway reports that the command with number `id` is done.
pub(crate) fn done(form: BodyForm, id: u64) -> Vec<u8> {
    lengthened(format!(r#"{{"done":{id}}}"#), form.added_bytes)
}

/// Adds bytes to a JSON object: a field at its end, or spaces where a field is too long.
fn lengthened(mut body: String, bytes: usize) -> Vec<u8> {
    let field = r#","f":"#;
    match bytes.checked_sub(field.len()).filter(|digits| *digits > 0) {
        Some(digits) if body.pop().is_some() => body.extend([field, &"7".repeat(digits), "}"]),
        _ => body.extend(std::iter::repeat_n(' ', bytes)),
    }
    body.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_compact_json() {
        let scenario = Scenario::default();
        let actions = [DeviceAction::new(2, 0), DeviceAction::new(15, 6)];
        let form = BodyForm::default();
        let command = MessageEncoder::new(&scenario).command(form, 4711, 1_767_600_000_123_456_789, &actions);
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
        let lengths = [0, 8, 9, 15].map(|device| encoder.status(BodyForm::default(), device, 0).len());
        assert_eq!(lengths, [lengths[0], lengths[0], lengths[0] + 1, lengths[0] + 1]);
    }

    fn json(body: &[u8]) -> Value {
        serde_json::from_slice(body).unwrap()
    }

    #[test]
    fn the_second_app_sends_the_same_actions_in_other_bytes() {
        let scenario = Scenario::default();
        let encoder = MessageEncoder::new(&scenario);
        let actions = [DeviceAction::new(2, 0), DeviceAction::new(15, 6)];
        let form = BodyForm { app: App::Second, added_bytes: 0 };
        let command = encoder.command(form, 4711, 1_767_600_000_123_456_789, &actions);
        assert_eq!(
            String::from_utf8(command).unwrap(),
            concat!(
                r#"{"app":"panel","v":2,"msg":4711,"time":1767600000123,"#,
                r#""do":[{"device":"node-03","state":"on"},{"device":"node-16","state":{"rgb":"ffa030"}}]}"#
            )
        );
    }

    #[test]
    fn parameters_are_sent_beside_the_value() {
        let mut scenario = Scenario::default();
        scenario.actions[4].parameter = Some(Parameter::Number { min: 1, max: 100 });
        scenario.actions[5].parameter = Some(Parameter::Name(vec!["Bad".into(), "Küche".into()]));
        let encoder = MessageEncoder::new(&scenario);
        let action = |action, parameter| DeviceAction { device: 12, action, parameter };
        let command = encoder.command(BodyForm::default(), 1, 0, &[action(4, 99), action(5, 1)]);
        let actions = &json(&command)["actions"];
        assert_eq!(actions[0], serde_json::json!({"id": "node-13", "set": {"level": 40}, "value": 100}));
        assert_eq!(actions[1]["value"], "Küche");
    }

    #[test]
    fn new_firmware_adds_its_bytes_to_every_body() {
        let encoder = MessageEncoder::new(&Scenario::default());
        let bodies = |added_bytes| {
            let form = BodyForm { app: App::First, added_bytes };
            [
                encoder.command(form, 1, 0, &[DeviceAction::new(1, 1)]),
                encoder.status(form, 3, 2),
                encoder.reading(added_bytes, 3, 4_000),
                encoder.acknowledgement(added_bytes, 3),
                done(form, 17),
            ]
        };
        for bytes in [0, 1, 5, 6, 7, 300] {
            for (plain, longer) in bodies(0).iter().zip(bodies(bytes)) {
                assert_eq!(longer.len(), plain.len() + bytes);
                let fields = |body: &[u8]| json(body).as_object().unwrap().len();
                assert_eq!(fields(&longer), fields(plain) + usize::from(bytes > 5));
            }
        }
    }

    #[test]
    fn padded_replies_are_longer() {
        let encoder = MessageEncoder::new(&Scenario::default());
        let status = |padding| encoder.status(BodyForm::default(), 0, padding);
        assert_eq!(status(0), br#"{"st":"node-01","ok":1}"#);
        assert_eq!(status(12), br#"{"st":"node-01","ok":1123456789012}"#);
        json(&status(300));
    }
}
