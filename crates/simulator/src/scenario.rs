//! The description of what is simulated, a TOML file: one type for each table. The bounds of values are in `check`.

mod check;
mod commands;
mod habits;
mod protocols;
mod variation;

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sizeleak_model::policies::PaddingPolicy;

pub use commands::{
    ActionValue, CommandSettings, DeviceIds, DeviceKind, IdDraw, LabelSettings, LearnSettings, MessageId, TestSettings,
};
pub use habits::{Attack, AttackKind, Days, HabitSettings, Holiday, PlayedAction, Routine, Sun, TimeOfDay};
pub use protocols::{
    CaptureSettings, Framing, InitialSequence, NetworkSettings, NoiseSettings, PaddingLayer, PaddingSettings,
    QualityOfService, ReplyMode, ReplySettings, Resolution, SessionSettings, Suite, TelemetrySettings, TlsSettings,
    Version,
};
pub use variation::{Compression, DurationRange, FirmwareChange, Overlap, Parameter, Recurring, ReplyPadding};

use crate::ScenarioError;

/// A scenario: the home, the service and the network between them. Every key has a default; the defaults are the home
/// of the paper (12 plugs, 4 lamps) behind a WebSocket gateway over TLS 1.2 with AES-GCM.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Scenario {
    /// When the first capture starts.
    pub epoch: Timestamp,
    pub network: NetworkSettings,
    pub tls: TlsSettings,
    /// The protocol inside TLS.
    pub session: SessionSettings,
    pub command: CommandSettings,
    #[serde(rename = "device")]
    pub devices: Vec<DeviceKind>,
    /// The JSON values of actions. The value of an action that is not listed is its name.
    #[serde(rename = "action")]
    pub actions: Vec<ActionValue>,
    pub learn: LearnSettings,
    pub test: TestSettings,
    /// The life of the home in the capture to test on, in place of random commands.
    pub habits: HabitSettings,
    pub labels: LabelSettings,
    pub replies: ReplySettings,
    pub padding: PaddingSettings,
    pub firmware_change: FirmwareChange,
    pub telemetry: TelemetrySettings,
    pub noise: NoiseSettings,
    pub capture: CaptureSettings,
    /// Actions of a real home ([`Scenario::play`]); in place of random commands where there are any.
    #[serde(skip)]
    pub sequence: Vec<PlayedAction>,
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
            habits: HabitSettings::default(),
            labels: LabelSettings::default(),
            replies: ReplySettings::default(),
            padding: PaddingSettings::default(),
            firmware_change: FirmwareChange::default(),
            telemetry: TelemetrySettings::default(),
            noise: NoiseSettings::default(),
            capture: CaptureSettings::default(),
            sequence: Vec::new(),
        }
    }
}

impl Scenario {
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
        scenario.check().map_err(|fault| fault.in_text(text))?;
        Ok(scenario)
    }

    /// Whether messages of several sizes look alike: in blocks of a cipher, or by padding.
    pub(crate) fn rounds_sizes(&self) -> bool {
        let is_padded =
            [&self.padding.policy, &self.padding.replies].into_iter().any(|one| *one != PaddingPolicy::None);
        is_padded || self.tls.suite.is_padded()
    }

    pub(crate) fn device_count(&self) -> u32 {
        self.devices.iter().map(|device| device.count).fold(0, u32::saturating_add)
    }

    /// The names of all actions in order of first occurrence: the columns of labels and counts.
    pub fn action_names(&self) -> Vec<&str> {
        let mut seen = BTreeSet::new();
        let names = self.devices.iter().flat_map(|device| &device.actions).map(String::as_str);
        names.filter(|name| seen.insert(*name)).collect()
    }
}
