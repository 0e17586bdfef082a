//! Logs of events as labels: the history of Home Assistant, `SmartThings` or openHAB; a map says which are actions.

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::labels::event_log::{EACH, Event, EventLog};
use crate::labels::matching::Tolerance;

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
    /// Those of the entity; the values of several are joined by `/`. None, if all the log is of one entity.
    pub entity: Vec<String>,
    /// That of the state; `*`, or `payload.*`: each key or column there has one, and its name ends the entity.
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
const TIME_KEYS: &str = "last_changed eventTime lu last_updated event.time_fired tst _time when timestamp datetime date start \
    ts time";
const ENTITY_KEYS: &str = "entity_id event.data.entity_id deviceDisplayName displayName deviceName deviceId device_id itemName \
    item topic device series tags _measurement name id";
const ATTRIBUTE_KEYS: &str = "attribute";
const STATE_KEYS: &str =
    "event.data.new_state.state state newState payload.value payload value _value command s event val";

/// What holds the states of several attributes.
const HOLDER: &str = "payload";

/// What Home Assistant calls entities that nobody commands, and what programs call what such devices measure.
const SENSORS: &str = "sensor binary_sensor person device_tracker sun weather zone update motion contact presence occupancy \
    temperature humidity illuminance pressure battery voltage current power energy linkquality tamper \
    water smoke acceleration last_seen rssi signal_strength uptime power_on_behavior battery_low";

/// Events of one command come within this time of each other: nobody commands faster, so others are not joined.
const MAX_APART_NS: i64 = 1_000_000_000;

/// Between commands there is this many times the time between the events of one, or that is not told apart.
const MIN_APART: i64 = 4;

/// What logs call a state that is not known.
const NO_STATES: [&str; 3] = ["unavailable", "unknown", ""];

/// The most entities, and states of one, that a map is proposed for; what changes more often is a measurement.
const MAX_PROPOSED: usize = 64;
const MAX_STATES: usize = 24;

impl FromStr for LabelMap {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let map: Self = toml::from_str(text).map_err(|error| {
            let line =
                error.span().map_or(1, |span| 1 + text.bytes().take(span.start).filter(|it| *it == b'\n').count());
            format!("it is no map of a log: line {line}: {}", error.message())
        })?;
        map.together_ns()?;
        if map.actions.values().all(BTreeMap::is_empty) {
            return Err(
                "no state of any entity is an action: write `[actions.\"ENTITY\"]` and `STATE = \"ACTION\"`".to_owned()
            );
        }
        Ok(map)
    }
}

impl LabelMap {
    /// A map for a log whose form is known: each entity with its states as they are called. Sensors, and entities of
    /// many states, as measurements have, are left out.
    pub(crate) fn proposed(log: &EventLog) -> Option<Self> {
        let first = |keys: &str| keys.split(' ').find_map(|key| log.key(key));
        let time = first(TIME_KEYS)?;
        let entity: Vec<String> = first(ENTITY_KEYS).into_iter().chain(first(ATTRIBUTE_KEYS)).collect();
        let each = log.holds_object(HOLDER).then(|| format!("{HOLDER}.{EACH}"));
        let state = each.or_else(|| first(STATE_KEYS));
        let is_table = state.is_none();
        let mut map = Self {
            time,
            entity: if is_table { Vec::new() } else { entity },
            state: state.unwrap_or_else(|| EACH.to_string()),
            together: at_once(),
            actions: BTreeMap::new(),
        };
        let (mut states, mut numbers, mut all) = (BTreeMap::<String, BTreeSet<String>>::new(), 0_usize, 0_usize);
        for Event { entity, state, .. } in map.events(log) {
            let is_number = state.parse::<f64>().is_ok();
            (numbers, all) = (numbers + usize::from(is_number), all + 1);
            // Where it is not known whose they are, numbers among words are what sensors measure.
            let is_measured = is_number && entity.is_empty() && !is_table;
            let known = states.entry(entity).or_default();
            if !is_measured && known.len() <= MAX_STATES && !NO_STATES.contains(&state.as_str()) {
                known.insert(state);
            }
        }
        if map.entity.is_empty() && (numbers * 2 > all || is_table && log.key("action").is_some()) {
            // The table is one of labels, with a fault.
            return None;
        }
        if is_table && states.len() > 1 {
            // Columns of states have some in common; those of names and remarks have not.
            let columns = states.clone();
            states.retain(|own, states| {
                columns.iter().any(|(other, others)| other != own && !states.is_disjoint(others))
            });
        }
        states.retain(|_, states| (1..=MAX_STATES).contains(&states.len()));
        if states.keys().any(|entity| !is_sensor(entity)) {
            states.retain(|entity, _| !is_sensor(entity));
        }
        let action = |(entity, states): (String, BTreeSet<String>)| {
            let entity = if entity.is_empty() { ANY.to_string() } else { entity };
            (entity, states.into_iter().map(|state| (state.clone(), state)).collect())
        };
        map.actions = states.into_iter().take(MAX_PROPOSED).map(action).collect();
        (!map.actions.is_empty()).then_some(map)
    }

