//! Flows whose messages or habits change, and the sum over all ways of small hidden Markov models.

use std::sync::LazyLock;

use proptest::prelude::*;
use sizeleak_model::{Model, SeenReplies, SingleReplies};

use super::*;
use crate::inference::WeightedSum;
use crate::possible_commands::PossibleCommand;

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
    Hypotheses::new(vec![0.5, 0.125, 0.125, 0.125, 0.125], &[], inference)
}

/// What a message may be whose actions and shift take these bytes together.
fn possible(hypotheses: &Hypotheses, inference: &ReplyInference, bytes: i64) -> PossibleCommands {
    let states: Vec<(usize, Vec<WeightedSum>)> =
        LONGER.iter().map(|longer| vec![WeightedSum { bytes: bytes - longer, weight: 1.0 }]).enumerate().collect();
    let sums: Vec<WeightedSum> = states.iter().map(|(_, sums)| sums[0]).collect();
    let seen = SeenReplies::new(&SingleReplies::none(), &[]);
    let found = inference.most_probable(&seen, &sums, 100).unwrap();
    let learned = inference.ln_sums(&sums.iter().map(|sum| sum.bytes).collect::<Vec<_>>()).unwrap();
    let unit = found.ln_total.exp();
    let commands = found.listed.into_iter().map(|one| PossibleCommand {
        sum: sums[one.sum].bytes,
        probability: one.probability,
        recurring: 0.0,
        actions: one.actions,
    });
    let commands = commands.collect();
    let mut possible = PossibleCommands::new(learned.iter().map(|ln| ln.exp() / unit).collect(), Some(unit), 1.0);
    hypotheses.explain(&mut possible, commands, states, &[]);
    possible
}

/// The beliefs after commands of some bytes.
fn after(bytes: impl IntoIterator<Item = i64>) -> Belief {
    let inference = INFERENCE.get();
    let hypotheses = hypotheses(&inference);
    let mut belief = Belief::default();
    for (second, bytes) in (1..).zip(bytes) {
        let predicted = hypotheses.predicted(&belief, second * 1_000_000_000);
        let command = possible(&hypotheses, &inference, bytes);
        hypotheses.observe(&mut belief, predicted, &command, &inference);
    }
    belief
}

#[test]
fn factors_of_habits_are_a_distribution_with_the_shares_wanted() {
    let inference = INFERENCE.get();
    let learned = LearnedHabits::new(&inference).unwrap();
    let mut counts = learned.no_counts();
    // Mostly two times off.
    for _ in 0..300 {
        counts.age();
        counts.count(&[(1, 2)], 14, 1.0);
    }
    let prior = INFERENCE.0.prior.as_ref().unwrap();
    let shown = learned.shown(&counts, &inference).unwrap();
    let all = [[1, 0], [0, 1], [2, 0], [1, 1], [0, 2], [3, 0], [2, 1], [1, 2], [0, 3]];
    for (habits, two_off) in [(&learned.broad, 0.015..0.05), (&shown, 0.8..1.0)] {
        let probability = |counts: &[u32; 2]| {
            let actions: Vec<(u32, u32)> = (0..).zip(*counts).filter(|(_, count)| *count > 0).collect();
            prior.probability(counts) * habits.factor(&actions)
        };
        // The model has P(4 actions and more) beyond its devices, and this prior leaves out devices that are used.
        let total: f64 = all.iter().map(probability).sum();
        assert!((total - 1.0).abs() < 0.2, "{total}");
        assert!(two_off.contains(&(probability(&[0, 2]) / total)), "{}", probability(&[0, 2]) / total);
    }
}

#[test]
fn two_commands_show_other_messages_and_one_does_not() {
    let one = after([4, 4, 8, 4, 4, 5]);
    assert!(one.states()[1].probability() < 0.05);
    let two = after([4, 4, 8, 4, 4, 5, 9, 5]);
    assert!(two.states()[1].probability() > 0.7, "{:?}", two.states());
    assert_eq!(two.states()[1].since_ns, Some(6_000_000_000), "the first command that was longer");
    let back = after([4, 4, 8, 4, 4, 5, 9, 5, 5, 5, 4, 8, 4, 4, 8]);
    assert!(back.states()[0].probability() > 0.9, "{:?}", back.states());
    assert_eq!(back.states()[0].since_ns, Some(11_000_000_000));
}

