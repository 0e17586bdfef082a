//! Why a command failed, with the exit code of the contract.

use std::fmt::{Display, Formatter};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow};
use sizeleak_archive::ArchiveError;
use sizeleak_audit::padding::CountermeasureError;
use sizeleak_evaluation::EvaluationError;
use sizeleak_inference::space::SpaceError;
use sizeleak_labels::LabelFileError;
use sizeleak_learning::LearningError;
use sizeleak_model::ModelError;
use sizeleak_pipeline::{ConfigError, InputError, ModelFit, RunError};
use sizeleak_platform::storage::{FileConflict, OutputError};
use sizeleak_platform::telemetry::log::say;
use sizeleak_strip::StripError;
use sizeleak_survey::SurveyError;
use sizeleak_text::{MAX_WRITTEN_BYTES, read_text};

/// Why a command failed: one sentence for the user, and an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    error: anyhow::Error,
}

impl Failure {
    /// The command line or `pipeline.toml` is invalid: exit code 2.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Self {
        Self { code: 2, error: error.into() }
    }

    pub(crate) fn with_code(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }

    /// A damaged capture, although the result was written; `covered` says what the result covers.
    pub(super) fn damaged(damage: &RunError, covered: &str) -> Self {
        Self { code: damage.exit_code(), error: anyhow!("{damage}; {covered}") }
    }

    pub(super) fn context(self, context: String) -> Self {
        Self { code: self.code, error: self.error.context(context) }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        self.code
    }
}

/// Which exit code errors have.
macro_rules! exit_codes {
    ($($code:expr => $($error:ty),+;)+) => {$($(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                let code: fn(&$error) -> u8 = $code;
                Self { code: code(&error), error: error.into() }
            }
        }
    )+)+};
}

exit_codes! {
    // Bad input, or I/O.
    |_| 1 => anyhow::Error, io::Error, csv::Error, LabelFileError, ModelError, OutputError;
    |_| 2 => FileConflict, CountermeasureError;
    |error| error.exit_code() => ConfigError, ArchiveError, RunError, InputError;
    of_evaluation => EvaluationError;
    of_learning => LearningError;
    |error| match error {
        SurveyError::Config(error) => error.exit_code(),
        SurveyError::Damaged(error) => error.exit_code(),
        _ => 1,
    } => SurveyError;
    |error| if let StripError::Configure(fault) = error { fault.exit_code() } else { 1 } => StripError;
    |error| match error {
        SpaceError::NoPrior | SpaceError::NoInventory(_) | SpaceError::NoNumbers => 2,
        _ => 1,
    } => SpaceError;
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

/// What a file that people write holds.
pub(super) fn parsed<T, E: Into<anyhow::Error>>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> anyhow::Result<T> {
    let read = || parse(&read_text(path, MAX_WRITTEN_BYTES)?).map_err(Into::into);
    read().with_context(|| path.display().to_string())
}

impl Display for Failure {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let mut before = self.error.to_string();
        formatter.write_str(&before)?;
        for cause in self.error.chain().skip(1).map(ToString::to_string) {
            // Many errors quote their cause.
            if !before.ends_with(&cause) {
                write!(formatter, ": {cause}")?;
                before = cause;
            }
        }
        Ok(())
    }
}

/// Fails where the model fits nothing, or was asked of nothing; says so where it does not fit some flows.
pub(super) fn check_fit(fit: ModelFit) -> Result<ExitCode, Failure> {
    match fit {
        ModelFit::All => {}
        ModelFit::Some { .. } => say("note", &fit.to_string()),
        ModelFit::None { .. } | ModelFit::Elsewhere { .. } => return Err(Failure::with_code(1, anyhow!("{fit}"))),
    }
    Ok(ExitCode::SUCCESS)
}
