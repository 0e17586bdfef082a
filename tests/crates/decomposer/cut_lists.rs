//! Cut lists beside complete ones, and what habits and earlier commands make of both.

use proptest::prelude::*;
use sizeleak_decomposer::Decomposer;
use sizeleak_frame::{
    Candidate, Command, Correction, HabitFactors, Identification, RecurringClass, SharedList, SingleReply,
    WeightedEpsilon,
};
use sizeleak_model::{Model, SeenReplies};

use super::lists::answered;

/// `on` and `off` send the same replies, `dim` others; only the two lamps can be dimmed.
const HOME: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
    [[action]]\nname = \"on\"\nsize = 40\n[[action]]\nname = \"off\"\nsize = 41\n\
    [[action]]\nname = \"dim\"\nsize = 42\n\
    [[device]]\nname = \"plug\"\ncount = 5\nactions = [\"on\", \"off\"]\n\
    [[device]]\nname = \"lamp\"\ncount = 2\nactions = [\"on\", \"off\", \"dim\"]\n\
    [prior]\nnumbers = [0.4, 0.25, 0.15]\ndecay = 0.6\nshares = [0.5, 0.3, 0.2]\nconcentration = 5.0\n\
    [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.02\n\
    [single_replies]\nmerged = 0.03\nshared = 0\nforeign = 0.02\nforeign_sizes = []\nper_command = [0, 0]\n\
    per_action = [[1, 0], [1, 0], [0, 1]]\n\
    [[single_replies.class]]\nmissing = 0.02\nunseen = 0.01\nsizes = [[90, 50]]\n\
    [[single_replies.class]]\nmissing = 0.05\nunseen = 0.0\nsizes = [[95, 30], [96, 10]]\n\
    [learned]\nmethod = \"robust\"\ncommands = 100\nversion = \"0\"\nbasis = \"wire\"\n";

fn decomposed(limit: usize, size: u64, replies: &[u32], epsilons: &[(i64, f64)]) -> Identification {
    with_habits(limit, size, replies, epsilons, &[], &[])
}

/// The same by other habits, and with commands that came before.
fn with_habits(
    limit: usize,
    size: u64,
    replies: &[u32],
    epsilons: &[(i64, f64)],
    habits: &[HabitFactors],
    recurring: &[RecurringClass],
) -> Identification {
    let single_replies: SharedList<SingleReply> =
        replies.iter().map(|length| SingleReply { after_ns: 0, length: *length }).collect();
    let command = Command {
        time_ns: 1,
        end_ns: 2,
        flow: 3,
        size,
        records: 1,
        replies: replies.len() as u32,
        reply_bytes: replies.iter().map(|length| u64::from(*length)).sum(),
        single_replies,
        ..Command::default()
    };
    let epsilons = epsilons.iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon: *epsilon, weight: *weight });
    let mut decomposer = Decomposer::new(Model::from_toml(HOME).unwrap(), limit).unwrap();
    let (habits, recurring) = (habits.iter().cloned().collect(), recurring.iter().cloned().collect());
    let correction = Correction { habits, recurring, ..Correction::unshifted(command, epsilons.collect()) };
    answered(&mut decomposer, correction).0
}

fn likelihood(candidate: &Candidate, replies: &[u32]) -> f64 {
    let model = Model::from_toml(HOME).unwrap();
    let single = model.single_replies.as_ref().unwrap();
    let counts = model.actions.iter().map(|action| candidate.actions.count(&action.name)).enumerate();
    let ranges: Vec<[i64; 2]> = replies.iter().map(|length| [i64::from(*length); 2]).collect();
    SeenReplies::new(single, &ranges).ln_likelihood(&single.class_counts(counts)).exp()
}

proptest! {
    #[test]
    fn a_cut_list_holds_what_the_replies_show_with_the_probabilities_of_the_complete_one(
        size in 60u64..360,
        replies in prop::collection::vec(prop::sample::select(vec![90u32, 95, 96, 180, 70]), 0..7),
        limit in 1usize..4,
    ) {
        let epsilons = [(0, 0.6), (1, 0.3), (-1, 0.1)];
        let whole = decomposed(1_000_000, size, &replies, &epsilons);
        let cut = decomposed(limit, size, &replies, &epsilons);
        prop_assert_eq!((whole.candidate_count, whole.reply_probability), (cut.candidate_count, None));
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * other;
        match whole.size_probability {
            None => prop_assert_eq!(cut.size_probability, None),
            Some(wanted) => prop_assert!(near(cut.size_probability.unwrap(), wanted)),
        }
        if whole.candidate_count <= limit as u64 {
            prop_assert_eq!(cut, whole);
            return Ok(());
        }
        let joint = |candidate: &Candidate| candidate.probability * likelihood(candidate, &replies);
        let all: f64 = whole.candidates.iter().map(joint).sum();
        if all == 0.0 {
            prop_assert_eq!(cut.reply_probability, None);
            return Ok(());
        }
        prop_assert!(near(cut.reply_probability.unwrap(), all), "{:?} {all}", cut.reply_probability);
        let mut best: Vec<f64> = whole.candidates.iter().map(joint).collect();
        best.sort_by(|a, b| b.total_cmp(a));
        prop_assert!(cut.candidates.len() <= limit);
        prop_assert!(cut.candidates.is_sorted_by(|a, b| a.probability >= b.probability));
        for candidate in &*cut.candidates {
            let same = whole.candidates.iter().find(|other| other.actions == candidate.actions);
            let same = same.filter(|other| other.epsilon == candidate.epsilon);
            prop_assert!(near(candidate.probability, same.unwrap().probability));
            prop_assert!(joint(candidate) >= best[limit - 1] * (1.0 - 1e-6) - 1e-7 * all, "not one of the best");
        }
    }
}

