//! The clock of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in nanoseconds since 1970.
pub(super) fn now_ns() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}
