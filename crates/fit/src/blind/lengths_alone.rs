//! The search over |ac| where there are no replies: from lengths alone.

use super::expectation::{Parameters, Step, anchor, normalised};
use super::length_fields::LengthFields;
use super::rows::Rows;
use super::search::{
    Candidate, EPSILONS, Form, MAX_ACTION_BYTES, MIN_HTTP_HEAD, fixed_forms, is_known, plain_step, planned,
};
use super::sparsity::cost_of_size;
use super::sums::Plan;

/// The most actions of a command that is used, a bound of the time: commands of few actions show most.
pub(super) const MAX_ACTIONS: usize = 14;
/// The smallest and the largest size of the smallest action that is looked for, in bytes.
const ACTION_BYTES: std::ops::RangeInclusive<i64> = 5..=120;
/// How many explanations are kept for each form of length fields, a bound of the time.
const KEPT: usize = 4;

/// The best explanations, best first. The smallest commands have one action.
pub(super) fn search_lengths(rows: &Rows, is_wire: bool) -> Vec<Candidate> {
    let Some((few, plan)) = planned(rows, 1, 400, 0, MAX_ACTIONS / 2) else { return Vec::new() };
    let Some(smallest) = rows.smallest() else { return Vec::new() };
    let step = plain_step(rows, usize::MAX);
    let mut found: Vec<Candidate> = Vec::new();
    for form in fixed_forms(is_wire) {
        if form == Form::PLAIN || !is_known(form, &few.rows, &found) {
            found.extend(overheads(&plan, form, smallest, ACTION_BYTES, step));
        }
    }
    // Content-Length grows by a digit somewhere: tried coarsely, then near the best.
    let heads = (smallest - 101).max(MIN_HTTP_HEAD)..=smallest - 20;
    let http = |head: i64| Form { fields: LengthFields::Http { head }, record_bytes: 0 };
    for head in heads.clone().step_by(12) {
        if !is_known(http(head), &few.rows, &found) {
            found.extend(overheads(&plan, http(head), smallest, ACTION_BYTES, step).into_iter().take(2));
        }
    }
    sort_sparse(&mut found, &plan);
    if let Some(Candidate { form: Form { fields: LengthFields::Http { head }, .. }, overhead, .. }) = found.first() {
        let near = smallest - http(*head).grown(smallest) - overhead;
        for head in (head - 10..=head + 10).filter(|head| heads.contains(head)).collect::<Vec<i64>>() {
            if !is_known(http(head), &few.rows, &found) {
                found.extend(overheads(&plan, http(head), smallest, near..=near, step));
            }
        }
    }
    sort_sparse(&mut found, &plan);
    found
}

/// The best values of |ac|; those that look worst are given up early.
fn overheads(
    plan: &Plan,
    form: Form,
    smallest: i64,
    actions: std::ops::RangeInclusive<i64>,
    step: Step,
) -> Vec<Candidate> {
    let smallest = smallest - form.grown(smallest);
    let mut candidates: Vec<Candidate> = actions
        .filter(|action| *action < smallest)
        .map(|action| Candidate {
            form,
            overhead: smallest - action,
            parameters: start(plan, action),
            log_likelihood: f64::NEG_INFINITY,
        })
        .collect();
    for (left, steps, least_evidence) in [(usize::MAX, 8, 0.0), (40, 12, 0.3), (24, 15, 0.7), (10, 25, 1.0)] {
        candidates.truncate(left);
        for candidate in &mut candidates {
            candidate.improve(plan, steps, Step { least_evidence, ..step });
        }
        sort_sparse(&mut candidates, plan);
    }
    candidates.truncate(KEPT);
    candidates
}

/// Best first.
fn sort_sparse(candidates: &mut [Candidate], plan: &Plan) {
    candidates.sort_by(|a, b| sparse_score(b, plan).total_cmp(&sparse_score(a, plan)));
}

/// Few sizes are better than many.
fn sparse_score(candidate: &Candidate, plan: &Plan) -> f64 {
    let sizes: usize = candidate.parameters.sizes.iter().map(|sizes| sizes.len().min(40)).sum();
    candidate.score() - cost_of_size(plan) * sizes as f64
}

/// Actions of any size from about the smallest on.
fn start(plan: &Plan, action: i64) -> Parameters {
    let sizes = ((action - 4).max(1)..=(2 * action).max(action + 20).min(MAX_ACTION_BYTES))
        .map(|size| (size, if size - action <= 20 { 1.0 } else { 0.02 }));
    let silent: Vec<f64> = (0..=plan.most_silent)
        .map(|actions| if actions == 0 { 0.0 } else { 0.75_f64.powf(actions as f64) / 3.0 })
        .collect();
    Parameters {
        sizes: vec![normalised(sizes)],
        epsilons: normalised(EPSILONS.map(|epsilon| (epsilon, anchor(epsilon)))),
        silent: vec![silent],
        outliers: 0.02,
        lost: 0.0,
    }
}