    /// The same for events at these times: those of one command are much closer to each other than to the others.
    #[must_use]
    pub(crate) fn with_gaps(mut self, mut times: Vec<i64>) -> Self {
        times.sort_unstable();
        let resolution = if times.iter().all(|time| time % MAX_APART_NS == 0) { MAX_APART_NS } else { 1_000_000 };
        let apart = |pair: &[i64]| pair[1].saturating_sub(pair[0]);
        let mut gaps: Vec<i64> = times.windows(2).map(apart).collect();
        gaps.sort_unstable();
        let times_more = |pair: &&[i64]| pair[1] / pair[0].max(resolution);
        let within = gaps.windows(2).filter(|pair| pair[0] <= MAX_APART_NS);
        let Some(&[within, beyond]) = within.max_by_key(times_more).filter(|pair| times_more(pair) >= MIN_APART) else {
            return self;
        };
        let commands = times.chunk_by(|one, next| next.saturating_sub(*one) <= within);
        let longest = commands.filter_map(|command| Some(command.last()?.saturating_sub(*command.first()?))).max();
        if let Some(longest) = longest.filter(|longest| *longest > 0) {
            let together = longest.saturating_mul(2).min(beyond / 2).max(longest);
            self.together = format!("{}ms", together / 1_000_000 + 1);
        }
        self
    }

    /// The map as a file, with what to do.
    pub fn in_words(&self) -> String {
        let map = toml::to_string(self).unwrap_or_default();
        format!(
            "# Which events are actions: name each as the inventory does, and delete the lines of all others.\n# Sensors are \
             left out, as is what has many states. `*` at the end of an entity or a state stands for anything.\n# Events \
             within `together` of a first one are one command.\n{map}"
        )
    }

    pub(crate) fn events<'a>(&'a self, log: &'a EventLog) -> impl Iterator<Item = Event> + 'a {
        log.events(&self.time, &self.entity, &self.state)
    }

    /// The action of an event; `None` if it is none.
    pub(crate) fn action(&self, event: &Event) -> Option<&str> {
        let states = most_particular(&self.actions, &event.entity)?;
        most_particular(states, &event.state).map(String::as_str)
    }

    pub(crate) fn together_ns(&self) -> Result<i64, String> {
        let fault = |_| format!("`together = \"{}\"`: write it like 100ms", self.together);
        self.together.parse().map(Tolerance::nanoseconds).map_err(fault)
    }
}

/// Whether an entity is what nobody commands: by its kind, its attribute, or the last word of its name.
fn is_sensor(entity: &str) -> bool {
    let entity = entity.to_lowercase();
    let kind = entity.split('.').next().filter(|kind| kind.len() < entity.len());
    let last = entity.rsplit(['/', '.']).next().unwrap_or_default();
    let word = last.rsplit([' ', '_', '-']).next().unwrap_or_default();
    let measures = |name: &str| SENSORS.split(' ').any(|sensor| sensor == name);
    kind.is_some_and(measures) || entity.contains('/') && measures(last) || word == "sensor"
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

    /// The map of plain events at these times, in milliseconds.
    fn together(times: impl IntoIterator<Item = i64>) -> String {
        let map: LabelMap = "time = \"t\"\nentity = []\nstate = \"s\"\n[actions.\"*\"]\non = \"on\"\n".parse().unwrap();
        map.with_gaps(times.into_iter().map(|time| time * 1_000_000).collect()).together
    }

    #[test]
    fn events_of_one_command_are_told_from_others_by_their_gaps() {
        // Scenes of four, 10 ms apart, every half minute; single commands between.
        let scenes = (0..40).flat_map(|at| (0..4).map(move |part| 30_000 * at + 10 * part + at * at % 7));
        assert_eq!(together(scenes.clone().chain((0..10).map(|at| 15_000 + 60_000 * at))), "61ms");
        assert_eq!(together((0..50).map(|at| 20_000 * at + at * at % 977)), "0s");
        // To the second, a scene may lie on both sides of one.
        let seconds = (0..20).flat_map(|at| [60_000 * at, 60_000 * at, 60_000 * at + 1_000 * (at % 2)]);
        assert_eq!(together(seconds), "2001ms");
        // Gaps that fall off smoothly tell nothing.
        assert_eq!(together((0..12).map(|at| 100 * (1 << at))), "0s");
        assert_eq!(together([]), "0s");
        assert_eq!(together([5]), "0s");
    }

    #[test]
    fn a_sensor_is_no_entity_that_is_commanded() {
        for sensor in
            ["sensor.hall", "binary_sensor.door", "Hall/motion", "zigbee2mqtt/lamp/linkquality", "Hall Sensor"]
        {
            assert!(is_sensor(sensor), "{sensor}");
        }
        for device in ["light.sun_room", "switch.power_strip", "Lamp/switch", "sun", "cover.update", "cmnd/x/POWER1"] {
            assert!(!is_sensor(device), "{device}");
        }
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
