//! What stages put out in earlier runs, kept by what it was made of: the bytes of the captures, every stage up to there with
//! all its options, and the program itself. A run begins behind the last stage that has not changed.
//!
//! [`CacheKeys`] say what an output was made of, [`FileDigests`] remembers those of large files, [`CacheStore`] holds the entries on
//! disk, and a [`CacheSession`] is one run's use of all of them.

mod digests;
mod entry;
mod hex;
mod key;
mod session;
mod store;

use std::env;
use std::path::{Path, PathBuf};

use anyhow::Context;
use etcetera::{BaseStrategy, choose_base_strategy};

pub use digests::FileDigests;
pub use entry::{CacheEntry, CachedCapture};
pub use key::{CacheKeys, CacheableOutput};
pub use session::CacheSession;
pub use store::{CacheLookup, CacheStore, StoredEntry};

/// Names the folder of the cache, over the one that is usual.
pub const FOLDER_VARIABLE: &str = "SIZELEAK_CACHE_DIR";

/// The folder of the cache: the one that is named, that of `SIZELEAK_CACHE_DIR`, or `sizeleak` in the user's folder for
/// caches (`$XDG_CACHE_HOME`, `~/.cache`).
///
/// # Errors
/// Where the user has no home.
pub fn cache_folder(named: Option<&Path>) -> anyhow::Result<PathBuf> {
    let set = || env::var_os(FOLDER_VARIABLE).filter(|folder| !folder.is_empty()).map(PathBuf::from);
    if let Some(folder) = named.map(Path::to_owned).or_else(set) {
        return Ok(folder);
    }
    let usual = choose_base_strategy().context("there is no folder for the cache: name one with --cache-dir")?;
    Ok(usual.cache_dir().join("sizeleak"))
}
