use sizeleak_frame::SingleReply;
use sizeleak_inference::{Belief, MAX_BY_ONE_ACTION};
use sizeleak_model::SeenReplies;

use super::*;

/// Up to three actions, whose replies have 20 and 25 bytes.
const MODEL: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 9]]\n\
    [[action]]\nname = \"on\"\nsize = 4\n[[action]]\nname = \"off\"\nsize = 7\n\
    [[device]]\nname = \"lamp\"\ncount = 3\nactions = [\"on\", \"off\"]\n\
    [prior]\nnumbers = [0.6, 0.3, 0.1]\ndecay = 0.01\nshares = [0.4, 0.6]\nconcentration = 3.0\n\
    [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.01\nsurplus = 0.01\n\
    [learned]\nmethod = \"robust\"\ncommands = 30\nversion = \"0\"\nbasis = \"wire\"\n\
    [single_replies]\nmerged = 0.05\nshared = 2\nforeign = 0.01\nforeign_sizes = []\n\
    per_command = [0, 0]\nper_action = [[1, 0], [0, 1]]\n\
    [[single_replies.class]]\nmissing = 0.02\nunseen = 0.0\nsizes = [[20, 20]]\n\
    [[single_replies.class]]\nmissing = 0.05\nunseen = 0.0\nsizes = [[25, 20]]\n";

const EPSILONS: [WeightedEpsilon; 2] =
    [WeightedEpsilon { epsilon: 0, weight: 0.75 }, WeightedEpsilon { epsilon: -1, weight: 0.25 }];

/// All multisets of up to three actions.
const ALL: [[u32; 2]; 9] = [[1, 0], [0, 1], [2, 0], [1, 1], [0, 2], [3, 0], [2, 1], [1, 2], [0, 3]];

fn command(size: u64, replies: &[u32]) -> Command {
    Command {
        time_ns: 0,
        end_ns: 0,
        flow: 1,
        size,
        records: 1,
        replies: replies.len() as u32,
        reply_bytes: replies.iter().map(|length| u64::from(*length)).sum(),
        single_replies: replies.iter().map(|length| SingleReply { after_ns: 0, length: *length }).collect(),
        ..Command::default()
    }
}

/// P(size, replies) for a shift, by a sum over all multisets.
fn listed(model: &Model, size: i64, replies: &[u32], state: ShiftState) -> f64 {
    let prior = model.prior.as_ref().unwrap();
    let weight = |counts: &[u32; 2]| -> f64 {
        let each = counts.iter().enumerate().map(|(at, count)| (1..=*count).map(move |nth| prior.ln_next(at, nth)));
        each.flatten().sum::<f64>().exp()
    };
    let classes = model.single_replies.clone().unwrap().longer_by(state.reply_bytes);
    let ranges: Vec<[i64; 2]> = replies.iter().map(|size| [i64::from(*size); 2]).collect();
    let seen = SeenReplies::new(&classes, &ranges);
    let of = |counts: &[u32; 2]| {
        let number: u32 = counts.iter().sum();
        let all: f64 = ALL.iter().filter(|other| other.iter().sum::<u32>() == number).map(weight).sum();
        let sum = i64::from(counts[0] * 4 + counts[1] * 7);
        let by_action = state.action.map_or(0, |action| state.bytes * i64::from(counts[action as usize]));
        if by_action.abs() > MAX_BY_ONE_ACTION {
            return 0.0;
        }
        let epsilon = size - 60 - state.of_commands() - by_action - sum;
        let of_size = EPSILONS.iter().find(|value| value.epsilon == epsilon).map_or(0.0, |value| value.weight);
        let of_replies = seen.ln_likelihood(&classes.class_counts([(0, counts[0]), (1, counts[1])])).exp();
        prior.ln_number(number).exp() * weight(counts) / all * of_size * of_replies
    };
    ALL.iter().map(of).sum()
}

