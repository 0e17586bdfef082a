//! Tests that change their process for good: each runs once more, in a process of its own.

use std::env;
use std::path::Path;
use std::process::Command;

const APART: &str = "SIZELEAK_TEST_APART";

/// Whether this process is the one that [`run`] has started.
pub fn is_here() -> bool {
    env::var_os(APART).is_some()
}

/// Runs a test of this module (`module_path!()`) in a process of its own, in this folder, and returns what it prints.
pub fn run(module: &str, test: &str, folder: &Path) -> String {
    let path = format!("{}::{test}", module.split_once("::").unwrap().1);
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", &path, "--include-ignored", "--nocapture"]).current_dir(folder).env(APART, "1");
    let output = command.env_remove("SUDO_UID").output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
    said
}
