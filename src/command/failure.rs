//! Why a command failed, with the exit code of the contract.

use std::fmt::{Display, Formatter};
use std::io;

use anyhow::anyhow;
use sizeleak_archive::ArchiveError;
use sizeleak_evaluation::EvaluationError;
use sizeleak_labels::LabelFileError;
use sizeleak_learning::LearningError;
use sizeleak_model::ModelError;
use sizeleak_pipeline::{ConfigError, InputError, RunError};
use sizeleak_platform::storage::{FileConflict, OutputError};
use sizeleak_strip::StripError;
use sizeleak_survey::SurveyError;

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

    /// A failure with this exit code.
    pub(crate) fn with_code(code: u8, error: impl Into<anyhow::Error>) -> Self {
        Self { code, error: error.into() }
    }

    /// A damaged capture, although the result was written; `covered` says what the result covers.
    pub(super) fn damaged(damage: &RunError, covered: &str) -> Self {
        Self { code: damage.exit_code(), error: anyhow!("{damage}; {covered}") }
    }

    /// The same failure, with what was being done.
    pub(super) fn context(self, context: String) -> Self {
        Self { code: self.code, error: self.error.context(context) }
    }

    /// The exit code of the contract.
    pub(crate) fn exit_code(&self) -> u8 {
        self.code
    }
}

/// Bad input or I/O: exit code 1.
macro_rules! input {
    ($($error:ty),*) => {$(
        impl From<$error> for Failure {
            fn from(error: $error) -> Self {
                Self { code: 1, error: error.into() }
            }
        }
    )*};
}

input!(anyhow::Error, io::Error, csv::Error, LabelFileError, ModelError, OutputError);

impl From<FileConflict> for Failure {
    fn from(conflict: FileConflict) -> Self {
        Self::usage(conflict)
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self { code: error.exit_code(), error: error.into() }
    }
}

impl From<ArchiveError> for Failure {
    fn from(error: ArchiveError) -> Self {
        Self { code: error.exit_code(), error: error.into() }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        Self { code: error.exit_code(), error: error.into() }
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        Self { code: error.exit_code(), error: error.into() }
    }
}

impl From<EvaluationError> for Failure {
    fn from(error: EvaluationError) -> Self {
        match error {
            EvaluationError::Input(error) => error.into(),
            EvaluationError::Learning(error) => error.into(),
            EvaluationError::NoCandidates | EvaluationError::PaddedAlready => Self::usage(error),
            error => Self { code: 1, error: error.into() },
        }
    }
}

impl From<LearningError> for Failure {
    fn from(error: LearningError) -> Self {
        match error {
            LearningError::Input(error) => error.into(),
            LearningError::UnknownCipherSuite(_) | LearningError::Segmenter(_) => Self::usage(error),
            error => Self { code: 1, error: error.into() },
        }
    }
}

impl From<SurveyError> for Failure {
    fn from(error: SurveyError) -> Self {
        match error {
            SurveyError::Config(error) => error.into(),
            SurveyError::Damaged(error) => error.into(),
            error => Self { code: 1, error: error.into() },
        }
    }
}

impl From<StripError> for Failure {
    fn from(error: StripError) -> Self {
        match &error {
            StripError::Configure(fault) => Self { code: fault.exit_code(), error: error.into() },
            _ => Self { code: 1, error: error.into() },
        }
    }
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
