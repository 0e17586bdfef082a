//! When commands speak clearly enough for a further assumption, and which of several values they make most likely.

/// The gain in log-likelihood (in nats) that a further assumption must bring, beyond what its parameters bring by
/// chance: it is then twenty times as probable as the simpler one, which counts as strong evidence (Kass and Raftery:
/// *Bayes factors*, JASA 90, 1995).
pub(crate) const STRONG: f64 = 3.0;

/// The smallest probability of a command in cross-validation. Wrong labels are a few in a hundred: one of them must not
/// outweigh the others, which differ by some nats each.
pub(crate) const MIN_PROBABILITY: f64 = 1e-6;

/// Differences of log-likelihoods below this are errors of rounding.
const ROUNDING: f64 = 1e-9;

/// The value with the greatest log-likelihood, the first among equals; `usual` if none has one.
pub(crate) fn most_likely(
    values: impl IntoIterator<Item = f64>,
    usual: f64,
    ln_likelihood: impl Fn(f64) -> f64,
) -> f64 {
    let mut best = (f64::NEG_INFINITY, usual);
    for value in values {
        let ln_likelihood = ln_likelihood(value);
        if ln_likelihood > best.0 + ROUNDING {
            best = (ln_likelihood, value);
        }
    }
    best.1
}

/// Leaves so many of the most frequent values, each given with its times, in ascending order.
pub(crate) fn most_frequent(values: &mut Vec<(i64, u64)>, most: usize) {
    values.sort_by_key(|(value, times)| (std::cmp::Reverse(*times), *value));
    values.truncate(most);
    values.sort_unstable();
}

/// Rounds to millionths, so that the model file stays readable.
pub(crate) fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}
