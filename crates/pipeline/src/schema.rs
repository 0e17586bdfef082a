//! The JSON Schema of `pipeline.toml`, made from the types that read it.

use std::str::FromStr;

use jiff::SignedDuration;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::config::Settings;
use crate::registry::{STAGES, StageEntry};

/// The schema of a pipeline file, for editors and for programs that write one.
pub fn schema() -> Value {
    let known = STAGES.iter().map(of_stage);
    let own = json!({
        "title": "a program of your own",
        "description": "A program that reads frames on stdin and writes frames to stdout (docs/frames.md)",
        "type": "object",
        "properties": {
            "command": {
                "description": "The program and its arguments; one with a `/` in its name is looked for from this folder",
                "type": "array", "items": { "type": "string" }, "minItems": 1,
            },
            "name": { "description": "What messages call it", "type": "string", "minLength": 1 },
            "save": save(),
        },
        "required": ["command"],
        "additionalProperties": false,
    });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "pipeline.toml",
        "description": "A pipeline of sizeleak: its stages in order, each with its options. Paths are relative to this file",
        "type": "object",
        "properties": {
            "cache": {
                "description": "Begin runs behind the last stage that has not changed since an earlier one, and keep what the \
                                stages put out for later ones",
                "type": "boolean", "default": false,
            },
            "pipeline": of_type::<Settings>(),
            "stage": {
                "description": "The stages, first one first",
                "type": "array", "minItems": 1,
                "items": { "type": "object", "oneOf": known.chain([own]).collect::<Vec<_>>() },
            },
        },
        "required": ["stage"],
        "additionalProperties": false,
    })
}

/// The schema of a type, without references and without null, which TOML does not have.
pub(crate) fn of_type<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft07().with(|settings| settings.inline_subschemas = true);
    let mut schema = Value::from(SchemaGenerator::from(settings).into_root_schema_for::<T>());
    if let Value::Object(schema) = &mut schema {
        schema.remove("$schema");
        schema.remove("default");
        schema.remove("title");
    }
    plain(&mut schema);
    schema
}

/// The key that every stage has.
fn save() -> Value {
    json!({
        "description": "Write all it puts out to this file besides, for `sizeleak run --from`; compressed where its name \
                        ends in .zst or .gz",
        "type": "string", "minLength": 1,
    })
}

/// The schema of a stage's table: `run` and its options.
fn of_stage(entry: &StageEntry) -> Value {
    let Value::Object(mut schema) = entry.schema() else { return Value::Bool(true) };
    let mut properties = Map::new();
    properties.insert("run".into(), json!({ "description": entry.about(), "const": entry.name }));
    if let Some(Value::Object(options)) = schema.remove("properties") {
        properties.extend(options);
    }
    properties.insert("save".into(), save());
    schema.insert("title".into(), entry.name.into());
    schema.insert("description".into(), entry.about().into());
    schema.insert("properties".into(), properties.into());
    schema.insert("required".into(), json!(["run"]));
    schema.into()
}

/// Takes out what says nothing in TOML: null, and formats of numbers, whose bounds stand beside them. Times are written as
/// people write them, which is no format of JSON Schema.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(schema) => {
            let format = schema.remove("format");
            // The format is the only place that says how large such a number can be.
            if format.as_ref().is_some_and(|format| format == "uint32") {
                schema.insert("maximum".into(), u32::MAX.into());
            }
            if format.is_some_and(|format| format == "duration")
                && let Some(Value::String(default)) = schema.get_mut("default")
                && let Ok(time) = SignedDuration::from_str(default)
            {
                *default = format!("{time:#}");
            }
            if let Some(Value::Array(types)) = schema.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = &types[..] {
                    let only = only.clone();
                    schema.insert("type".into(), only);
                }
            }
            if schema.get("default").is_some_and(Value::is_null) {
                schema.remove("default");
            }
            if let Some(Value::String(description)) = schema.get_mut("description") {
                *description = description.replace('\n', " ");
            }
            if let Some(Value::Array(mut any)) = schema.remove("anyOf") {
                any.retain(|one| one["type"] != "null");
                // A choice that may be left out: what it is itself, but for its own description.
                match <[Value; 1]>::try_from(any) {
                    Ok([Value::Object(only)]) => only.into_iter().for_each(|(key, value)| {
                        schema.entry(key).or_insert(value);
                    }),
                    Ok([other]) => drop(schema.insert("anyOf".into(), json!([other]))),
                    Err(any) => drop(schema.insert("anyOf".into(), any.into())),
                }
            }
            schema.values_mut().for_each(plain);
        }
        Value::Array(values) => values.iter_mut().for_each(plain),
        _ => {}
    }
}
