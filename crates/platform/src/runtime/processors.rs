//! How many processors this process may use.

use std::num::NonZero;
use std::sync::OnceLock;
use std::thread;

/// How many processors this process may use; 1 if that is unknown. Asked once: a confined process gets another answer.
pub fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| thread::available_parallelism().map_or(1, NonZero::get))
}
