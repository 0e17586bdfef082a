//! Countermeasures against their definitions, over all commands of small homes that may share a record.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use sizeleak_audit::leakage::Learned;
use sizeleak_audit::padding::{
    CountermeasureEffect, CountermeasureError, Countermeasures, HomeTraffic, PaddingPolicy, ReplyForm, Sending,
};
use sizeleak_inference::channel::{EpsilonKnowledge, KeyFigures, Observer, Output};
use sizeleak_inference::space::{CommandSpace, Premises, PriorName};
use sizeleak_model::Model;
use support::joint::{Joint, Secret};

const A_DAY: f64 = 1000.0;

/// Kinds of device: how many there are, and which of the three actions they have, as bits.
#[derive(Debug, Clone)]
struct Home {
    kinds: Vec<(u32, u32)>,
    sizes: [u32; 3],
    /// How many replies of two classes each action sends.
    replies: [[u32; 2]; 3],
}

/// The probability of each secret with each output.
type JointOf<T> = BTreeMap<(u32, T), f64>;

impl Home {
    fn model(&self) -> Model {
        let mut text =
            "schema = 1\noverhead = 20\nk = 2\nstrength = 5.0\ntuples = [[26, 0, 3], [30, 1, 2], [34, 0, 4]]\n"
                .to_owned();
        let actions: Vec<usize> = (0..3).filter(|at| self.kinds.iter().any(|(_, bits)| bits >> at & 1 == 1)).collect();
        for action in &actions {
            write!(text, "[[action]]\nname = \"a{action}\"\nsize = {}\n", self.sizes[*action]).unwrap();
        }
        for (kind, (count, bits)) in self.kinds.iter().enumerate() {
            let own: Vec<String> = (0..3).filter(|at| bits >> at & 1 == 1).map(|at| format!("\"a{at}\"")).collect();
            write!(text, "[[device]]\nname = \"k{kind}\"\ncount = {count}\nactions = [{}]\n", own.join(", ")).unwrap();
        }
        write!(
            text,
            "[replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.02\n\
             [single_replies]\nmerged = 0.0\nshared = 0\nforeign = 0.0\nforeign_sizes = []\nper_command = [1, 0]\n\
             per_action = {:?}\n\
             class = [{{ missing = 0.1, unseen = 0.0, sizes = [[9, 5]] }}, \
             {{ missing = 0.2, unseen = 0.0, sizes = [[7, 3], [8, 1]] }}]\n\
             [learned]\nmethod = \"robust\"\ncommands = 10\nversion = \"0.1.0\"\nbasis = \"wire\"\n",
            actions.iter().map(|action| self.replies[*action]).collect::<Vec<_>>()
        )
        .unwrap();
        Model::from_toml(&text).unwrap()
    }

    fn traffic(&self) -> HomeTraffic {
        let model = self.model();
        HomeTraffic::new(&space(&model), &model, EpsilonKnowledge::Distribution, A_DAY).unwrap()
    }

    fn joint(&self, secret: Secret, observer: Observer) -> JointOf<Output> {
        let model = self.model();
        let joint = Joint::new(&space(&model), &model, secret, observer, EpsilonKnowledge::Distribution);
        let mut entries = BTreeMap::new();
        for (secret, output, probability) in joint.unwrap().unwrap().entries {
            *entries.entry((secret, output)).or_default() += probability;
        }
        entries
    }

    /// How probable each size of any command is.
    fn sizes(&self) -> Vec<(u64, f64)> {
        let mut sizes: BTreeMap<u64, f64> = BTreeMap::new();
        for ((_, output), probability) in self.joint(Secret::Command, Observer::Sizes) {
            *sizes.entry(output.size).or_default() += probability;
        }
        sizes.into_iter().collect()
    }

    /// What is seen of each secret in records with one of these sums of other commands' sizes.
    fn in_records(&self, secret: Secret, others: &[(u64, f64)], policy: &PaddingPolicy) -> JointOf<u64> {
        let mut joint = BTreeMap::new();
        for ((secret, output), probability) in self.joint(secret, Observer::Sizes) {
            for (other, share) in others {
                let sent = policy.padded(output.size + other).unwrap();
                *joint.entry((secret, sent)).or_default() += probability * share;
            }
        }
        joint
    }
}

fn space(model: &Model) -> CommandSpace {
    CommandSpace::new(model, &Premises { prior: PriorName::Devices, decay: Some(0.6) }).unwrap()
}

/// The sums of all sequences of so many sizes, with their probabilities.
fn sums(sizes: &[(u64, f64)], number: u32) -> Vec<(u64, f64)> {
    let mut sums = BTreeMap::from([(0, 1.0)]);
    for _ in 0..number {
        let mut longer = BTreeMap::new();
        for (sum, share) in &sums {
            for (size, probability) in sizes {
                *longer.entry(sum + size).or_default() += share * probability;
            }
        }
        sums = longer;
    }
    sums.into_iter().collect()
}

