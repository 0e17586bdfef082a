//! Why a point was not processed.

/// Why a point was not processed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Unprocessed {
    /// Something is wrong.
    Failed(String),
    /// A file that is in its results is growing again. Nothing is wrong.
    Waits(String),
    /// The call was stopped before.
    Stopped,
}

impl From<String> for Unprocessed {
    fn from(fault: String) -> Self {
        Self::Failed(fault)
    }
}

impl Unprocessed {
    /// What is wrong; `None` if nothing is.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Self::Failed(fault) => Some(fault.clone()),
            Self::Stopped => Some("was not processed before the call was stopped: run again".to_owned()),
            Self::Waits(_) => None,
        }
    }

    /// What it waits for.
    pub(crate) fn waits_for(&self) -> Option<String> {
        match self {
            Self::Waits(sentence) => Some(sentence.clone()),
            Self::Failed(_) | Self::Stopped => None,
        }
    }
}
