//! Standard error, shared by message lines and a progress bar.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sizeleak_text::escaped_json;

/// Standard error, written line by line. Clones share the drawing.
#[derive(Clone, Default)]
pub struct Screen(Arc<Mutex<Option<Box<dyn Drawing>>>>);

/// Something that is drawn below the lines, such as a progress bar.
pub trait Drawing: Send {
    /// Clears the drawing, calls `write`, and draws again below.
    fn suspend(&self, write: &mut dyn FnMut());
}

impl Screen {
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets or removes the drawing.
    pub fn draw(&self, drawing: Option<Box<dyn Drawing>>) {
        *self.drawing() = drawing;
    }

    fn drawing(&self) -> MutexGuard<'_, Option<Box<dyn Drawing>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Clone)]
pub(super) struct JsonScreen(pub(super) Screen);

impl Write for JsonScreen {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(lines);
        self.0.write_all(escaped_json(&text).as_bytes()).map(|()| lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Write for Screen {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Where nobody reads messages any more, the run goes on without them: an error here would end it.
        let mut write = || _ = io::stderr().write_all(line);
        match &*self.drawing() {
            Some(drawing) => drawing.suspend(&mut write),
            None => write(),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        _ = io::stderr().flush();
        Ok(())
    }
}
