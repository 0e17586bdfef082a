//! A stage of this process as a program for others: the program, which runs in a process of its own, starts a relay in
//! the stage's place, and the relay passes frames on over a socket to the process that has the stage.

use std::fs::File;
use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};

use pyo3::prelude::*;
use sizeleak::runtime::{Interrupt, becomes_ready, stdin};

use crate::failure::input_failure;
use crate::stage::{run_between, runnable};

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
