//! The public captures for comparison: fetched by the distribution's package client and kept, never committed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::programs::root;

/// Where fetched captures and tshark's answers are kept.
pub fn cache() -> PathBuf {
    root().join(".cache")
}

/// Fetches missing captures; returns all of them, in order, named by package and file.
pub fn captures() -> Vec<(String, PathBuf)> {
    let folder = cache().join("public-captures");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/public/fetch");
    let fetched = Command::new(script).arg(&folder).stdin(Stdio::null()).status();
    assert!(
        fetched.is_ok_and(|status| status.success()),
        "needs bash, apt-get and the network (the distribution's source packages)"
    );
    let mut captures = Vec::new();
    for package in ["ndpi", "tcpflow", "wireshark"] {
        add_files(&folder.join(package), package, &mut captures);
    }
    captures.sort();
    captures
}

fn add_files(folder: &Path, package: &str, captures: &mut Vec<(String, PathBuf)>) {
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            add_files(&path, package, captures);
        } else if !name.starts_with('.') {
            captures.push((format!("{package}/{name}"), path));
        }
    }
}
