//! What is kept of the units of a point: for each one its records, the state behind it, and a description that is written
//! last. All three have the name of the unit, which says when it begins and what it was made from. A power cut may take or
//! cut them: whoever reads one checks it, and it can be made again.
//!
//! The keys of records and answers are digests of everything they depend on, except for the program. Another build of the
//! same version makes the same, unless it has another [`MEANING`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sizeleak_frame::SCHEMA;
use sizeleak_pipeline::{Checkpoint, MEANING, Mode, Pipeline};
use sizeleak_text::utc;

use crate::archive::description::{
    DescribedFile, FileVerdict, PartFormat, forget_unsettled, read_checked_json, to_checked_json,
};
use crate::archive::layout::{Layout, has_length, remove_file};

/// The derivation of keys; another value invalidates all.
const CONTEXT: &str = "sizeleak archive 1";

pub(crate) fn packet_stages(pipeline: &Pipeline) -> Result<Pipeline, String> {
    let mut pipeline = pipeline.clone();
    // Only those on threads leave their state.
    pipeline.settings.mode = Mode::Threads;
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
        // A notice names it.
        read.extend((file.verdict == FileVerdict::Damaged).then(|| file.path.clone()));
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

const RECORDS: &str = "frames.zst";
const STATE: &str = "state";
const DESCRIPTION: &str = "json";

const KEY_DIGITS: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UnitDescription {
    pub(crate) name: String,
    /// The digest of everything it depends on.
    pub(crate) key: String,
    /// Its captures; none if it is the end of the flows.
    pub(crate) captures: Vec<DescribedFile>,
    pub(crate) records: u64,
    pub(crate) records_bytes: u64,
    /// The state behind it; `None` if no flow is left.
    pub(crate) state: Option<StoredState>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredState {
    pub(crate) digest: String,
    pub(crate) bytes: u64,
}

#[derive(Debug)]
pub(crate) struct UnitStore<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) folder: PathBuf,
}

impl<'a> UnitStore<'a> {
    pub(crate) fn of(layout: &'a Layout, point: &str) -> Self {
        Self { layout, folder: layout.records(point) }
    }

    pub(crate) fn records(&self, name: &str) -> PathBuf {
        self.file(name, RECORDS)
    }

    pub(crate) fn state_file(&self, name: &str) -> PathBuf {
        self.file(name, STATE)
    }

    fn file(&self, name: &str, ending: &str) -> PathBuf {
        self.folder.join(format!("{name}.{ending}"))
    }

    /// The unit that begins at this time, or the end of all flows, if it is there.
    pub(crate) fn find(&self, head_ns: Option<i64>, key: &Hash) -> Option<UnitDescription> {
        let unit = read_checked_json::<UnitDescription>(&self.file(&unit_name(head_ns, key), DESCRIPTION))
            .filter(|unit| unit.key == key.to_hex().as_str())?;
        let has_state = unit.state.as_ref().is_none_or(|state| has_length(&self.state_file(&unit.name), state.bytes));
        (has_state && self.has_records(&unit)).then_some(unit)
    }

    pub(crate) fn state(&self, unit: &UnitDescription) -> Option<Checkpoint> {
        let state = Checkpoint::read(&self.state_file(&unit.name)).ok()?;
        (state.digest().ok()? == unit.state.as_ref()?.digest).then_some(state)
    }

    /// Whether the records of a unit are there. Their stream has a checksum of its own.
    pub(crate) fn has_records(&self, unit: &UnitDescription) -> bool {
        has_length(&self.records(&unit.name), unit.records_bytes)
    }

    pub(crate) fn describe(&self, unit: &UnitDescription) -> io::Result<()> {
        let path = self.file(&unit.name, DESCRIPTION);
        let staged = self.layout.staged(&path);
        fs::write(&staged, to_checked_json(unit)?)?;
        fs::rename(staged, path)
    }

    /// The captures of all units, as far as they can have stayed as they were.
    pub(crate) fn captures(&self) -> Vec<DescribedFile> {
        let described = self.names().into_iter().filter(|path| path.extension().is_some_and(|it| it == DESCRIPTION));
        let captures = described.filter_map(|path| {
            let mut captures = read_checked_json::<UnitDescription>(&path)?.captures;
            forget_unsettled(&mut captures, &path).ok()?;
            Some(captures)
        });
        captures.flatten().collect()
    }

    pub(crate) fn units(&self, names: &[String]) -> Vec<UnitDescription> {
        names.iter().filter_map(|name| read_checked_json(&self.file(name, DESCRIPTION))).collect()
    }

    pub(crate) fn keep_only(&self, units: &[String]) -> io::Result<()> {
        let endings = [RECORDS, STATE, DESCRIPTION];
        let kept = units.iter().flat_map(|name| endings.map(|ending| self.file(name, ending)));
        let kept: BTreeSet<PathBuf> = kept.collect();
        for path in self.names().into_iter().filter(|path| !kept.contains(path)) {
            remove_file(&path)?;
        }
        if units.is_empty() {
            // It may not be there.
            _ = fs::remove_dir(&self.folder);
        }
        Ok(())
    }

    fn names(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
    }
}

/// The name of a unit that begins at this time; the end of all flows comes last.
pub(crate) fn unit_name(head_ns: Option<i64>, key: &Hash) -> String {
    let time = head_ns.map_or_else(
        || "end".to_owned(),
        |head_ns| {
            let digits = utc(head_ns).replace(['-', ':', 'Z'], "");
            format!("{digits}{:03}Z", head_ns.rem_euclid(1000))
        },
    );
    let key = key.to_hex();
    format!("{time}-{}", key.get(..KEY_DIGITS).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorted_names_are_in_order_of_time() {
        let key = blake3::hash(b"");
        let heads = [i64::MIN, -1, 0, 999, 1000, 1_767_600_000_012_345_678, i64::MAX];
        let names: Vec<String> = heads.map(Some).into_iter().chain([None]).map(|head| unit_name(head, &key)).collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(names[5], "20260105T080000.012345678Z-af1349b9f5f9a1a6");
        assert!(names.iter().collect::<BTreeSet<_>>().len() == names.len(), "{names:?}");
    }
}
