//! How many processors there are to work on.

use std::num::NonZero;
use std::thread;

/// How many processors this process may use, as far as the system tells; else one.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Whether this process may use more than one processor: whether a thread of its own makes anything faster.
pub fn has_several_processors() -> bool {
    processors() > 1
}
