//! Logs of events as labels: the history of Home Assistant, `SmartThings` or openHAB says which state an entity had when; a
//! map says which of these changes are actions.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

use crate::event_log::{Event, EventLog};

/// What stands for any entity, or any state, behind what is before it.
const ANY: char = '*';

/// Which events of a log are actions, as TOML has it.
///
/// ```toml
/// time = "last_changed"          # the columns, or the keys, of a time, an entity and its state
/// entity = ["entity_id"]
/// state = "state"
/// together = "100ms"             # events this close to a first one are one command
///
/// [actions."switch.plug_*"]      # entities, and what their states are called; * stands for anything behind it
/// on = "on"
/// off = "off"
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabelMap {
    /// The column or key of the time; a dotted path (`payload.time`) leads into objects.
    pub time: String,
    /// Those of the entity; the values of several are joined by `/`.
    pub entity: Vec<String>,
    /// That of the state.
    pub state: String,
    /// Events within this time of a first one are one command: `100ms`.
    #[serde(default = "at_once")]
    pub together: String,
    /// For each entity what its states are called as actions.
    pub actions: BTreeMap<String, BTreeMap<String, String>>,
}

fn at_once() -> String {
    "0s".to_owned()
}

/// The keys that logs usually have, the more particular ones first.
const TIME_KEYS: [&str; 10] =
    ["last_changed", "eventTime", "lu", "last_updated", "when", "timestamp", "datetime", "date", "start", "time"];
const ENTITY_KEYS: [&str; 10] = [
    "entity_id",
    "deviceDisplayName",
    "displayName",
    "deviceId",
    "device_id",
    "itemName",
    "item",
    "topic",
    "device",
    "name",
];
const ATTRIBUTE_KEYS: [&str; 1] = ["attribute"];
const STATE_KEYS: [&str; 7] = ["state", "newState", "payload.value", "value", "command", "s", "event"];

/// What logs call a state that is not known.
const NO_STATES: [&str; 3] = ["unavailable", "unknown", ""];

/// The most entities, and states of one, that a map is proposed for; what changes more often is a measurement.
const MAX_PROPOSED: usize = 64;
const MAX_STATES: usize = 24;

impl FromStr for LabelMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let map: Self = toml::from_str(text).map_err(|error| error.to_string().trim_end().replace('\n', " "))?;
        map.together_ns()?;
        if map.entity.is_empty() {
            return Err("`entity` names no column or key: name one".to_owned());
        }
        if map.actions.values().all(BTreeMap::is_empty) {
            return Err(
                "no state of any entity is an action: write `[actions.\"ENTITY\"]` and `STATE = \"ACTION\"`".to_owned()
            );
        }
        Ok(map)
    }
}

impl LabelMap {
    /// A map for a log whose form is known: each entity with its states as they are called. Entities of many states, as
    /// measurements have, are left out.
    pub(crate) fn proposed(log: &EventLog) -> Option<Self> {
        let has = |key: &&&str| log.has_key(key);
        let first = |keys: &[&str]| keys.iter().find(has).map(|key| (*key).to_owned());
        let entity = first(&ENTITY_KEYS)?;
        let mut map = Self {
            time: first(&TIME_KEYS)?,
            entity: std::iter::once(entity).chain(first(&ATTRIBUTE_KEYS)).collect(),
            state: first(&STATE_KEYS)?,
            together: at_once(),
            actions: BTreeMap::new(),
        };
        let mut states: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for Event { entity, state, .. } in map.events(log) {
            let known = states.entry(entity).or_default();
            if known.len() <= MAX_STATES && !NO_STATES.contains(&state.as_str()) {
                known.insert(state);
            }
        }
        let named =
            states.into_iter().filter(|(_, states)| (1..=MAX_STATES).contains(&states.len())).take(MAX_PROPOSED);
        map.actions = named
            .map(|(entity, states)| (entity, states.into_iter().map(|state| (state.clone(), state)).collect()))
            .collect();
        (!map.actions.is_empty()).then_some(map)
    }

    /// The map as a file, with what to do.
    pub fn in_words(&self) -> String {
        let map = toml::to_string(self).unwrap_or_default();
        format!(
            "# Which events are actions: name each as the inventory does, and delete the lines of all others.\n# `*` at the \
             end of an entity or a state stands for anything. Events within `together` are one command.\n{map}"
        )
    }

    /// The events of a log.
    pub(crate) fn events<'a>(&'a self, log: &'a EventLog) -> impl Iterator<Item = Event> + 'a {
        log.events(&self.time, &self.entity, &self.state)
    }

    /// The action of an event; `None` if it is none.
    pub(crate) fn action(&self, event: &Event) -> Option<&str> {
        let states = most_particular(&self.actions, &event.entity)?;
        most_particular(states, &event.state).map(String::as_str)
    }

    /// [`Self::together`] in nanoseconds.
    pub(crate) fn together_ns(&self) -> Result<i64, String> {
        let duration: Option<SignedDuration> = self.together.parse().ok();
        let nanoseconds = duration.and_then(|duration| i64::try_from(duration.as_nanos()).ok());
        nanoseconds
            .filter(|time| *time >= 0)
            .ok_or_else(|| format!("`together = \"{}\"`: write it like 100ms", self.together))
    }
}

/// What is said of a name: itself before patterns, longer patterns before shorter ones.
fn most_particular<'a, T>(said: &'a BTreeMap<String, T>, name: &str) -> Option<&'a T> {
    let begins = |pattern: &str| pattern.strip_suffix(ANY).is_some_and(|begin| name.starts_with(begin));
    let of_patterns = || said.iter().filter(|(pattern, _)| begins(pattern)).max_by_key(|(pattern, _)| pattern.len());
    said.get(name).or_else(|| of_patterns().map(|(_, value)| value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_taken_before_patterns_and_longer_ones_before_shorter_ones() {
        let said = BTreeMap::from(
            [("*", 0), ("plug.*", 1), ("plug.lamp_*", 2), ("plug.lamp_7", 3)].map(|(a, b)| (a.to_owned(), b)),
        );
        let found = ["fan", "plug.1", "plug.lamp_1", "plug.lamp_7"].map(|name| most_particular(&said, name).copied());
        assert_eq!(found, [Some(0), Some(1), Some(2), Some(3)]);
        assert_eq!(most_particular(&BTreeMap::from([("a".to_owned(), 1)]), "ab"), None);
    }

    #[test]
    fn maps_that_say_nothing_are_refused() {
        let map =
            |more: &str| format!("time = \"t\"\nentity = [\"e\"]\nstate = \"s\"\n{more}[actions.lamp]\non = \"on\"\n");
        assert!(map("").parse::<LabelMap>().is_ok());
        assert!(map("together = \"soon\"\n").parse::<LabelMap>().unwrap_err().contains("100ms"));
        assert!(map("tme = 1\n").parse::<LabelMap>().unwrap_err().contains("tme"));
        assert!(map("").replace("on = \"on\"", "").parse::<LabelMap>().unwrap_err().contains("no state"));
    }
}