fn expected(sizes: &[(u64, f64)], of: impl Fn(u64) -> u64) -> f64 {
    sizes.iter().map(|(size, share)| of(*size) as f64 * share).sum()
}

/// V₀, V, I, the greatest posterior and the smallest set by their definitions, where `is_meant` says which secrets are to be
/// named. The worst cases are those of outputs of at least this probability.
fn by_definition<T: Ord + Clone>(joint: &JointOf<T>, least: f64, is_meant: impl Fn(u32) -> bool) -> [f64; 5] {
    let (mut of_secret, mut of_output) = (BTreeMap::new(), BTreeMap::new());
    for ((secret, output), probability) in joint {
        *of_secret.entry(*secret).or_insert(0.0) += probability;
        *of_output.entry(output.clone()).or_insert(0.0) += probability;
    }
    let mut best: BTreeMap<T, f64> = BTreeMap::new();
    let mut sets: BTreeMap<T, f64> = BTreeMap::new();
    let (mut information, mut worst) = (0.0, 0.0_f64);
    for ((secret, output), probability) in joint {
        information += probability * (probability / of_secret[secret] / of_output[output]).log2();
        if of_output[output] >= least {
            *sets.entry(output.clone()).or_default() += 1.0;
        }
        if is_meant(*secret) {
            let best = best.entry(output.clone()).or_default();
            *best = best.max(*probability);
            worst = if of_output[output] >= least { worst.max(probability / of_output[output]) } else { worst };
        }
    }
    let guessing = of_secret.iter().filter(|(secret, _)| is_meant(**secret)).map(|(_, share)| *share);
    let smallest = sets.values().copied().fold(f64::INFINITY, f64::min);
    [guessing.fold(0.0, f64::max), best.values().sum(), information, worst, smallest]
}

fn of_leak(figures: &KeyFigures) -> [f64; 5] {
    let KeyFigures { guessing, named, information_bits, worst_posterior, smallest_set, .. } = *figures;
    [guessing, named, information_bits, worst_posterior, smallest_set]
}

fn assert_near(one: [f64; 5], other: [f64; 5]) {
    assert!(one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-8), "{one:?} is not {other:?}");
}

/// Each secret of a leak with its figures.
fn of_secrets(leak: &Learned<KeyFigures>) -> [(Secret, &KeyFigures); 3] {
    [(Secret::Command, &leak.command), (Secret::Number, &leak.number), (Secret::Kinds, leak.kinds.as_ref().unwrap())]
}

fn effect(home: &Home, change: impl FnOnce(&mut Countermeasures)) -> CountermeasureEffect {
    let mut countermeasures = Countermeasures::NONE;
    change(&mut countermeasures);
    home.traffic().effect(&countermeasures).unwrap()
}

fn homes(most_kinds: usize) -> impl Strategy<Value = Home> {
    let kinds = prop::collection::vec((1..3_u32, 1..8_u32), 1..=most_kinds);
    let replies = || [0..2_u32, 0..2_u32];
    (kinds, [1..7_u32, 1..7_u32, 1..7_u32], [replies(), replies(), replies()])
        .prop_map(|(kinds, sizes, replies)| Home { kinds, sizes, replies })
}