#[test]
fn replies_that_are_not_all_known_leave_the_list_as_it_is() {
    let replies = [90; 3];
    let with = decomposed(1, 60 + 122, &replies, &[(0, 1.0)]);
    assert!(with.reply_probability.is_some() && with.candidate_count > 1);
    let mut unknown = with.command;
    unknown.single_replies = SharedList::default();
    let epsilons: SharedList<WeightedEpsilon> = [WeightedEpsilon { epsilon: 0, weight: 1.0 }].into_iter().collect();
    let mut decomposer = Decomposer::new(Model::from_toml(HOME).unwrap(), 1).unwrap();
    let (without, _) = answered(&mut decomposer, Correction::unshifted(unknown, epsilons));
    assert_eq!((without.reply_probability, without.listed), (None, 1));
}

/// Habits of half of all households: `off` three times as often as it was learned, and commands of two actions or more half as
/// often.
fn habits() -> [HabitFactors; 1] {
    [HabitFactors { weight: 0.5, actions: [1.0, 3.0, 1.0].into(), numbers: [1.0, 0.5].into() }]
}

/// The factor of those habits on the learned prior.
fn habit_factor(candidate: &Candidate) -> f64 {
    let off = candidate.actions.count("off");
    0.5 + 0.5 * 3.0_f64.powf(off.into()) * if candidate.actions.total() > 1 { 0.5 } else { 1.0 }
}

/// What the replies make of candidates, as the pruner does: what is not listed has the rest of P(replies).
fn with_replies(found: &Identification, replies: &[u32]) -> Vec<f64> {
    let is_chosen = found.reply_probability.is_some();
    let joint = |one: &Candidate| one.probability * if is_chosen { likelihood(one, replies) } else { 1.0 };
    let joint: Vec<f64> = found.candidates.iter().map(joint).collect();
    let all = found.reply_probability.unwrap_or(1.0).max(joint.iter().sum());
    joint.into_iter().map(|own| own / all).collect()
}

/// Whether the candidates of `weighed` are those of `found` with these factors on their odds, with the same rest for what is
/// not listed; replies count where they chose the list.
fn is_weighed(weighed: &Identification, found: &Identification, replies: &[u32], factors: &[f64]) -> bool {
    let odds: Vec<f64> = with_replies(found, replies).iter().zip(factors).map(|(own, factor)| own * factor).collect();
    let (listed, all) = (with_replies(found, replies).iter().sum::<f64>(), odds.iter().sum::<f64>());
    let of_candidate = |candidate: &Candidate| {
        let at = found.candidates.iter().position(|one| one.actions == candidate.actions).unwrap();
        odds[at] * listed / all
    };
    let wanted = weighed.candidates.iter().map(of_candidate);
    weighed.candidates.len() == found.candidates.len()
        && weighed.candidates.is_sorted_by(|a, b| a.probability >= b.probability)
        && with_replies(weighed, replies).iter().zip(wanted).all(|(own, wanted)| (own - wanted).abs() < 1e-9)
}

const EPSILONS: [(i64, f64); 3] = [(0, 0.6), (1, 0.3), (-1, 0.1)];

#[test]
fn probabilities_follow_the_factors_of_other_habits() {
    for (limit, size) in [(1_000_000, 60 + 122), (2, 60 + 122), (2, 60 + 163)] {
        let found = decomposed(limit, size, &[], &EPSILONS);
        let weighed = with_habits(limit, size, &[], &EPSILONS, &habits(), &[]);
        let factors: Vec<f64> = found.candidates.iter().map(habit_factor).collect();
        assert!(is_weighed(&weighed, &found, &[], &factors), "{found:?} {weighed:?}");
        let weights = with_replies(&found, &[]);
        let sum = |weights: &[f64]| weights.iter().zip(&factors).map(|(own, factor)| own * factor).sum::<f64>();
        let listed: Vec<f64> = found.candidates.iter().map(|one| one.probability).collect();
        let mean = (sum(&weights) / weights.iter().sum::<f64>()).max(sum(&listed));
        let of_size = [&weighed, &found].map(|one| one.size_probability.unwrap());
        assert!((of_size[0] - of_size[1] * mean).abs() < 1e-12, "{of_size:?} {mean}");
    }
    let unlike = [HabitFactors { weight: 0.5, actions: [1.0; 3].into(), numbers: [1.0].into() }];
    let (found, same) = (decomposed(9, 182, &[], &EPSILONS), with_habits(9, 182, &[], &EPSILONS, &unlike, &[]));
    assert!(is_weighed(&same, &found, &[], &vec![1.0; found.candidates.len()]), "{found:?} {same:?}");
}

