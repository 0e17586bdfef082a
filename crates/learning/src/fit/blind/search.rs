//! The search over |ac| and the forms of length fields: with replies, from a robust regression of sizes on their
//! numbers, or, where there are none, from lengths alone.

use sizeleak_model::Pmf;

use super::LengthFields;
use super::lost_replies::{silent_start, split_lost};
use super::rows::{Row, Rows};
use crate::fit::expectation::{self, Beforehand, Parameters, Plan, shares};
use crate::fit::least_absolute_deviations::{Observed, regression};

/// Values of ε that are looked for, in bytes: an id is mostly of one width, and up to four digits shorter now and then.
pub(super) const EPSILONS: std::ops::RangeInclusive<i64> = -4..=0;
/// How far from the first guess |ac| is looked for, in bytes.
const SPAN: i64 = 8;
/// The largest size of an action that is looked for, in bytes.
const MAX_ACTION_BYTES: i64 = 600;

/// Of `HTTP/1.1 200 OK`, a Content-Type, `Content-Length: 99` and the empty line, in bytes.
const MIN_HTTP_HEAD: i64 = 60;
/// Two frame headers, the status and a Content-Length, in bytes.
const MIN_HTTP2_HEAD: i64 = 22;

/// A form of length fields, and what encryption adds to a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) fields: LengthFields,
    pub(super) record_bytes: i64,
}

impl Form {
    const PLAIN: Self = Self { fields: LengthFields::None, record_bytes: 0 };

    pub(super) fn grown(self, size: i64) -> i64 {
        self.fields.grown(size.saturating_sub(self.record_bytes))
    }

    /// What a form must explain better than none, in nats: it was one of many.
    pub(super) fn cost(self) -> f64 {
        match self.fields {
            LengthFields::None => 0.0,
            LengthFields::WebSocket | LengthFields::Mqtt => 1.0,
            LengthFields::Http { .. } => 5.0,
            LengthFields::Http2 { .. } => 7.0,
        }
    }
}

/// One explanation of the rows.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) form: Form,
    pub(super) overhead: i64,
    pub(super) parameters: Parameters,
    pub(super) log_likelihood: f64,
}

impl Candidate {
    pub(super) fn score(&self) -> f64 {
        self.log_likelihood - self.form.cost()
    }

    /// What the actions and ε of each row add up to, in bytes.
    pub(super) fn targets(&self, plan: &Plan) -> Vec<i64> {
        plan.rows.iter().map(|row| row.size - self.form.grown(row.size) - self.overhead).collect()
    }

    pub(super) fn improve(&mut self, plan: &Plan, steps: usize, step: Step) {
        let targets = self.targets(plan);
        self.log_likelihood = repeat(plan, &targets, &mut self.parameters, steps, step);
    }
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The most sizes that are left when rare ones are given up.
    pub(super) most_sizes: usize,
    /// Lost replies are told from actions that send none.
    pub(super) splits_lost: bool,
    pub(super) beforehand: Beforehand,
}

impl Step {
    /// The same with a sparsity prior: commands' worth of evidence that a size must have beyond none.
    pub(super) fn with_evidence(self, least_evidence: f64) -> Self {
        Self { beforehand: Beforehand { least_evidence, ..self.beforehand }, ..self }
    }
}

/// Repeats both steps of expectation maximisation; returns the log-likelihood of the parameters before the last.
pub(super) fn repeat(plan: &Plan, targets: &[i64], parameters: &mut Parameters, steps: usize, step: Step) -> f64 {
    expectation::improve(plan, targets, parameters, steps, step.beforehand, |before, expected, after| {
        if step.splits_lost {
            split_lost(before, expected, after, step.beforehand);
        }
    })
}

/// How probable values of ε are beforehand.
fn anchor(epsilon: i64) -> f64 {
    match epsilon {
        0 => 0.85,
        -1 => 0.1,
        -2 => 0.03,
        _ => 0.01,
    }
}

/// A step without a sparsity prior.
pub(super) fn plain_step(rows: &Rows, most_sizes: usize) -> Step {
    let sizes = rows.rows.iter().map(|row| row.size);
    let range = sizes.clone().max().unwrap_or(0) - sizes.min().unwrap_or(0);
    Step {
        most_sizes,
        splits_lost: false,
        beforehand: Beforehand {
            outlier_density: 1.0 / (range as f64).max(200.0),
            least_evidence: 0.0,
            // ε is 0 mostly: without this, |ac| and ε trade off.
            epsilon: Some(|epsilon, commands| (0.02 * commands + 1.0) * anchor(epsilon)),
        },
    }
}

