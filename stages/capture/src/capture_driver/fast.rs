//! Two threads that alternate in reading a long uncompressed file.
//!
//! Most of the work is copying the file out of the kernel, which needs no order: while one thread parses a piece, the
//! other one reads the next piece, and then parses that itself, with the processor whose cache holds it. The output
//! stays in order, since the driver passes from thread to thread. A piece is only an offer: a thread continues without
//! it if it does not follow, and never waits long for one that does not come.
//!
//! Without this file, the stage calls [`CaptureDriver::run`] instead of [`run`], with the same result.

use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sizeleak_frame::SpareBuffers;
use sizeleak_platform::runtime::{StageError, processors};

use super::CaptureDriver;
use crate::error::NAME;
use crate::reader::CaptureReader;
use crate::window::PlainFile;

const PIECE_BYTES: usize = 512 << 10;

/// The fewest pieces for which a second thread is worth starting.
const MIN_PIECES: u64 = 16;

/// Room in front of a piece for the beginning of a packet that ends in it.
const HEADROOM: usize = 64 << 10;

/// A piece has the same alignment in memory as in the file: up to 31 bytes off, some processors copy at half the speed.
const PAGE: usize = 4096;

pub(crate) fn run(driver: &mut CaptureDriver<'_>) -> Result<(), StageError> {
    if processors() > 1 { run_in_pieces(driver, PIECE_BYTES).map(drop) } else { driver.run() }
}

pub(crate) fn run_in_pieces(driver: &mut CaptureDriver<'_>, piece_bytes: usize) -> Result<u64, StageError> {
    let mut pieces = 0;
    while driver.step()?.is_continue() {
        // Where most packets are passed on, the stages behind keep the processors busy.
        if driver.batcher.passes_over_most()
            && driver.prefetcher.is_idle()
            && let Some(capture) = driver.merge.sole_plain_file()
            && let Some(file) = capture.reader.window.plain_file().cloned()
            && file.length.saturating_sub(file.position) >= MIN_PIECES * piece_bytes as u64
        {
            let capture = capture.file.index;
            pieces += alternate(Turn { driver, capture, pieces: 0, ended: None }, &file, piece_bytes)?;
        }
    }
    driver.finish()?;
    Ok(pieces)
}

/// Reads the file from its position up to its end, or up to where packets of another capture come between. Returns how
/// many pieces were used.
fn alternate(turn: Turn<'_, '_>, file: &PlainFile, piece_bytes: usize) -> Result<u64, StageError> {
    let (next, turn, passed) = (AtomicU64::new(file.position), Mutex::new(turn), Condvar::new());
    let readers = AlternatingReaders { file, piece_bytes, next, turn, passed };
    thread::scope(|scope| {
        // If no thread can be started, this one takes all turns.
        let _other = thread::Builder::new().name("alternate".to_owned()).spawn_scoped(scope, || readers.read());
        readers.read();
    });
    // A panic of either thread has passed through the scope.
    let turn = readers.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    tracing::debug!(stage = NAME, from = file.position, turn.pieces, "two threads have alternated");
    turn.ended.unwrap_or(Ok(())).map(|()| turn.pieces)
}

struct AlternatingReaders<'a, 'b> {
    file: &'a PlainFile,
    piece_bytes: usize,
    /// The offset of the first piece that no thread has taken.
    next: AtomicU64,
    turn: Mutex<Turn<'a, 'b>>,
    passed: Condvar,
}

struct Turn<'a, 'b> {
    driver: &'a mut CaptureDriver<'b>,
    capture: u32,
    pieces: u64,
    ended: Option<Result<(), StageError>>,
}

impl<'a, 'b> AlternatingReaders<'a, 'b> {
    fn read(&self) {
        let mut piece = Piece::new(self.piece_bytes);
        loop {
            let (offset, since) = (self.next.fetch_add(self.piece_bytes as u64, Ordering::Relaxed), Instant::now());
            piece.read(self.file, offset);
            let Some(mut turn) = self.await_turn(offset, since.elapsed()) else { return };
            match turn.consume(&mut piece) {
                // A long packet may have been read past pieces.
                Ok(ControlFlow::Continue(())) => _ = self.next.fetch_max(turn.position(), Ordering::Relaxed),
                Ok(ControlFlow::Break(())) => turn.ended = Some(Ok(())),
                Err(error) => turn.ended = Some(Err(error)),
            }
            drop(turn);
            self.passed.notify_one();
        }
    }

