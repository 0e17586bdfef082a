//! `sizeleak init`: templates for the files of an experiment.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use serde_json::Value;
use sizeleak_learning::labels::{Label, Labels};
use sizeleak_model::{Device, Inventory};

use sizeleak_pipeline::registry::STAGES;
use sizeleak_platform::storage::replace;
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::wrapped;

use super::docs;

/// Write a pipeline.toml and templates of inventory and labels
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  sizeleak init my-home\n\n\
    It writes pipeline.toml, pipeline.schema.json, inventory.toml and labels.csv. Fill in the captures, the gateway \
    and your devices; `sizeleak learn` makes the model, and `sizeleak run` uses it.")]
pub(crate) struct Arguments {
    /// The folder to write into, created if missing
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
}

/// Options that a pipeline needs, with placeholders for the user to fill in.
const PLACEHOLDERS: [(&str, &str); 3] =
    [("files", "[\"capture.pcap\"]"), ("gateway", "[\"192.168.1.20\"]"), ("model", "\"model.toml\"")];

const WIDTH: usize = 110;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let folder = &arguments.folder;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let files = [
        ("pipeline.toml", pipeline()),
        ("pipeline.schema.json", docs::schema_text()),
        ("inventory.toml", inventory()?),
        ("labels.csv", labels()?),
    ];
    // All or none: existing files are detected before the first one is written.
    if let Some(path) = files.iter().map(|(name, _)| folder.join(name)).find(|path| path.exists()) {
        return Err(anyhow!("{} exists already: remove it, or name another folder", path.display()));
    }
    for (name, text) in &files {
        replace(&folder.join(name), text.as_bytes())?;
    }
    let names = files.map(|(name, _)| name).join(", ");
    say(&folder.display().to_string(), &names);
    Ok(())
}

/// The seven stages with all options; those in comments are the defaults.
fn pipeline() -> String {
    let head = "#:schema pipeline.schema.json\n\n";
    let about = "A pipeline of sizeleak: `sizeleak run pipeline.toml`. Paths are relative to this file. Options in \
                 comments show their defaults, or an example where there is none. `sizeleak learn` makes the model. A \
                 program of your own can replace a stage, or go between two: `command = [\"python3\", \
                 \"my_segmenter.py\"]` instead of `run` and all options.";
    let whole = sizeleak_pipeline::schema::schema();
    let settings = table("[pipeline]", &whole["properties"]["pipeline"]);
    let stages = STAGES.iter().map(|entry| {
        let table = table(&format!("[[stage]]\nrun = \"{}\"", entry.name), &(entry.schema)());
        format!("\n{}{table}", comment(entry.about))
    });
    format!("{head}{}\n{settings}{}", comment(about), stages.collect::<String>())
}

/// A table with a comment and a line for each property of its schema.
fn table(head: &str, schema: &Value) -> String {
    let mut text = format!("{head}\n");
    for (key, property) in schema["properties"].as_object().into_iter().flatten() {
        text += &comment(&description(property));
        let placeholder = PLACEHOLDERS.iter().find(|(option, _)| option == key);
        let line = placeholder.map_or_else(
            || format!("# {key} = {}\n", example_value(property)),
            |(_, value)| format!("{key} = {value}\n"),
        );
        text += &line;
    }
    text
}

fn description(property: &Value) -> String {
    let text = |value: &Value| value["description"].as_str().unwrap_or_default().to_owned();
    let choices = property["oneOf"].as_array().into_iter().flatten();
    let choices: Vec<String> =
        choices.map(|choice| format!("{} ({})", choice["const"].as_str().unwrap_or_default(), text(choice))).collect();
    if choices.is_empty() { text(property) } else { format!("{}: {}", text(property), choices.join("; ")) }
}

fn example_value(property: &Value) -> String {
    let default = property.get("default").or_else(|| property["examples"].get(0));
    let default = default.and_then(|default| toml::Value::try_from(default).ok());
    default.map_or_else(
        || match property["type"].as_str() {
            None => property["oneOf"][0]["const"].to_string(),
            Some("integer") => property["minimum"].as_i64().unwrap_or(1).max(1).to_string(),
            _ => "\"…\"".to_owned(),
        },
        |default| default.to_string(),
    )
}

fn comment(text: &str) -> String {
    wrapped(text, WIDTH, ["# "; 2]).join("\n") + "\n"
}

fn devices() -> Inventory {
    let device = |name: &str, count, actions: &[&str]| Device {
        name: name.to_owned(),
        count,
        actions: actions.iter().map(|&action| action.to_owned()).collect(),
        safe: true,
    };
    Inventory { devices: vec![device("plug", 12, &["on", "off"]), device("lamp", 4, &["on", "off", "dim"])] }
}

fn inventory() -> Result<String> {
    let about = "The devices behind the gateway: a [[device]] for each kind, with their number and the actions of \
    one device. The actions are the columns of labels.csv. `sizeleak learn --inventory` reads this file.";
    let devices = toml::to_string(&devices()).context("the inventory")?;
    Ok(format!("{}\n{devices}", comment(about)))
}

fn labels() -> Result<String> {
    let actions: Vec<String> = devices().action_names().into_iter().map(str::to_owned).collect();
    let counts = (0..actions.len()).map(|at| u32::from(at == 0)).collect();
    let rows = vec![Label { time_ns: 1_767_600_000_000_000_000, counts, line: 2 }];
    let mut text = Vec::new();
    Labels { actions, rows, ..Labels::default() }.write(&mut text).context("the labels")?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sizeleak_pipeline::Pipeline;

    /// The text with options in comments (`# key = value`) uncommented.
    fn uncommented(text: &str) -> String {
        let option = |line: &str| {
            let (key, _) = line.strip_prefix("# ")?.split_once(" = ")?;
            key.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-').then(|| line[2..].to_owned())
        };
        text.lines().map(|line| option(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }

    #[test]
    fn template_has_every_option_and_is_valid() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pipeline.toml");
        let (text, all) = (pipeline(), uncommented(&pipeline()));
        for text in [&text, &all] {
            fs::write(&file, text).unwrap();
            Pipeline::read(&file).unwrap_or_else(|error| panic!("{error}\n{text}"));
        }
        let table: toml::Table = all.parse().unwrap();
        for (stage, entry) in table["stage"].as_array().unwrap().iter().zip(&STAGES) {
            let keys: Vec<&String> = stage.as_table().unwrap().keys().filter(|key| *key != "run").collect();
            assert_eq!(stage["run"].as_str(), Some(entry.name));
            assert_eq!(keys.len(), (entry.schema)()["properties"].as_object().unwrap().len(), "{}", entry.name);
        }
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
        assert!(text.contains("\n# hole-wait = \"3s\"\n") && text.contains("\n# algorithm = \"gap\"\n"), "{text}");
        assert!(text.contains("adaptive (Learns from"), "{text}");
        assert!(text.contains("can be repeated. Its own, and those"), "{text}");
    }

    #[test]
    fn inventory_and_label_templates_are_valid() {
        let inventory = Inventory::from_toml(&inventory().unwrap()).unwrap();
        assert_eq!(inventory, devices());
        let labels = Labels::read(labels().unwrap().as_bytes()).unwrap();
        assert_eq!(labels.actions, inventory.action_names());
        assert_eq!(labels.rows.len(), 1);
    }
}