/// The best explanations where there are replies, best first.
pub(super) fn search(rows: &Rows, classes: usize, is_wire: bool) -> Vec<Candidate> {
    let Some((few, plan)) = planned(rows, fewest_replies(rows, 400, 0.5), 500, classes, 2) else { return Vec::new() };
    let step = plain_step(rows, usize::MAX);
    let smallest = few.rows.iter().map(|row| row.size).min().unwrap_or(0);
    let mut found = Vec::new();
    for form in fixed_forms(is_wire) {
        if form != Form::PLAIN && is_known(form, &few.rows, &found) {
            continue;
        }
        let near = first_guess(rows, &plan, form, classes, step);
        found.extend(overheads(&plan, &near, step, SPAN, 3));
    }
    let mut near = first_guess(rows, &plan, Form::PLAIN, classes, step);
    sort(&mut found);
    near.overhead = found.iter().find(|found| found.form == Form::PLAIN).map_or(near.overhead, |found| found.overhead);
    // Content-Length grows by a digit somewhere: tried coarsely beside the best without, then byte by byte.
    let http: fn(i64) -> LengthFields = |head| LengthFields::Http { head };
    let http2: fn(i64) -> LengthFields = |head| LengthFields::Http2 { head };
    for (make, shortest) in [(http, MIN_HTTP_HEAD), (http2, MIN_HTTP2_HEAD)] {
        let mut heads: Vec<Candidate> = Vec::new();
        for head in ((smallest - 101).max(shortest)..=smallest - 20).step_by(4) {
            let form = Form { fields: make(head), record_bytes: 0 };
            if is_known(form, &few.rows, &heads) || is_known(form, &few.rows, &found) {
                continue;
            }
            heads.extend(overheads(&plan, &Candidate { form, ..near.clone() }, step, 3, 1));
        }
        sort(&mut heads);
        let Some(best) = heads.first().cloned() else { continue };
        let (LengthFields::Http { head } | LengthFields::Http2 { head }) = best.form.fields else { continue };
        for head in (head - 4).max(shortest)..=head + 4 {
            let form = Form { fields: make(head), record_bytes: 0 };
            if !is_known(form, &few.rows, &heads) {
                heads.extend(overheads(&plan, &Candidate { form, ..best.clone() }, step, 1, 1));
            }
        }
        sort(&mut heads);
        heads.truncate(6);
        found.extend(heads);
    }
    sort(&mut found);
    found
}

fn sort(candidates: &mut [Candidate]) {
    candidates.sort_by(|a, b| b.score().total_cmp(&a.score()).then_with(|| a.overhead.cmp(&b.overhead)));
}

/// The rows of at most `replies` replies, or of fewer if that needs too many sums.
pub(super) fn planned(rows: &Rows, replies: usize, most: usize, classes: usize, silent: usize) -> Option<(Rows, Plan)> {
    (1..=replies).rev().find_map(|replies| {
        let few = rows.of_at_most(replies, most);
        few.plan(classes, silent, 2 * silent).map(|plan| (few, plan))
    })
}

/// The fewest replies up to which commands are enough, or the wanted share of all: those of few actions show most.
pub(super) fn fewest_replies(rows: &Rows, enough: usize, share: f64) -> usize {
    let commands = |replies: usize| -> usize {
        rows.rows.iter().filter(|row| row.replies() <= replies).map(|row| row.commands).sum()
    };
    let is_enough =
        |replies: &usize| commands(*replies) >= enough || commands(*replies) as f64 >= share * rows.commands as f64;
    (3..=8).find(is_enough).unwrap_or(8)
}

fn fixed_forms(is_wire: bool) -> Vec<Form> {
    let mut forms = vec![Form::PLAIN];
    for fields in [LengthFields::WebSocket, LengthFields::Mqtt] {
        let record_bytes: &[i64] = if is_wire { &[24, 17, 16] } else { &[0] };
        forms.extend(record_bytes.iter().map(|record_bytes| Form { fields, record_bytes: *record_bytes }));
    }
    forms
}

/// A form that adds the same to all rows, up to a constant, is already among the candidates.
pub(super) fn is_known(form: Form, rows: &[Row], candidates: &[Candidate]) -> bool {
    let is_same = |other: Form| {
        let mut differences = rows.iter().map(|row| form.grown(row.size) - other.grown(row.size));
        differences.next().is_none_or(|first| differences.all(|difference| difference == first))
    };
    is_same(Form::PLAIN) || candidates.iter().any(|candidate| is_same(candidate.form))
}

