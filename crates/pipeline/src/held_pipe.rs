//! Pipes to and from a program that may have ended while another process, which it started, holds their other end open.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::PollFlags;
use rustix::io::ioctl_fionbio;
use sizeleak_platform::runtime::{becomes_ready, becomes_ready_for};
use sizeleak_platform::telemetry::log::say;

/// How long nothing may happen on a pipe of a program that has ended.
const GRACE: Duration = Duration::from_secs(5);

/// A program of a stage, and whether it has ended. Clones share the state.
#[derive(Debug, Clone)]
pub(crate) struct ProgramEnd {
    stage: String,
    has_ended: Arc<AtomicBool>,
}

impl ProgramEnd {
    pub(crate) fn of(stage: &str) -> Self {
        Self { stage: stage.to_owned(), has_ended: Arc::default() }
    }

    pub(crate) fn set(&self) {
        self.has_ended.store(true, Ordering::Relaxed);
    }

    fn is_set(&self) -> bool {
        self.has_ended.load(Ordering::Relaxed)
    }

    fn say_held(&self, end: &str) {
        say(
            &self.stage,
            &format!("it has ended, but a process that it started holds its {end} open: it is not waited for"),
        );
    }
}

/// A pipe to or from a program. Once that has ended, and nothing has happened for a while, it counts as closed.
#[derive(Debug)]
pub(crate) struct HeldPipe<P> {
    pipe: P,
    program: ProgramEnd,
    quiet_since: Option<Instant>,
    is_closed: bool,
}

impl<P: AsFd> HeldPipe<P> {
    pub(crate) fn reader(pipe: P, program: ProgramEnd) -> Self {
        Self { pipe, program, quiet_since: None, is_closed: false }
    }

    pub(crate) fn writer(pipe: P, program: ProgramEnd) -> io::Result<Self> {
        // A pipe that takes a few bytes is writable, but would wait with many.
        ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe, program, quiet_since: None, is_closed: false })
    }

    /// Waits for an event; false once the pipe counts as closed.
    fn becomes_ready(&mut self, flags: PollFlags, end: &str) -> bool {
        while !self.is_closed {
            if becomes_ready_for(&self.pipe, flags) {
                self.quiet_since = None;
                return true;
            }
            if self.program.is_set() && self.quiet_since.get_or_insert_with(Instant::now).elapsed() >= GRACE {
                self.program.say_held(end);
                self.is_closed = true;
            }
        }
        false
    }
}

impl<P: Read + AsFd> Read for HeldPipe<P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.becomes_ready(PollFlags::IN, "output") { self.pipe.read(buffer) } else { Ok(0) }
    }
}

impl<P: Write + AsFd> Write for HeldPipe<P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.pipe.write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                written => return written,
            }
            if !self.becomes_ready(PollFlags::OUT, "input") {
                return Err(ErrorKind::BrokenPipe.into());
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pipe.flush()
    }
}

/// The messages of a program, until a while after it has ended.
pub(crate) struct Messages<'a, P> {
    pub(crate) pipe: P,
    pub(crate) child: &'a mut Child,
    pub(crate) program: ProgramEnd,
    pub(crate) ended: Option<Instant>,
}

impl<P: Read + AsFd> Read for Messages<'_, P> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let is_ready = becomes_ready(&self.pipe);
            if self.ended.is_none() && !matches!(self.child.try_wait(), Ok(None)) {
                self.program.set();
                self.ended = Some(Instant::now());
            }
            if self.ended.is_some_and(|ended| ended.elapsed() >= GRACE) {
                self.program.say_held("stderr");
                return Ok(0);
            }
            if is_ready {
                return self.pipe.read(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::pipe;

    use super::*;

    fn ended() -> ProgramEnd {
        let end = ProgramEnd::of("mine");
        end.set();
        end
    }

    #[test]
    fn bytes_written_before_the_end_are_read() {
        let (reader, mut writer) = pipe().unwrap();
        writer.write_all(b"late").unwrap();
        let mut read = Vec::new();
        HeldPipe::reader(reader, ended()).read_to_end(&mut read).unwrap();
        assert_eq!(read, b"late");
    }

    #[test]
    fn pipe_that_nobody_empties_counts_as_closed() {
        let (reader, writer) = pipe().unwrap();
        let mut writer = HeldPipe::writer(writer, ended()).unwrap();
        assert_eq!(writer.write_all(&vec![0; 1 << 22]).unwrap_err().kind(), ErrorKind::BrokenPipe);
        drop(reader);
    }
}
