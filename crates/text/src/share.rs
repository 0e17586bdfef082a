//! The one way to write a share.

/// A share in percent. Only 1 is shown as 100 %.
pub fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let shown = if share < 1.0 { percent.min(99.9) } else { percent };
    format!("{shown:.1} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_than_all_is_never_100_percent() {
        assert_eq!([1.0, 0.9999, 0.9123, 0.0].map(percent), ["100.0 %", "99.9 %", "91.2 %", "0.0 %"]);
    }
}
