//! Replies of classes against trying every way to give them to records, and their numbers.

use proptest::prelude::*;
use sizeleak_model::{Component, ReplyClass, ReplyCountModel, ReplyReader, SeenReplies, SingleReplies};

fn class(missing: f64, sizes: &[(i64, u64)]) -> ReplyClass {
    ReplyClass { missing, unseen: 0.0, sizes: sizes.to_vec() }
}

/// Actions `on` and `off` have a reply of 90 bytes, `dim` one of 95 or 96 bytes, `white` two, `quiet` none.
fn home() -> SingleReplies {
    SingleReplies {
        merged: 0.02,
        shared: 0,
        foreign: 0.01,
        foreign_sizes: vec![(160, 3)],
        per_command: vec![0, 0],
        per_action: vec![vec![1, 0], vec![1, 0], vec![0, 1], vec![1, 1], vec![0, 0]],
        classes: vec![class(0.01, &[(90, 50)]), class(0.05, &[(95, 30), (96, 10)])],
    }
}

fn ln_likelihood(model: &SingleReplies, records: &[i64], counts: &[u32]) -> f64 {
    let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
    SeenReplies::new(model, &ranges).ln_likelihood(&model.class_counts(counts.iter().copied().enumerate()))
}

/// The probability that a foreign record has this size: as often as it was seen, and once more a size of any kind or that
/// of a reply.
fn foreign_share(model: &SingleReplies, size: i64) -> f64 {
    let times = |sizes: &[(i64, u64)], counts: &dyn Fn(i64) -> bool| -> f64 {
        sizes.iter().filter(|(size, _)| counts(*size)).map(|(_, times)| *times as f64).sum()
    };
    let of_replies =
        |counts: &dyn Fn(i64) -> bool| -> f64 { model.classes.iter().map(|class| times(&class.sizes, counts)).sum() };
    let unseen = f64::midpoint(1.0 / 2000.0, of_replies(&|one| one == size) / of_replies(&|_| true).max(1.0));
    (times(&model.foreign_sizes, &|one| one == size) + unseen) / (times(&model.foreign_sizes, &|_| true) + 1.0)
}

/// P(this sequence of records | replies of these classes), by trying every way to give replies to records.
fn by_trial(model: &SingleReplies, records: &[i64], class_counts: &[u32]) -> f64 {
    let replies: Vec<&ReplyClass> = model
        .classes
        .iter()
        .zip(class_counts)
        .flat_map(|(class, count)| std::iter::repeat_n(class, *count as usize))
        .collect();
    let factorial = |n: usize| (1..=n).map(|factor| factor as f64).product::<f64>();
    let mut all = 0.0;
    for foreign in 0_u32..1 << records.len() {
        let number = foreign.count_ones() as usize;
        let rest: Vec<i64> =
            records.iter().enumerate().filter(|(at, _)| foreign >> at & 1 == 0).map(|(_, size)| *size).collect();
        let sizes = records.iter().enumerate().filter(|(at, _)| foreign >> at & 1 == 1);
        let shares: f64 = sizes.map(|(_, size)| foreign_share(model, *size)).product();
        let places = factorial(records.len()) / factorial(number) / factorial(rest.len());
        let poisson = (-model.foreign).exp() * model.foreign.powf(number as f64) / factorial(number);
        let mut used = vec![false; replies.len()];
        all += poisson / places * shares * given_to(model, &replies, &rest, &mut used, 0, 0);
    }
    all
}

/// Gives unused replies to the records, one after the other; `sum` bytes of the first record are given already.
fn given_to(
    model: &SingleReplies,
    replies: &[&ReplyClass],
    records: &[i64],
    used: &mut Vec<bool>,
    groups: u32,
    sum: i64,
) -> f64 {
    let Some((record, rest)) = records.split_first() else {
        let sent = used.iter().filter(|used| **used).count() as u32;
        let missing: f64 =
            replies.iter().zip(&*used).filter(|(_, used)| !**used).map(|(class, _)| class.missing).product();
        let orders: f64 = (1..=sent).map(f64::from).product();
        let merges = f64::from(sent - groups);
        let apart = f64::from(groups.saturating_sub(1));
        return missing / orders * model.merged.powf(merges) * (1.0 - model.merged).powf(apart);
    };
    let mut all = 0.0;
    for at in 0..replies.len() {
        if used[at] {
            continue;
        }
        let class = replies[at];
        let times: u64 = class.sizes.iter().map(|(_, times)| times).sum();
        used[at] = true;
        for (size, seen) in &class.sizes {
            let share = (1.0 - class.missing) * *seen as f64 / times as f64;
            let sum = sum + size - if sum > 0 { model.shared } else { 0 };
            if sum == *record {
                all += share * given_to(model, replies, rest, used, groups + 1, 0);
            } else if sum < *record {
                all += share * given_to(model, replies, records, used, groups, sum);
            }
        }
        used[at] = false;
    }
    all
}

