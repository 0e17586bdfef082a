//! Ends a run early on SIGINT, SIGTERM or SIGHUP, and keeps its results so far.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::flag;

/// Whether the run is to end early. Clones share the state.
#[derive(Debug, Clone, Default)]
pub struct Interrupt {
    is_set: Arc<AtomicBool>,
    is_hung_up: Arc<AtomicBool>,
    is_terminated: Arc<AtomicBool>,
    /// That of the run of which this one is a part.
    whole: Option<Arc<Interrupt>>,
}

impl Interrupt {
    /// An interrupt that only [`Interrupt::set`] sets.
    pub fn new() -> Self {
        Self::default()
    }

    /// An interrupt that SIGINT, SIGTERM and SIGHUP set. A second signal ends the process at once. A SIGHUP that is
    /// ignored, as under `nohup`, stays so.
    pub fn on_signals() -> io::Result<Self> {
        let interrupt = Self::new();
        let hang_up = (!ignores_hang_up()).then_some((SIGHUP, 129));
        for (signal, status) in [(SIGINT, 130), (SIGTERM, 143)].into_iter().chain(hang_up) {
            flag::register_conditional_shutdown(signal, status, Arc::clone(&interrupt.is_set))?;
            flag::register(signal, Arc::clone(&interrupt.is_set))?;
        }
        flag::register(SIGTERM, Arc::clone(&interrupt.is_terminated))?;
        if hang_up.is_some() {
            flag::register(SIGHUP, Arc::clone(&interrupt.is_hung_up))?;
        }
        Ok(interrupt)
    }

    /// The interrupt of a part of the run. It is set when this one is; this one stays as it is when the part ends early.
    #[must_use]
    pub fn of_part(&self) -> Self {
        Self { whole: Some(Arc::new(self.clone())), ..Self::default() }
    }

    pub fn set(&self) {
        self.is_set.store(true, Ordering::Relaxed);
    }

    /// Whether the terminal of this process is gone (SIGHUP).
    pub fn is_hung_up(&self) -> bool {
        self.is_hung_up.load(Ordering::Relaxed) || self.whole.as_ref().is_some_and(|whole| whole.is_hung_up())
    }

    /// Whether this process was asked to end by whoever started it (SIGTERM).
    pub fn is_terminated(&self) -> bool {
        self.is_terminated.load(Ordering::Relaxed) || self.whole.as_ref().is_some_and(|whole| whole.is_terminated())
    }

    /// Waits for this time, or until the run is interrupted. Returns whether it is.
    pub fn wait(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.is_set() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            thread::sleep(left.min(BETWEEN_CHECKS));
        }
        true
    }

    pub fn is_set(&self) -> bool {
        self.is_set.load(Ordering::Relaxed) || self.whole.as_ref().is_some_and(|whole| whole.is_set())
    }
}

/// Whether SIGHUP is ignored; where the system does not tell, its default stays in force.
fn ignores_hang_up() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    ignored.is_none_or(|signals| signals >> (SIGHUP - 1) & 1 == 1)
}

/// Standard input as a file. The standard library would hold its lock while anything waits for input.
pub fn stdin() -> io::Result<File> {
    io::stdin().as_fd().try_clone_to_owned().map(File::from)
}

/// Opens a file; `-` is stdin. A named pipe is opened without waiting for its writer, so that the user can stop.
pub fn open_stream(file: &Path) -> io::Result<File> {
    if file.as_os_str() == "-" {
        return stdin();
    }
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(file)?;
    fcntl_setfl(&opened, fcntl_getfl(&opened)? - OFlags::NONBLOCK)?;
    Ok(opened)
}

/// A reader that ends on interrupt, even while it waits for a silent pipe.
#[derive(Debug)]
pub struct Interruptible<R> {
    input: R,
    interrupt: Interrupt,
}

const BETWEEN_CHECKS: Duration = Duration::from_millis(100);

/// The same for `poll`.
const POLL_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

impl<R: Read + AsFd> Interruptible<R> {
    pub fn new(input: R, interrupt: Interrupt) -> Self {
        Self { input, interrupt }
    }
}

/// Whether a read would return at once, with bytes or the end.
pub fn is_ready(input: &impl AsFd) -> bool {
    is_ready_within(input, PollFlags::IN, &Timespec { tv_sec: 0, tv_nsec: 0 })
}

/// As [`is_ready`], but waits up to the time between two checks of an [`Interrupt`].
pub fn becomes_ready(input: &impl AsFd) -> bool {
    becomes_ready_for(input, PollFlags::IN)
}

/// The same for other events than bytes to read.
pub fn becomes_ready_for(pipe: &impl AsFd, flags: PollFlags) -> bool {
    is_ready_within(pipe, flags, &POLL_INTERVAL)
}

fn is_ready_within(pipe: &impl AsFd, flags: PollFlags, time: &Timespec) -> bool {
    let mut inputs = [PollFd::new(pipe, flags)];
    // If polling fails, reading or writing reports why.
    !matches!(poll(&mut inputs, Some(time)), Ok(0) | Err(rustix::io::Errno::INTR))
}

impl<R: Read + AsFd> Read for Interruptible<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.interrupt.is_set() {
                return Ok(0);
            }
            if becomes_ready(&self.input) {
                return self.input.read(buffer);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_on_interrupt() {
        let interrupt = Interrupt::new();
        assert!(!interrupt.wait(Duration::from_millis(1)));
        let setting = interrupt.clone();
        let setter = thread::spawn(move || setting.set());
        assert!(interrupt.wait(Duration::from_hours(1)));
        setter.join().unwrap();
    }

    #[test]
    fn a_part_ends_with_the_whole_and_not_the_other_way_round() {
        let whole = Interrupt::new();
        let (one, other) = (whole.of_part(), whole.of_part());
        one.set();
        assert_eq!([&one, &other, &whole].map(Interrupt::is_set), [true, false, false]);
        whole.set();
        assert!(other.is_set());
    }

    #[test]
    fn silent_pipe_ends_on_interrupt() {
        let (reading, writing) = io::pipe().unwrap();
        let interrupt = Interrupt::new();
        assert!(!is_ready(&reading));
        let mut input = Interruptible::new(reading, interrupt.clone());
        let stopper = thread::spawn(move || interrupt.set());
        assert_eq!(input.read(&mut [0; 8]).unwrap(), 0);
        stopper.join().unwrap();
        drop(writing);
        assert!(is_ready(&input.input), "the end is there to be read");
    }
}
