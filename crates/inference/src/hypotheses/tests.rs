//! Flows whose messages or habits change, and the sum over all ways of small hidden Markov models.

use std::sync::LazyLock;

use proptest::prelude::*;
use sizeleak_model::{Model, SeenReplies, SingleReplies};

use super::*;
use crate::best_actions::Member;
use crate::command_class::CommandClass;
use crate::habits::HabitTable;
use crate::number_walk::WeightedSum;
use crate::own_habits::{OwnHabits, Pace};
use crate::possible_commands::{MAX_BY_ONE_ACTION, asked_sums};

/// Up to three of two actions of 4 and 7 bytes; `on` is nine times as frequent.
const MODEL: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 9]]\n\
    [[action]]\nname = \"on\"\nsize = 4\n[[action]]\nname = \"off\"\nsize = 7\n\
    [[device]]\nname = \"lamp\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
    [prior]\nnumbers = [0.6, 0.3, 0.1]\ndecay = 0.01\nshares = [0.9, 0.1]\nconcentration = 20.0\n\
    [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.01\nsurplus = 0.01\n\
    [learned]\nmethod = \"robust\"\ncommands = 30\nversion = \"0\"\nbasis = \"wire\"\n";

/// By how many bytes messages are longer in each state. The difference of the actions is among them.
const LONGER: [i64; 5] = [0, 1, -1, 3, -3];

static INFERENCE: LazyLock<Inference> = LazyLock::new(|| Inference(Model::from_toml(MODEL).unwrap()));

struct Inference(Model);

impl Inference {
    fn get(&self) -> ReplyInference {
        ReplyInference::new(&self.0).unwrap()
    }
}

fn hypotheses(inference: &ReplyInference) -> Hypotheses {
    let arrival = |bytes: i64| if bytes == 0 { 0.5 } else { 0.125 };
    let prior = |bytes| StatePrior { arrival: arrival(bytes), bytes, action: None, beside: Beside::AnyHabits };
    Hypotheses::new(&LONGER.map(prior), inference)
}

/// What a message may be whose actions and shift take these bytes together.
fn possible(hypotheses: &Hypotheses, inference: &ReplyInference, bytes: i64) -> PossibleCommands {
    let states: Vec<(usize, Vec<WeightedSum>)> =
        LONGER.iter().map(|longer| vec![WeightedSum { bytes: bytes - longer, weight: 1.0 }]).enumerate().collect();
    let sums: Vec<WeightedSum> = states.iter().map(|(_, sums)| sums[0]).collect();
    let seen = SeenReplies::new(&SingleReplies::none(), &[]);
    let range = [0, bytes + 2 * MAX_BY_ONE_ACTION];
    let explained = inference.explain(&seen, &sums, range, f64::NEG_INFINITY).unwrap();
    let ln_unit = inference.ln_size(&sums).unwrap().max(f64::MIN);
    let learned = sums.iter().map(|sum| (inference.ln_size(&[*sum]).unwrap() - ln_unit).exp()).collect();
    let asked = asked_sums(&states);
    let explained = [ExplainedStates { explained, replies: None, states, asked }];
    hypotheses.possible(learned, ln_unit, &explained, inference).unwrap()
}

/// A class of commands, each with its probability.
fn class(id: usize, members: &[(&[(u32, u32)], f64)]) -> CommandClass {
    let number = |actions: &[(u32, u32)]| actions.iter().map(|(_, count)| *count as usize).sum::<usize>();
    let mut prior = vec![0.0; members.iter().map(|(actions, _)| number(actions)).max().unwrap_or(0)];
    for (actions, own) in members {
        prior[number(actions) - 1] += own;
    }
    let listed = members.iter().map(|(actions, prior)| Member { actions: actions.to_vec(), prior: *prior }).collect();
    CommandClass { id, ..CommandClass::new(0, [].into(), prior, listed, [], None) }
}

/// The beliefs after commands of some bytes.
fn after(bytes: impl IntoIterator<Item = i64>) -> Belief {
    let inference = INFERENCE.get();
    let hypotheses = hypotheses(&inference);
    let mut belief = Belief::default();
    for (second, bytes) in (1..).zip(bytes) {
        hypotheses.predict(&mut belief, second * 1_000_000_000, &inference);
        let command = possible(&hypotheses, &inference, bytes);
        hypotheses.observe(&mut belief, &command, &inference);
    }
    belief
}

#[test]
fn two_commands_show_other_messages_and_one_does_not() {
    let one = after([4, 4, 8, 4, 4, 5]);
    assert!(one.states[1].probability < 0.05);
    let two = after([4, 4, 8, 4, 4, 5, 9, 5]);
    assert!(two.states[1].probability > 0.7, "{:?}", two.states);
    assert_eq!(two.states[1].since_ns, Some(6_000_000_000), "the first command that was longer");
    // The last one is `off`, which cannot be shorter by the difference to `on`.
    let back = after([4, 4, 8, 4, 4, 5, 9, 5, 5, 5, 4, 8, 4, 4, 8, 7]);
    assert!(back.states[0].probability > 0.9, "{:?}", back.states);
    assert_eq!(back.states[0].since_ns, Some(11_000_000_000));
}

#[test]
fn other_habits_are_not_taken_for_longer_messages() {
    // The household switches off only: 7 bytes, which are 4 and 3 more.
    let belief = after(std::iter::repeat_n(4, 30).chain([7; 60]));
    let [as_learned, longer] = [0, 3].map(|state: usize| belief.states[state].probability);
    // From sizes alone both are possible, and none is certain at once.
    assert!(as_learned + longer > 0.98);
    let habits = after([7, 14, 7, 7, 21, 11, 7, 14, 14, 7, 18, 7, 14, 7, 7, 21, 14, 7, 11, 7].repeat(3));
    // By 3 bytes, one action looks like the other: other habits are the likelier reason.
    assert!(habits.states[0].probability > 0.4 && habits.states[3].probability < 0.5, "{:?}", habits.states);
    let shown = &habits.followed[&0];
    assert!(shown.as_learned() < 0.2, "{}", shown.as_learned());
    let own = shown.own_habits().map(|(weight, one)| (weight, &one.actions[..], &one.numbers[..]));
    let table = HabitTable::new(own);
    assert!(table.factor(&[(1, 1)]) > 3.0 * table.factor(&[(0, 1)]));
}

#[test]
fn odd_commands_here_and_there_change_nothing() {
    let belief = after((0..200).map(|number| if number % 10 == 9 { 10 } else { 4 }));
    assert!(belief.states[0].probability > 0.9, "{:?}", belief.states);
    assert!(belief.foreign.probability() < 0.1, "{:?}", belief.foreign.probability());
}

#[test]
fn messages_are_foreign_if_they_become_longer_as_in_no_state() {
    const USUAL: [i64; 10] = [4, 4, 8, 4, 7, 4, 8, 4, 4, 11];
    let foreign = |longer: i64| {
        let bytes = (0..80).map(|at| USUAL[at % USUAL.len()] + if at < 40 { 0 } else { longer });
        after(bytes).foreign.probability()
    };
    for longer in [2, 5, 6] {
        assert!(foreign(longer) > 0.999, "{longer}: {}", foreign(longer));
    }
    for longer in [0, 1, -1, 3] {
        assert!(foreign(longer) < 0.01, "{longer}: {}", foreign(longer));
    }
}

#[test]
fn commands_that_nothing_explains_say_nothing() {
    let belief = after([1000; 50]);
    assert!(belief.states[0].probability > 0.97);
}

/// P(way) for each sequence of states, summed by where it ends.
fn by_all_ways(start: &[f64], transition: impl Fn(usize, usize) -> f64, likelihoods: &[Vec<f64>]) -> Vec<f64> {
    let number = start.len();
    let mut totals = vec![0.0; number];
    for way in 0..number.pow(likelihoods.len() as u32 + 1) {
        let (mut from, mut rest) = (way % number, way / number);
        let mut weight = start[from];
        for of_command in likelihoods {
            let to = rest % number;
            rest /= number;
            weight *= transition(from, to) * of_command[to];
            from = to;
        }
        totals[from] += weight;
    }
    let all: f64 = totals.iter().sum();
    totals.into_iter().map(|total| total / all).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn beliefs_are_those_of_the_sum_over_all_ways(
        bytes in prop::collection::vec(prop::sample::select(vec![4_i64, 5, 7, 8, 10, 11]), 1..4),
    ) {
        let inference = INFERENCE.get();
        let hypotheses = hypotheses(&inference);
        // Of strange messages at last, one for each state.
        let own = LONGER.len();
        let first = |from: usize| match from {
            0 => 1.0 - STRANGE_AT_FIRST,
            _ if from < own => 0.0,
            _ => STRANGE_AT_FIRST / own as f64,
        };
        let start: Vec<f64> = (0..2 * own).map(first).collect();
        let (mut belief, mut likelihoods) = (Belief::default(), Vec::new());
        for (second, bytes) in (1..).zip(&bytes) {
            let command = possible(&hypotheses, &inference, *bytes);
            let odd = ODD * command.broad.iter().sum::<f64>() / own as f64;
            hypotheses.predict(&mut belief, second, &inference);
            // By the habits that the commands before have shown.
            let judged = judgements(&command, &belief, LONGER.len());
            let found = judged.values().map(|one| one.likelihood).chain(judged.values().map(|one| one.of_others));
            likelihoods.push(found.map(|own| (1.0 - ODD) * own + odd).collect());
            hypotheses.observe(&mut belief, &command, &inference);
        }
        let transition = |from: usize, to: usize| {
            let stays = if from == to { 1.0 - CHANGE } else { 0.0 };
            match (from < own, to < own) {
                (true, true) => stays + CHANGE * hypotheses.arrivals[to].0,
                (false, false) => HabitBelief::others_remain() * (stays + CHANGE / own as f64),
                _ => 0.0,
            }
        };
        let expected = by_all_ways(&start, transition, &likelihoods);
        for (at, expected) in expected.iter().enumerate() {
            let found = if at < own { belief.states[at].probability } else { belief.states[at - own].strange };
            prop_assert!((found - expected).abs() < 1e-9);
        }
    }
}

/// Multisets of up to three of both actions, each with P(A).
fn all_commands() -> Vec<([u32; 2], f64)> {
    let prior = INFERENCE.0.prior.as_ref().unwrap();
    let share = [1.0, 1.0, 2.0 / 3.0, 2.0 / 9.0];
    let all = (0..=3).flat_map(|on| (0..=3 - on).map(move |off| [on, off])).filter(|[on, off]| on + off > 0);
    let weight = |[on, off]: [u32; 2]| {
        let of_action = |action: usize, count: u32| (1..=count).map(|nth| prior.ln_next(action, nth)).sum::<f64>();
        (of_action(0, on) + of_action(1, off)).exp() * share[(on + off) as usize]
    };
    all.map(|counts| (counts, weight(counts))).collect()
}

#[test]
fn moments_are_those_of_all_multisets() {
    let inference = INFERENCE.get();
    let factors = [0.7, 2.5];
    let moments = inference.number_moments(&inference.action_rows(), &factors, usize::MAX).unwrap();
    for number in 1..=3 {
        let own: Vec<([u32; 2], f64)> = all_commands()
            .into_iter()
            .filter(|([on, off], _)| on + off == number)
            .map(|([on, off], weight)| {
                ([on, off], weight * factors[0].powi(on.cast_signed()) * factors[1].powi(off.cast_signed()))
            })
            .collect();
        let all: f64 = own.iter().map(|(_, weight)| weight).sum();
        let mean = |value: &dyn Fn([f64; 2]) -> f64| {
            own.iter().map(|(counts, weight)| weight * value(counts.map(f64::from))).sum::<f64>() / all
        };
        let at = number as usize - 1;
        let means = [mean(&|counts| counts[0]), mean(&|counts| counts[1])];
        assert!((moments.totals[at] / all - 1.0).abs() < 1e-9);
        for one in 0..2 {
            assert!((moments.means[at][one] - means[one]).abs() < 1e-9);
            for other in 0..2 {
                let covariance = mean(&|counts| (counts[one] - means[one]) * (counts[other] - means[other]));
                assert!((moments.covariances[at].values[one * 2 + other] - covariance).abs() < 1e-9);
            }
        }
    }
}

/// The factor of a command.
type Factor<'a> = &'a dyn Fn(&[(u32, u32)]) -> f64;

#[test]
fn habits_are_distributions_and_follow_what_is_seen() {
    let inference = INFERENCE.get();
    let learned = LearnedHabits::new(&inference).unwrap();
    let prior = INFERENCE.0.prior.as_ref().unwrap();
    let mut own = OwnHabits::new(Pace::SLOW, &learned, &inference);
    let two_off = |habits: Factor<'_>| {
        let of_number = |number: u32| -> f64 {
            all_commands()
                .iter()
                .filter(|(counts, _)| counts.iter().sum::<u32>() == number)
                .map(|(_, weight)| weight)
                .sum()
        };
        let probability = |([on, off], weight): ([u32; 2], f64)| {
            let actions: Vec<(u32, u32)> = [(0, on), (1, off)].into_iter().filter(|(_, count)| *count > 0).collect();
            let number = on + off;
            prior.ln_number(number).exp() * weight / of_number(number) * habits(&actions)
        };
        let all: Vec<([u32; 2], f64)> =
            all_commands().into_iter().map(|(counts, weight)| (counts, probability((counts, weight)))).collect();
        let total: f64 = all.iter().map(|(_, own)| own).sum();
        // The model leaves a little to more actions than there are devices.
        assert!((total - 1.0).abs() < 0.01, "{total}");
        all.iter().find(|(counts, _)| *counts == [0, 2]).unwrap().1 / total
    };
    assert!((0.015..0.05).contains(&two_off(&|actions| learned.broad.factor(actions))));
    assert!(two_off(&|actions| own.at_step.factors.factor(actions)) < 0.05);
    let two = class(0, &[(&[(1, 2)], 1.0)]);
    for _ in 0..100 {
        own.learn(&[(&two, 1.0)], 1.0, &learned, &inference);
    }
    assert!(two_off(&|actions| own.at_step.factors.factor(actions)) > 0.8);
}

