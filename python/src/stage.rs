//! A stage that is an object of Python: in a pipeline of this process, as a program between two pipes, or for the
//! program in a process of its own: that starts a relay in the stage's place, which passes frames on over a socket to
//! the process that has the stage.

use std::fs::File;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;
use sizeleak::Pipeline;
use sizeleak::frame::{Command, Correction, Frame, Identification, Record};
use sizeleak::runtime::{
    Emit, Interrupt, Node, Outcome, Runnable, Stage, StageError, StreamInput, StreamOutput, becomes_ready, stdin,
    widen_pipe,
};

use crate::objects::{failure, from_python, input_failure, of_configuration, to_python};

const KINDS: &str = "record, command, correction, identification";

/// An object of Python with `process` and `finish`, which works on frames of the kind `K`.
struct PythonStage<K> {
    /// A copy of its own, so that every run begins anew; or why there is none.
    object: PyResult<Py<PyAny>>,
    kind: PhantomData<fn(K)>,
}

impl<K> PythonStage<K> {
    fn new(stage: &Py<PyAny>) -> Self {
        let copy = Python::attach(|py| Ok(py.import("copy")?.call_method1("deepcopy", (stage,))?.unbind()));
        Self { object: copy, kind: PhantomData }
    }

    fn call(&self, method: &str, input: Option<Frame>, out: &mut dyn Emit) -> Result<(), StageError> {
        Python::attach(|py| {
            let object = match &self.object {
                Ok(object) => object.bind(py),
                Err(error) => return Err(StageError::failed(described(py, error))),
            };
            let fault =
                |error: PyErr| StageError::failed(format!("{}.{method}: {}", class(object), described(py, &error)));
            let arguments = input.map(|frame| to_python(py, &frame)).transpose().map_err(fault)?;
            let made = match arguments {
                Some(frame) => object.call_method1(method, (frame,)),
                None => object.call_method0(method),
            };
            let made = made.map_err(fault)?;
            if made.is_none() {
                return Ok(());
            }
            if made.hasattr("kind").map_err(fault)? {
                return Ok(out.emit(from_python(&made).map_err(fault)?)?);
            }
            let frames = made.try_iter().map_err(|_| {
                let kind = made.get_type();
                StageError::failed(format!(
                    "{}.{method} returned {kind}, which is no frame and no list of frames",
                    class(object)
                ))
            })?;
            for frame in frames {
                out.emit(frame.and_then(|frame| from_python(&frame)).map_err(fault)?)?;
            }
            Ok(())
        })
    }
}

impl<K: TryFrom<Frame, Error = Frame> + Into<Frame> + Send> Stage for PythonStage<K> {
    const NAME: &'static str = "python-stage";
    type Input = K;

    fn process(&mut self, input: K, out: &mut dyn Emit) -> Result<(), StageError> {
        self.call("process", Some(input.into()), out)
    }

    fn finish(&mut self, out: &mut dyn Emit) -> Result<(), StageError> {
        self.call("finish", None, out)
    }
}

fn class(stage: &Bound<'_, PyAny>) -> String {
    stage.get_type().name().map_or_else(|_| String::new(), |name| name.to_string())
}

/// An exception with the place where it was raised: `ValueError: no size (mine.py, line 7)`.
fn described(py: Python<'_>, error: &PyErr) -> String {
    let place = || -> PyResult<String> {
        let mut traceback = error.traceback(py).map(Bound::into_any);
        let mut place = String::new();
        while let Some(entry) = traceback.filter(|entry| !entry.is_none()) {
            let file: String = entry.getattr("tb_frame")?.getattr("f_code")?.getattr("co_filename")?.extract()?;
            place = format!(" ({file}, line {})", entry.getattr("tb_lineno")?);
            traceback = Some(entry.getattr("tb_next")?);
        }
        Ok(place)
    };
    format!("{error}{}", place().unwrap_or_default())
}

/// The kind of frame that a stage works on: its `consumes`, or else `record`.
fn consumed(stage: &Bound<'_, PyAny>) -> PyResult<String> {
    stage.getattr_opt("consumes")?.map_or_else(|| Ok("record".to_owned()), |kind| kind.extract())
}

pub(crate) fn replace(pipeline: &mut Pipeline, name: &str, stage: &Bound<'_, PyAny>) -> PyResult<()> {
    let (py, kind) = (stage.py(), consumed(stage)?);
    let shared = Arc::new(stage.clone().unbind());
    let replaced = match kind.as_str() {
        "record" => pipeline.replace(name, move || PythonStage::<Record>::new(&shared)),
        "command" => pipeline.replace(name, move || PythonStage::<Command>::new(&shared)),
        "correction" => pipeline.replace(name, move || PythonStage::<Correction>::new(&shared)),
        "identification" => pipeline.replace(name, move || PythonStage::<Identification>::new(&shared)),
        _ => return Err(unknown_kind(py, &kind)),
    };
    replaced.map_err(|error| of_configuration(py, &error))
}

