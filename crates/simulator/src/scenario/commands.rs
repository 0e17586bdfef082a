//! The tables of a scenario about people and devices: which there are, what they are told, how it is labelled.

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::DurationRange;

/// A kind of device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DeviceKind {
    /// The kind's name.
    pub name: String,
    /// How many of it there are.
    pub count: u32,
    /// What one can be told to do; a command tells each device one thing at most.
    pub actions: Vec<String>,
}

/// What an action looks like in a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionValue {
    /// The action's name.
    pub name: String,
    /// What the device is set to, as JSON: this makes the action's size.
    pub set: Value,
}

/// What commands are like.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct CommandSettings {
    /// Time from one command to the next.
    pub interval: DurationRange,
    /// The most actions of a random command.
    pub most_actions: u32,
    /// How likely n + 1 actions are, compared with n.
    pub decay: f64,
    /// The message's number: its width is the paper's ε.
    pub message_id: MessageId,
    /// How devices are numbered in messages.
    pub device_ids: DeviceIds,
}

/// The random number that identifies a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct MessageId {
    /// The fewest digits.
    pub min_digits: u32,
    /// The most digits.
    pub max_digits: u32,
    /// What is drawn.
    pub draw: IdDraw,
}

/// What is drawn for a message's number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IdDraw {
    /// The number: nine in ten have the most digits.
    Number,
    /// First how many digits, each as likely as another, then the number.
    Digits,
}

/// How devices are numbered in messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceIds {
    /// With leading zeros: `node-03`.
    Fixed,
    /// Without: `node-3`, so that an action's size depends on the device too.
    Varying,
}

/// The commands of the capture to learn from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LearnSettings {
    /// How often the paper's experiments are made: each action on one device, each action on two (section IV).
    pub repeats: u32,
    /// How many random commands follow.
    pub random: u32,
}

/// The commands of the capture to test on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct TestSettings {
    /// How many random commands.
    pub commands: u32,
}

/// How exact the labels are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct LabelSettings {
    /// The most that a label's time is off, either way.
    pub error: SignedDuration,
}

impl Default for CommandSettings {
    fn default() -> Self {
        Self {
            interval: DurationRange::from_millis(4_000, 20_000),
            most_actions: 16,
            decay: 0.75,
            message_id: MessageId::default(),
            device_ids: DeviceIds::Fixed,
        }
    }
}

impl Default for MessageId {
    fn default() -> Self {
        Self { min_digits: 5, max_digits: 8, draw: IdDraw::Number }
    }
}

impl Default for LearnSettings {
    fn default() -> Self {
        Self { repeats: 3, random: 150 }
    }
}

impl Default for TestSettings {
    fn default() -> Self {
        Self { commands: 307 }
    }
}

impl Default for LabelSettings {
    fn default() -> Self {
        Self { error: SignedDuration::from_millis(300) }
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

/// What their actions look like.
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
    values.into_iter().map(|(name, set)| ActionValue { name: name.into(), set }).collect()
}
