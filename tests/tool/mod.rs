//! Tools beyond Cargo that a test needs. Without them the test is skipped, or fails where they are required.
#![allow(dead_code, reason = "not every test needs all of it")]

use std::path::Path;
use std::process::{Command, Stdio};

/// Set to `1` if a missing tool is a failure, as in continuous integration.
const REQUIRED: &str = "SIZELEAK_REQUIRE_TOOLS";

/// Whether all of these programs exist. If not, reports that `test` is skipped.
///
/// # Panics
/// If one is missing and `SIZELEAK_REQUIRE_TOOLS=1` is set.
pub(crate) fn are_here(test: &str, programs: &[&str]) -> bool {
    let missing = programs.iter().find(|program| !is_here(program));
    missing.is_none_or(|program| skip(test, program))
}

/// Whether `python3` has this module. If not, reports that `test` is skipped.
///
/// # Panics
/// If it is missing and `SIZELEAK_REQUIRE_TOOLS=1` is set.
pub(crate) fn python_has(test: &str, module: &str) -> bool {
    let mut probe = Command::new("python3");
    probe.args(["-c", &format!("import {module}")]).stdin(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success()) || skip(test, &format!("python3 with {module}"))
}

/// Reports that `test` is skipped because it lacks `need`; always false.
///
/// # Panics
/// If `SIZELEAK_REQUIRE_TOOLS=1` is set.
#[allow(clippy::print_stdout, reason = "the person who runs the tests should see it")]
pub(crate) fn skip(test: &str, need: &str) -> bool {
    assert!(std::env::var_os(REQUIRED).is_none_or(|set| set != "1"), "{test}: needs {need}");
    println!("skipped: {test}: needs {need}");
    false
}

fn is_here(program: &str) -> bool {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).any(|folder| folder.join(program).is_file())
}

/// Runs a command to its end and returns its standard output.
///
/// # Errors
/// One sentence with its standard error, if it cannot be started or fails.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{program}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
    }
}