#[test]
fn classes_are_counted_over_all_actions() {
    assert_eq!(home().class_counts([2, 1, 3, 1, 4].into_iter().enumerate()), [4, 4]);
    let acknowledged = SingleReplies { per_command: vec![1, 0], ..home() };
    assert_eq!(acknowledged.class_counts([(2, 1)]), [1, 1]);
}

#[test]
fn replies_tell_actions_of_other_classes_apart() {
    let on_rather_than_dim = |records: &[i64]| {
        ln_likelihood(&home(), records, &[1, 0, 0, 0, 0]) - ln_likelihood(&home(), records, &[0, 0, 1, 0, 0])
    };
    assert!(on_rather_than_dim(&[90]) > 5.0 && on_rather_than_dim(&[95]) < -5.0);
    assert!(on_rather_than_dim(&[]).abs() < 2.0, "both replies may be lost");
    let merged = |counts: &[u32]| ln_likelihood(&home(), &[186], counts);
    assert!(merged(&[1, 0, 1, 0, 0]) > merged(&[1, 0, 0, 0, 0]) + 5.0, "90 + 96 bytes in one record");
}

#[test]
fn a_record_that_no_reply_has_the_size_of_may_be_any_of_them() {
    let model = SingleReplies { foreign: 1e-3, ..home() };
    let lost = |records: &[i64], missing: [u32; 5]| ln_likelihood(&model, records, &missing);
    // Where all else came, `on` is as likely to be lost as once in a hundred times; beside an odd record every other time.
    let of_lost = |records: &[i64]| lost(records, [1, 0, 1, 0, 0]) - lost(records, [0, 0, 1, 0, 0]);
    assert!((of_lost(&[95]) - 0.01_f64.ln()).abs() < 1e-6, "{}", of_lost(&[95]));
    assert!((of_lost(&[95, 130]) - 0.505_f64.ln()).abs() < 1e-6, "{}", of_lost(&[95, 130]));
    // Of a gateway that sends odd records all the time, they say nothing.
    let busy = SingleReplies { foreign: 10.0, ..home() };
    let of_busy =
        ln_likelihood(&busy, &[95, 130], &[1, 0, 1, 0, 0]) - ln_likelihood(&busy, &[95, 130], &[0, 0, 1, 0, 0]);
    assert!((of_busy - 0.0101_f64.ln()).abs() < 0.01, "{of_busy}");
}

#[test]
fn replies_that_are_none_of_the_models_have_any_number_and_any_sizes() {
    let probability = |sizes: &[i64]| {
        let ranges: Vec<[i64; 2]> = sizes.iter().map(|size| [*size; 2]).collect();
        SingleReplies::ln_unlike(&ranges).exp()
    };
    let is = |found: f64, wanted: f64| assert!((found / wanted - 1.0).abs() < 1e-9, "{found} {wanted}");
    is(probability(&[]), 1.0 / 2.0);
    // All sizes together have the probability of their number.
    is(2000.0 * probability(&[300]), 1.0 / 6.0);
    is(2000.0 * probability(&[300, 300]) + 2000.0 * 1999.0 * probability(&[300, 301]), 1.0 / 12.0);
    let three = [(1.0, [7, 7, 7]), (3.0 * 1999.0, [7, 7, 8]), (1999.0 * 1998.0, [7, 8, 9])];
    is(three.map(|(times, sizes)| 2000.0 * times * probability(&sizes)).iter().sum(), 1.0 / 20.0);
    assert!(probability(&[300; 4]) > 1e6 * probability(&[300, 301, 302, 303]), "sizes come again");
}

