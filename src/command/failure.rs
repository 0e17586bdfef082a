//! Why a command failed: an error of one sentence, with the exit code of the contract.

use std::error::Error;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use sizeleak_audit::padding::CountermeasureError;
use sizeleak_evaluation::EvaluationError;
use sizeleak_evaluation::experiment::RecordingError;
use sizeleak_inference::space::SpaceError;
use sizeleak_learning::LearningError;
use sizeleak_pipeline::{ConfigError, InputError, ModelFit, RunError};
use sizeleak_platform::runtime::ConfigureError;
use sizeleak_platform::storage::FileConflict;
use sizeleak_platform::telemetry::log::say;
use sizeleak_text::{MAX_WRITTEN_BYTES, read_text};
use sizeleak_traffic::archive::ArchiveError;
use sizeleak_traffic::strip::StripError;

#[derive(Debug, thiserror::Error)]
#[error("{error}")]
struct Coded {
    code: u8,
    #[source]
    error: anyhow::Error,
}

pub(crate) fn with_code(code: u8, error: impl Into<anyhow::Error>) -> anyhow::Error {
    Coded { code, error: error.into() }.into()
}

/// The command line or `pipeline.toml` is invalid: exit code 2.
macro_rules! usage {
    ($($words:tt)*) => { $crate::command::failure::with_code(2, anyhow::anyhow!($($words)*)) };
}
pub(crate) use usage;

/// A damaged capture, although the result was written; `covered` says what the result covers.
pub(super) fn damaged(damage: &RunError, covered: &str) -> anyhow::Error {
    with_code(damage.exit_code(), anyhow!("{damage}; {covered}"))
}

pub(super) fn check_damage(damage: Option<&RunError>, covered: &str) -> Result<()> {
    damage.map_or(Ok(()), |damage| Err(damaged(damage, covered)))
}

/// Ends the program with this code where the reason is said already.
pub(super) fn silent(code: u8) -> anyhow::Error {
    with_code(code, anyhow!(""))
}

/// Which exit code the first cause has that has one; bad input and I/O have 1.
pub(super) fn exit_code(error: &anyhow::Error) -> u8 {
    error.chain().find_map(code_of).unwrap_or(1)
}

fn code_of(cause: &(dyn Error + 'static)) -> Option<u8> {
    fn given<E: Error + 'static>(cause: &(dyn Error + 'static), code: fn(&E) -> u8) -> Option<u8> {
        cause.downcast_ref().map(code)
    }
    given::<Coded>(cause, |error| error.code)
        .or_else(|| given::<FileConflict>(cause, |_| 2))
        .or_else(|| given::<CountermeasureError>(cause, |_| 2))
        .or_else(|| given(cause, ConfigError::exit_code))
        .or_else(|| given(cause, ConfigureError::exit_code))
        .or_else(|| given(cause, ArchiveError::exit_code))
        .or_else(|| given(cause, RunError::exit_code))
        .or_else(|| given(cause, InputError::exit_code))
        .or_else(|| given::<RecordingError>(cause, |_| 1))
        .or_else(|| given(cause, of_evaluation))
        .or_else(|| given(cause, of_learning))
        .or_else(|| given(cause, of_strip))
        .or_else(|| given(cause, of_space))
}

fn of_strip(error: &StripError) -> u8 {
    if let StripError::Configure(fault) = error { fault.exit_code() } else { 1 }
}

fn of_space(error: &SpaceError) -> u8 {
    let is_usage = matches!(error, SpaceError::NoPrior | SpaceError::NoInventory(_) | SpaceError::NoNumbers);
    if is_usage { 2 } else { 1 }
}

fn of_evaluation(error: &EvaluationError) -> u8 {
    match error {
        EvaluationError::Input(error) => error.exit_code(),
        EvaluationError::Learning(error) => of_learning(error),
        EvaluationError::NoCandidates | EvaluationError::PaddedAlready => 2,
        _ => 1,
    }
}

fn of_learning(error: &LearningError) -> u8 {
    match error {
        LearningError::Input(error) => error.exit_code(),
        LearningError::UnknownCipherSuite(_) | LearningError::Segmenter(_) => 2,
        _ => 1,
    }
}

pub(super) fn parsed<T, E: Into<anyhow::Error>>(path: &Path, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T> {
    let read = || parse(&read_text(path, MAX_WRITTEN_BYTES)?).map_err(Into::into);
    read().with_context(|| path.display().to_string())
}

/// An error in one sentence, with its causes. Many errors quote theirs.
pub(super) fn sentence(error: &anyhow::Error) -> String {
    let mut before = error.to_string();
    let mut sentence = before.clone();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !before.ends_with(&cause) {
            sentence.extend([": ", &cause]);
            before = cause;
        }
    }
    sentence
}

/// Fails where the model fits nothing, or was asked of nothing; says so where it does not fit some flows.
pub(super) fn check_fit(fit: ModelFit) -> Result<()> {
    match fit {
        ModelFit::All => {}
        ModelFit::Some { .. } => say("note", &fit.to_string()),
        ModelFit::None { .. } | ModelFit::Elsewhere { .. } => return Err(anyhow!("{fit}")),
    }
    Ok(())
}
