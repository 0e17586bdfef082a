//! Runs that continue where an earlier one has stopped: their stages start from its checkpoint, the states of the stages
//! that turn packets into records, and leave the next one instead of finishing.
//!
//! The file of a checkpoint: a line that says what it is; then the states and what they depend on, as MessagePack
//! compressed by zstd; then the BLAKE3 digest of all of that.

use std::io::{self, Read};
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::json;
use sizeleak_frame::SCHEMA;
use sizeleak_platform::runtime::{FailureSlot, Runnable, StateSlot};
use sizeleak_platform::storage::open_regular;
use thiserror::Error;

use crate::placement::Placement;
use crate::run::PreparedRun;
use crate::{ConfigError, Mode, Pipeline};

/// The meaning of what is kept between two runs: states, and the records and answers of archives. Raise it with every
/// change after which one of these would come out differently, or a state is laid out differently: what was kept before
/// is then made again.
pub const MEANING: u32 = 24;

fn first_line() -> Vec<u8> {
    format!("sizeleak state {MEANING}\n").into_bytes()
}

const DIGEST: usize = blake3::OUT_LEN;

/// The longest file, and the longest content, in bytes: some ten times what the default limits of the stages allow.
const MAX_BYTES: u64 = 256 << 20;

const LEVEL: i32 = 3;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    version: String,
    schema: u32,
    pub(crate) stages: Vec<StageCheckpoint>,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StageCheckpoint {
    pub(crate) name: String,
    pub(crate) options: [u8; DIGEST],
    /// Empty for a stage without a state.
    #[serde(with = "serde_bytes")]
    pub(crate) state: Vec<u8>,
}

#[derive(Debug, Error)]
pub enum CheckpointError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("this is no state of an earlier run")]
    Other,
    #[error("the state is damaged: read the captures again from the first, with a new state")]
    Damaged,
    #[error(
        "sizeleak {0} wrote the state, and only that version continues from it: read the captures again from the first, with a new state"
    )]
    Version(String),
    #[error("the state would take more than {MAX_BYTES} bytes: lower `max-flows` of flow-filter and record-sizer")]
    TooLong,
}

impl Checkpoint {
    pub(crate) fn new(stages: Vec<StageCheckpoint>) -> Self {
        Self { version: env!("CARGO_PKG_VERSION").to_owned(), schema: SCHEMA, stages }
    }

    pub fn read(path: &Path) -> Result<Self, CheckpointError> {
        let mut bytes = Vec::new();
        open_regular(path)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
        Self::from_bytes(&bytes)
    }

    /// Reads the content of a file. Memory is bounded whatever it holds.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        if !bytes.starts_with(&first_line()) {
            return Err(CheckpointError::Other);
        }
        let (content, digest) = bytes.split_last_chunk::<DIGEST>().ok_or(CheckpointError::Damaged)?;
        if bytes.len() as u64 > MAX_BYTES || blake3::hash(content).as_bytes() != digest {
            return Err(CheckpointError::Damaged);
        }
        let compressed = content.get(first_line().len()..).ok_or(CheckpointError::Damaged)?;
        let mut plain = Vec::new();
        let decoder = zstd::Decoder::with_buffer(compressed).map_err(|_| CheckpointError::Damaged)?;
        decoder.take(MAX_BYTES + 1).read_to_end(&mut plain).map_err(|_| CheckpointError::Damaged)?;
        if plain.len() as u64 > MAX_BYTES {
            return Err(CheckpointError::Damaged);
        }
        let read: Self = rmp_serde::from_slice(&plain).map_err(|_| CheckpointError::Damaged)?;
        let own = Self::new(Vec::new());
        if (&read.version, read.schema) != (&own.version, own.schema) {
            return Err(CheckpointError::Version(read.version));
        }
        Ok(read)
    }

    /// The digest of what it says, however that is compressed, in hexadecimal digits.
    pub fn digest(&self) -> Result<String, CheckpointError> {
        Ok(blake3::hash(&rmp_serde::to_vec(self).map_err(io::Error::other)?).to_string())
    }

    pub fn to_bytes(&self) -> Result<Vec<u8>, CheckpointError> {
        let plain = rmp_serde::to_vec(self).map_err(io::Error::other)?;
        let compressed = zstd::encode_all(&*plain, LEVEL)?;
        let mut bytes = [first_line(), compressed].concat();
        bytes.extend_from_slice(blake3::hash(&bytes).as_bytes());
        if plain.len().max(bytes.len()) as u64 > MAX_BYTES {
            return Err(CheckpointError::TooLong);
        }
        Ok(bytes)
    }
}

