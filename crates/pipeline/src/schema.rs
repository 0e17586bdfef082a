//! The JSON Schema of `pipeline.toml`, made from the types that read it.

use serde_json::{Map, Value, json};

use crate::registry::{self, StageEntry};
use crate::stage::RunSettings;
use crate::type_schema::of_type;

pub fn schema() -> Value {
    let known = registry::all().map(of_stage);
    let own = json!({
        "title": "a program of your own",
        "description": "A program that reads frames on stdin and writes frames to stdout (docs/frames.md)",
        "type": "object",
        "properties": {
            "command": {
                "description": "The program and its arguments; a name with a `/` is relative to this folder",
                "type": "array", "items": { "type": "string" }, "minItems": 1,
            },
            "name": { "description": "Its name in messages", "type": "string", "minLength": 1 },
            "save": save(),
        },
        "required": ["command"],
        "additionalProperties": false,
    });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "pipeline.toml",
        "description": "A pipeline: its stages in order, each with its options. Paths are relative to this file",
        "type": "object",
        "properties": {
            "pipeline": of_type::<RunSettings>(),
            "stage": {
                "description": "The stages in order",
                "type": "array", "minItems": 1,
                "items": { "type": "object", "oneOf": known.chain([own]).collect::<Vec<_>>() },
            },
        },
        "required": ["stage"],
        "additionalProperties": false,
    })
}

fn save() -> Value {
    json!({
        "description": "Also write its output to this file, for `sizeleak run --from`; compressed if the name ends \
                        in .zst or .gz",
        "type": "string", "minLength": 1,
    })
}

/// The schema of a stage's table: `run` and its options.
fn of_stage(entry: &StageEntry) -> Value {
    let Value::Object(mut schema) = (entry.schema)() else { return Value::Bool(true) };
    let mut properties = Map::new();
    properties.insert("run".into(), json!({ "description": entry.about, "const": entry.name }));
    if let Some(Value::Object(options)) = schema.remove("properties") {
        properties.extend(options);
    }
    properties.insert("save".into(), save());
    schema.insert("title".into(), entry.name.into());
    schema.insert("description".into(), entry.about.into());
    schema.insert("properties".into(), properties.into());
    schema.insert("required".into(), json!(["run"]));
    schema.into()
}