#[test]
fn likelihoods_are_those_of_all_actions_together() {
    let model = Model::from_toml(MODEL).unwrap();
    let mut evidence = ShiftEvidence::new(&model).unwrap();
    let states = evidence.states.clone();
    for size in 58..90 {
        for replies in [&[20][..], &[25, 20], &[26, 31], &[55], &[23], &[]] {
            let found = evidence.possible(&model, &command(size, replies), [size.cast_signed(); 2], &EPSILONS);
            let is_known = found.is_some();
            let found = found.map_or_else(|| vec![0.0; states.len()], |found| found.learned.clone());
            let expected: Vec<f64> =
                states.iter().map(|state| listed(&model, size.cast_signed(), replies, *state)).collect();
            // The unit is that of the likeliest one. Far states are only asked where the replies speak for them; else they
            // are as likely as near ones, or not at all.
            let likeliest = found.iter().zip(&expected).find(|(found, _)| **found >= 1.0);
            let greatest = likeliest.map_or(f64::MIN_POSITIVE, |(_, own)| *own);
            let near = || states.iter().zip(&expected).filter(|(state, _)| state.is_near()).map(|(_, own)| *own);
            let greatest_near = near().fold(0.0, f64::max);
            let mean = near().sum::<f64>() / near().count() as f64 / greatest;
            for ((found, expected), state) in found.iter().zip(&expected).zip(&states) {
                let difference = found - expected / greatest;
                if state.is_far() {
                    let is_any = [difference, *found, found - mean].iter().any(|difference| difference.abs() < 1e-5);
                    assert!(is_any, "{size} {replies:?} {state:?} {found} {expected} {greatest}");
                    continue;
                }
                // Replies that are longer, or unlikely ones, may leave one action out before it is looked at.
                let are_plain = is_known && greatest_near > 1e-4 && [&[20][..], &[25, 20]].contains(&replies);
                let is_exact = state.action.is_none() || are_plain;
                // What is not listed counts as if it had no such action; odd commands are more frequent.
                let most = if state.action.is_none() { 1e-5 } else { 1e-4 };
                assert!(
                    difference < most && (!is_exact || difference > -most),
                    "{size} {replies:?} {state:?} {found} {expected} {greatest}"
                );
            }
        }
    }
}

#[test]
fn kinds_and_flat_priors_give_no_evidence() {
    let mut model = Model::from_toml(MODEL).unwrap();
    model.prior = None;
    assert!(ShiftEvidence::new(&model).is_none());
}

#[test]
fn ranges_and_huge_sizes_say_nothing() {
    let model = Model::from_toml(MODEL).unwrap();
    let mut evidence = ShiftEvidence::new(&model).unwrap();
    for sizes in [[0, i64::MAX], [i64::MAX, 0], [70, 71], [i64::MAX; 2]] {
        assert!(evidence.possible(&model, &command(9, &[]), sizes, &EPSILONS).is_none());
    }
}

#[test]
fn a_command_whose_replies_are_not_known_says_nothing_of_a_longer_action() {
    let model = Model::from_toml(&MODEL.replace("size = 4", "size = 40").replace("size = 7", "size = 47")).unwrap();
    let mut evidence = ShiftEvidence::new(&model).unwrap();
    let of_action = |state: &ShiftState| (state.action, state.bytes) == (Some(1), 2);
    let longer = evidence.states.iter().position(of_action).unwrap();
    let mut belief = Belief::default();
    let mut second = 0;
    let mut see = |belief: &mut Belief, command: &Command| {
        second += 1;
        let found = evidence.possible(&model, command, [command.size.cast_signed(); 2], &EPSILONS);
        let ShiftEvidence { hypotheses, inference, .. } = &evidence;
        hypotheses.predict(belief, second, inference);
        hypotheses.observe(belief, &found.unwrap(), inference);
    };
    // `off` has 49 bytes.
    let sent: [(u64, &[u32]); 4] = [(100, &[20]), (109, &[25]), (149, &[20, 25]), (158, &[25, 25])];
    for (size, replies) in sent.iter().cycle().take(40) {
        see(&mut belief, &command(*size, replies));
    }
    assert!(belief.states[longer].probability > 0.99);
    for _ in 0..3 {
        see(&mut belief, &Command { overlapped: true, ..command(149, &[20, 25]) });
        assert!(belief.states[longer].probability > 0.99, "{:?}", belief.states);
    }
}

#[test]
fn arrivals_are_a_distribution_and_states_are_distinct() {
    for changes in [COMMANDS, COMMANDS_AND_REPLIES] {
        let (states, arrivals) = shift_states(changes, &[4, 7, 30]);
        assert!((arrivals.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        assert_eq!(arrivals.len(), states.len());
        let distinct: std::collections::BTreeSet<_> = states.iter().collect();
        assert_eq!((distinct.len(), states[0]), (states.len(), ShiftState { bytes: 0, reply_bytes: 0, action: None }));
    }
}
