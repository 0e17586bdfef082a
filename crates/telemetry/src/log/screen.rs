//! Standard error, on which something may be drawn between lines.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Standard error, where every line is written in one piece. Clones share what is drawn there.
#[derive(Clone, Default)]
pub struct Screen(Arc<Mutex<Option<Box<dyn Drawing>>>>);

/// Something that is drawn below the lines, such as a progress bar.
pub trait Drawing: Send {
    /// Makes way for what `write` writes, and draws itself again below.
    fn make_way(&self, write: &mut dyn FnMut());
}

impl Screen {
    /// With nothing drawn on it.
    pub fn new() -> Self {
        Self::default()
    }

    /// Has this drawn on it from now on, or nothing.
    pub fn draw(&self, drawing: Option<Box<dyn Drawing>>) {
        *self.drawing() = drawing;
    }

    fn drawing(&self) -> MutexGuard<'_, Option<Box<dyn Drawing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for Screen {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut written = Ok(());
        let mut write = || written = io::stderr().write_all(line);
        match &*self.drawing() {
            Some(drawing) => drawing.make_way(&mut write),
            None => write(),
        }
        written.map(|()| line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
