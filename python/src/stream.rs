//! A configured pipeline with what it reads, and its run as a stream of Arrow record batches, through Arrow's C stream
//! interface.

use std::fmt::Write;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, SchemaRef};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use pyo3::prelude::*;
use sizeleak::frame::{Frame, FrameSink};
use sizeleak::pipeline::{PreparedRun, SavedStream};
use sizeleak::{ConfigError, Interrupt, Pipeline, RunError};
use sizeleak_output::RecordBatchBuilder;
use sizeleak_platform::telemetry::{NoticeTally, Telemetry};
use toml::{Table, Value};

use crate::objects::{failure, input_failure, of_configuration, of_run};

const QUEUE: usize = 2;

/// How often a reader that waits looks for signals and reports progress.
const BETWEEN_CHECKS: Duration = Duration::from_millis(50);

/// The exception with which a stream ended. Arrow's interface passes on its text alone.
pub(crate) type SharedFailure = Arc<Mutex<Option<PyErr>>>;

enum Event {
    Batch(RecordBatch),
    End(Result<NoticeTally, RunFailure>),
}

/// The batches of a run, which goes on in a thread of its own while they are read.
pub(crate) struct Batches {
    schema: SchemaRef,
    events: Option<Receiver<Event>>,
    interrupt: Interrupt,
    thread: Option<JoinHandle<()>>,
    failure: SharedFailure,
    telemetry: Telemetry,
    callback: Option<Py<PyAny>>,
}

impl Batches {
    pub(crate) fn start(
        plan: RunPlan,
        builder: RecordBatchBuilder,
        callback: Option<Py<PyAny>>,
        failure: SharedFailure,
    ) -> Self {
        let (sender, events) = bounded(QUEUE);
        let (interrupt, telemetry, schema) = (Interrupt::new(), Telemetry::new(), builder.schema());
        let (stop, counted) = (interrupt.clone(), telemetry.clone());
        let is_counted = callback.is_some();
        let thread = thread::spawn(move || {
            let mut sink = BatchSink { builder, sender, notices: NoticeTally::default() };
            let run = plan.run(&stop, is_counted.then_some(&counted), &mut sink);
            let rest = sink.send_rest().map_err(|error| RunFailure::Run(RunError::of_input(error)));
            let end = run.and(rest).map(|()| std::mem::take(&mut sink.notices));
            // A reader that is gone needs no end.
            _ = sink.sender.send(Event::End(end));
        });
        Self { schema, events: Some(events), interrupt, thread: Some(thread), failure, telemetry, callback }
    }

    fn next_batch(&mut self, py: Python<'_>) -> PyResult<Option<RecordBatch>> {
        while let Some(events) = &self.events {
            py.check_signals()?;
            // The run may need the interpreter for a stage in Python.
            let event = py.detach(|| events.recv_timeout(BETWEEN_CHECKS));
            if let Some(callback) = &self.callback {
                let progress = self.telemetry.progress();
                callback.call1(py, (progress.read(), progress.total()))?;
            }
            match event {
                Ok(Event::Batch(batch)) => return Ok(Some(batch)),
                Ok(Event::End(ended)) => {
                    self.events = None;
                    let notices = ended.map_err(|failure| failure.raised(py))?;
                    return warn(py, &notices).map(|()| None);
                }
                Err(RecvTimeoutError::Timeout) => {}
                // Only a thread that panicked sends no end.
                Err(RecvTimeoutError::Disconnected) => {
                    self.events = None;
                    let fault = "the run panicked: this is a bug of sizeleak; please report it";
                    return Err(of_run(py, &RunError::of_input(fault.to_owned())));
                }
            }
        }
        Ok(None)
    }

    fn stop(&mut self, py: Python<'_>) {
        self.interrupt.set();
        self.events = None;
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the missing end.
            _ = py.detach(|| thread.join());
        }
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        Python::attach(|py| match self.next_batch(py) {
            Ok(batch) => batch.map(Ok),
            Err(error) => {
                self.stop(py);
                let sentence = ArrowError::ExternalError(error.to_string().into());
                if error.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py) {
                    // The reader raises an error of its own for this one; the interpreter then raises the interrupt again.
                    _ = py.import("_thread").and_then(|thread| thread.call_method0("interrupt_main"));
                }
                if let Ok(mut failure) = self.failure.lock() {
                    *failure = Some(error);
                }
                Some(Err(sentence))
            }
        })
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        // Without an interpreter, the process is about to end.
        Python::try_attach(|py| self.stop(py));
    }
}

/// Warns of what stages skipped, lost or assumed, once for each stage and word.
pub(crate) fn warn(py: Python<'_>, notices: &NoticeTally) -> PyResult<()> {
    for (stage, what, counted) in notices.iter() {
        let detail = counted.detail.as_deref();
        py.import("sizeleak._errors")?.call_method1("warn", (stage, what, counted.times, detail))?;
    }
    Ok(())
}

struct BatchSink {
    builder: RecordBatchBuilder,
    sender: Sender<Event>,
    notices: NoticeTally,
}

impl BatchSink {
    fn send(&mut self) -> io::Result<()> {
        let batch = self.builder.take_batch().map_err(io::Error::other)?;
        self.sender.send(Event::Batch(batch)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn send_rest(&mut self) -> Result<(), String> {
        if self.builder.is_empty() { Ok(()) } else { self.send().map_err(|error| error.to_string()) }
    }
}

impl FrameSink for BatchSink {
    fn take(&mut self, frames: &mut Vec<Frame>) -> io::Result<()> {
        for frame in frames.drain(..) {
            if let Frame::Notice(notice) = &frame {
                self.notices.add(notice);
            }
            self.builder.write(&frame)?;
            if self.builder.is_full() {
                self.send()?;
            }
        }
        Ok(())
    }
}

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