#[test]
fn ranges_of_block_ciphers_hold_the_sizes_of_a_class() {
    let model = home();
    let seen = SeenReplies::new(&model, &[[81, 96]]);
    let (on, dim) = (seen.ln_likelihood(&[1, 0]), seen.ln_likelihood(&[0, 1]));
    assert!((on - dim).abs() < 0.1, "90, 95 and 96 bytes are in one range: {on} {dim}");
    let seen = SeenReplies::new(&model, &[[97, 112]]);
    assert!(seen.ln_likelihood(&[1, 0]) < on - 5.0);
}

#[test]
fn a_size_that_a_class_hardly_ever_has_explains_no_record() {
    // Once in two million replies, in ten million, and as one of ten thousand sizes beside those that were seen.
    let rare: [(ReplyClass, i64); 3] = [
        (class(0.01, &[(90, 2_000_000), (95, 1)]), 95),
        (class(0.01, &[(90, 20_000_000), (95, 2)]), 95),
        (ReplyClass { missing: 0.01, unseen: 1e-4, sizes: vec![(90, 1_000), (40_090, 999)] }, 20_000),
    ];
    for (one, size) in rare {
        let model = SingleReplies { per_command: vec![0], per_action: vec![vec![1]], classes: vec![one], ..home() };
        for (records, counts) in [(vec![size], [0]), (vec![size], [1]), (vec![90, size], [1]), (vec![90, size], [2])] {
            let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
            let found = SeenReplies::new(&model, &ranges).ln_likelihood(&counts);
            // A foreign record, or a reply that nearly never comes.
            assert!(found < -5.0, "{size}: {records:?} of {counts:?} replies: {found}");
        }
    }
}

#[test]
fn hostile_replies_end_soon() {
    let many: Vec<[i64; 2]> = (0..64).map(|at| [80 + at; 2]).collect();
    let mut wide = home();
    wide.classes[0].sizes = (0..256).map(|at| (at, 1)).collect();
    wide.classes[1].sizes = (0..256).map(|at| (at, 2)).collect();
    assert!(SeenReplies::new(&wide, &many).ln_likelihood(&[40, 40]).is_finite());
    assert!(SeenReplies::new(&wide, &[[i64::MIN, i64::MAX]]).ln_likelihood(&[u32::MAX, 1]) <= 0.0);
}

/// Three classes, which share sizes where some are not seen yet.
fn classes_in_common(missing: f64, unseen: f64) -> SingleReplies {
    let class = |sizes: &[(i64, u64)]| ReplyClass { missing, unseen, sizes: sizes.to_vec() };
    SingleReplies {
        merged: 0.02,
        shared: 0,
        foreign: 0.01,
        foreign_sizes: vec![(160, 3)],
        per_command: vec![0; 3],
        per_action: Vec::new(),
        classes: vec![class(&[(90, 50)]), class(&[(95, 30), (96, 10)]), class(&[(94, 8)])],
    }
}

/// How likely each pattern of each component is at most.
fn likelihoods(components: &[Component], counts: &[u32], is_open: &[bool]) -> Vec<f64> {
    let mut found = Vec::new();
    for component in components {
        component.add_likelihoods(counts, is_open, &vec![0.0; component.patterns()], &mut found);
    }
    found
}

#[test]
fn a_reply_that_suits_several_ranges_is_not_bounded_by_one() {
    let reader = ReplyReader::new(classes_in_common(0.0, 0.0));
    let overlapping: [&[[i64; 2]]; 4] = [
        &[[90, 105], [90, 105], [94, 109]],
        &[[90, 98], [92, 98], [94, 96]],
        &[[80, 95], [94, 110], [95, 120]],
        &[[94, 94], [94, 96], [95, 95]],
    ];
    for records in overlapping {
        let (seen, bound) = (reader.read(records), reader.ln_bound(records));
        for counts in [[0, 2, 1], [0, 1, 2], [0, 3, 0], [1, 1, 1]] {
            assert!(seen.ln_likelihood(&counts) <= bound, "{records:?} {counts:?}: {bound}");
        }
    }
    let apart = reader.ln_bound(&[[90, 90], [94, 94], [96, 96]]);
    assert!((apart + 6_f64.ln()).abs() < 0.2, "sizes that do not overlap come in one order of six: {apart}");
}

