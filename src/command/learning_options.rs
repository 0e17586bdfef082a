//! How a model is learned, as several subcommands name it.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use sizeleak_learning::{CipherSuite, LearningSettings};
use sizeleak_model::{CaptureDigest, FitMethod, Inventory};
use sizeleak_platform::storage::RunFiles;
use sizeleak_text::{MAX_WRITTEN_BYTES, read_text};

use super::failure::Failure;
use super::padding_option::PaddingOption;

/// How a model is learned.
#[derive(Debug, Args)]
pub(super) struct LearningOptions {
    /// The devices behind the gateway and their actions [default: any number of any action]
    ///
    /// TOML, `[[device]]` with `name`, `count`, `actions`.
    #[arg(long, value_name = "FILE")]
    inventory: Option<PathBuf>,

    /// How sizes are learned
    #[arg(long, value_enum, default_value_t = FitMethod::Robust, hide_short_help = true)]
    method: FitMethod,

    /// The cipher suite, by its IANA name, of sessions whose handshake was not captured
    #[arg(long, value_name = "SUITE", hide_short_help = true)]
    cipher: Option<String>,

    /// Commands are padded, by this policy
    ///
    /// A file that `sizeleak pad` wrote, or `multiple:BYTES`, `powers-of-two`, `padme`, `tls13:BYTES`,
    /// `constant:BYTES`, `random:MOST`. Sizes are learned as ranges; the model holds the policy.
    #[arg(long, value_name = "POLICY", hide_short_help = true)]
    padding: Option<PaddingOption>,

    /// Every command between the first label and the last has a label
    ///
    /// What has none is learned as no command. Without this, only what is periodic, an answer or of a size that no
    /// actions make up is.
    #[arg(long, hide_short_help = true)]
    labels_are_complete: bool,
}

impl LearningOptions {
    /// Adds the files that are read.
    pub(super) fn add_to(&self, files: &mut RunFiles) {
        self.inventory.iter().for_each(|path| files.reads("the inventory", path));
        self.padding.iter().filter_map(PaddingOption::file).for_each(|path| files.reads("the padding policy", path));
    }

    /// How is learned; `captures` are those that the model names.
    pub(super) fn settings(&self, captures: Vec<CaptureDigest>) -> Result<LearningSettings, Failure> {
        Ok(LearningSettings {
            labels_are_complete: self.labels_are_complete,
            method: self.method(),
            cipher: self.cipher.as_deref().map(CipherSuite::named).transpose()?,
            padding: self.padding.as_ref().map(PaddingOption::policy).transpose()?,
            inventory: self.inventory()?,
            captures,
        })
    }

    fn inventory(&self) -> anyhow::Result<Option<Inventory>> {
        let Some(path) = &self.inventory else { return Ok(None) };
        let name = || path.display().to_string();
        let text = read_text(path, MAX_WRITTEN_BYTES).with_context(name)?;
        Inventory::from_toml(&text).with_context(name).map(Some)
    }

    pub(super) fn has_padding(&self) -> bool {
        self.padding.is_some()
    }

    pub(super) fn method(&self) -> FitMethod {
        self.method
    }

    pub(super) fn labels_are_complete(&self) -> bool {
        self.labels_are_complete
    }
}