const STAGES: [&str; 3] = ["capture", "flow-filter", "record-sizer"];

const FILES: &str = "files";

#[derive(Debug)]
pub struct PendingCheckpoint {
    stages: Vec<(StageCheckpoint, StateSlot)>,
}

impl PendingCheckpoint {
    /// The checkpoint at the end of the run; `None` if that has not ended well.
    pub fn taken(self) -> Option<Checkpoint> {
        let stages = self.stages.into_iter().map(|(stage, slot)| {
            let state = if has_state(&stage.name) { slot.take()? } else { Vec::new() };
            Some(StageCheckpoint { state, ..stage })
        });
        Some(Checkpoint::new(stages.collect::<Option<_>>()?))
    }
}

fn has_state(stage: &str) -> bool {
    stage != STAGES[0]
}

impl Pipeline {
    /// The part of the pipeline whose state can be saved: from the captures to the records.
    pub fn until_records(&self) -> Result<Self, ConfigError> {
        let usage = |fault: &str| Err(ConfigError::usage(fault.to_owned()));
        let mut part = self.clone();
        let later = part.stages.split_off(part.stages.len().min(STAGES.len()));
        let names = part.stages.iter().map(|stage| stage.entry().map_or("", |entry| entry.name));
        if !names.eq(STAGES) {
            return usage("only runs that begin with capture, flow-filter and record-sizer can be continued");
        }
        if self.settings.mode == Mode::Processes {
            return usage("only runs on threads can be continued: leave out `--mode processes`");
        }
        if let Some(saving) = later.iter().find(|stage| stage.save.is_some()) {
            return Err(ConfigError::usage(format!(
                "a run that can be continued ends with the records, so `{}` has nothing to save",
                saving.name()
            )));
        }
        Ok(part)
    }

    fn checkpointed(&self) -> Vec<StageCheckpoint> {
        let stages = self.resolved_stages().into_iter().map(|stage| {
            let options = stage.options.iter().filter(|(key, _)| *key != FILES);
            // The keys of a table are sorted.
            let options: Vec<_> = options.map(|(key, value)| json!([key, value])).collect();
            let options = blake3::hash(json!(options).to_string().as_bytes()).into();
            StageCheckpoint { name: stage.entry.name.to_owned(), options, state: Vec::new() }
        });
        stages.collect()
    }
}

impl PreparedRun {
    pub fn continue_from(&mut self, pipeline: &Pipeline, checkpoint: &Checkpoint) -> Result<(), ConfigError> {
        let expected = pipeline.checkpointed();
        if !expected.iter().map(|stage| &stage.name).eq(checkpoint.stages.iter().map(|stage| &stage.name)) {
            return Err(ConfigError::input(CheckpointError::Damaged.to_string()));
        }
        for (stage, saved) in expected.iter().zip(&checkpoint.stages) {
            if stage.options != saved.options {
                return Err(ConfigError::input(format!(
                    "the state is of a run with other options of {}: use those, or read the captures again from the \
                     first, with a new state",
                    stage.name
                )));
            }
        }
        for saved in checkpoint.stages.iter().filter(|saved| has_state(&saved.name)) {
            let restored = self.stage(&saved.name).map(|stage| stage.restore(&saved.state));
            if !matches!(restored, Some(Ok(()))) {
                return Err(ConfigError::input(CheckpointError::Damaged.to_string()));
            }
        }
        Ok(())
    }