/// Broad distributions of sizes around those of a regression.
fn first_guess(rows: &Rows, plan: &Plan, form: Form, classes: usize, step: Step) -> Candidate {
    let sizes: Vec<i64> = rows.rows.iter().map(|row| row.size - form.grown(row.size)).collect();
    let solution = first_sizes(&rows.rows, &sizes);
    let (intercept, means) = solution.split_first().map_or((0.0, &[][..]), |(first, rest)| (*first, rest));
    let largest = means.iter().copied().fold(20.0, f64::max);
    let most = ((largest * 1.6) as i64 + 30).clamp(40, MAX_ACTION_BYTES);
    // No action is tiny beside the others: that would be an ε.
    let typical = if means.is_empty() { 35.0 } else { means.iter().sum::<f64>() / classes.max(1) as f64 };
    let least = (means.iter().copied().filter(|mean| *mean > 8.0).fold(typical, f64::min) / 3.0).max(1.0) as i64;
    let around = |mean: f64| {
        let none = (0, 0.01 + bell(mean / 8.0));
        let share = |size: i64| bell((size as f64 - mean) / 8.0) + 1e-3;
        shares(std::iter::once(none).chain((least..=most).map(|size| (size, share(size)))))
    };
    let mut sizes: Vec<Pmf> = means.iter().map(|mean| around(*mean)).collect();
    // Actions without a reply may have any other size.
    sizes.push(shares((least..=most).map(|size| (size, bell((size as f64 - typical) / 16.0) + 0.02))));
    let broad = shares((-SPAN..=SPAN).map(|epsilon| (epsilon, bell(epsilon as f64 / 2.5))));
    let parameters = Parameters { sizes, epsilon: broad, silent: silent_start(plan, 0.08), outliers: 0.05, lost: 0.5 };
    let overhead = intercept.round().clamp(-1e6, 1e6) as i64;
    let mut candidate = Candidate { form, overhead, parameters, log_likelihood: f64::NEG_INFINITY };
    candidate.improve(plan, 8, Step { beforehand: Beforehand { epsilon: None, ..step.beforehand }, ..step });
    candidate
}

fn bell(x: f64) -> f64 {
    (-0.5 * x * x).exp()
}

/// The best values of |ac| near this candidate's: those that look worst are given up early.
fn overheads(plan: &Plan, near: &Candidate, step: Step, span: i64, most: usize) -> Vec<Candidate> {
    // ε is 0 mostly, or any value as often.
    let starts: [fn(i64) -> f64; 2] = [anchor, |_| 1.0];
    let mut candidates: Vec<Candidate> = (near.overhead - span..=near.overhead + span)
        .flat_map(|overhead| starts.map(|start| (overhead, start)))
        .map(|(overhead, start)| {
            let epsilon = shares(EPSILONS.map(|epsilon| (epsilon, start(epsilon))));
            let parameters = Parameters { epsilon, ..near.parameters.clone() };
            Candidate { overhead, parameters, ..near.clone() }
        })
        .collect();
    for (left, steps) in [(usize::MAX, 5), (2 * most + 2, 10), (most, 20)] {
        candidates.truncate(left);
        for candidate in &mut candidates {
            candidate.improve(plan, steps, step);
        }
        sort(&mut candidates);
    }
    candidates
}

/// The quantile of sizes that the regression follows: below the median, since actions without a reply only add bytes.
const QUANTILE: f64 = 0.4;
/// The most rows that it looks at, a bound of the time.
const MAX_ROWS: usize = 1500;

/// A first guess: the intercept, then the bytes for each class of replies. `sizes`: of each row, in bytes.
fn first_sizes(rows: &[Row], sizes: &[i64]) -> Vec<f64> {
    let every = rows.len().div_ceil(MAX_ROWS).max(1);
    let observed = rows.iter().zip(sizes).step_by(every).map(|(row, size)| Observed {
        counts: row.replies.iter().map(|count| u32::from(*count)).collect(),
        sizes: [*size; 2],
        commands: row.commands as f64,
    });
    regression(rows.first().map_or(0, |row| row.replies.len()), &observed.collect::<Vec<_>>(), QUANTILE)
}

/// The most actions of a command that is used, a bound of the time: commands of few actions show most.
pub(super) const MAX_ACTIONS: usize = 14;
/// The smallest and the largest size of the smallest action that is looked for, in bytes.
const ACTION_BYTES: std::ops::RangeInclusive<i64> = 5..=120;
/// How many explanations are kept for each form of length fields, a bound of the time.
const KEPT: usize = 4;

