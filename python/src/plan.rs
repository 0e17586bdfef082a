//! A configured pipeline and what it reads.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use pyo3::prelude::*;
use sizeleak::frame::FrameSink;
use sizeleak::pipeline::{PreparedRun, SavedStream};
use sizeleak::{ConfigError, Interrupt, Pipeline, RunError};
use sizeleak_platform::telemetry::Telemetry;
use toml::{Table, Value};

use crate::failure::{failure, input_failure, of_configuration, of_run};

#[derive(Clone)]
pub(crate) struct RunPlan {
    pub(crate) pipeline: Pipeline,
    pub(crate) streams: Vec<PathBuf>,
}

pub(crate) enum RunFailure {
    Run(RunError),
    Raised(PyErr),
}

impl RunPlan {
    pub(crate) fn prepare(&self, interrupt: &Interrupt) -> Result<PreparedRun, ConfigError> {
        if self.streams.is_empty() {
            return self.pipeline.prepare();
        }
        let stream = SavedStream::joined(&self.streams, interrupt)?;
        let from = Some((self.pipeline.index_of(&stream)?, stream));
        self.pipeline.prepare_from(from)
    }

    pub(crate) fn run(
        &self,
        interrupt: &Interrupt,
        telemetry: Option<&Telemetry>,
        sink: &mut dyn FrameSink,
    ) -> Result<(), RunFailure> {
        let of_configuration = |error| RunFailure::Raised(Python::attach(|py| of_configuration(py, &error)));
        let mut prepared = self.prepare(interrupt).map_err(of_configuration)?;
        if let Some(telemetry) = telemetry {
            prepared.report_to(telemetry);
        }
        prepared.run(interrupt, sink).map(drop).map_err(RunFailure::Run)
    }
}

impl RunFailure {
    pub(crate) fn raised(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Run(error) => of_run(py, &error),
            Self::Raised(error) => error,
        }
    }
}

pub(crate) fn configured(file: Option<&Path>, options: &[String]) -> Result<Pipeline, ConfigError> {
    let mut pipeline = file.map_or_else(|| Ok(Pipeline::standard()), Pipeline::read)?;
    options.iter().try_for_each(|option| pipeline.set_text(option))?;
    Ok(pipeline)
}

/// The text of a pipeline file in which programs, each a command with its arguments, take the place of stages.
#[pyfunction]
pub(crate) fn pipeline_file(
    py: Python<'_>,
    file: Option<PathBuf>,
    options: Vec<String>,
    programs: Vec<(String, Vec<String>)>,
) -> PyResult<String> {
    let pipeline = configured(file.as_deref(), &options).map_err(|error| of_configuration(py, &error))?;
    let stages = pipeline.resolved_stages();
    if stages.last().map(|stage| stage.entry.makes) != pipeline.makes() {
        return Err(failure(py, "a pipeline with programs of its own cannot have stages in Python besides", 2));
    }
    let mut text = String::new();
    for stage in stages {
        let name = stage.entry.name;
        let program = programs.iter().find(|(replaced, _)| replaced == name);
        let own = program.map(|(_, command)| {
            let name = ("name".to_owned(), Value::from("python-stage"));
            Table::from_iter([name, ("command".to_owned(), Value::from(command.clone()))])
        });
        let table = own.unwrap_or_else(|| {
            let set = pipeline.options(name).cloned().unwrap_or_default();
            let resolved = stage.options.into_iter().filter(|(key, _)| set.contains_key(key));
            [("run".to_owned(), Value::from(name))].into_iter().chain(resolved).collect()
        });
        let written = write!(text, "[[stage]]\n{table}\n");
        written.map_err(|error| input_failure(py, error))?;
    }
    Ok(text)
}