/// Commands that may equally be two things, which no size tells apart, leave their ratio as it was.
#[test]
fn nothing_is_learned_from_what_is_not_told() {
    let inference = INFERENCE.get();
    let learned = LearnedHabits::new(&inference).unwrap();
    let mut own = OwnHabits::new(Pace::SLOW, &learned, &inference);
    let ratio = |own: &OwnHabits| own.at_step.factors.factor(&[(0, 1)]) / own.at_step.factors.factor(&[(1, 1)]);
    let before = ratio(&own);
    let either = class(0, &[(&[(0, 1)], 0.9), (&[(1, 1)], 0.1)]);
    for _ in 0..500 {
        own.learn(&[(&either, 1.0)], 1.0, &learned, &inference);
    }
    assert!((ratio(&own) / before - 1.0).abs() < 0.05, "{} {before}", ratio(&own));
}

/// A rare command that comes again and again is soon expected; one action or the other within it is not.
#[test]
fn commands_that_come_again_are_expected() {
    // The rare one comes last: each command gives the learned habits a little back.
    let belief = after([4, 18].repeat(40));
    let of_sum = |bytes: i64| belief.followed[&0].recurring([bytes]);
    assert!(of_sum(18)[0].share > 5.0 && of_sum(11).is_empty(), "{:?}", of_sum(18));
    assert!(belief.followed[&0].only_learned() < 0.01);
}

