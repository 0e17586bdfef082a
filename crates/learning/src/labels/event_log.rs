//! The events of a log, as CSV, JSON or lines of JSON: what time, entity and state each has.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use sizeleak_text::listed;

use crate::labels::error::{LabelError, short};
use crate::labels::table::{TableRows, check_numbers};

/// What stands for each key of an object, at the end of a path.
pub(crate) const EACH: char = '*';

/// What Home Assistant names only in the first of an entity's states.
const ENTITY: &str = "entity_id";

/// How zigbee2mqtt writes a message, before its topic and before its payload.
const PUBLISHED: [[&str; 2]; 2] =
    [["MQTT publish: topic '", "', payload '"], ["Received MQTT message on '", "' with data '"]];

/// A time as zigbee2mqtt writes it.
const TIME: &str = "2026-01-05 08:00:00";

/// The most bytes that are searched for a message of zigbee2mqtt.
const SEARCHED: usize = 1 << 16;

/// The keys of what holds the lists of others: answers of Home Assistant's websocket and of `SmartThings`.
const HOLDERS: [&str; 4] = ["result", "items", "event", "states"];

/// How `InfluxDB` begins each of several tables.
const TABLE: &[u8] = b"\n#group,";

/// A text with so many digits is a time, and no name of a column.
const MIN_DIGITS: usize = 8;

const MAX_KEYS: usize = 12;

/// An event, and its line in the log; in one JSON value its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) line: u64,
    pub(crate) time: String,
    pub(crate) entity: String,
    pub(crate) state: String,
}

pub(crate) struct EventLog {
    pub(crate) objects: Vec<(u64, Map<String, Value>)>,
    pub(crate) faults: Vec<LabelError>,
}

impl EventLog {
    /// Reads a log in UTF-8.
    pub(crate) fn read(text: &[u8]) -> Result<Self, LabelError> {
        let mut log = Self { objects: Vec::new(), faults: Vec::new() };
        if [&b"name: "[..], b"Result: "].iter().any(|begin| text.starts_with(begin)) {
            return Err(LabelError::unknown_log(
                "this is InfluxDB's table for people (`influx query --raw` and `influx -format csv` write one for programs)",
            ));
        }
        match text.trim_ascii_start().first() {
            _ if is_published(text) => log.add_published(&String::from_utf8_lossy(text))?,
            Some(b'[' | b'{') => {
                check_numbers(text, b'{', b',')?;
                match serde_json::from_slice(text) {
                    Ok(value) => log.add_all(value, None, None),
                    Err(_) => log.add_lines(text)?,
                }
            }
            _ => log.add_table(text)?,
        }
        Ok(log)
    }

    fn add_lines(&mut self, text: &[u8]) -> Result<(), LabelError> {
        check_numbers(text, b'\n', b',')?;
        for (line, text) in (1..).zip(text.split(|byte| *byte == b'\n')) {
            if text.trim_ascii().is_empty() {
                continue;
            }
            match serde_json::from_slice(text) {
                Ok(value) => self.add_all(value, Some(line), None),
                Err(error) => self.faults.push(LabelError::of_line(line, format_args!("this is not JSON: {error}"))),
            }
        }
        Ok(())
    }

    /// The messages in a log of zigbee2mqtt, each with a time, a topic and a payload.
    fn add_published(&mut self, text: &str) -> Result<(), LabelError> {
        check_numbers(text.as_bytes(), b'\n', b',')?;
        for (line, text) in (1..).zip(text.lines()) {
            let message = PUBLISHED.iter().find_map(|[begin, then]| {
                let (head, rest) = text.split_once(begin)?;
                Some((head, rest.split_once(then)?))
            });
            let Some((head, (topic, payload))) = message else { continue };
            let is_time = |text: &&str| [4, 7, 13, 16].map(|at| text.as_bytes()[at]) == *b"--::";
            let mut parts = (0..head.len()).filter_map(|at| head.get(at..at + TIME.len()));
            let time = parts.find(is_time).unwrap_or(head);
            let fields = [("time", time), ("topic", topic), ("payload", payload.trim_end().trim_end_matches('\''))];
            self.objects.push((line, fields.map(|(key, text)| (key.to_owned(), text.into())).into_iter().collect()));
        }
        Ok(())
    }

