//! The Python package, by its own tests.

use std::process::Command;

use support::programs::root;

/// Runs a program with these arguments in the folder of the package.
fn run(program: &str, arguments: &[&str]) {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root().join("python")).env("SIZELEAK_PROGRAM", env!("CARGO_BIN_EXE_sizeleak"));
    let status = command.status().unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(status.success(), "{program} {arguments:?}: {status}");
}

#[test]
#[ignore = "second tier: needs the package (pip install ./python), mypy, ruff, pytest and what .ci/requirements.txt lists"]
fn python_package_is_typed_documented_and_equal_to_the_program() {
    run("ruff", &["check", "--quiet", "."]);
    run("mypy", &["package/sizeleak"]);
    run("python3", &["document.py", "--check"]);
    run("python3", &["-m", "pytest", "--quiet"]);
}