/// Of thousands of equal commands of one size, none matters by itself: other habits neither rule the size out nor favour it.
#[test]
fn a_class_of_many_equal_commands_is_known_by_the_number_of_actions_alone() {
    let names: Vec<String> = (0..40).map(|at| format!("a{at}")).collect();
    let action = |name: &String| format!("[[action]]\nname = \"{name}\"\nsize = 4\n");
    let actions = names.iter().map(action).collect::<Vec<String>>().concat();
    let text = format!(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 9]]\n{actions}\
         [[device]]\nname = \"lamp\"\ncount = 3\nactions = {names:?}\n\
         [prior]\nnumbers = [0.6, 0.3, 0.1]\ndecay = 0.01\nshares = {:?}\nconcentration = 20.0\n\
         [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.01\nsurplus = 0.01\n\
         [learned]\nmethod = \"robust\"\ncommands = 30\nversion = \"0\"\nbasis = \"wire\"\n",
        [0.025; 40]
    );
    let inference = ReplyInference::new(&Model::from_toml(&text).unwrap()).unwrap();
    let hypotheses = hypotheses(&inference);
    let possible = possible(&hypotheses, &inference, 12);
    let known = hypotheses.habits.as_ref().unwrap();
    let own = HabitBelief::new(known, &inference);
    let classes = possible.in_states.iter().flat_map(|one| &one.classes);
    let three = classes.map(|one| &one.class).find(|class| class.sum == 12).unwrap();
    assert!(three.members.is_empty() && three.prior > 0.05, "{three:?}");
    // The numbers of a household are halfway to broad ones at first.
    let times = known.broad_numbers[2] / known.numbers[2];
    let is_near = |one: f64, other: f64| (one - other).abs() < 1e-9;
    assert!(is_near(three.broad, three.prior * times), "{} {times}", three.broad);
    assert!(own.own_weights(three).iter().all(|own| is_near(*own, three.prior * f64::midpoint(1.0, times))));
}

