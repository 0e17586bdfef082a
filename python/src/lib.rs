//! The Rust side of the Python package: streams, stages and frames in this process, and the program for one of its own.

mod objects;
mod run;
mod stage;
mod stream;

use pyo3::prelude::*;

/// What the package `sizeleak` is made of; not for use by itself.
#[pymodule]
mod _native {
    use std::ffi::OsString;
    use std::process::ExitCode;

    use pyo3::prelude::*;
    use pythonize::pythonize;

    use crate::objects::input_failure;

    #[pymodule_export]
    use crate::objects::{FrameIterator, write_frames};
    #[pymodule_export]
    use crate::run::Run;
    #[pymodule_export]
    use crate::stage::{Relay, relay, serve};
    #[pymodule_export]
    use crate::stream::pipeline_file;

    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// The keys of a text in TOML.
    #[pyfunction]
    fn read_toml<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
        let table = text.parse::<toml::Table>().map_err(|error| input_failure(py, error))?;
        Ok(pythonize(py, &table)?)
    }

    /// Runs the program with these arguments, without its name, and returns its exit code.
    #[pyfunction]
    fn program(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
        let arguments = [OsString::from("sizeleak")].into_iter().chain(arguments);
        let code = py.detach(|| sizeleak::command::main(arguments));
        (0..=u8::MAX).find(|number| ExitCode::from(*number) == code).unwrap_or(1)
    }
}
