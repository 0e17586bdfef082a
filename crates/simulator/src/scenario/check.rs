//! The bounds of a scenario's values.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::ServerName;

use sizeleak_model::policies::PaddingPolicy;

use super::{ActionValue, Compression, DurationRange, Framing, PaddingLayer, Parameter, ReplyMode, Scenario, Version};
use crate::ScenarioError;

const MAX_COMMANDS: u32 = 100_000;
/// The largest number of events of one recurring kind in a capture.
const MAX_EVENTS: i64 = 1_000_000;
const MAX_DEVICES: u32 = 10_000;
/// The most different actions, as many as a model has.
const MAX_ACTIONS: usize = 4_096;
/// The most actions that all devices together have, and that all commands of a capture together may have: each takes some
/// hundred bytes of memory.
const MAX_ACTIONS_OF_DEVICES: u64 = 100_000;
const MAX_ACTIONS_OF_COMMANDS: u64 = 4_000_000;
const MAX_VALUE_BYTES: usize = 1 << 20;
const MAX_NAMES: usize = 1_000;
const MAX_NAME_BYTES: usize = 256;
const MAX_REPLIES: usize = 16;
/// The most bytes that a reply is padded with, or that new firmware adds.
const MAX_ADDED_BYTES: u32 = 1_024;

/// The most days of a home's life.
const MAX_DAYS: u32 = 3_660;

const ZERO: SignedDuration = SignedDuration::ZERO;
const MILLISECOND: SignedDuration = SignedDuration::from_millis(1);
const SECOND: SignedDuration = SignedDuration::from_secs(1);
const HOUR: SignedDuration = SignedDuration::from_hours(1);
const DAY: SignedDuration = SignedDuration::from_hours(24);