fn policies() -> impl Strategy<Value = PaddingPolicy> {
    prop_oneof![Just(PaddingPolicy::None), (2..20_u64).prop_map(|bytes| PaddingPolicy::Multiple { bytes })]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn batches_are_all_ways_to_send_commands_together(home in homes(2), commands in 2..4_u32, policy in policies()) {
        let found = effect(&home, |batches| {
            (batches.sending, batches.policy) = (Sending::Batches(commands), policy.clone());
        });
        let sizes = home.sizes();
        for (secret, figures) in of_secrets(&found.by_size) {
            let joint = home.in_records(secret, &sums(&sizes, commands - 1), &policy);
            assert_near(of_leak(figures), by_definition(&joint, 0.0, |_| true));
        }
        let records = sums(&sizes, commands);
        let added = expected(&records, |bytes| policy.padded(bytes).unwrap() - bytes) / f64::from(commands);
        prop_assert!((found.cost.added_bytes - added).abs() < 1e-9);
        let messages = A_DAY * (1.0 / f64::from(commands) - 1.0);
        prop_assert!((found.cost.added_messages_a_day - messages).abs() < 1e-9);
    }

    #[test]
    fn commands_of_an_interval_are_all_numbers_of_them(bits in 1..8_u32, sizes in [1..7_u32, 1..7_u32, 1..7_u32],
        policy in policies()) {
        let home = Home { kinds: vec![(1, bits)], sizes, replies: [[1, 0]; 3] };
        let others = 0.05;
        let found = effect(&home, |delay| {
            (delay.sending, delay.policy) = (Sending::Every(others * 86_400.0 / A_DAY), policy.clone());
        });
        let sizes = home.sizes();
        let (mut mixture, mut added, mut records) = (Vec::new(), 0.0, 0.0);
        let mut probability = f64::exp(-others);
        for number in 0..11 {
            mixture.extend(sums(&sizes, number).iter().map(|(sum, share)| (*sum, share * probability)));
            let padding = expected(&sums(&sizes, number + 1), |bytes| policy.padded(bytes).unwrap() - bytes);
            added += probability * padding / f64::from(number + 1);
            records += probability / f64::from(number + 1);
            probability *= others / f64::from(number + 1);
        }
        for (secret, figures) in of_secrets(&found.by_size) {
            let joint = home.in_records(secret, &mixture, &policy);
            assert_near(of_leak(figures), by_definition(&joint, 1e-9, |_| true));
        }
        prop_assert!((found.cost.added_bytes - added).abs() < 1e-7);
        prop_assert!((found.cost.added_messages_a_day - A_DAY * (records - 1.0)).abs() < 1e-6);
    }

    #[test]
    fn dummies_like_commands_are_best_and_all_messages_that_may_be_one(home in homes(2), tenths in 1..10_u32,
        draws in prop::collection::vec(0.01..1.0_f64, 128)) {
        let dummies = f64::from(tenths) / 10.0;
        let found = effect(&home, |countermeasures| countermeasures.dummies = dummies);
        let sizes = home.sizes();
        let alike: Vec<(u64, f64)> = sizes.clone();
        let all: f64 = draws.iter().take(sizes.len()).sum();
        let unlike: Vec<(u64, f64)> = sizes.iter().zip(&draws).map(|((size, _), draw)| (*size, draw / all)).collect();
        for (secret, figures) in of_secrets(&found.by_size) {
            let with = |of_dummies: &[(u64, f64)]| {
                let mut joint: JointOf<u64> = home.in_records(secret, &[(0, 1.0)], &PaddingPolicy::None);
                for probability in joint.values_mut() {
                    *probability *= 1.0 - dummies;
                }
                joint.extend(of_dummies.iter().map(|(size, share)| ((u32::MAX, *size), dummies * share)));
                joint
            };
            let is_real = |secret| secret != u32::MAX;
            let told = |joint: &JointOf<u64>| {
                let mut of_output: BTreeMap<u64, [f64; 2]> = BTreeMap::new();
                for ((secret, size), probability) in joint {
                    of_output.entry(*size).or_default()[usize::from(is_real(*secret))] += probability;
                }
                of_output.values().map(|[dummy, real]| dummy.max(*real)).sum::<f64>()
            };
            let (alike, unlike) = (with(&alike), with(&unlike));
            let best = by_definition(&alike, 0.0, is_real);
            assert_near(of_leak(figures), best);
            prop_assert!((told(&alike) - found.real_named).abs() < 1e-9);
            let other = by_definition(&unlike, 0.0, is_real);
            prop_assert!((other[1] - best[1]).abs() < 1e-9, "naming is the same");
            prop_assert!(other[2] > best[2] - 1e-9 && told(&unlike) > found.real_named - 1e-9);
        }
    }

    #[test]
    fn replies_of_one_size_leave_their_number_and_one_reply_leaves_nothing(home in homes(3), policy in policies()) {
        let of = |form| effect(&home, |countermeasures| {
            (countermeasures.replies, countermeasures.policy) = (form, policy.clone());
        });
        let (one_size, one_reply, as_they_are) =
            (of(ReplyForm::OneSize), of(ReplyForm::OneReply), of(ReplyForm::AsTheyAre));
        prop_assert_eq!(one_reply.with_replies.as_ref(), Some(&one_reply.by_size));
        let actions = 0..3_usize;
        let used = actions.filter(|at| home.kinds.iter().any(|(_, bits)| bits >> at & 1 == 1));
        let mut numbers: Vec<u32> = used.map(|action| home.replies[action].iter().sum()).collect();
        numbers.dedup();
        for (secret, figures) in of_secrets(one_size.with_replies.as_ref().unwrap()) {
            let observer = if numbers.len() == 1 { Observer::ReplyCount } else { Observer::Replies };
            let mut joint: JointOf<(u64, u32)> = BTreeMap::new();
            for ((secret, Output { size, replies }), probability) in home.joint(secret, observer) {
                let seen = (policy.padded(size).unwrap(), replies.iter().sum());
                *joint.entry((secret, seen)).or_default() += probability;
            }
            assert_near(of_leak(figures), by_definition(&joint, 0.0, |_| true));
        }
        let joint = home.joint(Secret::Command, Observer::Replies);
        let number = |weights: [f64; 2]| -> f64 {
            let of = |output: &Output| output.replies.iter().zip(weights).map(|(times, weight)| f64::from(*times) * weight).sum::<f64>();
            joint.iter().map(|((_, output), probability)| probability * of(output)).sum()
        };
        let (replies, bytes) = (number([1.0, 1.0]), number([9.0, 7.25]));
        let added = |effect: &CountermeasureEffect| effect.cost.added_reply_bytes.unwrap();
        prop_assert!((added(&one_size) - (9.0 * replies - bytes)).abs() < 1e-9);
        prop_assert!((added(&one_reply) - (9.0 - bytes)).abs() < 1e-9);
        prop_assert!(added(&as_they_are).abs() < 1e-12);
        prop_assert!((one_reply.cost.added_replies_a_day.unwrap() - A_DAY * (1.0 - replies)).abs() < 1e-6);
    }
}

