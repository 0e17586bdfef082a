//! The processors that a test may hold a program to.
#![allow(dead_code, reason = "every test uses a part of it")]

/// The first so many that this process may run on, as `taskset -c` takes them; fewer where there are not so many.
pub(crate) fn first(most: usize) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
    let processors: Vec<String> =
        allowed.trim().split(',').flat_map(range).take(most).map(|at| at.to_string()).collect();
    processors.join(",")
}

/// Whether there are so many.
pub(crate) fn are(many: usize) -> bool {
    std::thread::available_parallelism().is_ok_and(|processors| processors.get() >= many)
}

/// Those of `3` or `2-5`.
fn range(part: &str) -> std::ops::RangeInclusive<u32> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    first.parse().unwrap()..=last.parse().unwrap()
}
