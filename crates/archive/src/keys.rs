//! The keys of records and answers: digests of everything they depend on, except for the program. Another build of the same
//! version makes the same, unless it has another [`MEANING`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use sizeleak_pipeline::cache::{CacheKeys, CacheableOutput};
use sizeleak_pipeline::{MEANING, Mode, Pipeline};

use crate::description::{DescribedFile, PartFormat};

/// The stages that read packets: those up to the records.
///
/// # Errors
/// One sentence: the pipeline does not read captures up to records with stages of this program.
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

/// The pipeline over captures.
///
/// # Errors
/// One sentence.
pub(crate) fn reading(pipeline: &Pipeline, captures: &[DescribedFile]) -> Result<Pipeline, String> {
    let mut reading = pipeline.clone();
    let files: Vec<PathBuf> = captures.iter().map(|capture| PathBuf::from(&capture.file.path)).collect();
    reading.read_captures(&files).map_err(|error| error.to_string())?;
    Ok(reading)
}

/// The key of the records of captures, whose flows go on from the state with the digest `before`.
///
/// # Errors
/// One sentence.
pub(crate) fn records_key(stages: &Pipeline, captures: &[DescribedFile], before: Option<&str>) -> Result<Hash, String> {
    let after = meaning(before.unwrap_or("no state"));
    let keys = cache_keys(stages, captures, after)?;
    let records = keys.outputs.last().ok_or("the options of its first stages cannot be resolved")?;
    Ok(records.key)
}

/// The key of what is left of the flows behind the state with this digest. It says which options the stages had.
pub(crate) fn end_key(state: &str) -> Hash {
    meaning(&format!("end {state}"))
}

/// The key of the answers to the records of these captures; `None` if an external program is among the stages.
///
/// # Errors
/// One sentence.
pub(crate) fn answers_key(
    pipeline: &Pipeline,
    captures: &[DescribedFile],
    format: PartFormat,
) -> Result<Option<String>, String> {
    let keys = cache_keys(pipeline, captures, meaning("answers"))?;
    let is_last = |output: &&CacheableOutput| pipeline.output_of(output.index + 1).is_empty();
    Ok(keys.outputs.last().filter(is_last).map(|last| {
        let formatted = [last.key.as_bytes(), format.extension().as_bytes()].concat();
        blake3::hash(&formatted).to_string()
    }))
}

fn meaning(what: &str) -> Hash {
    blake3::hash(format!("sizeleak archive {MEANING} {} {what}", env!("CARGO_PKG_VERSION")).as_bytes())
}

fn cache_keys(pipeline: &Pipeline, captures: &[DescribedFile], after: Hash) -> Result<CacheKeys, String> {
    let digests: BTreeMap<&Path, Hash> = captures
        .iter()
        .filter_map(|capture| {
            let digest = Hash::from_hex(capture.file.blake3.as_deref()?).ok()?;
            Some((Path::new(&capture.file.path), digest))
        })
        .collect();
    CacheKeys::of(&reading(pipeline, captures)?, after, |path| match digests.get(path) {
        Some(digest) => Ok((*digest, 0)),
        None => digest_of(path).map(|digest| (digest, 0)),
    })
}

/// The digest of a file.
pub(crate) fn digest_of(path: &Path) -> io::Result<Hash> {
    Ok(Hasher::new().update_reader(File::open(path)?)?.finalize())
}
