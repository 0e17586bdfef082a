//! The cache key of a stage's output: a digest of everything the output depends on.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use blake3::{Hash, Hasher};
use serde_json::{Value, json};
use sizeleak_capture::content_below;
use sizeleak_frame::SCHEMA;
use sizeleak_platform::runtime::StageOptions;

use super::CachedCapture;
use crate::{Pipeline, ResolvedStage};

/// The version of the key derivation; another value invalidates all keys.
const CONTEXT: &str = "sizeleak cache 2";

/// Kinds that are as large as the captures themselves and are not cached.
const BULK: [&str; 2] = ["packets", "segments"];

/// An output that can be cached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheableOutput {
    /// The index of the stage that makes it.
    pub index: usize,
    /// That stage.
    pub stage: &'static str,
    /// The kind of frame it makes.
    pub kind: &'static str,
    /// The digest of everything the output depends on.
    pub key: Hash,
}

/// The keys of a pipeline's outputs.
#[derive(Debug)]
pub struct CacheKeys {
    /// The outputs that can be cached, in order, up to the first embedded or external stage, whose behaviour is
    /// unknown.
    pub outputs: Vec<CacheableOutput>,
    /// The captures that all outputs depend on.
    pub captures: Vec<CachedCapture>,
}

impl CacheKeys {
    /// The keys of a pipeline's outputs. `program` is the digest of the running program; `digest` returns the digest
    /// and size of a file.
    ///
    /// # Errors
    /// One sentence that says why there are none: the input cannot be read twice.
    pub fn of(
        pipeline: &Pipeline,
        program: Hash,
        mut digest: impl FnMut(&Path) -> io::Result<(Hash, u64)>,
    ) -> Result<Self, String> {
        let stages = pipeline.resolved_stages();
        let mut stages = stages.iter().enumerate();
        let Some((_, source)) = stages.next().filter(|(_, first)| first.entry.name == sizeleak_capture::Options::NAME)
        else {
            return Err("the input of an external program is unknown".into());
        };
        let mut keys = Self { outputs: Vec::new(), captures: Vec::new() };
        let mut key = next_key(
            Hasher::new_derive_key(CONTEXT).update(program.as_bytes()).finalize(),
            &json!([env!("CARGO_PKG_VERSION"), SCHEMA]),
        );
        let read = keys.read_by(source, &mut digest)?;
        key = next_key(key, &read);
        for (index, ResolvedStage { entry, options }) in stages {
            let files = entry.path_keys();
            let mut plain = BTreeMap::new();
            for (option, value) in options {
                let value = if files.contains(option) { digested(value, &mut digest) } else { Ok(json!(value)) };
                // The stage itself reports this when it is built.
                let Ok(value) = value else { return Ok(keys) };
                plain.insert(option, value);
            }
            key = next_key(key, &json!([entry.name, plain]));
            if !BULK.contains(&entry.makes) {
                keys.outputs.push(CacheableOutput { index, stage: entry.name, kind: entry.makes, key });
            }
        }
        Ok(keys)
    }

    /// What `capture` reads, and its options.
    fn read_by(
        &mut self,
        source: &ResolvedStage,
        digest: &mut impl FnMut(&Path) -> io::Result<(Hash, u64)>,
    ) -> Result<Value, String> {
        let mut options: BTreeMap<&String, Value> =
            source.options.iter().map(|(option, value)| (option, json!(value))).collect();
        if options.contains_key(&"interface".to_owned()) {
            return Err("an interface is captured".into());
        }
        let files = options.remove(&"files".to_owned()).unwrap_or_default();
        let files: Vec<&str> = files.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        if files.is_empty() || files.contains(&"-") {
            return Err("stdin can be read once".into());
        }
        let mut read = Vec::new();
        for file in files.into_iter().map(Path::new) {
            let cannot = |error: io::Error| format!("{}: {error}", file.display());
            // Notices about files of a folder that are not captures name the path.
            let (paths, are_named) = if file.is_dir() {
                let content = content_below(file);
                if let Some((_, error)) = content.unreadable.into_iter().next() {
                    return Err(cannot(error));
                }
                let special = content.special.iter().map(|special| json!([special.path, special.kind]));
                read.extend(special);
                (content.files, true)
            } else {
                (vec![file.to_owned()], false)
            };
            for path in paths {
                let (digest, bytes) = digest(&path).map_err(cannot)?;
                read.push(json!([digest.to_string(), are_named.then_some(&path)]));
                self.captures.push(CachedCapture { path, bytes });
            }
        }
        Ok(json!([source.entry.name, options, read]))
    }
}

/// The key after one more step.
fn next_key(before: Hash, by: &Value) -> Hash {
    // No JSON text is a prefix of another, so the concatenation is unambiguous.
    Hasher::new_derive_key(CONTEXT).update(before.as_bytes()).update(by.to_string().as_bytes()).finalize()
}

/// An option that holds paths, with each path replaced by the digest of its file.
fn digested(value: &toml::Value, digest: &mut impl FnMut(&Path) -> io::Result<(Hash, u64)>) -> io::Result<Value> {
    match value {
        toml::Value::String(path) => Ok(json!({ "digest": digest(Path::new(path))?.0.to_string() })),
        toml::Value::Array(values) => values.iter().map(|value| digested(value, digest)).collect(),
        other => Ok(json!(other)),
    }
}

#[cfg(test)]
mod tests;
