//! The segmenters of `examples/segmenters`, as commands.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;
use std::{env, fs};

use crate::programs::{built, root};

/// The folder of the examples.
pub fn folder() -> PathBuf {
    root().join("examples/segmenters")
}

/// The segmenter in Python, as a command line.
pub fn python() -> Vec<String> {
    vec!["python3".to_owned(), folder().join("burst.py").display().to_string(), "40".to_owned()]
}

/// The segmenter in Rust, as a command line. `cargo test` builds it as an example; where only some tests were built, it is
/// built here.
pub fn rust() -> Vec<String> {
    static BUILT: Once = Once::new();
    let program = built().join("examples/burst-segmenter");
    BUILT.call_once(|| {
        if !is_newer(&program, &folder().join("burst")) {
            build();
        }
    });
    vec![program.display().to_string(), "--silence".to_owned(), "40ms".to_owned()]
}

/// Whether a program is newer than its source.
fn is_newer(program: &Path, source: &Path) -> bool {
    let modified = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let files = fs::read_dir(source).unwrap().map(|file| modified(&file.unwrap().path()));
    modified(program) > files.max().unwrap()
}

fn build() {
    let programs = built();
    let profile = programs.file_name().unwrap().to_str().unwrap();
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root()).args(["build", "--quiet", "--offline", "--example", "burst-segmenter"]);
    cargo.args(["--profile", if profile == "debug" { "dev" } else { profile }]);
    let ended = cargo.arg("--target-dir").arg(programs.parent().unwrap()).status().unwrap();
    assert!(ended.success(), "burst-segmenter cannot be built");
}