#[test]
fn dummies_fill_records_too_and_cost_their_padding() {
    let home = Home { kinds: vec![(2, 7)], sizes: [3, 4, 6], replies: [[1, 0]; 3] };
    let policy = PaddingPolicy::Multiple { bytes: 8 };
    let both = |dummies| {
        effect(&home, |countermeasures| {
            (countermeasures.sending, countermeasures.dummies) = (Sending::Every(20.0), dummies);
            countermeasures.policy = policy.clone();
        })
    };
    // Twice as many commands are sent in an interval as without dummies: as many as in one twice as long.
    let (with, without) = (
        both(0.5),
        effect(&home, |delay| {
            (delay.sending, delay.policy) = (Sending::Every(40.0), policy.clone());
        }),
    );
    assert!((with.by_size.command.named - 0.5 * without.by_size.command.named).abs() < 1e-12);
    let bytes = home.traffic().command_bytes();
    assert!((with.cost.added_bytes - (2.0 * (bytes + without.cost.added_bytes) - bytes)).abs() < 1e-9);
    assert!((with.cost.mean_delay_seconds - 10.0).abs() < 1e-12);
}

#[test]
fn commands_that_come_at_random_times_share_records_and_wait_as_is_said() {
    let home = Home { kinds: vec![(1, 3)], sizes: [3, 4, 6], replies: [[1, 0]; 3] };
    let interval = 60.0;
    let cost = effect(&home, |delay| delay.sending = Sending::Every(interval)).cost;
    let mut random = ChaCha20Rng::seed_from_u64(25);
    let (mut time, mut wait, mut records, mut last) = (0.0, 0.0, 0_u32, -1.0);
    let commands = 200_000_u32;
    for _ in 0..commands {
        time += -(1.0 - random.random::<f64>()).ln() * 86_400.0 / A_DAY;
        let sent = (time / interval).ceil();
        wait += sent * interval - time;
        records += u32::from(sent > last);
        last = sent;
    }
    let (per_command, waited) = (f64::from(records) / f64::from(commands), wait / f64::from(commands));
    assert!((cost.added_messages_a_day / A_DAY + 1.0 - per_command).abs() < 0.005, "{per_command}");
    assert!((cost.mean_delay_seconds - waited).abs() < 0.2, "{waited}");
    assert_eq!(cost.most_delay_seconds, Some(interval));
}

#[test]
fn replies_to_commands_of_a_record_are_bounded_by_what_each_says_alone() {
    let home = Home { kinds: vec![(2, 7)], sizes: [3, 4, 6], replies: [[1, 0], [0, 1], [1, 1]] };
    let alone = effect(&home, |_| {}).with_replies.unwrap();
    let batch = effect(&home, |batches| batches.sending = Sending::Batches(2));
    let bound = batch.with_replies.unwrap();
    assert!(alone.is_exact && !bound.is_exact && bound.command == alone.command);
    assert!(batch.by_size.command.named < alone.command.named);
}

#[test]
fn countermeasures_that_cannot_be_summed_over_are_refused() {
    let home = Home { kinds: vec![(1, 3)], sizes: [3, 4, 6], replies: [[1, 0]; 3] };
    let effect = |sending| home.traffic().effect(&Countermeasures { sending, ..Countermeasures::NONE });
    assert!(matches!(effect(Sending::Every(86_400.0)), Err(CountermeasureError::Crowded(others)) if others > 999.0));
    let wide = Home { kinds: vec![(1, 3)], sizes: [3, 70_000, 6], replies: [[1, 0]; 3] };
    let refused = wide.traffic().effect(&Countermeasures { sending: Sending::Batches(4), ..Countermeasures::NONE });
    assert_eq!(refused, Err(CountermeasureError::TooManySizes));
}
