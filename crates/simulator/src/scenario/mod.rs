//! What is simulated, as a TOML file says it: one type a table. What its values may be is in `check`.

mod check;
mod home;
mod surroundings;
mod talk;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use home::{Action, Command, Device, DeviceIds, Draw, Labels, Learn, MessageId, Test};
pub use surroundings::{Capture, InitialSequence, Network, Noise, Resolution};
pub use talk::{Framing, QualityOfService, Replies, ReplyMode, Session, Suite, Telemetry, Tls, Version};

use crate::ScenarioError;

/// A scenario: the home, the service and the network between them. Every key has a default, which is the home of the
/// paper (12 plugs, 4 lamps) behind a WebSocket gateway over TLS 1.2 with AES-GCM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// When the first capture starts.
    pub epoch: Timestamp,
    /// Addresses and TCP.
    pub network: Network,
    /// The protocol that encrypts.
    pub tls: Tls,
    /// How gateway and service talk inside TLS.
    pub session: Session,
    /// What commands are like.
    pub command: Command,
    /// The kinds of device.
    #[serde(rename = "device")]
    pub devices: Vec<Device>,
    /// What the actions look like in JSON. An action that is not listed is sent as its own name.
    #[serde(rename = "action")]
    pub actions: Vec<Action>,
    /// The commands of the capture to learn from.
    pub learn: Learn,
    /// The commands of the capture to test on.
    pub test: Test,
    /// How exact the labels are.
    pub labels: Labels,
    /// What the gateway says after a command.
    pub replies: Replies,
    /// What the gateway says on its own account.
    pub telemetry: Telemetry,
    /// Other traffic.
    pub noise: Noise,
    /// What the capture is like.
    pub capture: Capture,
}

/// A range of times, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// The shortest.
    pub min: SignedDuration,
    /// The longest.
    pub max: SignedDuration,
}

impl Span {
    /// A range in milliseconds.
    pub const fn from_millis(min: i64, max: i64) -> Self {
        Self { min: SignedDuration::from_millis(min), max: SignedDuration::from_millis(max) }
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            epoch: Timestamp::constant(1_767_600_000, 0),
            network: Network::default(),
            tls: Tls::default(),
            session: Session::default(),
            command: Command::default(),
            devices: home::devices(),
            actions: home::actions(),
            learn: Learn::default(),
            test: Test::default(),
            labels: Labels::default(),
            replies: Replies::default(),
            telemetry: Telemetry::default(),
            noise: Noise::default(),
            capture: Capture::default(),
        }
    }
}

impl Scenario {
    /// Reads a scenario and checks it.
    ///
    /// # Errors
    /// [`ScenarioError`]: it names the line or the key.
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let scenario: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or(text);
            ScenarioError::Syntax {
                line: before.matches('\n').count() + 1,
                column: before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1,
                reason: error.message().to_owned(),
            }
        })?;
        scenario.check()?;
        Ok(scenario)
    }

    /// All actions, in the order in which the devices first name them: the columns of labels and counts.
    pub fn action_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for name in self.devices.iter().flat_map(|device| &device.actions) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        names
    }
}
