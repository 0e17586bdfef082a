//! The bounds of a scenario's values.

use std::fmt::Display;

use jiff::{SignedDuration, Timestamp};
use rustls::pki_types::ServerName;

use super::{DurationRange, Scenario, Version};
use crate::ScenarioError;

/// The largest number of commands in a capture.
const MAX_COMMANDS: u32 = 100_000;
/// The largest number of events of one recurring kind in a capture.
const MAX_EVENTS: i64 = 1_000_000;
/// The largest number of devices in total.
const MAX_DEVICES: u32 = 10_000;
/// The largest JSON value of an action, in bytes.
const MAX_VALUE_BYTES: usize = 1 << 20;

impl Scenario {
    /// Checks the bounds that the types do not enforce. [`crate::simulate`] does this too.
    ///
    /// # Errors
    /// [`ScenarioError::Value`], which names the key.
    pub fn check(&self) -> Result<(), ScenarioError> {
        let years = Timestamp::UNIX_EPOCH..=Timestamp::constant(3_450_000_000, 0);
        wanted("epoch", self.epoch, years.contains(&self.epoch), "between 1970 and early 2079")?;
        self.check_network()?;
        self.check_protocols()?;
        self.check_commands()?;
        self.check_devices()?;
        self.check_noise_and_capture()?;
        self.check_number_of_events()
    }

    /// Recurring events must not be too frequent for the duration of the commands.
    fn check_number_of_events(&self) -> Result<(), ScenarioError> {
        let experiments = 2 * u64::from(self.learn.repeats) * self.action_names().len() as u64;
        let commands = u64::from(self.test.commands).max(experiments + u64::from(self.learn.random));
        let commands = i64::try_from(commands).unwrap_or(i64::MAX);
        let micros = commands.saturating_mul(self.command.interval.max.as_secs() + 1).saturating_mul(1_000_000);
        let least = SignedDuration::from_micros(micros / MAX_EVENTS);
        let recurring = [
            ("session.keep-alive", self.session.keep_alive),
            ("session.poll-timeout", self.session.poll_timeout),
            ("telemetry.period", self.telemetry.period),
            ("noise.firmware-period", self.noise.firmware_period),
            ("noise.host-period", self.noise.host_period),
            ("noise.dns-period", self.noise.dns_period),
            ("noise.ntp-period", self.noise.ntp_period),
        ];
        for (key, value) in recurring {
            let holds = value.is_zero() || value >= least;
            wanted(key, text(value), holds, format_args!("at least {least:#} for so many commands"))?;
        }
        Ok(())
    }

    fn check_network(&self) -> Result<(), ScenarioError> {
        let network = &self.network;
        let same = network.gateway.is_ipv4() == network.service.is_ipv4();
        wanted("network.service", network.service, same, "of the same IP version as `network.gateway`")?;
        let other = network.gateway != network.service;
        wanted("network.service", network.service, other, "another address than `network.gateway`")?;
        wanted("network.port", network.port, network.port > 0, "between 1 and 65535")?;
        let named = matches!(ServerName::try_from(network.name.as_str()), Ok(ServerName::DnsName(_)));
        wanted("network.name", &network.name, named, "a DNS name")?;
        let trip = (SignedDuration::from_millis(1)..=SignedDuration::from_secs(5)).contains(&network.round_trip);
        wanted("network.round-trip", text(network.round_trip), trip, "between 1ms and 5s")?;
        let size = (64..=8_960).contains(&network.segment_size);
        wanted("network.segment-size", network.segment_size, size, "between 64 and 8960")?;
        probability("network.retransmission", network.retransmission)
    }

    fn check_protocols(&self) -> Result<(), ScenarioError> {
        wanted("tls.chunk", self.tls.chunk, self.tls.chunk <= 16_384, "at most 16384, or 0 to leave it to TLS")?;
        let offered = self.tls.version == Version::Tls12 || !self.tls.suite.is_padded();
        wanted("tls.suite", "a CBC suite", offered, "another: TLS 1.3 has none of these")?;
        period("session.keep-alive", self.session.keep_alive, 100)?;
        period("session.reconnect-after", self.session.reconnect_after, 10_000)?;
        period("telemetry.period", self.telemetry.period, 100)?;
        span("telemetry.think", self.telemetry.think)?;
        let poll = self.session.poll_timeout;
        let held = (SignedDuration::from_secs(1)..=SignedDuration::from_hours(1)).contains(&poll);
        wanted("session.poll-timeout", text(poll), held, "between 1s and 1h")?;
        span("replies.delay", self.replies.delay)?;
        probability("replies.loss", self.replies.loss)?;
        probability("replies.coalesce", self.replies.coalesce)
    }