    /// Waits until the file is parsed up to this offset, for at most `patience`, the time that reading takes: the other
    /// thread may have lost its processor. `None` when no turn follows.
    ///
    /// It does not spin first: each check would cost the other thread its processor if programs compete for it.
    fn await_turn(&self, offset: u64, patience: Duration) -> Option<MutexGuard<'_, Turn<'a, 'b>>> {
        // A poisoned lock: the other thread has panicked.
        let turn = self.turn.lock().ok()?;
        let is_early = |turn: &mut Turn<'_, '_>| turn.ended.is_none() && turn.position() < offset;
        let (turn, _) = self.passed.wait_timeout_while(turn, patience, is_early).ok()?;
        turn.ended.is_none().then_some(turn)
    }
}

impl Turn<'_, '_> {
    /// Takes the packets up to the end of a piece, from the piece where it follows; returns whether a turn follows.
    fn consume(&mut self, piece: &mut Piece) -> Result<ControlFlow<()>, StageError> {
        loop {
            let Some(reader) = self.reader() else { return Ok(ControlFlow::Break(())) };
            // What is left in the buffer goes in front of the piece.
            if reader.window.available().len() <= HEADROOM {
                let position = reader.window.plain_file().map_or(0, |file| file.position);
                // No piece follows the last one: this thread reads to the end.
                if !piece.is_last() && position >= piece.end() {
                    break;
                }
                if let Some((buffer, range)) = piece.starting_at(position)
                    && reader.window.adopt(buffer, range)
                {
                    self.pieces += 1;
                    continue;
                }
            }
            if self.driver.step()?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        // The buffer is needed for the next piece: a batch that may be cut releases it, as the reader does.
        if self.driver.batcher.may_cut_anywhere() {
            self.driver.send()?;
        }
        let Some(reader) = self.reader() else { return Ok(ControlFlow::Break(())) };
        reader.window.release_buffer();
        Ok(ControlFlow::Continue(()))
    }

    fn position(&mut self) -> u64 {
        self.reader().and_then(|reader| reader.window.plain_file()).map_or(0, |file| file.position)
    }

    fn reader(&mut self) -> Option<&mut CaptureReader> {
        let sole = self.driver.merge.sole_plain_file().filter(|sole| sole.file.index == self.capture)?;
        Some(&mut sole.reader)
    }
}

#[derive(Debug)]
struct Piece {
    wanted: usize,
    buffer: Arc<Vec<u8>>,
    /// Buffers that batches may still share.
    spare: SpareBuffers,
    offset: u64,
    start: usize,
    length: usize,
}

impl Piece {
    fn new(wanted: usize) -> Self {
        Self { wanted, buffer: Arc::default(), spare: SpareBuffers::default(), offset: 0, start: 0, length: 0 }
    }

    fn read(&mut self, file: &PlainFile, offset: u64) {
        (self.offset, self.length) = (offset, 0);
        let wanted = self.wanted;
        let buffer = self.free_buffer();
        let start = HEADROOM + (offset as usize).wrapping_sub(buffer.as_ptr() as usize + HEADROOM) % PAGE;
        let Some(room) = buffer.get_mut(start..start + wanted) else { return };
        // Reading continues without the piece; if the error occurs again, it is reported.
        let length = file.read_at(room, offset).unwrap_or(0);
        (self.start, self.length) = (start, length);
    }

    fn is_last(&self) -> bool {
        self.length < self.wanted
    }

    fn end(&self) -> u64 {
        self.offset + self.length as u64
    }

    /// The bytes from this offset of the file on, if it holds any: the buffer, and their range in it.
    fn starting_at(&mut self, offset: u64) -> Option<(&mut Arc<Vec<u8>>, Range<usize>)> {
        let skipped = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        (skipped < self.length).then_some((&mut self.buffer, self.start + skipped..self.start + self.length))
    }

    fn free_buffer(&mut self) -> &mut [u8] {
        if Arc::get_mut(&mut self.buffer).is_none() {
            let next = self.spare.take();
            self.spare.keep(std::mem::replace(&mut self.buffer, next));
        }
        let Some(buffer) = Arc::get_mut(&mut self.buffer) else { return &mut [] };
        if buffer.is_empty() {
            *buffer = vec![0; HEADROOM + PAGE + self.wanted];
        }
        buffer
    }
}

#[cfg(test)]
mod tests;
