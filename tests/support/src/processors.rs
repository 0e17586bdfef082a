//! The processors that a test may pin a program to.

/// The first `most` processors that this process may run on, in the form of `taskset -c`; fewer if there are fewer.
pub fn first(most: usize) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap_or("0");
    let processors: Vec<String> =
        allowed.trim().split(',').flat_map(range).take(most).map(|at| at.to_string()).collect();
    processors.join(",")
}

/// The processors in `3` or `2-5`.
fn range(part: &str) -> std::ops::RangeInclusive<u32> {
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    first.parse().unwrap()..=last.parse().unwrap()
}