impl Scenario {
    /// Checks the bounds that the types do not enforce. [`crate::simulate`] does this too.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let years = Timestamp::UNIX_EPOCH..=Timestamp::constant(3_450_000_000, 0);
        wanted("epoch", self.epoch, years.contains(&self.epoch), "between 1970 and early 2079")?;
        self.check_network()?;
        self.check_protocols()?;
        self.check_commands()?;
        self.check_devices()?;
        self.check_habits()?;
        self.check_number_of_events()
    }

    /// The time between two events of each recurring kind, and the least that it may be, in milliseconds.
    fn periods(&self) -> [(&'static str, SignedDuration, i64); 7] {
        let Self { session, noise, .. } = self;
        [
            ("session.keep-alive", session.keep_alive, 100),
            ("session.poll-timeout", session.poll_timeout, 1_000),
            ("telemetry.period", self.telemetry.period, 100),
            ("noise.firmware-period", noise.firmware_period, 1_000),
            ("noise.host-period", noise.host_period, 1_000),
            ("noise.dns-period", noise.dns_period, 100),
            ("noise.ntp-period", noise.ntp_period, 100),
        ]
    }

    /// Recurring events must not be too frequent for the duration of the commands.
    fn check_number_of_events(&self) -> Result<(), ScenarioError> {
        let experiments = 2 * u64::from(self.learn.repeats) * self.action_names().len() as u64;
        let text = format_args!("so few that experiments with each action are at most {MAX_COMMANDS} commands");
        wanted("learn.repeats", self.learn.repeats, experiments <= MAX_COMMANDS.into(), text)?;
        let commands = u64::from(self.test.commands).max(experiments + u64::from(self.learn.random));
        let most = MAX_ACTIONS_OF_COMMANDS / (commands + u64::from(self.command.recurring.commands));
        let text = format_args!("at most {most} for this number of commands");
        wanted("command.most-actions", self.command.most_actions, u64::from(self.command.most_actions) <= most, text)?;
        // Dummies come on top of them.
        let commands = (commands as f64 / (1.0 - self.command.dummies)) as i64;
        let micros = commands.saturating_mul(self.command.interval.max.as_secs() + 1).saturating_mul(1_000_000);
        let least = SignedDuration::from_micros(micros / MAX_EVENTS);
        for (key, value, _) in self.periods() {
            let holds = value.is_zero() || value >= least;
            wanted(key, value, holds, format_args!("at least {least:#} for this number of commands"))?;
        }
        Ok(())
    }

    fn check_network(&self) -> Result<(), ScenarioError> {
        let network = &self.network;
        let same = network.gateway.is_ipv4() == network.service.is_ipv4();
        wanted("network.service", network.service, same, "of the same IP version as `network.gateway`")?;
        let other = network.gateway != network.service;
        wanted("network.service", network.service, other, "another address than `network.gateway`")?;
        within("network.port", network.port, 1..=u16::MAX)?;
        let named = matches!(ServerName::try_from(network.name.as_str()), Ok(ServerName::DnsName(_)));
        wanted("network.name", &network.name, named, "a DNS name")?;
        within("network.round-trip", network.round_trip, MILLISECOND..=5 * SECOND)?;
        within("network.segment-size", network.segment_size, 64..=8_960)?;
        probability("network.retransmission", network.retransmission)?;
        within("noise.firmware-bytes", self.noise.firmware_bytes, 0..=1 << 24)?;
        within("noise.host-bytes", self.noise.host_bytes, 0..=1 << 24)?;
        probability("capture.loss", self.capture.loss)?;
        probability("capture.duplication", self.capture.duplication)?;
        probability("capture.reordering", self.capture.reordering)
    }

    fn check_protocols(&self) -> Result<(), ScenarioError> {
        wanted("tls.chunk", self.tls.chunk, self.tls.chunk <= 16_384, "at most 16384, or 0 for the limit of TLS")?;
        let offered = self.tls.version == Version::Tls12 || !self.tls.suite.is_padded();
        wanted("tls.suite", "a CBC suite", offered, "another: TLS 1.3 has no CBC suites")?;
        within("session.poll-timeout", self.session.poll_timeout, SECOND..=HOUR)?;
        for (key, value, least_millis) in self.periods() {
            period(key, value, least_millis)?;
        }
        period("session.reconnect-after", self.session.reconnect_after, 10_000)?;
        duration_range("telemetry.think", self.telemetry.think)?;
        duration_range("replies.delay", self.replies.delay)?;
        probability("replies.loss", self.replies.loss)?;
        probability("replies.coalesce", self.replies.coalesce)?;
        probability("firmware-change.after", self.firmware_change.after)?;
        within("firmware-change.bytes", self.firmware_change.bytes, 0..=MAX_ADDED_BYTES as usize)?;
        let padding = &self.padding;
        for (key, policy) in [("padding.policy", &padding.policy), ("padding.replies", &padding.replies)] {
            let fault = policy.check().err().map_or_else(String::new, |error| error.to_string());
            wanted(key, policy, fault.is_empty(), format_args!("one that can be used: {fault}"))?;
            let is_possible = *policy == PaddingPolicy::None || self.session.compression == Compression::None;
            let text = "\"none\" with `session.compression`: blanks would be compressed";
            wanted(key, policy, is_possible || padding.layer == PaddingLayer::Record, text)?;
        }
        let is_offered = padding.layer == PaddingLayer::Body || self.tls.version == Version::Tls13;
        wanted("padding.layer", "\"record\"", is_offered, "\"body\" with `tls.version` \"1.2\", which has no padding")
    }

    fn check_commands(&self) -> Result<(), ScenarioError> {
        let command = &self.command;
        duration_range("command.interval", command.interval)?;
        within("command.interval.min", command.interval.min, 50 * MILLISECOND..=HOUR)?;
        within("command.interval.max", command.interval.max, 50 * MILLISECOND..=HOUR)?;
        let is_decay = command.decay > 0.0 && command.decay <= 1.0;
        wanted("command.decay", command.decay, is_decay, "above 0 and at most 1")?;
        let id = &command.message_id;
        within("command.message-id.min-digits", id.min_digits, 1..=18)?;
        within("command.message-id.max-digits", id.max_digits, id.min_digits..=18)?;
        within("learn.repeats", self.learn.repeats, 0..=1_000)?;
        within("learn.random", self.learn.random, u32::from(self.learn.repeats == 0)..=MAX_COMMANDS)?;
        within("test.commands", self.test.commands, 1..=MAX_COMMANDS)?;
        within("labels.error", self.labels.error, ZERO..=DAY)?;
        probability("command.second-app", command.second_app)?;
        within("command.dummies", command.dummies, 0.0..=0.9)?;
        let overlap = command.overlap;
        probability("command.overlap.share", overlap.share)?;
        let waits = self.session.framing == Framing::Http;
        let text = "0 with `session.framing` \"http\": a gateway that polls replies before it takes the next command";
        wanted("command.overlap.share", overlap.share, overlap.share <= 0.0 || !waits, text)?;
        within("command.overlap.interval.min", overlap.interval.min, MILLISECOND..=HOUR)?;
        within("command.overlap.interval.max", overlap.interval.max, overlap.interval.min..=HOUR)?;
        let recurring = command.recurring;
        probability("command.recurring.share", recurring.share)?;
        within("command.recurring.commands", recurring.commands, u32::from(recurring.share > 0.0)..=10_000)
    }

    fn check_devices(&self) -> Result<(), ScenarioError> {
        wanted("device", "empty", !self.devices.is_empty(), "at least one `[[device]]`")?;
        let mut names = BTreeSet::new();
        for device in &self.devices {
            name("device.name", &device.name)?;
            wanted("device.name", &device.name, names.insert(&device.name), "another for each kind")?;
            within(&format!("device.count of `{}`", device.name), device.count, 1..=MAX_DEVICES)?;
            let key = format!("device.actions of `{}`", device.name);
            wanted(&key, "empty", !device.actions.is_empty(), "at least one action")?;
            let mut actions = BTreeSet::new();
            for action in &device.actions {
                name(&key, action)?;
                wanted(&key, action, actions.insert(action), "listed once")?;
            }
        }
        let total = self.device_count();
        let text = format_args!("at most {MAX_DEVICES} for all devices together");
        wanted("device.count", total, total <= MAX_DEVICES, text)?;
        let text = format_args!("at most {MAX_ACTIONS}");
        for (key, number) in [("device.actions", self.action_names().len()), ("action", self.actions.len())] {
            wanted(key, format_args!("{number} actions"), number <= MAX_ACTIONS, text)?;
        }
        let actions: u64 =
            self.devices.iter().map(|device| u64::from(device.count) * device.actions.len() as u64).sum();
        let text = format_args!("at most {MAX_ACTIONS_OF_DEVICES} actions of all devices together");
        let value = format_args!("so great that devices have {actions} actions");
        wanted("device.count", value, actions <= MAX_ACTIONS_OF_DEVICES, text)?;
        let most = self.command.most_actions;
        let text = format_args!(
            "between 1 and {total}, the number of devices; write `most-actions = {total}` below `[command]`"
        );
        wanted("command.most-actions", most, (1..=total).contains(&most), text)?;
        self.check_actions()
    }

    fn check_habits(&self) -> Result<(), ScenarioError> {
        let habits = &self.habits;
        within("habits.days", habits.days, 0..=MAX_DAYS)?;
        let zone = TimeZone::get(&habits.time_zone);
        wanted("habits.time-zone", &habits.time_zone, zone.is_ok(), "a time zone such as \"Europe/Berlin\"")?;
        within("habits.residents", habits.residents, 0..=20)?;
        within("habits.automations", habits.automations, 0..=20)?;
        within("habits.free-commands", habits.free_commands, 0.0..=1_000.0)?;
        probability("habits.nightly", habits.nightly)?;
        within("habits.drift", habits.drift, -HOUR..=HOUR)?;
        for routine in &habits.routines {
            within("habits.routine.jitter", routine.jitter, ZERO..=6 * HOUR)?;
            probability("habits.routine.chance", routine.chance)?;
            within("habits.routine.gap", routine.gap, ZERO..=6 * HOUR)?;
            let (key, names) = ("habits.routine.commands", self.action_names());
            let mut counts = routine.commands.iter().map(|counts| counts.values().sum::<u32>());
            let text = format_args!("each of 1 to {} actions", self.device_count());
            let is_possible = counts.len() > 0 && counts.all(|count| (1..=self.device_count()).contains(&count));
            wanted(key, routine.commands.len(), is_possible, text)?;
            for action in routine.commands.iter().flat_map(|counts| counts.keys()) {
                wanted(key, action, names.contains(&action.as_str()), "an action of one of the devices")?;
            }
        }
        let of_attacks = habits.attacks.iter().map(|attack| ("habits.attack.day", attack.day));
        let of_holidays = habits.holidays.iter().map(|holiday| ("habits.holiday.day", holiday.day));
        for (key, day) in of_attacks.chain(of_holidays) {
            wanted(key, day, day < habits.days, "a day of `habits.days`, from 0")?;
        }
        habits.holidays.iter().try_for_each(|holiday| within("habits.holiday.days", holiday.days, 1..=MAX_DAYS))
    }

    fn check_actions(&self) -> Result<(), ScenarioError> {
        let are_default = self.actions == super::commands::actions();
        let names = self.action_names();
        for (index, action) in self.actions.iter().enumerate() {
            let once = self.actions.iter().take(index).all(|other| other.name != action.name);
            wanted("action.name", &action.name, once, "listed once")?;
            let is_known = are_default || names.contains(&action.name.as_str());
            wanted("action.name", &action.name, is_known, "an action of one of the devices")?;
            let length = action.set.to_string().len();
            let limit = format_args!("at most {MAX_VALUE_BYTES} bytes");
            let (key, value) = (format!("action.set of `{}`", action.name), format_args!("{length} bytes long"));
            wanted(&key, value, length <= MAX_VALUE_BYTES, limit)?;
            check_parameter(action)?;
            self.check_replies(action)?;
        }
        Ok(())
    }

    fn check_replies(&self, action: &ActionValue) -> Result<(), ScenarioError> {
        let Some(replies) = &action.replies else { return Ok(()) };
        let key = format!("action.replies of `{}`", action.name);
        let text = "absent unless `replies.mode` is \"per-action\"";
        wanted(&key, "present", self.replies.mode == ReplyMode::PerAction, text)?;
        let count = replies.len();
        wanted(&key, count, count <= MAX_REPLIES, format_args!("at most {MAX_REPLIES} replies"))?;
        replies.iter().try_for_each(|padding| {
            within(&format!("{key}, min"), padding.min, 0..=MAX_ADDED_BYTES)?;
            within(&format!("{key}, max"), padding.max, padding.min..=MAX_ADDED_BYTES)
        })
    }
}

