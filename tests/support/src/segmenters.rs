//! The segmenters of `examples/segmenters`, as commands.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use crate::programs::{built, root};

/// The folder of the examples.
pub fn folder() -> PathBuf {
    root().join("examples/segmenters")
}

/// The segmenter in Python, as a command line.
pub fn python() -> Vec<String> {
    vec!["python3".to_owned(), folder().join("burst.py").display().to_string(), "40".to_owned()]
}

/// The segmenter in Rust, as a command line. It is a package of its own, which Cargo does not build for the
/// tests of this package; so it is built here, beside the other programs.
pub fn rust() -> Vec<String> {
    let programs = built();
    let profile = programs.file_name().unwrap().to_str().unwrap();
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(["build", "--quiet", "--offline", "--bin", "burst-segmenter"]);
    cargo.args(["--profile", if profile == "debug" { "dev" } else { profile }]);
    let ended = cargo.arg("--target-dir").arg(programs.parent().unwrap()).status().unwrap();
    assert!(ended.success(), "burst-segmenter cannot be built");
    let program = programs.join("burst-segmenter").display().to_string();
    vec![program, "--silence".to_owned(), "40ms".to_owned()]
}