    /// Makes the stages of this run, which is one of `pipeline`, leave their states at the end instead of finishing.
    pub fn leave_state(&mut self, pipeline: &Pipeline) -> Result<PendingCheckpoint, ConfigError> {
        let mut stages = Vec::new();
        for stage in pipeline.checkpointed() {
            let slot = StateSlot::default();
            if has_state(&stage.name) {
                let left = self.stage(&stage.name).map(|stage| stage.leave_state(slot.clone()));
                if !matches!(left, Some(Ok(()))) {
                    return Err(ConfigError::usage(format!("a run of `{}` cannot be continued", stage.name)));
                }
            }
            stages.push((stage, slot));
        }
        Ok(PendingCheckpoint { stages })
    }

    /// Makes the run end well although captures are damaged, behind everything that can be read of them. Returns where the
    /// first reason is left.
    pub fn accept_damage(&mut self) -> FailureSlot {
        let slot = FailureSlot::default();
        if let Some(capture) = self.stage(STAGES[0]) {
            capture.accept_failure(slot.clone());
        }
        slot
    }

    fn stage(&mut self, name: &str) -> Option<&mut Box<dyn Runnable>> {
        let threads = self.placements.iter_mut().filter_map(|placement| match placement {
            Placement::Thread(thread) => Some(thread),
            Placement::Process(_) | Placement::Forwarder(_) => None,
        });
        threads.flat_map(|thread| &mut thread.stages).find(|stage| stage.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn checkpoint() -> Checkpoint {
        let state = vec![7; 5000];
        Checkpoint::new(vec![StageCheckpoint { name: "mine".to_owned(), options: [1; DIGEST], state }])
    }

    fn signed(bytes: &[u8]) -> Vec<u8> {
        [bytes, blake3::hash(bytes).as_bytes().as_slice()].concat()
    }

    #[test]
    fn a_checkpoint_is_read_as_it_was_written() {
        let bytes = checkpoint().to_bytes().unwrap();
        assert_eq!(Checkpoint::from_bytes(&bytes).unwrap(), checkpoint());
        assert_eq!(bytes, checkpoint().to_bytes().unwrap());
        assert!(bytes.len() < 300, "{} bytes", bytes.len());
    }

    #[test]
    fn damage_is_found_wherever_it_is() {
        let bytes = checkpoint().to_bytes().unwrap();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(Checkpoint::from_bytes(&damaged).is_err(), "byte {at}");
            assert!(Checkpoint::from_bytes(&bytes[..at]).is_err(), "cut at byte {at}");
        }
    }

    #[test]
    fn a_checkpoint_of_another_version_is_refused_by_its_name() {
        let other = Checkpoint { version: "7.7.7".to_owned(), ..checkpoint() };
        let error = Checkpoint::from_bytes(&other.to_bytes().unwrap()).unwrap_err();
        assert!(error.to_string().contains("sizeleak 7.7.7"), "{error}");
        assert!(Checkpoint::from_bytes(&Checkpoint { schema: 999, ..checkpoint() }.to_bytes().unwrap()).is_err());
    }

    #[test]
    fn content_that_expands_without_end_is_refused() {
        let zeros = zstd::encode_all(io::repeat(0).take(2 * MAX_BYTES), 1).unwrap();
        assert!(zeros.len() < 1 << 20);
        let bomb = signed(&[first_line(), zeros].concat());
        assert!(matches!(Checkpoint::from_bytes(&bomb), Err(CheckpointError::Damaged)));
    }

    proptest! {
        #[test]
        fn any_content_with_the_right_digest_never_panics(plain in prop::collection::vec(any::<u8>(), 0..200), raw: bool) {
            let content = if raw { plain } else { zstd::encode_all(&*plain, 1).unwrap() };
            let _ = Checkpoint::from_bytes(&signed(&[first_line(), content].concat()));
        }
    }
}
