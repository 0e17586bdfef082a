//! The description of what is simulated, a TOML file: one type for each table, and why a scenario or its simulation
//! fails. The bounds of values are in `check`.

/// Tables of a scenario, each with its keys, and the default of a key behind it.
macro_rules! settings {
    ($(
        $(#[$of_table:meta])*
        pub struct $table:ident { $($(#[$of_key:meta])* pub $key:ident: $kind:ty = $default:expr,)* }
    )*) => {$(
        $(#[$of_table])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
        pub struct $table { $($(#[$of_key])* pub $key: $kind,)* }

        impl Default for $table {
            fn default() -> Self {
                Self { $($key: $default,)* }
            }
        }
    )*};
}

mod check;
mod commands;
mod habits;
mod protocols;

use std::collections::BTreeSet;
use std::fmt::Display;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sizeleak_model::policies::PaddingPolicy;
use sizeleak_platform::storage::OutputError;
use thiserror::Error;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub use commands::{
    ActionValue, CommandSettings, Compression, DeviceIds, DeviceKind, DurationRange, FirmwareChange, IdDraw,
    LabelSettings, LearnSettings, MessageId, Overlap, Parameter, Recurring, ReplyPadding, TestSettings,
};
pub use habits::{Attack, AttackKind, Days, HabitSettings, Holiday, PlayedAction, Routine, Sun, TimeOfDay};
pub use protocols::{
    CaptureSettings, Framing, InitialSequence, NetworkSettings, NoiseSettings, PaddingLayer, PaddingSettings,
    QualityOfService, ReplyMode, ReplySettings, Resolution, SessionSettings, Suite, TelemetrySettings, TlsSettings,
    Version,
};

settings! {
    /// A scenario: the home, the service and the network between them. Every key has a default; the defaults are the
    /// home of the paper (12 plugs, 4 lamps) behind a WebSocket gateway over TLS 1.2 with AES-GCM.
    pub struct Scenario {
        /// When the first capture starts.
        pub epoch: Timestamp = Timestamp::constant(1_767_600_000, 0),
        pub network: NetworkSettings = NetworkSettings::default(),
        pub tls: TlsSettings = TlsSettings::default(),
        /// The protocol inside TLS.
        pub session: SessionSettings = SessionSettings::default(),
        pub command: CommandSettings = CommandSettings::default(),
        #[serde(rename = "device")]
        pub devices: Vec<DeviceKind> = commands::devices(),
        /// The JSON values of actions. The value of an action that is not listed is its name.
        #[serde(rename = "action")]
        pub actions: Vec<ActionValue> = commands::actions(),
        pub learn: LearnSettings = LearnSettings::default(),
        pub test: TestSettings = TestSettings::default(),
        /// The life of the home in the capture to test on, in place of random commands.
        pub habits: HabitSettings = HabitSettings::default(),
        pub labels: LabelSettings = LabelSettings::default(),
        pub replies: ReplySettings = ReplySettings::default(),
        pub padding: PaddingSettings = PaddingSettings::default(),
        pub firmware_change: FirmwareChange = FirmwareChange::default(),
        pub telemetry: TelemetrySettings = TelemetrySettings::default(),
        pub noise: NoiseSettings = NoiseSettings::default(),
        pub capture: CaptureSettings = CaptureSettings::default(),
        /// Actions of a real home ([`Scenario::play`]); in place of random commands where there are any.
        #[serde(skip)]
        pub sequence: Vec<PlayedAction> = Vec::new(),
    }
}

impl Scenario {
    pub fn from_toml(text: &str) -> Result<Self, ScenarioError> {
        let mut scenario: Self = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.get(..start).unwrap_or(text);
            ScenarioError::Syntax {
                line: before.matches('\n').count() + 1,
                column: before.rsplit('\n').next().map_or(0, |line| line.chars().count()) + 1,
                reason: error.message().to_owned(),
            }
        })?;
        let most = &mut scenario.command.most_actions;
        if *most == CommandSettings::default().most_actions {
            // A home need not say that it is small.
            *most = scenario.devices.iter().map(|device| device.count).fold(0, u32::saturating_add).clamp(1, *most);
        }
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

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ScenarioError {
    #[error("the scenario cannot be read, line {line}, column {column}: {reason}")]
    Syntax { line: usize, column: usize, reason: String },
    #[error("{}`{key}` of the scenario is {value}: it must be {wanted}", .line.map_or_else(String::new, |line| format!("line {line}: ")))]
    Value { line: Option<usize>, key: String, value: String, wanted: String },
}

impl ScenarioError {
    /// The same with the line of the key in the text of the scenario: of several tables, the one that is named behind
    /// it.
    fn in_text(mut self, text: &str) -> Self {
        if let Self::Value { line, key, .. } = &mut self {
            *line = line_of(text, key);
        }
        self
    }
}

fn line_of(text: &str, key: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let (path, name) = (key.split([' ', ',']).next()?, key.split('`').nth(1));
    let is_named = |table: &&Spanned<DeValue<'_>>| {
        name.is_none_or(|name| table.get_ref().get("name").and_then(|own| own.get_ref().as_str()) == Some(name))
    };
    let (mut table, mut start) = (document.get_ref(), None);
    for part in path.split('.') {
        let Some((at, value)) = table.get_key_value(part) else { break };
        start = Some(at.span().start);
        table = match value.get_ref() {
            DeValue::Table(inner) => inner,
            DeValue::Array(tables) => match tables.iter().find(is_named).map(Spanned::get_ref) {
                Some(DeValue::Table(inner)) => inner,
                _ => break,
            },
            _ => break,
        };
    }
    Some(text.get(..start?)?.matches('\n').count() + 1)
}

/// Why a simulation failed, in a sentence.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct SimulateError(pub(crate) String);

impl SimulateError {
    pub(crate) fn encoding<E: Display>(what: &'static str) -> impl Fn(E) -> Self + Copy {
        move |error| Self(format!("{what} cannot be encoded: {error}"))
    }

    pub(crate) fn impossible(fault: impl Display) -> Self {
        Self(format!("the home cannot do this: {fault}"))
    }

    pub(crate) fn tls(error: impl Display) -> Self {
        Self(format!("the simulated TLS session failed: {error}"))
    }
}

impl From<ScenarioError> for SimulateError {
    fn from(error: ScenarioError) -> Self {
        Self(error.to_string())
    }
}

impl From<rustls::Error> for SimulateError {
    fn from(error: rustls::Error) -> Self {
        Self::tls(error)
    }
}

impl From<OutputError> for SimulateError {
    fn from(error: OutputError) -> Self {
        Self(error.to_string())
    }
}