proptest! {
    #[test]
    fn likelihood_is_that_of_every_way(
        counts in prop::collection::vec(0u32..3, 2),
        shared in prop::sample::select(vec![0, 5]),
        records in prop::collection::vec(prop::sample::select(vec![90, 95, 96, 160, 180, 185, 186, 275]), 0..4),
    ) {
        let model = SingleReplies { shared, ..home() };
        let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
        let found = SeenReplies::new(&model, &ranges).ln_likelihood(&counts).exp();
        // Beside records that are no sum of up to three replies, one in a thousand replies is such a record, foreign ones are
        // one in a hundred, and no more than half of the replies are.
        let sums = |size: &i64| {
            let one = [90, 95, 96];
            let two = one.iter().flat_map(|a| one.map(|b| a + b - shared));
            let three = two.clone().flat_map(|sum| one.map(|c| sum + c - shared));
            one.iter().copied().chain(two).chain(three).any(|sum| sum == *size)
        };
        let unread = records.iter().filter(|size| !sums(size)).count() as f64;
        let reworded = (unread / (unread + 10.0)).min(0.5);
        let mut trial = model.clone();
        trial.classes.iter_mut().for_each(|class| class.missing += (1.0 - class.missing) * reworded);
        let wanted = by_trial(&trial, &records, &counts);
        prop_assert!((found - wanted).abs() <= 0.01 * wanted + 1e-9, "{found} {wanted}");
    }

    #[test]
    fn no_numbers_are_likelier_than_the_bound(
        least in prop::collection::vec(0u32..4, 3),
        more in prop::collection::vec(0u32..6, 3),
        is_open in prop::collection::vec(any::<bool>(), 3),
        missing in prop::sample::select(vec![0.0, 0.02, 0.4]),
        unseen in prop::sample::select(vec![0.0, 0.01]),
        records in prop::collection::vec(prop::sample::select(vec![90, 94, 95, 96, 160, 185]), 0..6),
        widths in prop_oneof![
            Just(vec![0; 6]),
            Just(vec![15; 6]),
            prop::collection::vec(prop::sample::select(vec![0, 1, 5, 15, 90]), 6),
        ],
    ) {
        let ranges: Vec<[i64; 2]> = records.iter().zip(widths).map(|(size, width)| [*size, size + width]).collect();
        let reader = ReplyReader::new(classes_in_common(missing, unseen));
        let seen = reader.read(&ranges);
        let counts: Vec<u32> = least.iter().zip(&more).zip(&is_open)
            .map(|((least, more), is_open)| least + if *is_open { *more } else { 0 }).collect();
        let ln_greatest = seen.components.iter().flat_map(|one| (0..one.patterns()).map(|at| one.ln_greatest(at)));
        let ln_ways: Vec<f64> = seen.components.iter()
            .flat_map(|one| (0..one.patterns()).map(|at| one.ln_ways(at, &counts))).collect();
        let exact = likelihoods(&seen.components, &counts, &[false; 3]);
        let at_most = likelihoods(&seen.components, &least, &is_open);
        for (((ln_ways, exact), at_most), ln_greatest) in ln_ways.iter().zip(exact).zip(at_most).zip(ln_greatest) {
            let ways = ln_ways.exp();
            prop_assert!((exact - ways).abs() <= 1e-9 * ways, "{exact} {ways}");
            prop_assert!(ways <= at_most * (1.0 + 1e-9), "{ways} {at_most}");
            prop_assert!(*ln_ways <= ln_greatest + 1e-9, "{ln_ways} {ln_greatest}");
        }
        let (ln_likelihood, bound) = (seen.ln_likelihood(&counts), reader.ln_bound(&ranges));
        prop_assert!(ln_likelihood <= bound + 1e-9, "{ln_likelihood} {bound}");
        prop_assert!(ln_likelihood <= seen.ln_greatest() + 1e-9, "{ln_likelihood} {}", seen.ln_greatest());
    }

    #[test]
    fn beyond_the_peak_replies_only_become_less_likely(
        counts in prop::collection::vec(0u32..4, 3),
        class in 0usize..3,
        is_open in prop::collection::vec(any::<bool>(), 3),
        missing in prop::sample::select(vec![0.02, 0.4, 0.9]),
        unseen in prop::sample::select(vec![0.0, 0.01]),
        records in prop::collection::vec(prop::sample::select(vec![90, 94, 95, 96, 160, 185]), 0..6),
    ) {
        let ranges: Vec<[i64; 2]> = records.iter().map(|size| [*size; 2]).collect();
        let seen = SeenReplies::new(&classes_in_common(missing, unseen), &ranges);
        let component = seen.components.iter().find(|one| one.classes().any(|own| own == class)).unwrap();
        for pattern in 0..component.patterns() {
            let mut before = f64::INFINITY;
            for number in component.peak(pattern)..component.peak(pattern) + 6 {
                let mut counts = counts.clone();
                counts[class] = number;
                let bound = likelihoods(std::slice::from_ref(component), &counts, &is_open)[pattern];
                prop_assert!(bound <= before * (1.0 + 1e-9), "{bound} {before}");
                before = bound;
            }
        }
    }
}