    fn check_commands(&self) -> Result<(), ScenarioError> {
        let command = &self.command;
        span("command.interval", command.interval)?;
        let DurationRange { min, max } = command.interval;
        wanted("command.interval.min", text(min), min >= SignedDuration::from_millis(50), "at least 50ms")?;
        wanted("command.interval.max", text(max), max <= SignedDuration::from_hours(1), "at most 1h")?;
        wanted("command.most-actions", command.most_actions, command.most_actions > 0, "at least 1")?;
        let decay = command.decay > 0.0 && command.decay <= 1.0;
        wanted("command.decay", command.decay, decay, "above 0 and at most 1")?;
        let id = &command.message_id;
        wanted("command.message-id.min-digits", id.min_digits, id.min_digits > 0, "at least 1")?;
        let digits = (id.min_digits..=18).contains(&id.max_digits);
        wanted("command.message-id.max-digits", id.max_digits, digits, "between `min-digits` and 18")?;
        wanted("learn.repeats", self.learn.repeats, self.learn.repeats <= 1_000, "at most 1000")?;
        let random = self.learn.random;
        wanted("learn.random", random, random <= MAX_COMMANDS, format_args!("at most {MAX_COMMANDS}"))?;
        let learned = random > 0 || self.learn.repeats > 0;
        wanted("learn.random", random, learned, "above 0 where `learn.repeats` is 0")?;
        let test = (1..=MAX_COMMANDS).contains(&self.test.commands);
        wanted("test.commands", self.test.commands, test, format_args!("between 1 and {MAX_COMMANDS}"))?;
        duration("labels.error", self.labels.error)
    }

    fn check_devices(&self) -> Result<(), ScenarioError> {
        wanted("device", "empty", !self.devices.is_empty(), "at least one `[[device]]`")?;
        for (index, device) in self.devices.iter().enumerate() {
            named("device.name", &device.name)?;
            let once = self.devices.iter().take(index).all(|other| other.name != device.name);
            wanted("device.name", &device.name, once, "another for each kind")?;
            wanted(&format!("device.count of `{}`", device.name), device.count, device.count > 0, "at least 1")?;
            let key = format!("device.actions of `{}`", device.name);
            wanted(&key, "empty", !device.actions.is_empty(), "at least one action")?;
            for (index, action) in device.actions.iter().enumerate() {
                named(&key, action)?;
                wanted(&key, action, !device.actions.iter().take(index).any(|other| other == action), "listed once")?;
            }
        }
        let total = self.device_count();
        let few = total <= MAX_DEVICES;
        wanted("device.count", total, few, format_args!("at most {MAX_DEVICES} for all devices together"))?;
        let enough = self.command.most_actions <= total;
        wanted("command.most-actions", self.command.most_actions, enough, "at most the number of devices")?;
        self.check_actions()
    }

    fn check_actions(&self) -> Result<(), ScenarioError> {
        let ours = self.actions != super::commands::actions();
        let names = self.action_names();
        for (index, action) in self.actions.iter().enumerate() {
            let once = self.actions.iter().take(index).all(|other| other.name != action.name);
            wanted("action.name", &action.name, once, "listed once")?;
            let known = !ours || names.contains(&action.name.as_str());
            wanted("action.name", &action.name, known, "an action of one of the devices")?;
            let length = action.set.to_string().len();
            let key = format!("action.set of `{}`", action.name);
            let limit = format_args!("at most {MAX_VALUE_BYTES} bytes");
            wanted(&key, format_args!("{length} bytes long"), length <= MAX_VALUE_BYTES, limit)?;
        }
        Ok(())
    }

    fn check_noise_and_capture(&self) -> Result<(), ScenarioError> {
        period("noise.firmware-period", self.noise.firmware_period, 1_000)?;
        period("noise.host-period", self.noise.host_period, 1_000)?;
        period("noise.dns-period", self.noise.dns_period, 100)?;
        period("noise.ntp-period", self.noise.ntp_period, 100)?;
        let most = 1 << 24;
        for (key, bytes) in
            [("noise.firmware-bytes", self.noise.firmware_bytes), ("noise.host-bytes", self.noise.host_bytes)]
        {
            wanted(key, bytes, bytes <= most, format_args!("at most {most}"))?;
        }
        probability("capture.loss", self.capture.loss)?;
        probability("capture.duplication", self.capture.duplication)?;
        probability("capture.reordering", self.capture.reordering)
    }
}

fn wanted(key: &str, value: impl Display, holds: bool, wanted: impl Display) -> Result<(), ScenarioError> {
    if holds {
        return Ok(());
    }
    Err(ScenarioError::Value { key: key.into(), value: value.to_string(), wanted: wanted.to_string() })
}

/// A duration as written in scenarios.
fn text(time: SignedDuration) -> String {
    format!("{time:#}")
}

fn probability(key: &str, value: f64) -> Result<(), ScenarioError> {
    wanted(key, value, (0.0..=1.0).contains(&value), "between 0 and 1")
}

fn duration(key: &str, value: SignedDuration) -> Result<(), ScenarioError> {
    let day = SignedDuration::ZERO..=SignedDuration::from_hours(24);
    wanted(key, text(value), day.contains(&value), "between 0s and 24h")
}

fn period(key: &str, value: SignedDuration, least_millis: i64) -> Result<(), ScenarioError> {
    duration(key, value)?;
    let least = SignedDuration::from_millis(least_millis);
    let holds = value.is_zero() || value >= least;
    wanted(key, text(value), holds, format_args!("at least {least:#}, or 0s for none"))
}

fn span(key: &str, value: DurationRange) -> Result<(), ScenarioError> {
    duration(&format!("{key}.min"), value.min)?;
    duration(&format!("{key}.max"), value.max)?;
    wanted(&format!("{key}.max"), text(value.max), value.min <= value.max, format_args!("at least `{key}.min`"))
}

fn named(key: &str, name: &str) -> Result<(), ScenarioError> {
    let plain = !name.is_empty() && name.len() <= 64 && !name.chars().any(char::is_control) && name != "time";
    wanted(key, format_args!("`{name}`"), plain, "1 to 64 printable bytes, and not `time`")
}
