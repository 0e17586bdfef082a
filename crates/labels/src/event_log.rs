//! The events of a log, as CSV, JSON or lines of JSON: what time, entity and state each has.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::labels::{LabelError, TableRows, check_numbers};

/// What Home Assistant names only in the first of an entity's states.
const ENTITY: &str = "entity_id";

/// An event, and its line in the log; in one JSON value its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) line: u64,
    pub(crate) time: String,
    pub(crate) entity: String,
    pub(crate) state: String,
}

/// A log: its objects, or its rows as such, with their lines.
pub(crate) struct EventLog {
    pub(crate) objects: Vec<(u64, Map<String, Value>)>,
    /// The lines that cannot be read.
    pub(crate) faults: Vec<LabelError>,
}

impl EventLog {
    /// Reads a log in UTF-8.
    ///
    /// # Errors
    /// If it is no table, JSON or lines of JSON.
    pub(crate) fn read(text: &[u8]) -> Result<Self, LabelError> {
        let mut log = Self { objects: Vec::new(), faults: Vec::new() };
        match text.trim_ascii_start().first() {
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
                Err(error) => self.faults.push(LabelError::Json { line, error: error.to_string() }),
            }
        }
        Ok(())
    }

    fn add_table(&mut self, text: &[u8]) -> Result<(), LabelError> {
        let TableRows { header, rows, faults, .. } = TableRows::read(text)?;
        self.faults = faults;
        for (line, row) in rows {
            let fields = header.iter().zip(row.iter()).map(|(name, field)| (name.to_owned(), field.into()));
            self.objects.push((line, fields.collect()));
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
            Value::Object(object) if object.values().any(Value::is_array) && object.values().all(Value::is_array) => {
                for (name, values) in object {
                    self.add_all(values, line, Some(&name));
                }
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

    /// Whether the first objects have such a key.
    pub(crate) fn has_key(&self, key: &str) -> bool {
        self.objects.iter().take(16).any(|(_, object)| text_at(object, key).is_some())
    }

    /// The events, each once, that have the keys of a time, an entity and a state; several of an entity are joined.
    pub(crate) fn events<'a>(
        &'a self,
        time: &'a str,
        entity: &'a [String],
        state: &'a str,
    ) -> impl Iterator<Item = Event> + 'a {
        let mut seen = BTreeSet::new();
        let event = move |(line, object): &(u64, Map<String, Value>)| {
            let parts: Option<Vec<String>> = entity.iter().map(|key| text_at(object, key)).collect();
            let (time, state) = (text_at(object, time)?, text_at(object, state)?);
            Some(Event { line: *line, time, entity: parts?.join("/"), state })
        };
        let is_new =
            move |Event { time, entity, state, .. }: &Event| seen.insert((time.clone(), entity.clone(), state.clone()));
        self.objects.iter().filter_map(event).filter(is_new)
    }
}

/// The text of a value: a key as such, or a path into objects, also into those that are written as text.
fn text_at(object: &Map<String, Value>, path: &str) -> Option<String> {
    if let Some(value) = object.get(path) {
        return match value {
            Value::String(text) => Some(text.clone()),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        };
    }
    let (key, rest) = path.split_once('.')?;
    match object.get(key)? {
        Value::Object(inner) => text_at(inner, rest),
        Value::String(text) => text_at(&serde_json::from_str(text).ok()?, rest),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::{LabelForm, Labels};

    const MAP: &str = "time = \"t\"\nentity = [\"entity_id\"]\nstate = \"s\"\ntogether = \"100ms\"\n[actions.\"lamp.*\"]\n\"*\" \
                       = \"dim\"\non = \"on\"\n[actions.plug]\non = \"on\"\n";

    fn read(log: &str) -> Result<Labels, LabelError> {
        let map = Some(MAP.parse().unwrap());
        Labels::read_in(log.as_bytes(), &LabelForm { map, ..LabelForm::default() })
    }

    /// One history in every form that logs have.
    #[test]
    fn logs_are_read_alike() {
        let lists = r#"[[{"entity_id": "lamp.1", "s": "on", "t": 10, "more": [{"t": 9}]}, {"s": "40", "t": 12.05}],
            [{"entity_id": "plug", "s": "on", "t": 12}, {"s": "off", "t": 13}, {"s": "on", "t": 12}]]"#;
        let by_entity = r#"{"lamp.1": [{"s": "on", "t": 10}, {"s": "40", "t": 12.05}],
            "plug": [{"s": "on", "t": 12}, {"s": "off", "t": 13}]}"#;
        let lines = "{\"entity_id\": \"lamp.1\", \"s\": \"on\", \"t\": 10}\n\n{\"entity_id\": \"plug\", \"s\": \"on\", \"t\": 12}\n\
                     {\"entity_id\": \"lamp.1\", \"s\": 40, \"t\": 12.05}\n{\"entity_id\": \"plug\", \"s\": \"off\", \"t\": 13}\n";
        let table = "s;t;entity_id\non;12;plug\non;10;lamp.1\n40;12,05;lamp.1\noff;13;plug\n";
        for log in [lists, by_entity, lines, table] {
            let labels = read(log).unwrap();
            let count = |name: &str, row: usize| {
                labels.actions.iter().position(|action| action == name).map_or(0, |at| labels.rows[row].counts[at])
            };
            let times: Vec<i64> = labels.rows.iter().map(|row| row.time_ns / 1_000_000_000).collect();
            assert_eq!((times, count("on", 0), count("on", 1), count("dim", 1)), (vec![10, 12], 1, 1, 1), "{log}");
            assert!(
                labels
                    .notes
                    .join("\n")
                    .contains("1 of 4 events are no actions by the map, and are left aside: `plug` off")
            );
        }
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let error = |log: &str| read(log).unwrap_err().to_string();
        assert!(error("[]").contains("none of 0 rows is an action"));
        assert!(error("{\"t\": 1}\n").contains("none of 1 rows is an action by the map (0 have its keys"));
        let line = |at: i32| format!("{{\"entity_id\": \"plug\", \"s\": \"on\", \"t\": {at}}}\n");
        let lines: String = (0..30).map(line).collect();
        assert!(read(&format!("{lines}{{\"t\": \n")).unwrap().notes[0].contains("1 of 30 rows cannot be read"));
        let row = |at: i32| format!("{at},plug,on\n");
        let rows: String = (0..30).map(row).collect();
        let table = format!("t,entity_id,s\n{rows}31,plug\n");
        assert!(read(&table).unwrap().notes[0].contains("1 of 30 rows cannot be read"));
        assert!(error(&format!("{{\n{}", line(1))).contains("line 1: this is not JSON"));
        assert!(matches!(Labels::read(lines.as_bytes()), Err(LabelError::Log)));
    }
}
