//! The tables of a scenario about the life of a home: whose commands come when, and what attacks them.

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use jiff::SignedDuration;
use jiff::civil::Time;
use serde::{Deserialize, Serialize};

settings! {
    /// The life of the home in the capture to test on. Days are counted from 0, in the home's time zone.
    pub struct HabitSettings {
        /// How many days the capture has; 0: it has `test.commands` commands at `command.interval`.
        pub days: u32 = 0,
        /// The home's time zone: a name of the IANA database.
        pub time_zone: String = "UTC".into(),
        /// The people whose routines are drawn, where no routine is given.
        pub residents: u32 = 2,
        /// Automations that are drawn, where no routine is given.
        pub automations: u32 = 3,
        /// The mean number of commands a day that belong to no routine.
        pub free_commands: f64 = 7.0,
        /// The share of free commands that come while people sleep.
        pub nightly: f64 = 0.005,
        /// By how much people's routines move later in a week.
        pub drift: SignedDuration = SignedDuration::ZERO,
        /// The day from which on routines are other ones: somebody moved in, or began a new job.
        pub change: Option<u32> = None,
        /// What the home does again and again; drawn from the seed where there is none.
        #[serde(rename = "routine")]
        pub routines: Vec<Routine> = Vec::new(),
        /// Days on which people are away.
        #[serde(rename = "holiday")]
        pub holidays: Vec<Holiday> = Vec::new(),
        #[serde(rename = "attack")]
        pub attacks: Vec<Attack> = Vec::new(),
    }
}

/// Commands that come at about the same time of some days.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Routine {
    #[serde(default)]
    pub days: Days,
    pub at: TimeOfDay,
    /// The standard deviation of that time. Without one it is an automation: it also runs while people are away.
    #[serde(default)]
    pub jitter: SignedDuration,
    /// The share of those days.
    #[serde(default = "always")]
    pub chance: f64,
    /// How often each action occurs in each command; the devices are drawn once.
    pub commands: Vec<BTreeMap<String, u32>>,
    /// The mean time from one of its commands to the next.
    #[serde(default = "gap")]
    pub gap: SignedDuration,
}

fn always() -> f64 {
    1.0
}

fn gap() -> SignedDuration {
    SignedDuration::from_secs(20)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Days {
    #[default]
    Daily,
    /// Monday to Friday.
    Weekdays,
    /// Saturday and Sunday.
    Weekends,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum TimeOfDay {
    Clock(Time),
    /// By the sun, at about 50 degrees north.
    Sun(Sun),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sun {
    Sunrise,
    Sunset,
}

/// Days on which people are away and only automations run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Holiday {
    /// The first.
    pub day: u32,
    pub days: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Attack {
    pub kind: AttackKind,
    pub day: u32,
    /// When it begins [default: at a time of that day that suits it, drawn from the seed].
    #[serde(default)]
    pub at: Option<Time>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AttackKind {
    /// Ten random commands within a minute.
    Burst,
    /// Fifteen random commands within 75 minutes.
    SlowBurst,
    /// No command arrives for a day.
    DeadGateway,
    /// All that people do routinely on the day comes four hours later.
    ShiftedRoutine,
    /// Somebody else's commands: eight within three hours, of kinds that this home does not use.
    StolenAccount,
    /// One command with an action that the home has not used before.
    NewAction,
    /// An automation stops for good.
    StoppedAutomation,
    /// One usual command at night.
    NightCommand,
    /// One usual command at its usual time.
    Replay,
}

impl AttackKind {
    pub const ALL: [Self; 9] = [
        Self::Burst,
        Self::SlowBurst,
        Self::DeadGateway,
        Self::ShiftedRoutine,
        Self::StolenAccount,
        Self::NewAction,
        Self::StoppedAutomation,
        Self::NightCommand,
        Self::Replay,
    ];
}

impl Display for AttackKind {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// An action of a real home's rhythm ([`super::Scenario::play`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlayedAction {
    pub(crate) time_ns: i64,
    /// The device's number, over all kinds.
    pub(crate) device: u32,
    pub(crate) action: String,
}
