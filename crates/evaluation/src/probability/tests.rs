//! Tests of `probability`.

use sizeleak_frame::{Actions, Candidate, Command, SharedList};

use super::*;

fn summary(probabilities: &[f64], candidate_count: u64) -> ProbabilitySummary {
    let command = Command { time_ns: 0, end_ns: 0, flow: 1, size: 100, records: 1, ..Command::default() };
    let candidate =
        |probability: &f64| Candidate { actions: Actions::default(), epsilon: 0, probability: *probability };
    let identification = Identification {
        command,
        candidates: probabilities.iter().map(candidate).collect(),
        candidate_count,
        listed: probabilities.len() as u64,
        min_actions: None,
        max_actions: None,
        size_probability: None,
        reply_probability: None,
        shifts: SharedList::default(),
        numbers: SharedList::default(),
        device_types: SharedList::default(),
    };
    ProbabilitySummary::new(&identification, 0.95)
}

#[test]
fn complete_list_has_exact_entropy_and_credible_size() {
    let even = summary(&[0.25; 4], 4);
    assert_eq!((even.first, even.entropy_bits, even.credible_size), (Some(0.25), 2.0, 4));
    let [most, less] = [&[0.95, 0.05], &[0.94, 0.06]].map(|two| summary(two, 2).credible_size);
    assert_eq!((most, less), (1, 2));
    let certain = summary(&[1.0], 1);
    assert_eq!((certain.entropy_bits, certain.credible_size, certain.is_credible_listed), (0.0, 1, true));
}

#[test]
fn candidates_dropped_by_the_pruner_do_not_count() {
    let pruned = summary(&[0.45, 0.45], 2);
    assert_eq!((pruned.entropy_bits, pruned.credible_size), (1.0, 2));
}

#[test]
fn entropy_of_a_truncated_list_is_an_upper_bound() {
    let truncated = summary(&[0.5], 5);
    // Half for one, half for four: 1 + 0.5 · 2 bits.
    let ProbabilitySummary { entropy_bits, credible_size, is_credible_listed, .. } = truncated;
    assert_eq!((entropy_bits, credible_size, is_credible_listed), (2.0, 5, false));
    let enough = summary(&[0.96], 5);
    assert_eq!((enough.credible_size, enough.is_credible_listed), (1, true));
}

#[test]
fn empty_list_and_zero_probabilities_are_summarised() {
    assert_eq!(summary(&[], 0), ProbabilitySummary::default());
    let all_zero = summary(&[0.0, 0.0], 2);
    assert_eq!((all_zero.entropy_bits, all_zero.credible_size), (1.0, 2));
}
