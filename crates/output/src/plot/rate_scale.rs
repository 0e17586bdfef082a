//! The scale of rates: five steps of lightness between round numbers, each about twice as high as the one before, so that
//! what is done rarely is seen beside what is done often.

use super::shapes::COLOURS;

/// The least and the greatest round number: 0.001 and 1,000,000.
const NUMBERS: std::ops::RangeInclusive<i32> = -9..=18;

/// Where the steps above the first begin.
pub(super) struct RateScale([f64; COLOURS.len() - 1]);

impl RateScale {
    /// A scale whose last step holds the greatest rate.
    pub(super) fn new(greatest: f64) -> Self {
        let last = NUMBERS.rev().find(|number| round(*number) <= greatest).unwrap_or(*NUMBERS.start());
        Self([3, 2, 1, 0].map(|below| round(last - below)))
    }

    /// The colour of a rate.
    pub(super) fn colour(&self, rate: f64) -> &'static str {
        let step = self.0.partition_point(|begin| *begin <= rate);
        COLOURS.get(step).copied().unwrap_or_default()
    }

    /// Each step in words, with its colour. Rates are by the hour.
    pub(super) fn steps(&self) -> impl Iterator<Item = (String, &'static str)> {
        let [first, .., last] = self.0;
        let between = self.0.windows(2).map(|pair| format!("{} to {}", pair[0], pair[1]));
        let names = [format!("below {first} an hour")].into_iter().chain(between).chain([format!("{last} and more")]);
        names.zip(COLOURS)
    }
}

/// Of the numbers 1, 2, 5, 10, 20 and so on, and 0.5, 0.2, 0.1 below them, the one in this place from 1.
fn round(place: i32) -> f64 {
    let digit = [1.0, 2.0, 5.0][place.rem_euclid(3) as usize];
    let power = 10_f64.powi(place.div_euclid(3).abs());
    if place < 0 { digit / power } else { digit * power }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_lie_between_round_numbers_up_to_the_greatest_rate() {
        let names = |greatest: f64| RateScale::new(greatest).steps().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(0.9), ["below 0.05 an hour", "0.05 to 0.1", "0.1 to 0.2", "0.2 to 0.5", "0.5 and more"]);
        assert_eq!(names(49.0)[3..], ["10 to 20", "20 and more"]);
        assert_eq!(names(0.0)[4], "0.001 and more");
        let scale = RateScale::new(1.0);
        let shown = [0.01, 0.1, 0.19, 0.2, 0.5, 0.99, 1.0, f64::INFINITY].map(|rate| scale.colour(rate));
        assert_eq!(shown, [0, 1, 1, 2, 3, 3, 4, 4].map(|step| COLOURS[step]));
    }
}
