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

use sizeleak_stage::StageError;

use crate::emission::{Emission, More};
use crate::merge::Merge;
use crate::plain::{Piece, PlainFile};
use crate::reader::CaptureReader;

/// So much of a file is a piece.
pub(crate) const PIECE_BYTES: usize = 512 << 10;

/// What is left of a file is worth a second thread from so many pieces on.
const LEAST_PIECES: u64 = 16;

/// The file that is read alone for now and how far it was, if so much is left of it that two may read it by turns.
pub(crate) fn are_worth_it(merge: &mut Merge, piece_bytes: usize) -> Option<(PlainFile, u64)> {
    let (file, from) = merge.lone_file()?;
    let left = file.length()?.saturating_sub(from);
    (left >= LEAST_PIECES * piece_bytes as u64).then(|| (file.clone(), from))
}

/// Reads this file by turns to its end, or to where packets of another one come between; `from` there on it was not read.
pub(crate) fn read(
    emission: &mut Emission<'_>,
    file: &PlainFile,
    from: u64,
    piece_bytes: usize,
) -> Result<(), StageError> {
    let turns = Turns {
        file,
        piece_bytes,
        next: AtomicU64::new(from),
        turn: Mutex::new(Turn { emission, file, reached: from, ended: None }),
        passed: Condvar::new(),
    };
    thread::scope(|scope| {
        let builder = thread::Builder::new().name("read by turns".to_owned());
        // Where no thread can be had, one takes all turns.
        let _other = builder.spawn_scoped(scope, || turns.take());
        turns.take();
    });
    let turn = turns.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    turn.ended.unwrap_or(Ok(()))
}

struct Turns<'a, 'b> {
    file: &'a PlainFile,
    piece_bytes: usize,
    /// Where the next piece begins that nobody reads yet.
    next: AtomicU64,
    turn: Mutex<Turn<'a, 'b>>,
    /// A turn is over.
    passed: Condvar,
}

struct Turn<'a, 'b> {
    emission: &'a mut Emission<'b>,
    file: &'a PlainFile,
    /// Up to where the file was taken.
    reached: u64,
    ended: Option<Ended>,
}

/// How all turns ended.
type Ended = Result<(), StageError>;

impl<'a, 'b> Turns<'a, 'b> {
    /// Takes every other turn until all is read.
    fn take(&self) {
        let mut piece = Piece::new(self.piece_bytes);
        loop {
            let (offset, since) = (self.next.fetch_add(self.piece_bytes as u64, Ordering::Relaxed), Instant::now());
            piece.read(self.file, offset);
            let Some(mut turn) = self.await_turn(offset, since.elapsed()) else { return };
            if let Err(ended) = turn.go_on_in(&mut piece) {
                turn.ended = Some(ended);
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
        let is_early = |turn: &mut Turn<'_, '_>| turn.reached < offset && turn.ended.is_none();
        let (turn, _) = self.passed.wait_timeout_while(turn, patience, is_early).ok()?;
        turn.ended.is_none().then_some(turn)
    }
}

impl Turn<'_, '_> {
    /// Takes what a piece holds, and reads on without it where it holds nothing that follows. `Err` when all is over.
    fn go_on_in(&mut self, piece: &mut Piece) -> Result<(), Ended> {
        loop {
            let reader = self.reader().ok_or(Ok(()))?;
            if !reader.is_buffered() {
                let Some((_, reached)) = reader.file() else { return Err(Ok(())) };
                // Behind the end of the file nothing is offered: one thread comes to it.
                if reached >= piece.end() && !piece.is_last() {
                    self.reached = reached;
                    break;
                }
                if reader.go_on_in(piece) {
                    continue;
                }
            }
            if self.emission.is_interrupted() || self.emission.go_on().map_err(Err)? == More::No {
                return Err(Ok(()));
            }
        }
        self.emission.send_unseen().map_err(Err)?;
        // The buffer is wanted for the next piece.
        self.reader().ok_or(Ok(()))?.move_out();
        Ok(())
    }

    /// What reads the file, as long as that is read alone.
    fn reader(&mut self) -> Option<&mut CaptureReader> {
        let file = self.file;
        let reads_it = |reader: &&mut CaptureReader| reader.file().is_some_and(|(other, _)| other.is(file));
        self.emission.merge.lone_reader().filter(reads_it)
    }
}

#[cfg(test)]
mod tests;
