//! The tables of a scenario about devices, commands and labels, and those that make traffic vary beyond the paper's model,
//! all off by default: parameters of actions, replies of actions, compression, recurring and overlapping commands, and a
//! change of the firmware.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceKind {
    pub name: String,
    pub count: u32,
    /// The actions of such a device; a command has at most one action for each device.
    pub actions: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionValue {
    pub name: String,
    /// The value to which the device is set. It determines the action's size.
    pub set: Value,
    /// A parameter that is sent beside the value; none by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter: Option<Parameter>,
    /// The padding of each reply to this action if there is one for each action (`replies.mode`); by default one reply
    /// without padding.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replies: Option<Vec<ReplyPadding>>,
}

settings! {
    /// The form of commands.
    pub struct CommandSettings {
        pub interval: DurationRange = DurationRange::from_millis(4_000, 20_000),
        /// The largest number of actions in a random command.
        pub most_actions: u32 = 16,
        /// P(n + 1 actions) / P(n actions).
        pub decay: f64 = 0.75,
        /// The message id, whose width makes the paper's ε.
        pub message_id: MessageId = MessageId::default(),
        pub device_ids: DeviceIds = DeviceIds::Fixed,
        /// The share of commands that a second app sends, whose bodies have other keys and so other sizes; in both
        /// captures.
        pub second_app: f64 = 0.0,
        /// The share of all commands that are dummies: drawn, sent and answered like the others, but without a label;
        /// in both captures.
        pub dummies: f64 = 0.0,
        pub overlap: Overlap = Overlap::default(),
        pub recurring: Recurring = Recurring::default(),
    }

    #[derive(Copy, Eq)]
    pub struct MessageId {
        pub min_digits: u32 = 5,
        pub max_digits: u32 = 8,
        pub draw: IdDraw = IdDraw::Number,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdDraw {
    /// Uniformly over all numbers: nine in ten have the most digits.
    Number,
    /// First the number of digits, uniformly, then the number.
    Digits,
    /// Each is larger than the one before: while learning they have the fewest digits; while testing they grow at a
    /// constant rate until the last has the most, so that each number of digits lasts for about the same time.
    Growing,
}

/// How device ids are written in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceIds {
    /// With leading zeros: `node-03`.
    Fixed,
    /// Without leading zeros: `node-3`, so that an action's size depends on the device.
    Varying,
}

settings! {
    /// The commands of the capture to learn from.
    #[derive(Copy, Eq)]
    pub struct LearnSettings {
        /// Repetitions of the paper's experiments: each action on one device, each action on two (section IV).
        pub repeats: u32 = 3,
        /// The number of random commands after them.
        pub random: u32 = 150,
    }

    /// The commands of the capture to test on.
    #[derive(Copy, Eq)]
    pub struct TestSettings {
        pub commands: u32 = 307,
    }

    #[derive(Copy, Eq)]
    pub struct LabelSettings {
        /// The largest error of a label's time, in either direction.
        pub error: SignedDuration = SignedDuration::from_millis(300),
    }
}

/// The devices of the paper: 12 plugs with 4 actions, 4 lamps with 7.
pub(super) fn devices() -> Vec<DeviceKind> {
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    vec![
        DeviceKind { name: "plug".into(), count: 12, actions: names(&["on", "off", "toggle", "timer"]) },
        DeviceKind {
            name: "lamp".into(),
            count: 4,
            actions: names(&["on", "off", "toggle", "timer", "dim", "white", "colour"]),
        },
    ]
}

pub(super) fn actions() -> Vec<ActionValue> {
    let values = [
        ("on", json!("on")),
        ("off", json!("off")),
        ("toggle", json!("toggle")),
        ("timer", json!({"on": 300})),
        ("dim", json!({"level": 40})),
        ("white", json!({"ct": 2700})),
        ("colour", json!({"rgb": "ffa030"})),
    ];
    values
        .into_iter()
        .map(|(name, set)| ActionValue { name: name.into(), set, parameter: None, replies: None })
        .collect()
}

/// A parameter of an action, sent beside its value. It is drawn anew for each device of each command, so that the size
/// of the action varies; labels do not tell it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub enum Parameter {
    /// A whole number from a range including both ends, each equally likely.
    Number { min: u64, max: u64 },
    /// One of these names, each equally likely. They are sent as UTF-8.
    Name(Vec<String>),
}