proptest! {
    #[test]
    fn bounds_leave_out_numbers_of_actions_of_which_replies_are_improbable(
        (fixed, per_action) in (0.0f64..3.0, 0.5f64..3.0),
        (missing, surplus) in (0.0f64..0.05, 0.0f64..4.0),
        (replies, keep) in (0u32..20, 0.5f64..0.999),
    ) {
        let model = ReplyCountModel { fixed, per_action, missing, surplus };
        let sum = |replies: std::ops::RangeInclusive<i64>, actions: u32| -> f64 {
            replies.map(|number| model.probability(number, actions.into())).sum()
        };
        let (seen, tail) = (i64::from(replies), (1.0 - keep) / 2.0);
        for actions in [0, 3, 10] {
            prop_assert!((sum(0..=600, actions) - 1.0).abs() < 1e-9);
        }
        let (mut least, mut most) = model.paper_bounds(replies);
        while least > 0 && (replies == 0 || sum(seen..=600, least - 1) > tail) {
            least -= 1;
        }
        while sum(0..=seen, most + 1) > tail {
            most += 1;
        }
        prop_assert_eq!(model.bounds(replies, keep), (least, most));
    }
}

/// All that may become of so many replies: how many records there are, with its probability.
fn outcomes(model: &SingleReplies, missing: &[f64], records: usize, probability: f64, to: &mut Vec<f64>) {
    let Some((of_this, others)) = missing.split_first() else {
        // Of many foreign records, none is seen here.
        let mut foreign = (-model.foreign).exp();
        for more in 0..12 {
            let number = records + more;
            to.resize(to.len().max(number + 1), 0.0);
            to[number] += probability * foreign;
            foreign *= model.foreign / (more + 1) as f64;
        }
        return;
    };
    outcomes(model, others, records, probability * of_this, to);
    let merged = if records > 0 { model.merged } else { 0.0 };
    outcomes(model, others, records, probability * (1.0 - of_this) * merged, to);
    outcomes(model, others, records + 1, probability * (1.0 - of_this) * (1.0 - merged), to);
}

#[test]
fn numbers_of_records_are_as_probable_as_all_that_may_become_of_replies() {
    let model = SingleReplies { merged: 0.1, foreign: 0.05, ..home() };
    assert!(model.differ_in_number());
    let alike = SingleReplies { per_action: vec![vec![1, 0], vec![0, 1]], ..home() };
    assert!(!alike.differ_in_number());
    for counts in [[0, 0], [1, 0], [2, 1], [3, 5]] {
        let missing: Vec<f64> = model
            .classes
            .iter()
            .zip(counts)
            .flat_map(|(class, count)| std::iter::repeat_n(class.missing, count as usize))
            .collect();
        let mut expected = Vec::new();
        outcomes(&model, &missing, 0, 1.0, &mut expected);
        for (records, expected) in expected.iter().enumerate().take(9) {
            let probability = model.probability_of_number(records as u32, &counts).unwrap();
            assert!((probability - expected).abs() < 1e-9, "{counts:?} {records}: {probability}, not {expected}");
        }
    }
    assert_eq!(model.probability_of_number(3, &[1000, 0]), None);
}