fn unknown_kind(py: Python<'_>, kind: &str) -> PyErr {
    failure(py, format!("a stage in Python cannot consume `{kind}`; `consumes` is one of {KINDS}"), 2)
}

fn runnable(stage: &Bound<'_, PyAny>) -> PyResult<Box<dyn Runnable>> {
    let (py, kind, stage) = (stage.py(), consumed(stage)?, stage.clone().unbind());
    Ok(match kind.as_str() {
        "record" => Box::new(Node::new(PythonStage::<Record>::new(&stage))),
        "command" => Box::new(Node::new(PythonStage::<Command>::new(&stage))),
        "correction" => Box::new(Node::new(PythonStage::<Correction>::new(&stage))),
        "identification" => Box::new(Node::new(PythonStage::<Identification>::new(&stage))),
        _ => return Err(unknown_kind(py, &kind)),
    })
}

fn run_between(stage: Box<dyn Runnable>, input: impl Read, output: impl Write + Send) -> Outcome {
    let (mut input, mut output) = (StreamInput::new(input), StreamOutput::new(output));
    stage.run(Some(&mut input), &mut output, &Interrupt::new(), None)
}

/// Runs a stage between stdin and stdout. Returns the exit code of the contract, and why it failed.
#[pyfunction]
pub(crate) fn serve(stage: Bound<'_, PyAny>) -> PyResult<(u8, Option<String>)> {
    let py = stage.py();
    let stage = runnable(&stage)?;
    // A first signal is for the first stage, whose end is that of the input; a second one ends this process.
    let _set = Interrupt::on_signals().map_err(|error| input_failure(py, error))?;
    let files = || Ok((stdin()?, File::from(std::io::stdout().as_fd().try_clone_to_owned()?)));
    let (input, output) = files().map_err(|error: std::io::Error| input_failure(py, error))?;
    widen_pipe(&output);
    let outcome = py.detach(|| run_between(stage, input, output));
    Ok((outcome.exit_code(), outcome.cause().map(str::to_owned)))
}

/// Serves a stage to relays at a socket, one after another, until it is closed.
#[pyclass(frozen)]
pub(crate) struct Relay {
    interrupt: Interrupt,
    server: Mutex<Option<JoinHandle<()>>>,
}

#[pymethods]
impl Relay {
    #[new]
    fn new(stage: Bound<'_, PyAny>, socket: PathBuf) -> PyResult<Self> {
        let py = stage.py();
        // Said here, not to whoever connects.
        drop(runnable(&stage)?);
        let listener = UnixListener::bind(&socket).map_err(|error| input_failure(py, error))?;
        let (interrupt, stage) = (Interrupt::new(), stage.unbind());
        let stopped = interrupt.clone();
        let server = thread::spawn(move || {
            while !stopped.is_set() {
                if !becomes_ready(&listener) {
                    continue;
                }
                let Ok((connection, _)) = listener.accept() else { continue };
                let Ok(output) = connection.try_clone() else { continue };
                // A connection that ends without `summary` was cut; the program says why.
                if let Ok(stage) = Python::attach(|py| runnable(stage.bind(py))) {
                    run_between(stage, &connection, output);
                }
                _ = connection.shutdown(Shutdown::Both);
            }
        });
        Ok(Self { interrupt, server: Mutex::new(Some(server)) })
    }

    fn close(&self, py: Python<'_>) {
        self.interrupt.set();
        let server = self.server.lock().ok().and_then(|mut server| server.take());
        py.detach(|| server.map(JoinHandle::join));
    }
}

/// Passes stdin on to a socket, and what comes back to stdout.
#[pyfunction]
pub(crate) fn relay(py: Python<'_>, socket: PathBuf) -> PyResult<()> {
    let pass = || -> io::Result<()> {
        let connection = UnixStream::connect(&socket)?;
        let (mut input, mut there) = (stdin()?, connection.try_clone()?);
        // It ends with its input, or with the process.
        thread::spawn(move || {
            _ = io::copy(&mut input, &mut there);
            _ = there.shutdown(Shutdown::Write);
        });
        let mut output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        io::copy(&mut &connection, &mut output).map(drop)
    };
    py.detach(pass).map_err(|error| input_failure(py, error))
}