fn check_parameter(action: &ActionValue) -> Result<(), ScenarioError> {
    let key = format!("action.parameter of `{}`", action.name);
    match &action.parameter {
        None => Ok(()),
        Some(Parameter::Number { min, max }) => {
            within(&format!("{key}, number.max"), *max, 0..=10_u64.pow(18))?;
            within(&format!("{key}, number.min"), *min, 0..=*max)
        }
        Some(Parameter::Name(names)) => {
            let text = format_args!("between 1 and {MAX_NAMES} names");
            wanted(&key, names.len(), (1..=MAX_NAMES).contains(&names.len()), text)?;
            let text = format_args!("at most {MAX_NAME_BYTES} bytes");
            names.iter().try_for_each(|name| {
                wanted(&key, format_args!("{} bytes long", name.len()), name.len() <= MAX_NAME_BYTES, text)
            })
        }
    }
}

/// An error unless `holds`. Durations are shown as they are written in scenarios.
fn wanted(key: &str, value: impl Display, holds: bool, wanted: impl Display) -> Result<(), ScenarioError> {
    if holds {
        return Ok(());
    }
    Err(ScenarioError::Value { line: None, key: key.into(), value: format!("{value:#}"), wanted: wanted.to_string() })
}

fn within<T: Display + PartialOrd>(key: &str, value: T, range: RangeInclusive<T>) -> Result<(), ScenarioError> {
    let holds = range.contains(&value);
    wanted(key, value, holds, format_args!("between {:#} and {:#}", range.start(), range.end()))
}

fn probability(key: &str, value: f64) -> Result<(), ScenarioError> {
    within(key, value, 0.0..=1.0)
}

fn period(key: &str, value: SignedDuration, least_millis: i64) -> Result<(), ScenarioError> {
    within(key, value, ZERO..=DAY)?;
    let least = SignedDuration::from_millis(least_millis);
    wanted(key, value, value.is_zero() || value >= least, format_args!("at least {least:#}, or 0s for none"))
}

fn duration_range(key: &str, range: DurationRange) -> Result<(), ScenarioError> {
    within(&format!("{key}.min"), range.min, ZERO..=DAY)?;
    within(&format!("{key}.max"), range.max, range.min..=DAY)
}

fn name(key: &str, name: &str) -> Result<(), ScenarioError> {
    let is_plain = !name.is_empty() && name.len() <= 64 && !name.chars().any(char::is_control) && name != "time";
    wanted(key, format_args!("`{name}`"), is_plain, "1 to 64 printable bytes, and not `time`")
}