/// The best explanations where there are no replies, best first. The smallest commands have one action.
pub(super) fn search_lengths(rows: &Rows, is_wire: bool) -> Vec<Candidate> {
    let Some((few, plan)) = planned(rows, 1, 400, 0, MAX_ACTIONS / 2) else { return Vec::new() };
    let Some(smallest) = rows.smallest() else { return Vec::new() };
    let step = plain_step(rows, usize::MAX);
    let mut found: Vec<Candidate> = Vec::new();
    for form in fixed_forms(is_wire) {
        if form == Form::PLAIN || !is_known(form, &few.rows, &found) {
            found.extend(overheads_of_lengths(&plan, form, smallest, ACTION_BYTES, step));
        }
    }
    // Content-Length grows by a digit somewhere: tried coarsely, then near the best.
    let heads = (smallest - 101).max(MIN_HTTP_HEAD)..=smallest - 20;
    let http = |head: i64| Form { fields: LengthFields::Http { head }, record_bytes: 0 };
    for head in heads.clone().step_by(12) {
        if !is_known(http(head), &few.rows, &found) {
            found.extend(overheads_of_lengths(&plan, http(head), smallest, ACTION_BYTES, step).into_iter().take(2));
        }
    }
    sort_sparse(&mut found, &plan);
    if let Some(Candidate { form: Form { fields: LengthFields::Http { head }, .. }, overhead, .. }) = found.first() {
        let near = smallest - http(*head).grown(smallest) - overhead;
        for head in (head - 10..=head + 10).filter(|head| heads.contains(head)).collect::<Vec<i64>>() {
            if !is_known(http(head), &few.rows, &found) {
                found.extend(overheads_of_lengths(&plan, http(head), smallest, near..=near, step));
            }
        }
    }
    sort_sparse(&mut found, &plan);
    found
}

/// The best values of |ac|; those that look worst are given up early.
fn overheads_of_lengths(
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
            parameters: start_of_lengths(plan, action),
            log_likelihood: f64::NEG_INFINITY,
        })
        .collect();
    for (left, steps, least_evidence) in [(usize::MAX, 8, 0.0), (40, 12, 0.3), (24, 15, 0.7), (10, 25, 1.0)] {
        candidates.truncate(left);
        for candidate in &mut candidates {
            candidate.improve(plan, steps, step.with_evidence(least_evidence));
        }
        sort_sparse(&mut candidates, plan);
    }
    candidates.truncate(KEPT);
    candidates
}

fn sort_sparse(candidates: &mut [Candidate], plan: &Plan) {
    candidates.sort_by(|a, b| sparse_score(b, plan).total_cmp(&sparse_score(a, plan)));
}

/// What one size more must add to the log-likelihood, in nats: its value and its share, as of the Bayesian information
/// criterion.
pub(super) fn cost_of_size(plan: &Plan) -> f64 {
    plan.commands.max(2.0).ln() + 1.0
}

/// Few sizes are better than many.
fn sparse_score(candidate: &Candidate, plan: &Plan) -> f64 {
    let sizes: usize = candidate.parameters.sizes.iter().map(|sizes| sizes.iter().count().min(40)).sum();
    candidate.score() - cost_of_size(plan) * sizes as f64
}

/// Actions of any size from about the smallest on.
fn start_of_lengths(plan: &Plan, action: i64) -> Parameters {
    let sizes = ((action - 4).max(1)..=(2 * action).max(action + 20).min(MAX_ACTION_BYTES))
        .map(|size| (size, if size - action <= 20 { 1.0 } else { 0.02 }));
    let of_number = |actions: usize| if actions == 0 { 0.0 } else { 0.75_f64.powf(actions as f64) / 3.0 };
    let silent = plan.most_silent().into_iter().map(|most| (0..=most).map(of_number).collect());
    Parameters {
        sizes: vec![shares(sizes)],
        epsilon: shares(EPSILONS.map(|epsilon| (epsilon, anchor(epsilon)))),
        silent: silent.collect(),
        outliers: 0.02,
        lost: 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outliers_do_not_move_it() {
        let row = |replies: [u8; 2]| Row { size: 0, replies: replies.to_vec(), silent: None, commands: 5 };
        let counts = [[1, 0], [2, 0], [0, 1], [0, 2], [1, 1], [2, 1], [3, 1], [1, 3]];
        let rows: Vec<Row> = counts.iter().cycle().take(80).map(|counts| row(*counts)).collect();
        let sizes: Vec<i64> = rows
            .iter()
            .enumerate()
            .map(|(index, row)| {
                let odd = if index % 9 == 0 { 37 } else { 0 };
                60 + 30 * i64::from(row.replies[0]) + 40 * i64::from(row.replies[1]) + odd
            })
            .collect();
        let solution = first_sizes(&rows, &sizes);
        assert!((solution[0] - 60.0).abs() < 1.0, "{solution:?}");
        assert!((solution[2] - 40.0).abs() < 1.0, "{solution:?}");
    }
}
