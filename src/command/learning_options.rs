//! How a model is learned, as several subcommands name it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use clap::Args;
use sizeleak_learning::{CipherSuite, LearningSettings};
use sizeleak_model::policies::{PaddingPolicy, PolicyFile};
use sizeleak_model::{CaptureDigest, FitMethod, Inventory};

use super::failure::parsed;

#[derive(Debug, Args)]
pub(super) struct LearningOptions {
    /// The devices behind the gateway and their actions, as TOML [default: any number of any action]
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// How sizes are learned: robust, or paper (its procedure)
    #[arg(long, value_enum, hide_possible_values = true, default_value_t = FitMethod::Robust)]
    pub(super) method: FitMethod,

    /// The cipher suite, by its IANA name, of sessions whose handshake was not captured
    #[arg(long, value_name = "SUITE")]
    cipher: Option<String>,

    /// Commands are padded, by this policy. A file that `sizeleak pad` wrote, or `multiple:BYTES`, `powers-of-two`,
    /// `padme`, `tls13:BYTES`, `constant:BYTES`, `random:MOST`. Sizes are learned as ranges; the model holds the
    /// policy.
    #[arg(long, value_name = "POLICY")]
    pub(super) padding: Option<PaddingOption>,

    /// Every command between the first label and the last has a label. What has none is learned as no command. Without
    /// this, only what is periodic, an answer or of a size that no actions make up is.
    #[arg(long)]
    pub(super) labels_are_complete: bool,
}

impl LearningOptions {
    /// How is learned; `captures` are those that the model names.
    pub(super) fn settings(&self, captures: Vec<CaptureDigest>) -> Result<LearningSettings> {
        Ok(LearningSettings {
            labels_are_complete: self.labels_are_complete,
            method: self.method,
            cipher: self.cipher.as_deref().map(CipherSuite::named).transpose()?,
            padding: self.padding.as_ref().map(PaddingOption::policy).transpose()?,
            inventory: self.inventory.as_ref().map(|path| parsed(path, Inventory::from_toml)).transpose()?,
            captures,
        })
    }
}

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

    pub(super) fn policy(&self) -> Result<PaddingPolicy> {
        let name = match self.0.parse() {
            Ok(policy) => return Ok(policy),
            Err(error) => error,
        };
        let file = PathBuf::from(&self.0);
        if !file.exists() {
            bail!("`{}` is no file and no policy: {name}", self.0);
        }
        Ok(parsed(&file, PolicyFile::from_json)?.policy)
    }
}
