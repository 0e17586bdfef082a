//! A pipeline as Python describes it, and its runs.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use clap::ValueEnum;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict};
use sizeleak::frame::{Frame, FrameSink};
use sizeleak::output::{KindSelection, OutputFormat, OutputWriter, TextStyle};
use sizeleak::{ConfigError, Interrupt, Pipeline};
use sizeleak_output::RecordBatchBuilder;
use sizeleak_platform::storage::OutputFile;
use sizeleak_platform::telemetry::NoticeTally;

use crate::objects::{failure, input_failure, of_configuration};
use crate::stage::replace;
use crate::stream::{Batches, RunPlan, SharedFailure, configured, warn};

/// A configured pipeline over captures, or over saved streams, for the frames of one kind. It can be run again and again.
#[pyclass(frozen)]
pub(crate) struct Run {
    plan: RunPlan,
    kind: String,
    failure: SharedFailure,
}

#[pymethods]
impl Run {
    /// `file` is a pipeline file; `options` are as `STAGE.KEY=VALUE`; `replaced` has stages in Python by the names of those
    /// whose place they take.
    #[new]
    #[pyo3(signature = (kind, inputs, gateway, model, profile, file, options, replaced, recursive))]
    #[allow(clippy::too_many_arguments, reason = "called from one place, in the package")]
    fn new(
        py: Python<'_>,
        kind: String,
        inputs: Vec<PathBuf>,
        gateway: Vec<String>,
        model: Vec<PathBuf>,
        profile: Option<PathBuf>,
        file: Option<PathBuf>,
        options: Vec<String>,
        replaced: Bound<'_, PyDict>,
        recursive: bool,
    ) -> PyResult<Self> {
        let (streams, captures): (Vec<_>, Vec<_>) =
            inputs.into_iter().partition(|input| sizeleak::command::is_saved_stream(input));
        if let (Some(stream), Some(capture)) = (streams.first(), captures.first()) {
            let (stream, capture) = (stream.display(), capture.display());
            let fault = format!("{stream} is a saved frame stream, and {capture} is not: read one kind of input");
            return Err(failure(py, fault, 2));
        }
        let configured = || -> Result<Pipeline, ConfigError> {
            let mut pipeline = configured(file.as_deref(), &[])?;
            if streams.is_empty() && !captures.is_empty() {
                pipeline.read_captures(&captures)?;
            }
            if recursive {
                pipeline.set("capture", "recursive", true)?;
            }
            if !gateway.is_empty() {
                pipeline.set("flow-filter", "gateway", gateway)?;
            }
            if !model.is_empty() {
                pipeline.use_models(&model)?;
            }
            if let Some(profile) = profile {
                pipeline.use_profile(&profile)?;
            }
            options.iter().try_for_each(|option| pipeline.set_text(option))?;
            Ok(pipeline)
        };
        let mut pipeline = configured().map_err(|error| of_configuration(py, &error))?;
        if streams.is_empty() {
            let found = py.detach(|| sizeleak::command::find_gateway(&mut pipeline, &Interrupt::new()));
            if let Some(chosen) = found.map_err(|(sentence, code)| failure(py, sentence, code))? {
                py.import("sizeleak._errors")?.call_method1("warn", ("sizeleak", chosen, 1, None::<String>))?;
            }
        }
        for (name, stage) in replaced {
            replace(&mut pipeline, &name.extract::<String>()?, &stage)?;
        }
        let plan = RunPlan { pipeline: pipeline.making(&[&kind], None).without_saves(), streams };
        // What is wrong with it is said here, not when it is read.
        let prepared = plan.prepare(&Interrupt::new()).map(drop);
        prepared.map_err(|error| of_configuration(py, &error))?;
        Ok(Self { plan, kind, failure: SharedFailure::default() })
    }

    /// Starts a run: its batches as a capsule of Arrow's C stream interface. `progress` is called with the bytes read and
    /// their total, or `None`.
    #[pyo3(signature = (progress=None))]
    fn stream<'py>(&self, py: Python<'py>, progress: Option<Py<PyAny>>) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = Batches::start(self.plan.clone(), self.builder(py)?, progress, Arc::clone(&self.failure));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }

    fn schema<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(&*self.builder(py)?.schema());
        PyCapsule::new_with_value(py, schema.map_err(|error| input_failure(py, error))?, c"arrow_schema")
    }

    /// Writes a run to a file, whole or not at all. `format` is one of the program's.
    fn write(&self, py: Python<'_>, path: PathBuf, format: &str) -> PyResult<()> {
        let format = OutputFormat::from_str(format, false).map_err(|fault| failure(py, fault, 2))?;
        let selection = match format {
            OutputFormat::Frames => KindSelection::All,
            _ => KindSelection::Kinds(vec![self.kind.clone()]),
        };
        let mut file = OutputFile::create(&path).map_err(|error| input_failure(py, error))?;
        let output = file.writer().map_err(|error| input_failure(py, error))?;
        let writer = OutputWriter::new(format, selection, TextStyle::default(), output);
        let mut sink =
            FileSink { writer: writer.map_err(|error| input_failure(py, error))?, notices: NoticeTally::default() };
        let interrupt = Interrupt::new();
        let run = std::thread::scope(|scope| {
            let run = scope.spawn(|| self.plan.run(&interrupt, None, &mut sink));
            let stopped = loop {
                if run.is_finished() {
                    break None;
                }
                if let Err(error) = py.check_signals() {
                    interrupt.set();
                    break Some(error);
                }
                py.detach(|| std::thread::sleep(std::time::Duration::from_millis(10)));
            };
            let ended = py.detach(|| run.join());
            match (stopped, ended) {
                (Some(error), _) => Err(error),
                (None, Ok(ended)) => ended.map_err(|failure| failure.raised(py)),
                (None, Err(_)) => {
                    Err(input_failure(py, "the run panicked: this is a bug of sizeleak; please report it"))
                }
            }
        });
        run?;
        sink.writer.finish().map_err(|error| input_failure(py, error))?;
        file.keep().map_err(|error| input_failure(py, error))?;
        warn(py, &sink.notices)
    }

    fn failure(&self) -> Option<PyErr> {
        self.failure.lock().ok().and_then(|mut failure| failure.take())
    }
}

impl Run {
    fn builder(&self, py: Python<'_>) -> PyResult<RecordBatchBuilder> {
        let missing = || failure(py, format!("frames of kind `{}` have no columns", self.kind), 2);
        RecordBatchBuilder::new(&self.kind).ok_or_else(missing)
    }
}

struct FileSink {
    writer: OutputWriter<std::fs::File>,
    notices: NoticeTally,
}

impl FrameSink for FileSink {
    fn take(&mut self, frames: &mut Vec<Frame>) -> std::io::Result<()> {
        for frame in frames.iter() {
            if let Frame::Notice(notice) = frame {
                self.notices.add(notice);
            }
        }
        self.writer.take(frames)
    }
}
