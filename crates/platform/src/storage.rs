//! Files that a program writes: each appears whole or not at all, outlives a power cut, and never replaces a file that
//! the same run reads.
//!
//! ```
//! use sizeleak_platform::storage::{RunFiles, replace};
//!
//! let folder = std::env::temp_dir().join(format!("sizeleak-storage-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let model = folder.join("model.toml");
//! replace(&model, b"schema = 1\n")?;
//!
//! let mut files = RunFiles::new();
//! files.reads("the model", &model);
//! files.writes("`--output`", &model);
//! assert!(files.check().unwrap_err().to_string().ends_with("is the model, which this run reads: name another file"));
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod output_file;
mod run_files;

pub use output_file::{
    Durability, OutputError, OutputFile, PendingFile, UNIQUE_LETTERS, make_private, open_regular, read_regular,
    replace, sync_folder,
};
pub use run_files::{FileConflict, RunFiles};
