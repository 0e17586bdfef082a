//! Durations in words.

/// A duration in nanoseconds, in its two greatest units: `2 h 31 min`.
pub fn in_words(duration_ns: i64) -> String {
    let seconds = duration_ns.max(0) / 1_000_000_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |greater: i64, unit: &str, lesser: i64, lesser_unit: &str| match lesser {
        0 => format!("{greater} {unit}"),
        _ => format!("{greater} {unit} {lesser} {lesser_unit}"),
    };
    match seconds {
        0 => "under 1 s".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3600 => two(minutes, "min", seconds % 60, "s"),
        3600..86_400 => two(hours, "h", minutes % 60, "min"),
        _ => two(days, "d", hours % 24, "h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_greatest_units_are_named() {
        let words = [0, 59, 60, 3599, 3600, 9060, 90_061].map(|seconds| in_words(seconds * 1_000_000_000));
        assert_eq!(words, ["under 1 s", "59 s", "1 min", "59 min 59 s", "1 h", "2 h 31 min", "1 d 1 h"]);
        assert_eq!(in_words(i64::MIN), "under 1 s");
    }
}
