//! A padding policy as an option names it.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use sizeleak_model::policies::{PaddingPolicy, PolicyFile};
use sizeleak_text::{MAX_WRITTEN_BYTES, read_text};

/// A padding policy, by the file that holds it or by its name.
#[derive(Debug, Clone)]
pub(super) struct PaddingOption(String);

impl From<String> for PaddingOption {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl PaddingOption {
    /// The file, if it is none of the policies that have a name.
    pub(super) fn file(&self) -> Option<&Path> {
        if self.0.parse::<PaddingPolicy>().is_ok() { None } else { Some(Path::new(&self.0)) }
    }

    /// The policy.
    pub(super) fn policy(&self) -> anyhow::Result<PaddingPolicy> {
        let name = match self.0.parse() {
            Ok(policy) => return Ok(policy),
            Err(error) => error,
        };
        let file = PathBuf::from(&self.0);
        if !file.exists() {
            bail!("`{}` is no file and no policy: {name}", self.0);
        }
        let named = || file.display().to_string();
        let text = read_text(&file, MAX_WRITTEN_BYTES).with_context(named)?;
        Ok(PolicyFile::from_json(&text).with_context(named)?.policy)
    }
}