impl Parameter {
    pub(crate) fn choices(&self) -> u64 {
        match self {
            Self::Number { min, max } => max.saturating_sub(*min).saturating_add(1),
            Self::Name(names) => names.len() as u64,
        }
    }

    /// A parameter as JSON, by its index among the choices.
    pub(crate) fn json(&self, choice: u64) -> String {
        match self {
            Self::Number { min, .. } => min.saturating_add(choice).to_string(),
            Self::Name(names) => {
                let name = usize::try_from(choice).ok().and_then(|choice| names.get(choice));
                Value::from(name.map_or("", String::as_str)).to_string()
            }
        }
    }

    /// The lengths of its JSON in bytes, with the number of choices of each.
    pub(crate) fn lengths(&self) -> Vec<(usize, u64)> {
        match self {
            Self::Number { min, max } => {
                let most_of = |digits: usize| 10_u64.checked_pow(digits as u32).map_or(u64::MAX, |power| power - 1);
                let digits = min.to_string().len()..=max.to_string().len();
                let above = |digits: usize| if digits == 1 { 0 } else { most_of(digits - 1) + 1 };
                let count = |digits| most_of(digits).min(*max) - above(digits).max(*min) + 1;
                digits.map(|digits| (digits, count(digits))).collect()
            }
            Self::Name(names) => (0..names.len() as u64).map(|choice| (self.json(choice).len(), 1)).collect(),
        }
    }
}

/// The bytes by which a reply is longer than a plain one: uniformly from a range including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyPadding {
    pub min: u32,
    pub max: u32,
}

impl ReplyPadding {
    pub const NONE: Self = Self { min: 0, max: 0 };
}

/// How the JSON bodies of both sides are compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Compression {
    #[default]
    None,
    /// Each body by itself with deflate in the format of zlib (RFC 1950, RFC 1951), so that a command's size depends on
    /// what its actions have in common. HTTP says so by `Content-Encoding`, WebSocket sends it in binary frames.
    Deflate,
}

/// Commands that recur, such as those of automations: each is drawn once for both captures, like a random command, and
/// then sent again and again, with the same actions on the same devices.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Recurring {
    /// The share of the random commands in whose place one of them is sent, each equally often; 0 for none.
    pub share: f64,
    /// How many different ones there are.
    pub commands: u32,
}

settings! {
    /// Commands that follow the one before so soon that its replies have not ended.
    #[derive(Copy)]
    pub struct Overlap {
        /// The share of commands that do, in both captures; 0 for none.
        pub share: f64 = 0.0,
        /// The time since the command before.
        pub interval: DurationRange = DurationRange::from_millis(100, 300),
    }

    /// New firmware of the gateway in the middle of the capture to test on: from then on all JSON bodies in both
    /// directions are longer. The replies to a command have the form of their command.
    #[derive(Copy)]
    pub struct FirmwareChange {
        /// The share of the commands that are sent before.
        pub after: f64 = 0.5,
        /// The bytes that it adds to each body; 0 for no change.
        pub bytes: usize = 0,
    }
}

/// A range of durations, including both ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurationRange {
    pub min: SignedDuration,
    pub max: SignedDuration,
}

impl DurationRange {
    pub const fn from_millis(min: i64, max: i64) -> Self {
        Self { min: SignedDuration::from_millis(min), max: SignedDuration::from_millis(max) }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn lengths_of_parameters_are_those_of_their_json() {
        let parameters = [
            Parameter::Number { min: 1, max: 100 },
            Parameter::Number { min: 0, max: 9 },
            Parameter::Number { min: 7, max: 7 },
            Parameter::Number { min: 98, max: 1_003 },
            Parameter::Name(vec!["Küche".into(), "Bad".into(), "a \"quoted\" one".into(), "居間".into()]),
        ];
        for parameter in parameters {
            let mut counted: BTreeMap<usize, u64> = BTreeMap::new();
            (0..parameter.choices()).for_each(|choice| *counted.entry(parameter.json(choice).len()).or_default() += 1);
            let mut lengths: BTreeMap<usize, u64> = BTreeMap::new();
            parameter.lengths().into_iter().for_each(|(length, count)| *lengths.entry(length).or_default() += count);
            assert_eq!(lengths, counted, "{parameter:?}");
        }
        assert_eq!(Parameter::Name(vec!["Küche".into()]).lengths(), [(8, 1)], "two bytes for the umlaut, two quotes");
    }
}
