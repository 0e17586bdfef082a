//! The keys of a point's records and answers: digests of everything they depend on.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use blake3::{Hash, Hasher};
use sizeleak_pipeline::Pipeline;
use sizeleak_pipeline::cache::{CacheKeys, CacheableOutput};

use crate::part_format::PartFormat;

/// The last of the stages that read packets.
pub(crate) const RECORD_STAGE: &str = "record-sizer";

/// The keys of one point.
#[derive(Debug)]
pub(crate) struct PointKeys {
    /// The key of the records.
    pub(crate) records: String,
    /// The key of the answers; `None` if an external program is among the stages.
    pub(crate) answers: Option<String>,
    /// The index of the stage that makes the records.
    pub(crate) record_index: usize,
}

impl PointKeys {
    /// The keys of a pipeline over captures with these digests. `program` is the digest of the running program: another
    /// build of the same version may behave differently.
    ///
    /// # Errors
    /// One sentence: the pipeline does not read captures up to records with stages of this program.
    pub(crate) fn of(
        pipeline: &Pipeline,
        captures: &BTreeMap<PathBuf, Hash>,
        program: Hash,
        format: PartFormat,
    ) -> Result<Self, String> {
        let keys = CacheKeys::of(pipeline, program, |path| match captures.get(path) {
            Some(digest) => Ok((*digest, 0)),
            None => digest_of(path).map(|digest| (digest, 0)),
        })?;
        let Some(records) = keys.outputs.iter().find(|output| output.stage == RECORD_STAGE) else {
            return Err(format!(
                "an archive keeps the records of `{RECORD_STAGE}`: its pipeline begins with `capture`, `flow-filter` \
                 and `{RECORD_STAGE}` of this program"
            ));
        };
        let is_last = |output: &&CacheableOutput| pipeline.output_of(output.index + 1).is_empty();
        let answers = keys.outputs.last().filter(is_last).map(|last| {
            let formatted = [last.key.as_bytes(), format.extension().as_bytes()].concat();
            blake3::hash(&formatted).to_string()
        });
        Ok(Self { records: records.key.to_string(), answers, record_index: records.index })
    }
}

/// The digest of a file.
pub(crate) fn digest_of(path: &Path) -> io::Result<Hash> {
    Ok(Hasher::new().update_reader(File::open(path)?)?.finalize())
}