    /// Adds the rows of a table, or of several: `InfluxDB` begins each with its annotations.
    fn add_table(&mut self, text: &[u8]) -> Result<(), LabelError> {
        let mut lines_above = 0;
        for table in tables(text) {
            let TableRows { header, rows, faults, .. } = TableRows::read(table, lines_above)?;
            self.faults.extend(faults);
            for (line, row) in rows {
                let fields = header.iter().zip(row.iter()).map(|(name, field)| (name.to_owned(), field.into()));
                self.objects.push((line, fields.collect()));
            }
            lines_above += table.split(|byte| *byte == b'\n').count() as u64 - 1;
        }
        Ok(())
    }

    /// Adds the objects of a value that hold no lists of others. In a list, as Home Assistant has one for each entity, an
    /// object without an entity has that of the one before it; an object of lists names the entity of each.
    fn add_all(&mut self, value: Value, line: Option<u64>, name: Option<&str>) {
        match value {
            Value::Array(values) => {
                let from = self.objects.len();
                for value in values {
                    let before = self.objects.len();
                    self.add_all(value, line, name);
                    let is_one = before > from && self.objects.len() == before + 1;
                    if let ([.., (_, last)], [(_, object)]) = self.objects.split_at_mut(before)
                        && is_one
                    {
                        let entity = last.get(ENTITY).filter(|_| !object.contains_key(ENTITY));
                        object.extend(entity.map(|entity| (ENTITY.to_owned(), entity.clone())));
                    }
                }
            }
            Value::Object(object) if is_of_lists(&object) => {
                for (name, values) in object {
                    self.add_all(values, line, (!HOLDERS.contains(&&*name)).then_some(&*name));
                }
            }
            Value::Object(mut object) if held(&object).is_some() => {
                let lists = held(&object).and_then(|key| object.remove(key));
                self.add_all(lists.unwrap_or_default(), line, name);
            }
            Value::Object(mut object) => {
                let entity = name.filter(|_| !object.contains_key(ENTITY));
                object.extend(entity.map(|entity| (ENTITY.to_owned(), entity.into())));
                let line = line.unwrap_or(self.objects.len() as u64 + 1);
                self.objects.push((line, object));
            }
            _ => {}
        }
    }

    /// The key that the first objects have, in any case: a path into objects only as it is.
    pub(crate) fn key(&self, key: &str) -> Option<String> {
        let is_there = |(_, object): &(u64, Map<String, Value>)| match value_at(object, key) {
            Some(value) => text_of(&value).map(|_| key.to_owned()),
            None => object.keys().find(|own| own.eq_ignore_ascii_case(key)).cloned(),
        };
        self.objects.iter().take(16).find_map(is_there)
    }

    /// Whether the first objects have an object there, also as text.
    pub(crate) fn holds_object(&self, key: &str) -> bool {
        self.objects.iter().take(16).any(|(_, object)| object_at(object, key).is_some())
    }

    /// Why no map of it can be proposed.
    pub(crate) fn unknown(self) -> LabelError {
        let Some((_, first)) = self.objects.first() else {
            let first = self.faults.into_iter().next();
            return first.unwrap_or_else(|| LabelError::unknown_log("there is no event in it"));
        };
        let has_time = |key: &String| key.bytes().filter(u8::is_ascii_digit).count() >= MIN_DIGITS;
        let keys = listed(first.keys().map(|key| format!("`{}`", short(key))), MAX_KEYS);
        let reason = if first.keys().any(has_time) {
            format!("line 1 is an event, no header ({keys}): write one above it, such as `time,device,state`")
        } else {
            format!("its columns or keys are {keys}, which do not show where a time, an entity and its state are")
        };
        LabelError::unknown_log(&reason)
    }

