//! What is simulated, as a TOML file says it: one type a table. What its values may be is in `check`.

mod check;
mod commands;
mod network;
mod protocols;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

pub use commands::{
    ActionValue, CommandSettings, DeviceIds, DeviceKind, IdDraw, LabelSettings, LearnSettings, MessageId, TestSettings,
};
pub use network::{CaptureSettings, InitialSequence, NetworkSettings, NoiseSettings, Resolution};
pub use protocols::{
    Framing, QualityOfService, ReplyMode, ReplySettings, SessionSettings, Suite, TelemetrySettings, TlsSettings,
    Version,
};

use crate::ScenarioError;

/// A scenario: the home, the service and the network between them. Every key has a default, which is the home of the
/// paper (12 plugs, 4 lamps) behind a WebSocket gateway over TLS 1.2 with AES-GCM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// When the first capture starts.
    pub epoch: Timestamp,
    /// Addresses and TCP.
    pub network: NetworkSettings,
    /// The protocol that encrypts.
    pub tls: TlsSettings,
    /// How gateway and service talk inside TLS.
    pub session: SessionSettings,
    /// What commands are like.
    pub command: CommandSettings,
    /// The kinds of device.
    #[serde(rename = "device")]
    pub devices: Vec<DeviceKind>,
    /// What the actions look like in JSON. An action that is not listed is sent as its own name.
    #[serde(rename = "action")]
    pub actions: Vec<ActionValue>,
    /// The commands of the capture to learn from.
    pub learn: LearnSettings,
    /// The commands of the capture to test on.
    pub test: TestSettings,
    /// How exact the labels are.
    pub labels: LabelSettings,
    /// What the gateway says after a command.
    pub replies: ReplySettings,
    /// What the gateway says on its own account.
    pub telemetry: TelemetrySettings,
    /// Other traffic.
    pub noise: NoiseSettings,
    /// What the capture is like.
    pub capture: CaptureSettings,
}

/// A range of times, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DurationRange {
    /// The shortest.
    pub min: SignedDuration,
    /// The longest.
    pub max: SignedDuration,
}

impl DurationRange {
    /// A range in milliseconds.
    pub const fn from_millis(min: i64, max: i64) -> Self {
        Self { min: SignedDuration::from_millis(min), max: SignedDuration::from_millis(max) }
    }
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            epoch: Timestamp::constant(1_767_600_000, 0),
            network: NetworkSettings::default(),
            tls: TlsSettings::default(),
            session: SessionSettings::default(),
            command: CommandSettings::default(),
            devices: commands::devices(),
            actions: commands::actions(),
            learn: LearnSettings::default(),
            test: TestSettings::default(),
            labels: LabelSettings::default(),
            replies: ReplySettings::default(),
            telemetry: TelemetrySettings::default(),
            noise: NoiseSettings::default(),
            capture: CaptureSettings::default(),
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