#[test]
fn other_habits_are_not_taken_for_longer_messages() {
    // The household switches off only: 7 bytes, which are 4 and 3 more.
    let belief = after(std::iter::repeat_n(4, 30).chain([7; 60]));
    let [as_learned, longer] = [0, 3].map(|state: usize| belief.states()[state].probability());
    // From sizes alone both are possible, and none is certain at once.
    assert!(as_learned + longer > 0.98);
    let habits = after([7, 14, 7, 7, 21, 11, 7, 14, 14, 7, 18, 7, 14, 7, 7, 21, 14, 7, 11, 7].repeat(3));
    assert!(habits.states()[0].probability() > 0.95, "{:?}", habits.states());
    let learned = habits.states()[0].with(HabitKind::Learned);
    assert!(learned < 0.02, "{learned}");
    assert!(habits.shown(0).unwrap().factor(&[(1, 1)]) > 3.0 * habits.shown(0).unwrap().factor(&[(0, 1)]));
}

#[test]
fn odd_commands_here_and_there_change_nothing() {
    let belief = after((0..200).map(|number| if number % 10 == 9 { 10 } else { 4 }));
    assert!(belief.states()[0].probability() > 0.9, "{:?}", belief.states());
}

#[test]
fn commands_that_nothing_explains_say_nothing() {
    let belief = after([1000; 50]);
    assert!(belief.states()[0].probability() > 0.97);
}

/// P(way) for each sequence of pairs of states and habits, summed by where it ends.
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
        let kinds = HabitKind::ALL.len();
        // Of strange messages at last, one for each state.
        let own = LONGER.len() * kinds;
        let number = own + LONGER.len();
        let at_first = hypotheses.at_first();
        let first = |from: usize| match from {
            _ if from < kinds => (1.0 - STRANGE_AT_FIRST) * at_first[from],
            _ if from < own => 0.0,
            _ => STRANGE_AT_FIRST / LONGER.len() as f64,
        };
        let start: Vec<f64> = (0..number).map(first).collect();
        let (mut belief, mut likelihoods) = (Belief::default(), Vec::new());
        for (second, bytes) in (1..).zip(&bytes) {
            let command = possible(&hypotheses, &inference, *bytes);
            let odd = ODD * command.broad.iter().sum::<f64>() / LONGER.len() as f64;
            // By the habits that the commands before have shown.
            let found = command.likelihoods(&belief);
            let predicted = hypotheses.predicted(&belief, second);
            let strange = predicted.iter().zip(&found).map(|(state, found)| of_other_habits(&state.by_kind, found));
            let all = found.iter().flatten().copied().chain(strange);
            likelihoods.push(all.map(|own| (1.0 - ODD) * own + odd).collect());
            hypotheses.observe(&mut belief, predicted, &command, &inference);
        }
        let transition = |from: usize, to: usize| {
            // Habits first, then messages, which keep the habits.
            if from >= own || to >= own {
                let stays = if from == to { 1.0 - CHANGE } else { 0.0 };
                let remains = 1.0 - HABIT_CHANGE / kinds as f64;
                return if from.min(to) >= own { remains * (stays + CHANGE / LONGER.len() as f64) } else { 0.0 };
            }
            let arrives = CHANGE * hypotheses.arrivals[to / kinds];
            let is_same = from / kinds == to / kinds;
            let habit = HABIT_CHANGE / kinds as f64 + if from % kinds == to % kinds { 1.0 - HABIT_CHANGE } else { 0.0 };
            habit * (if is_same { 1.0 - CHANGE } else { 0.0 } + arrives)
        };
        let expected = by_all_ways(&start, transition, &likelihoods);
        for (at, expected) in expected.iter().enumerate() {
            let found = match at.checked_sub(own) {
                Some(state) => belief.states()[state].strange(),
                None => belief.states()[at / kinds].by_kind[at % kinds],
            };
            prop_assert!((found - expected).abs() < 1e-9);
        }
    }
}
