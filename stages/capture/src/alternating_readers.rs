//! Two threads that read one capture by turns.
//!
//! To copy a file out of the kernel is most of the work, and it needs no order: while one thread looks at the packets of a
//! piece, the other one reads the next, and then looks at it itself, with the processor in whose cache it lies. What is
//! found goes out in order, since all that knows the capture goes from hand to hand. A piece is only an offer: who comes to
//! its turn reads on without it where it holds nothing that follows, and nobody waits long for one that does not come.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use sizeleak_runtime::StageError;

use crate::capture::NAME;
use crate::capture_driver::{CaptureDriver, More};
use crate::merge::Merge;
use crate::plain::{Piece, PlainFile};
use crate::reader::CaptureReader;

/// So much of a file is a piece.
pub(crate) const PIECE_BYTES: usize = 512 << 10;

/// What is left of a file is worth a second thread from so many pieces on.
const LEAST_PIECES: u64 = 16;

/// The file that is read alone for now, and up to where it was read, if so much is left of it that two may take turns.
pub(crate) fn are_worth_it(merge: &mut Merge, piece_bytes: usize) -> Option<(PlainFile, u64)> {
    let (file, reached) = merge.lone_file()?;
    let left = file.length().saturating_sub(reached);
    (left >= LEAST_PIECES * piece_bytes as u64).then(|| (file.clone(), reached))
}

/// Reads this file, which was read up to `reached`, by turns: to its end, or to where packets of another one come between.
pub(crate) fn read(
    emission: &mut CaptureDriver<'_>,
    file: &PlainFile,
    reached: u64,
    piece_bytes: usize,
) -> Result<(), StageError> {
    let turn = Turn { emission, file, ended: None };
    let (next, turn, passed) = (AtomicU64::new(reached), Mutex::new(turn), Condvar::new());
    let turns = AlternatingReaders { file, piece_bytes, next, turn, passed };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("read by turns".to_owned());
        // Where no thread can be had, one takes all turns.
        let _other = builder.spawn_scoped(scope, || turns.take());
        turns.take();
    });
    // A thread that panicked has made the scope panic.
    let turn = turns.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    tracing::debug!(stage = NAME, from = reached, pieces = turn.emission.pieces, "has read by turns");
    turn.ended.unwrap_or(Ok(()))
}

struct AlternatingReaders<'a, 'b> {
    file: &'a PlainFile,
    piece_bytes: usize,
    /// Where the next piece begins that nobody reads yet.
    next: AtomicU64,
    turn: Mutex<Turn<'a, 'b>>,
    /// A turn is over.
    passed: Condvar,
}

struct Turn<'a, 'b> {
    emission: &'a mut CaptureDriver<'b>,
    file: &'a PlainFile,
    /// How all turns ended.
    ended: Option<Result<(), StageError>>,
}

impl<'a, 'b> AlternatingReaders<'a, 'b> {
    /// Takes every other turn until all is read.
    fn take(&self) {
        let mut piece = Piece::new(self.piece_bytes);
        loop {
            let (offset, since) = (self.next.fetch_add(self.piece_bytes as u64, Ordering::Relaxed), Instant::now());
            piece.read(self.file, offset);
            let Some(mut turn) = self.await_turn(offset, since.elapsed()) else { return };
            match turn.go_on_in(&mut piece) {
                // What is long may have been read past without pieces.
                Ok(More::Yes) => _ = self.next.fetch_max(turn.reached(), Ordering::Relaxed),
                Ok(More::No) => turn.ended = Some(Ok(())),
                Err(error) => turn.ended = Some(Err(error)),
            }
            drop(turn);
            self.passed.notify_one();
        }
    }

    /// Waits until the file is taken up to this offset, or for as long as it would take to read that oneself: the other
    /// thread's processor may have been taken from it. `None` when all is over.
    ///
    /// Without looking again and again first: where others want the processor, each look would give it to them.
    fn await_turn(&self, offset: u64, patience: Duration) -> Option<MutexGuard<'_, Turn<'a, 'b>>> {
        // A thread that panicked has ended all turns.
        let turn = self.turn.lock().ok()?;
        let is_early = |turn: &mut Turn<'_, '_>| turn.ended.is_none() && turn.reached() < offset;
        let (turn, _) = self.passed.wait_timeout_while(turn, patience, is_early).ok()?;
        turn.ended.is_none().then_some(turn)
    }
}

impl Turn<'_, '_> {
    /// Takes what a piece holds, and reads on without it where it holds nothing that follows; whether there is a next turn.
    fn go_on_in(&mut self, piece: &mut Piece) -> Result<More, StageError> {
        loop {
            let Some(reader) = self.reader() else { return Ok(More::No) };
            if !reader.is_buffered() {
                // Behind the end of the file nothing is offered: one thread comes to it.
                if !piece.is_last() && reader.file().is_some_and(|(_, reached)| reached >= piece.end()) {
                    break;
                }
                if reader.go_on_in(piece) {
                    self.emission.pieces += 1;
                    continue;
                }
            }
            if self.emission.is_interrupted() || self.emission.go_on()? == More::No {
                return Ok(More::No);
            }
        }
        self.emission.send_unseen()?;
        // The buffer is wanted for the next piece.
        let Some(reader) = self.reader() else { return Ok(More::No) };
        reader.move_out();
        Ok(More::Yes)
    }

    /// Up to where the file was taken.
    fn reached(&mut self) -> u64 {
        self.reader().and_then(|reader| reader.file()).map_or(0, |(_, reached)| reached)
    }

    /// What reads the file, as long as that is read alone.
    fn reader(&mut self) -> Option<&mut CaptureReader> {
        let file = self.file;
        let reads_it = |reader: &&mut CaptureReader| reader.file().is_some_and(|(other, _)| other.is(file));
        self.emission.merge.lone_reader().filter(reads_it)
    }
}

#[cfg(test)]
pub(crate) mod tests;