/// The share of each class is added to what its candidates have by habit.
fn recurrence_factors(found: &Identification, classes: &[(RecurringClass, &[&str])]) -> Vec<f64> {
    let is_of = |candidate: &Candidate, names: &[&str]| {
        candidate.actions.iter().map(|(name, _)| &**name).eq(names.iter().copied())
    };
    let by_habit = |candidate: &Candidate| {
        candidate.probability * found.size_probability.unwrap() / (candidate.likelihood.unwrap_or(1.0) * EPSILONS[0].1)
    };
    let factor = |candidate: &Candidate| {
        let class = classes.iter().find(|(_, names)| is_of(candidate, names));
        class.map_or(1.0, |(class, names)| {
            let all: f64 = found.candidates.iter().filter(|one| is_of(one, names)).map(by_habit).sum();
            1.0 + class.share / all
        })
    };
    found.candidates.iter().map(factor).collect()
}

#[test]
fn commands_that_came_before_have_their_share_within_their_class() {
    let unlike = [HabitFactors { weight: 0.5, actions: [1.0; 3].into(), numbers: [1.0].into() }];
    let class = |bytes: i64, replies: [u32; 2], share: f64| RecurringClass { bytes, replies: replies.into(), share };
    // `on` and `off` together, which both send a reply of the first class; nothing has the second sum, nor its replies.
    let classes = [class(81, [2, 0], 0.08), class(81, [0, 2], 0.5), class(500, [2, 0], 0.5)];
    let (size, limit) = (60 + 81, 100);
    let found = decomposed(limit, size, &[], &EPSILONS);
    let weighed = with_habits(limit, size, &[], &EPSILONS, &unlike, &classes);
    let factors = recurrence_factors(&found, &[(classes[0].clone(), &["on", "off"][..])]);
    assert!(factors.iter().filter(|factor| **factor > 1.0).count() == 1 && factors.len() > 2, "{found:?}");
    assert!(is_weighed(&weighed, &found, &[], &factors), "{found:?} {weighed:?}");
    let of_size = [&weighed, &found].map(|one| one.size_probability.unwrap());
    assert!((of_size[0] - of_size[1]).abs() < 1e-12, "sizes are as probable as by habit");
}

#[test]
fn candidates_that_replies_chose_keep_their_odds_by_other_habits_and_where_they_come_again() {
    let unlike = [HabitFactors { weight: 0.5, actions: [1.0; 3].into(), numbers: [1.0].into() }];
    // A reply of each class: `dim` with `on` or with `off`; and such replies of which one is lost.
    for replies in [&[90, 95][..], &[95], &[90, 90]] {
        for (limit, size) in [(2, 60 + 122), (3, 60 + 123), (2, 60 + 82)] {
            let found = decomposed(limit, size, replies, &EPSILONS);
            assert!(found.reply_probability.is_some(), "the replies choose");
            let weighed = with_habits(limit, size, replies, &EPSILONS, &habits(), &[]);
            let factors: Vec<f64> = found.candidates.iter().map(habit_factor).collect();
            assert!(is_weighed(&weighed, &found, replies, &factors), "{found:?} {weighed:?}");
            let first = &found.candidates[0].actions;
            let [on, off, dim] = ["on", "off", "dim"].map(|name| first.count(name));
            let bytes =
                [on, off, dim].into_iter().zip(40..).map(|(count, size): (u32, i64)| i64::from(count) * size).sum();
            let class = RecurringClass { bytes, replies: [on + off, dim].into(), share: 0.2 };
            let names: Vec<&str> = first.iter().map(|(name, _)| &**name).collect();
            let again = with_habits(limit, size, replies, &EPSILONS, &unlike, std::slice::from_ref(&class));
            let same_class = |one: &&Candidate| {
                one.actions != *first && one.actions.iter().map(|(name, _)| &**name).eq(names.iter().copied())
            };
            if found.candidates.iter().any(|one| same_class(&one)) {
                continue;
            }
            let factors = recurrence_factors(&found, &[(class, &names[..])]);
            assert!(is_weighed(&again, &found, replies, &factors), "{found:?} {again:?}");
        }
    }
}
