//! How many processors there are to work on.

use std::thread;

/// Whether this process may use more than one processor, as far as the system tells: whether a thread of its own makes
/// anything faster.
pub fn has_several_processors() -> bool {
    thread::available_parallelism().is_ok_and(|processors| processors.get() > 1)
}
