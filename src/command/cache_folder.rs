//! The folder of the cache, as several subcommands name it.

use std::path::PathBuf;

use clap::Args;
use sizeleak_pipeline::cache::{CacheStore, cache_folder};

use super::help::CACHE;

/// Where the cache is.
#[derive(Debug, Args)]
pub(super) struct CacheFolder {
    /// The folder of the cache [default: `$SIZELEAK_CACHE_DIR`, else `sizeleak` in the user's cache folder]
    #[arg(long, value_name = "DIR", hide_short_help = true, help_heading = CACHE)]
    cache_dir: Option<PathBuf>,
}

impl CacheFolder {
    /// The cache, which may take `limit` bytes.
    pub(super) fn open(&self, limit: u64) -> anyhow::Result<CacheStore> {
        Ok(CacheStore::new(cache_folder(self.cache_dir.as_deref())?, limit))
    }
}
