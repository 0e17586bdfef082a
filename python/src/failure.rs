//! Errors of Rust as exceptions of the package, with the program's sentences and exit codes.

use std::fmt::Display;

use pyo3::prelude::*;
use sizeleak::{ConfigError, RunError};

pub(crate) fn failure(py: Python<'_>, sentence: impl Display, code: u8) -> PyErr {
    let made =
        py.import("sizeleak._errors").and_then(|errors| errors.call_method1("failure", (sentence.to_string(), code)));
    made.map_or_else(|error| error, PyErr::from_value)
}

pub(crate) fn input_failure(py: Python<'_>, sentence: impl Display) -> PyErr {
    failure(py, sentence, 1)
}

pub(crate) fn of_configuration(py: Python<'_>, error: &ConfigError) -> PyErr {
    failure(py, error, error.exit_code())
}

pub(crate) fn of_run(py: Python<'_>, error: &RunError) -> PyErr {
    failure(py, error, error.exit_code())
}
