//! Whether and where a command uses the cache.

use std::path::PathBuf;

use bytesize::ByteSize;
use clap::Args;
use sizeleak_pipeline::Pipeline;
use sizeleak_pipeline::cache::CacheStore;

use super::cache_folder::CacheFolder;
use super::help::CACHE;

/// Whether and where the cache is used.
#[derive(Debug, Args)]
pub(super) struct CacheUse {
    /// Start after the last stage that is unchanged since an earlier run, and keep the output of stages for later runs
    #[arg(long, conflicts_with = "from", hide_short_help = true, help_heading = CACHE)]
    cache: bool,

    /// Do not use the cache, even if the pipeline file enables it
    #[arg(long, conflicts_with = "cache", hide_short_help = true, help_heading = CACHE)]
    no_cache: bool,

    #[command(flatten)]
    folder: CacheFolder,

    /// The size limit of the cache on disk; the least recently used entries are evicted first [default: 4GB]
    #[arg(long, value_name = "SIZE", default_value = "4GB", hide_default_value = true, hide_short_help = true, help_heading = CACHE)]
    cache_size: ByteSize,
}

impl CacheUse {
    /// Whether the user asks for it.
    pub(super) fn is_asked_for(&self) -> bool {
        self.cache
    }

    /// The cache, if it is used.
    pub(super) fn open(&self, pipeline: &Pipeline) -> anyhow::Result<Option<CacheStore>> {
        if !self.cache && (!pipeline.cache || self.no_cache) {
            return Ok(None);
        }
        self.folder.open(self.cache_size.as_u64()).map(Some)
    }

    /// Its folder and its limit in bytes, if it is used.
    pub(super) fn chosen(&self, pipeline: &Pipeline) -> anyhow::Result<Option<(PathBuf, u64)>> {
        let store = self.open(pipeline)?;
        Ok(store.map(|store| (store.root().to_owned(), self.cache_size.as_u64())))
    }
}