/// What is known of classes is bounded however many actions a model has, and what is computed again is the same.
#[test]
fn the_moments_of_many_classes_of_many_actions_are_forgotten_and_computed_again() {
    const ACTIONS: u32 = 200;
    let names: Vec<String> = (0..ACTIONS).map(|at| format!("a{at}")).collect();
    let action = |name: &String| format!("[[action]]\nname = \"{name}\"\nsize = 4\n");
    let text = format!(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 9]]\n{}\
         [[device]]\nname = \"lamp\"\ncount = 2\nactions = {names:?}\n\
         [prior]\nnumbers = [0.7, 0.3]\ndecay = 0.01\nshares = {:?}\nconcentration = 20.0\n\
         [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.01\nsurplus = 0.01\n\
         [learned]\nmethod = \"robust\"\ncommands = 30\nversion = \"0\"\nbasis = \"wire\"\n",
        names.iter().map(action).collect::<String>(),
        vec![0.005; ACTIONS as usize]
    );
    let inference = ReplyInference::new(&Model::from_toml(&text).unwrap()).unwrap();
    let learned = LearnedHabits::new(&inference).unwrap();
    let own = OwnHabits::new(Pace::SLOW, &learned, &inference);
    let classes: Vec<CommandClass> = (0..ACTIONS).map(|at| class(at as usize, &[(&[(at, 1)], 0.005)])).collect();
    let moments = |at: u32| own.at_step.moments_of(&[(&classes[at as usize], 1.0)], (&learned, &inference)).0;
    let first = moments(0);
    (1..ACTIONS).for_each(|at| assert!(moments(at).counts[at as usize] > 0.0));
    let known = own.at_step.known_numbers();
    assert!((1..1 << 19).contains(&known), "{known}");
    let again = moments(0);
    assert_eq!((first.of_numbers, first.counts, first.squares), (again.of_numbers, again.counts, again.squares));
}
