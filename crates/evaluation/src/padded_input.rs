//! The commands of an input as they would be if they were padded.

use std::path::PathBuf;

use serde::Serialize;
use sizeleak_frame::{Command, Direction, Frame};
use sizeleak_model::policies::{PaddingKey, PaddingPolicy};
use sizeleak_model::{Basis, Model};
use sizeleak_pipeline::recording::Recording;
use sizeleak_pipeline::{InputError, InputSource, Pipeline, PipelineInput};

use crate::judged_run::EvaluationError;

const CORRECTOR: &str = "epsilon-corrector";

/// The commands of an input as they would be padded, from which pipelines continue.
#[derive(Debug)]
pub(crate) struct PaddedInput {
    pub(crate) input: PipelineInput,
    pub(crate) overhead: PaddingOverhead,
    _folder: tempfile::TempDir,
}

/// What padding costs, over all commands to gateways.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PaddingOverhead {
    pub commands: u64,
    /// Their bytes of plaintext without padding.
    pub bytes: u64,
    pub added_bytes: u64,
}

impl PaddingOverhead {
    /// The bytes that padding adds, as a share of those without.
    pub fn share(&self) -> f64 {
        self.added_bytes as f64 / self.bytes.max(1) as f64
    }
}

impl PaddedInput {
    /// Pads the commands that a pipeline finds in an input. `models` say what cipher suites add, where it was not seen.
    ///
    /// Random padding is drawn by the time of each command, so that it is drawn anew for each, and always the same.
    pub(crate) fn new(
        input: &PipelineInput,
        pipeline: &Pipeline,
        models: &[Model],
        policy: &PaddingPolicy,
    ) -> Result<Self, EvaluationError> {
        if models.iter().any(|model| model.learned.padding.is_some()) {
            return Err(EvaluationError::PaddedAlready);
        }
        let folder = tempfile::Builder::new().prefix("sizeleak-").tempdir().map_err(InputError::Recording)?;
        let path: PathBuf = folder.path().join("padded.frames.zst");
        let mut writer = Recording::of_frames(&path).map_err(InputError::Recording)?;
        let basis = models.first().map(|model| &model.learned.basis);
        let (mut overhead, mut fault) = (PaddingOverhead::default(), None);
        input.observe(&pipeline.before(CORRECTOR), &mut |_| {}, |mut frame| {
            if fault.is_some() {
                return;
            }
            if let Frame::Command(command) = &mut frame
                && command.direction == Direction::ToGateway
            {
                match padded(command, basis, policy) {
                    Some((padded, added)) => {
                        overhead.commands += 1;
                        overhead.bytes += padded.plaintext.map_or(0, |[_, most]| most.saturating_sub(added));
                        overhead.added_bytes += added;
                        **command = padded;
                    }
                    None => fault = Some(EvaluationError::NoPlaintext),
                }
            }
            if let Err(error) = writer.write(&frame) {
                fault = Some(InputError::from(error).into());
            }
        })?;
        if let Some(fault) = fault {
            return Err(fault);
        }
        Recording::end(writer).map_err(InputError::Recording)?;
        Ok(Self { input: PipelineInput::new(InputSource::Streams(vec![path])), overhead, _folder: folder })
    }
}

/// A command as it would be padded, and the bytes that are added; `None` if its bytes of plaintext are not known. Under a
/// block cipher it is padded as the largest message that its blocks may hold, and could be any from the padded smallest.
fn padded(command: &Command, basis: Option<&Basis>, policy: &PaddingPolicy) -> Option<(Command, u64)> {
    let sizes = match (command.plaintext, basis) {
        (Some(sizes), _) => sizes,
        (None, Some(basis @ Basis::Plaintext { .. })) => {
            let sizes = basis.sizes(command.size, command.records, None).ok()?;
            sizes.map(|size| u64::try_from(size).unwrap_or(0))
        }
        (None, _) => return None,
    };
    let draw = PaddingKey::new([0; 32]).draw(&command.time_ns.to_le_bytes());
    let [least, most] = sizes.map(|size| policy.drawn(size, draw));
    let added = most.saturating_sub(sizes[1]);
    let size = command.size.saturating_add(added);
    Some((Command { size, plaintext: Some([least.min(most), most]), ..command.clone() }, added))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(size: u64, plaintext: Option<[u64; 2]>) -> Command {
        Command { size, plaintext, records: 1, ..Command::default() }
    }

    fn sizes(command: &Command, basis: Option<&Basis>) -> Option<(u64, Option<[u64; 2]>, u64)> {
        let policy = PaddingPolicy::Table { buckets: vec![104, 131] };
        padded(command, basis, &policy).map(|(command, added)| (command.size, command.plaintext, added))
    }

    #[test]
    fn commands_grow_by_their_padding() {
        assert_eq!(sizes(&command(129, Some([105; 2])), None), Some((155, Some([131; 2]), 26)));
        let blocks = command(160, Some([100, 115]));
        assert_eq!(sizes(&blocks, None), Some((176, Some([104, 131]), 16)), "in blocks");
    }

    #[test]
    fn the_models_suite_is_assumed_where_none_was_seen() {
        let basis = Basis::Plaintext { cipher_suite: "X".to_owned(), record_overhead: [24, 24] };
        assert_eq!(sizes(&command(124, None), Some(&basis)), Some((128, Some([104; 2]), 4)));
        assert_eq!(sizes(&command(124, None), Some(&Basis::Wire)), None);
        assert_eq!(sizes(&command(124, None), None), None);
    }
}
