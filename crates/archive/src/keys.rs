//! The keys of records and answers: digests of everything they depend on, except for the program. Another build of the same
//! version makes the same, unless it has another [`MEANING`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use serde_json::{Value, json};
use sizeleak_frame::SCHEMA;
use sizeleak_pipeline::{MEANING, Mode, Pipeline};

use crate::description::{DescribedFile, PartFormat};

/// The derivation of keys; another value invalidates all.
const CONTEXT: &str = "sizeleak archive 1";

pub(crate) fn packet_stages(pipeline: &Pipeline) -> Result<Pipeline, String> {
    let mut pipeline = pipeline.clone();
    // Only those on threads leave their state.
    pipeline.mode = Mode::Threads;
    pipeline.until_records().map_err(|_| {
        "an archive keeps the records of `record-sizer`: its pipeline begins with `capture`, `flow-filter` and \
         `record-sizer` of this program"
            .to_owned()
    })
}

pub(crate) fn reading(pipeline: &Pipeline, captures: &[DescribedFile]) -> Result<Pipeline, String> {
    let mut reading = pipeline.clone();
    let files: Vec<PathBuf> = captures.iter().map(|capture| PathBuf::from(&capture.file.path)).collect();
    reading.read_captures(&files).map_err(|error| error.to_string())?;
    Ok(reading)
}

/// The key of the records of captures, whose flows go on from the state with the digest `before`.
pub(crate) fn records_key(stages: &Pipeline, captures: &[DescribedFile], before: Option<&str>) -> Result<Hash, String> {
    let key = output_key(stages, captures, meaning(before.unwrap_or("no state")))?;
    key.ok_or_else(|| "the options of its first stages cannot be resolved".to_owned())
}

/// The key of what is left of the flows behind the state with this digest. It says which options the stages had.
pub(crate) fn end_key(state: &str) -> Hash {
    meaning(&format!("end {state}"))
}

/// The key of the answers to the records of these captures; `None` if an external program is among the stages.
pub(crate) fn answers_key(
    pipeline: &Pipeline,
    captures: &[DescribedFile],
    format: PartFormat,
) -> Result<Option<String>, String> {
    let key = output_key(pipeline, captures, meaning("answers"))?;
    Ok(key.map(|key| blake3::hash(&[key.as_bytes(), format.extension().as_bytes()].concat()).to_string()))
}

fn meaning(what: &str) -> Hash {
    blake3::hash(format!("sizeleak archive {MEANING} {} {what}", env!("CARGO_PKG_VERSION")).as_bytes())
}

/// The digest of everything that the output of a pipeline's last stage depends on: `after`, the captures, and every stage
/// with all its options; `None` if there is no such digest, because a program or a file is unknown.
fn output_key(pipeline: &Pipeline, captures: &[DescribedFile], after: Hash) -> Result<Option<Hash>, String> {
    let pipeline = reading(pipeline, captures)?;
    let stages = pipeline.resolved_stages();
    // The stages are those up to the first that is not of this program.
    let Some((source, others)) = stages.split_first().filter(|_| pipeline.output_of(stages.len()).is_empty()) else {
        return Ok(None);
    };
    let mut key = next_key(after, &json!([env!("CARGO_PKG_VERSION"), SCHEMA]));
    let mut read = Vec::new();
    for DescribedFile { file, .. } in captures {
        let known = file.blake3.as_deref().and_then(|digest| Hash::from_hex(digest).ok());
        let digest = known.map_or_else(|| digest_of(Path::new(&file.path)), Ok);
        let digest = digest.map_err(|error| format!("{}: {error}", file.path))?;
        read.push(digest.to_string());
    }
    let options: BTreeMap<&String, &toml::Value> =
        source.options.iter().filter(|(option, _)| *option != "files").collect();
    key = next_key(key, &json!([source.entry.name, options, read]));
    for stage in others {
        let mut plain = BTreeMap::new();
        for (option, value) in &stage.options {
            let value = if stage.entry.paths.contains(&option.as_str()) { digested(value) } else { Ok(json!(value)) };
            // The stage itself reports this when it is built.
            let Ok(value) = value else { return Ok(None) };
            plain.insert(option, value);
        }
        key = next_key(key, &json!([stage.entry.name, plain]));
    }
    Ok(Some(key))
}

fn next_key(before: Hash, by: &Value) -> Hash {
    // No JSON text is a prefix of another, so the concatenation is unambiguous.
    Hasher::new_derive_key(CONTEXT).update(before.as_bytes()).update(by.to_string().as_bytes()).finalize()
}

/// An option that holds paths, with each path replaced by the digest of its file.
fn digested(value: &toml::Value) -> io::Result<Value> {
    match value {
        toml::Value::String(path) => Ok(json!({ "digest": digest_of(Path::new(path))?.to_string() })),
        toml::Value::Array(values) => values.iter().map(digested).collect(),
        other => Ok(json!(other)),
    }
}

pub(crate) fn digest_of(path: &Path) -> io::Result<Hash> {
    Ok(Hasher::new().update_reader(File::open(path)?)?.finalize())
}
