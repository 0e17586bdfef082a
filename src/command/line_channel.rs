//! Lines of text that come while something else goes on, and the clock of this machine.

use std::io::{BufRead, BufReader, Read};
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use crossbeam_channel::{Receiver, bounded};

const QUEUE: usize = 16;

/// The lines of an input, while there are any, each with its end; a line of more than `most` bytes comes in parts.
pub(super) fn lines_of(input: impl Read + Send + 'static, most: u64) -> Receiver<String> {
    let (sender, lines) = bounded(QUEUE);
    thread::spawn(move || {
        let mut input = BufReader::new(input);
        let mut line = String::new();
        while matches!(input.by_ref().take(most).read_line(&mut line), Ok(1..)) {
            if sender.send(std::mem::take(&mut line)).is_err() {
                return;
            }
        }
    });
    lines
}

pub(super) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
