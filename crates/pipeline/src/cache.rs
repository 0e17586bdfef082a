//! The cache of stage outputs. An output is keyed by everything it depends on: the bytes of the captures, every stage
//! up to it with all its options, and the program itself. A run starts after the last stage whose output is cached.
//!
//! [`CacheKeys`] computes the keys, [`FileDigests`] remembers digests of large files, [`CacheStore`] holds the entries
//! on disk, and [`CacheSession`] is one run's use of all of them.

mod cached_run;
mod entry;
mod file_digests;
mod hex;
mod keys;
mod private_folder;
mod store;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context;
use etcetera::{BaseStrategy, choose_base_strategy};

pub use cached_run::CacheSession;
pub use entry::{CacheEntry, CachedCapture};
pub use file_digests::FileDigests;
pub use keys::{CacheKeys, CacheableOutput};
pub use private_folder::UnsafeFolder;
pub use store::{CacheLookup, CacheStore, StoredEntry};

/// The environment variable that overrides the default folder of the cache.
pub const FOLDER_VARIABLE: &str = "SIZELEAK_CACHE_DIR";

/// The folder of the cache: the named one, else `SIZELEAK_CACHE_DIR`, else `sizeleak` in the user's cache folder
/// (`$XDG_CACHE_HOME`, `~/.cache`).
///
/// # Errors
/// If the user has no home folder.
pub fn cache_folder(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let set = || env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if let Some(folder) = named.map(Path::to_owned).or_else(set) {
        return Ok(folder);
    }
    let usual = choose_base_strategy().context("there is no folder for the cache: name one with --cache-dir")?;
    Ok(usual.cache_dir().join("sizeleak"))
}
