//! The tables of a scenario about devices, commands and labels.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::variation::{DurationRange, Overlap, Parameter, Recurring, ReplyPadding};

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
