//! What Python has as objects: frames, also in files, and errors of Rust as exceptions of the package, with the
//! program's sentences and exit codes.

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyIterator};
use pythonize::{depythonize, pythonize};
use rmpv::Value;
use serde::Serialize;
use serde_bytes::Bytes;
use sizeleak::frame::{Frame, FrameReader, FrameWriter, Hello, Packet, SCHEMA, Segment, Summary, Unknown};
use sizeleak::pipeline::recording;
use sizeleak::{ConfigError, RunError};
use sizeleak_platform::storage::OutputFile;

/// What makes a frame of a kind and a body.
static FRAME_OF: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// A frame as an object whose attributes are the fields of its body.
pub(crate) fn to_python<'py>(py: Python<'py>, frame: &Frame) -> PyResult<Bound<'py, PyAny>> {
    let frame_of = FRAME_OF
        .get_or_try_init(py, || Ok::<_, PyErr>(py.import("sizeleak._frames")?.getattr("frame_of")?.unbind()))?;
    frame_of.bind(py).call1((frame.kind(), body(py, frame)?))
}

fn body<'py>(py: Python<'py>, frame: &Frame) -> PyResult<Bound<'py, PyAny>> {
    let body = match frame {
        Frame::Hello(body) => pythonize(py, body),
        Frame::Packets(body) => pythonize(py, &body.iter().map(packet_row).collect::<Vec<_>>()),
        Frame::Flow(body) => pythonize(py, body),
        Frame::Segments(body) => pythonize(py, &body.iter().map(segment_row).collect::<Vec<_>>()),
        Frame::Session(body) => pythonize(py, body),
        Frame::Record(body) => pythonize(py, body),
        Frame::Command(body) => pythonize(py, body),
        Frame::Correction(body) => pythonize(py, body),
        Frame::Identification(body) => pythonize(py, body),
        Frame::Deviation(body) => pythonize(py, body),
        Frame::Notice(body) => pythonize(py, body),
        Frame::Summary(body) => pythonize(py, body),
        Frame::Unknown(unknown) => pythonize(py, &body_of_unknown(unknown)),
    };
    Ok(body?)
}

fn packet_row(row: Packet<'_>) -> impl Serialize {
    (row.time_ns, row.link_type, row.original_length, Bytes::new(row.data), row.capture, row.number)
}

fn segment_row(row: Segment<'_>) -> impl Serialize {
    let (direction, payload) = (row.direction.number(), Bytes::new(row.payload));
    (row.time_ns, row.flow, direction, row.sequence, row.flags, row.length, payload, row.acknowledgement)
}

fn body_of_unknown(unknown: &Unknown) -> Value {
    match rmpv::decode::read_value(&mut unknown.value.as_slice()) {
        Ok(Value::Map(mut entries)) => entries.pop().map_or(Value::Nil, |(_, body)| body),
        _ => Value::Nil,
    }
}

pub(crate) fn from_python(object: &Bound<'_, PyAny>) -> PyResult<Frame> {
    let py = object.py();
    let kind: String = object.getattr("kind")?.extract()?;
    let fields = object.getattr("__dict__")?.cast_into::<PyDict>()?;
    // The body of a batch is the list of its rows.
    let rows = fields.get_item("rows")?.filter(|_| ["packets", "segments"].contains(&kind.as_str()));
    let body: Value = depythonize(&rows.unwrap_or_else(|| fields.into_any()))?;
    let mut bytes = Vec::new();
    let map = Value::Map(vec![(kind.into(), body)]);
    rmpv::encode::write_value(&mut bytes, &map).map_err(|error| input_failure(py, error))?;
    match Frame::decode(&bytes) {
        Ok(frame) => Ok(frame),
        Err(fault) => Err(failure(py, fault, 2)),
    }
}

/// The frames of a file, one after another.
#[pyclass(frozen)]
pub(crate) struct FrameIterator {
    reader: Mutex<FrameReader<Box<dyn Read + Send>>>,
    name: String,
}

#[pymethods]
impl FrameIterator {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let (input, name) = recording::open(Some(&path)).map_err(|error| input_failure(py, format!("{error:#}")))?;
        Ok(Self { reader: Mutex::new(FrameReader::new(input)), name })
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let next = py.detach(|| self.reader.lock().unwrap_or_else(PoisonError::into_inner).next_frame());
        let frame =
            next.map_err(|error| failure(py, format!("{}: {error}", self.name), if error.is_cut() { 3 } else { 1 }))?;
        frame.map(|frame| to_python(py, &frame)).transpose()
    }
}

/// Writes frames to a file, whole or not at all. A stream without `hello` and `summary` gets them.
#[pyfunction]
pub(crate) fn write_frames(frames: Bound<'_, PyAny>, path: PathBuf) -> PyResult<u64> {
    let py = frames.py();
    let fault = |error: &dyn std::fmt::Display| input_failure(py, error);
    let mut output = OutputFile::create(&path).map_err(|error| fault(&error))?;
    let mut writer: FrameWriter<File> = FrameWriter::new(output.writer().map_err(|error| fault(&error))?);
    let mut write = |frame: &Frame| writer.write(frame).map_err(|error| fault(&error));
    let (mut count, mut is_ended) = (0, false);
    for object in PyIterator::from_object(&frames)? {
        let frame = from_python(&object?)?;
        if count == 0 && !matches!(frame, Frame::Hello(_)) {
            write(&hello())?;
        }
        is_ended = matches!(frame, Frame::Summary(_));
        write(&frame)?;
        count += 1;
    }
    if count == 0 {
        write(&hello())?;
    }
    if !is_ended {
        write(&Frame::Summary(Summary::default()))?;
    }
    writer.flush().map_err(|error| fault(&error))?;
    output.keep().map_err(|error| fault(&error))?;
    Ok(count)
}

fn hello() -> Frame {
    let (stage, version) = ("python".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    Frame::Hello(Box::new(Hello { schema: SCHEMA, stage, version, upstream: Vec::new() }))
}

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
