//! The rhythm of a real home, from a file, as the commands of a scenario.

use std::collections::BTreeMap;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::SimulateError;
use crate::command_generator::{DeviceAction, WantedCommand};
use crate::scenario::{DeviceKind, PlayedAction, Scenario};
use crate::time::DAY;

const WEEK: i64 = 7 * DAY;

impl Scenario {
    /// Takes devices and commands from a sequence: CSV with the columns `time` (RFC 3339, or a local time, taken in the
    /// home's time zone), `device` and `action`, in order of time. The devices replace the scenario's; those with the
    /// same actions are of one kind, which has the name of the first.
    pub fn play(&mut self, sequence: &str) -> Result<(), SimulateError> {
        let zone = TimeZone::get(&self.habits.time_zone).unwrap_or(TimeZone::UTC);
        let mut actions: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut events = Vec::new();
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(sequence.as_bytes());
        for (row, line) in reader.deserialize().zip(2_u64..) {
            let fault = |reason: String| {
                let needed = "it needs the columns time, device and action";
                SimulateError(format!("the sequence, line {line}: {reason}; {needed}"))
            };
            let (time, device, action): (String, String, String) = row.map_err(|error| fault(error.to_string()))?;
            let time_ns = parsed(&time, &zone).ok_or_else(|| fault(format!("`{time}` is not a time")))?;
            let of_device = actions.entry(device.clone()).or_default();
            if !of_device.contains(&action) {
                of_device.push(action.clone());
            }
            events.push((time_ns, device, action));
        }
        events.sort_by_key(|(time_ns, ..)| *time_ns);
        let mut kinds: Vec<(DeviceKind, Vec<String>)> = Vec::new();
        for (device, mut actions) in actions {
            actions.sort_unstable();
            match kinds.iter_mut().find(|(kind, _)| kind.actions == actions) {
                Some((kind, members)) => {
                    kind.count += 1;
                    members.push(device);
                }
                None => kinds.push((DeviceKind { name: device.clone(), count: 1, actions }, vec![device])),
            }
        }
        let numbers: BTreeMap<&String, u32> = kinds.iter().flat_map(|(_, members)| members).zip(0..).collect();
        let played = |(time_ns, device, action): (i64, String, String)| {
            Some(PlayedAction { time_ns, device: *numbers.get(&device)?, action })
        };
        self.sequence = events.into_iter().filter_map(played).collect();
        self.devices = kinds.into_iter().map(|(kind, _)| kind).collect();
        self.command.most_actions = self.command.most_actions.min(self.device_count());
        let is_used = |name: &String| self.devices.iter().any(|device| device.actions.contains(name));
        self.actions.retain(|action| is_used(&action.name));
        if let Some(first) = self.sequence.first() {
            // So that the commands to learn from come the day before.
            let before = Timestamp::from_nanosecond(i128::from(first.time_ns)).ok();
            let before = before.and_then(|first| first.checked_sub(SignedDuration::from_hours(36)).ok());
            self.epoch = before.unwrap_or(self.epoch);
        }
        Ok(self.check()?)
    }

    /// The commands of the sequence, from `start_ns` on: later by whole weeks where they would begin before it.
    pub(crate) fn played_commands(&self, start_ns: i64) -> Vec<WantedCommand> {
        let names = self.action_names();
        let first = self.sequence.first().map_or(start_ns, |event| event.time_ns);
        let later = (start_ns - first).max(0).div_euclid(WEEK) + i64::from(start_ns > first);
        let command = |event: &PlayedAction| {
            let action = names.iter().position(|name| *name == event.action)?;
            Some(WantedCommand::new(Some(event.time_ns + later * WEEK), vec![DeviceAction::new(event.device, action)]))
        };
        self.sequence.iter().filter_map(command).collect()
    }
}

/// Reads a time; nanoseconds since the epoch.
fn parsed(text: &str, zone: &TimeZone) -> Option<i64> {
    let local = || text.parse::<DateTime>().ok()?.to_zoned(zone.clone()).ok().map(|time| time.timestamp());
    let time = text.parse::<Timestamp>().ok().or_else(local)?;
    i64::try_from(time.as_nanosecond()).ok()
}
