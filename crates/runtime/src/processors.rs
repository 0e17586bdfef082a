//! How many processors this process may use.

use std::num::NonZero;
use std::thread;

/// How many processors this process may use; 1 if that is unknown.
pub fn processors() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Whether this process may use more than one processor.
pub fn has_several_processors() -> bool {
    processors() > 1
}
