//! The JSON Schema of a type as TOML writes it.

use std::str::FromStr;

use jiff::SignedDuration;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Value, json};

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
    let options = schema.get_mut("properties").and_then(Value::as_object_mut);
    for option in options.into_iter().flat_map(|options| options.values_mut()) {
        // A single text may stand for a list of one.
        if option["type"] == "array" && option["items"]["type"] == "string" {
            option["type"] = json!(["array", "string"]);
        }
    }
    schema
}

/// Removes what has no meaning in TOML: null, and number formats, whose bounds the schema states separately. Durations
/// are written like `40ms`, which is not a format of JSON Schema.
fn plain(schema: &mut Value) {
    match schema {
        Value::Object(schema) => {
            let format = schema.remove("format");
            // Only the format says how large such a number can be.
            if format.as_ref().is_some_and(|format| format == "uint32") {
                schema.insert("maximum".into(), u32::MAX.into());
            }
            if format.is_some_and(|format| format == "duration") {
                match schema.get_mut("default") {
                    Some(Value::String(default)) => {
                        if let Ok(time) = SignedDuration::from_str(default) {
                            *default = format!("{time:#}");
                        }
                    }
                    // Without a default, an example shows how one is written.
                    _ => drop(schema.insert("examples".into(), json!(["1s"]))),
                }
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
                let paragraphs = description.split("\n\n").map(|paragraph| paragraph.replace('\n', " "));
                // The first one is a sentence without its full stop.
                *description = paragraphs.collect::<Vec<_>>().join(". ");
            }
            if let Some(Value::Array(mut any)) = schema.remove("anyOf") {
                any.retain(|one| one["type"] != "null");
                // An optional enum: the enum itself, with the description of the field.
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