    /// The events, each once, that have the keys of a time, an entity and a state; several of an entity are joined. A
    /// state of [`EACH`] is that of each key in its place, which names the entity, too.
    pub(crate) fn events<'a>(
        &'a self,
        time: &'a str,
        entity: &'a [String],
        state: &'a str,
    ) -> impl Iterator<Item = Event> + 'a {
        let mut seen = BTreeSet::new();
        let events = move |(line, object): &(u64, Map<String, Value>)| -> Option<Vec<Event>> {
            let parts: Vec<String> = entity.iter().map(|key| text_at(object, key)).collect::<Option<_>>()?;
            let at = text_at(object, time)?;
            let event = |own: Option<&String>, state: String| Event {
                line: *line,
                time: at.clone(),
                entity: parts.iter().chain(own).map(String::as_str).collect::<Vec<_>>().join("/"),
                state,
            };
            let holder = state.trim_end_matches([EACH, '.']);
            let inner = if holder.is_empty() { Some(object.clone()) } else { object_at(object, holder) };
            let Some(inner) = inner.filter(|_| state.ends_with(EACH)) else {
                return Some(vec![event(None, text_at(object, holder)?)]);
            };
            let is_state = |key: &String| !holder.is_empty() || key != time && !entity.contains(key);
            let states = inner.into_iter().filter(|(key, _)| is_state(key));
            let states = states.filter_map(|(key, value)| Some(event(Some(&key), text_of(&value)?)));
            Some(states.filter(|event| !event.state.is_empty()).collect())
        };
        let is_new = move |Event { time: at, entity, state, .. }: &Event| {
            // InfluxDB repeats the header above each table.
            at != time && seen.insert((at.clone(), entity.clone(), state.clone()))
        };
        self.objects.iter().filter_map(events).flatten().filter(is_new)
    }
}

fn is_published(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text.get(..SEARCHED).unwrap_or(text));
    PUBLISHED.iter().any(|[begin, _]| text.contains(begin))
}

fn tables(text: &[u8]) -> Vec<&[u8]> {
    let begins = text.windows(TABLE.len()).enumerate().filter(|(_, part)| *part == TABLE).map(|(at, _)| at + 1);
    let begins: Vec<usize> = std::iter::once(0).chain(begins).chain([text.len()]).collect();
    let tables = begins.windows(2).filter_map(|ends| text.get(ends[0]..ends[1]));
    tables.filter(|table| !table.trim_ascii().is_empty()).collect()
}

fn is_of_lists(object: &Map<String, Value>) -> bool {
    object.values().any(Value::is_array) && object.values().all(Value::is_array)
}

/// The key of the lists that an object holds besides what it says of them.
fn held(object: &Map<String, Value>) -> Option<&'static str> {
    HOLDERS.into_iter().find(|key| match object.get(*key) {
        Some(Value::Array(values)) => values.iter().any(|value| value.is_object() || value.is_array()),
        Some(Value::Object(inner)) => is_of_lists(inner) || held(inner).is_some(),
        _ => false,
    })
}

/// What a text or a number says; `None` for other values.
fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        _ => None,
    }
}

fn text_at(object: &Map<String, Value>, path: &str) -> Option<String> {
    text_of(&value_at(object, path)?)
}

/// The object at a path, also one that is written as text.
fn object_at(object: &Map<String, Value>, path: &str) -> Option<Map<String, Value>> {
    match value_at(object, path)? {
        Value::Object(inner) => Some(inner),
        Value::String(text) => serde_json::from_str(&text).ok(),
        _ => None,
    }
}

/// The value of a key as such, or at a path into objects, also into those that are written as text.
fn value_at(object: &Map<String, Value>, path: &str) -> Option<Value> {
    if let Some(value) = object.get(path) {
        return Some(value.clone());
    }
    let (key, rest) = path.split_once('.')?;
    value_at(&object_at(object, key)?, rest)
}

#[cfg(test)]
mod tests;
