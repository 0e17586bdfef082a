//! Audits of small homes against their definitions, computed over all ways to give actions to devices.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use proptest::prelude::*;
use sizeleak_inference::channel::{Channel, ChannelRow, EpsilonKnowledge, Observation, Observer};
use sizeleak_inference::space::{CommandGroup, CommandSpace, Premises, PriorName, SecretSums};
use sizeleak_model::{EpsilonDistribution, Model, RecurringCommand};
use support::joint::{Joint, Secret, rows_of_groups};

/// Kinds of device: how many there are, and which of the four actions they have, as bits.
#[derive(Debug, Clone)]
struct Home {
    kinds: Vec<(u32, u32)>,
    sizes: [u32; 4],
    decay: f64,
    /// Whether the first action has a second size.
    varies: bool,
    /// How many replies of two classes each action sends.
    replies: [[u32; 2]; 4],
}

/// What is seen of a command: its size and replies.
type Seen = (u64, Vec<u32>);

impl Home {
    fn model(&self) -> Model {
        let mut text = "schema = 1\noverhead = 20\nk = 2\nstrength = 5.0\n\
            tuples = [[26, 0, 3], [30, 1, 2], [34, 0, 4], [35, 2, 1]]\n"
            .to_owned();
        let actions = self.actions();
        for action in &actions {
            let size = self.sizes[*action];
            write!(text, "[[action]]\nname = \"a{action}\"\nsize = {size}\n").unwrap();
            if self.varies && *action == actions[0] {
                writeln!(text, "sizes = [[{size}, 0.75], [{}, 0.25]]", size + 2).unwrap();
            }
        }
        for (kind, (count, bits)) in self.kinds.iter().enumerate() {
            let own: Vec<String> = (0..4).filter(|at| bits >> at & 1 == 1).map(|at| format!("\"a{at}\"")).collect();
            write!(text, "[[device]]\nname = \"k{kind}\"\ncount = {count}\nactions = [{}]\n", own.join(", ")).unwrap();
        }
        let share = 1.0 / actions.len() as f64;
        let shares: Vec<String> = actions.iter().map(|_| share.to_string()).collect();
        write!(text,
            "[prior]\nnumbers = [0.4, 0.3]\ndecay = 0.5\nshares = [{}]\nconcentration = 3.0\n\
             [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.05\nsurplus = 0.02\n\
             [single_replies]\nmerged = 0.01\nshared = 0\nforeign = 0.0\nforeign_sizes = []\nper_command = [1, 0]\n\
             per_action = {:?}\n\
             class = [{{ missing = 0.1, unseen = 0.0, sizes = [[9, 5]] }}, {{ missing = 0.2, unseen = 0.0, sizes = [[7, 5]] }}]\n\
             [learned]\nmethod = \"robust\"\ncommands = 10\nversion = \"0.1.0\"\nbasis = \"wire\"\n",
            shares.join(", "),
            actions.iter().map(|action| self.replies[*action]).collect::<Vec<_>>()
        ).unwrap();
        Model::from_toml(&text).unwrap()
    }

    /// The actions that some device has.
    fn actions(&self) -> Vec<usize> {
        (0..4).filter(|action| self.kinds.iter().any(|(_, bits)| bits >> action & 1 == 1)).collect()
    }

    /// Every way to give each device one of its actions or none: the counts of the actions, the kinds that are used, and
    /// the probability of these actions given these devices.
    fn assignments(&self) -> Vec<(Vec<u32>, BTreeSet<usize>, f64)> {
        let actions = self.actions();
        let mut found = vec![(vec![0; actions.len()], BTreeSet::new(), 1.0)];
        for (kind, (count, bits)) in self.kinds.iter().enumerate() {
            let own: Vec<usize> = (0..actions.len()).filter(|at| bits >> actions[*at] & 1 == 1).collect();
            for _ in 0..*count {
                let with = |(counts, kinds, probability): &(Vec<u32>, BTreeSet<usize>, f64)| {
                    let mut ways = vec![(counts.clone(), kinds.clone(), *probability)];
                    for action in &own {
                        let (mut counts, mut kinds) = (counts.clone(), kinds.clone());
                        counts[*action] += 1;
                        kinds.insert(kind);
                        ways.push((counts, kinds, probability / own.len() as f64));
                    }
                    ways
                };
                found = found.iter().flat_map(with).collect();
            }
        }
        found.retain(|(counts, ..)| counts.iter().sum::<u32>() > 0);
        found
    }

    /// The probability of each command with each set of kinds.
    fn prior(&self, kind: PriorName) -> BTreeMap<(Vec<u32>, BTreeSet<usize>), f64> {
        let assignments = self.assignments();
        let mut prior = BTreeMap::new();
        let devices: u32 = self.kinds.iter().map(|(count, _)| count).sum();
        if kind == PriorName::Devices {
            let numbers: f64 = (1..=devices).map(|n| self.decay.powi(n.cast_signed())).sum();
            // Each choice of so many devices is as likely.
            let choices = |n: u32| (0..n).map(|at| f64::from(devices - at) / f64::from(at + 1)).product::<f64>();
            for (counts, kinds, probability) in assignments {
                let n: u32 = counts.iter().sum();
                let of_number = self.decay.powi(n.cast_signed()) / numbers;
                *prior.entry((counts, kinds)).or_insert(0.0) += of_number / choices(n) * probability;
            }
            return prior;
        }
        let mut ways: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
        for (counts, ..) in &assignments {
            *ways.entry(counts.clone()).or_default() += 1.0;
        }
        let commands = ways.len() as f64;
        for (counts, kinds, _) in assignments {
            let share = 1.0 / ways[&counts] / commands;
            *prior.entry((counts, kinds)).or_insert(0.0) += share;
        }
        prior
    }
}

/// What is seen of each command, from the model's distributions.
fn seen(model: &Model, counts: &[u32], observer: Observer) -> Vec<(Seen, f64)> {
    let epsilon = EpsilonDistribution::new(&model.neighbours, model.smoothing);
    let mut explained = vec![(model.overhead, 1.0)];
    for (action, count) in model.actions.iter().zip(counts) {
        for _ in 0..*count {
            let longer = |(size, share): &(i64, f64)| {
                let (size, share) = (*size, *share);
                action.sizes().map(move |(added, of_size)| (size + added, share * of_size)).collect::<Vec<_>>()
            };
            explained = explained.iter().flat_map(longer).collect();
        }
    }
    let replies = replies(model, counts, observer);
    let mut found = Vec::new();
    for (explained, share) in explained {
        for value in epsilon.given_explained(explained) {
            let size = (explained + value.epsilon).unsigned_abs();
            let seen = |(seen, of_replies): &(Vec<u32>, f64)| ((size, seen.clone()), share * value.weight * of_replies);
            found.extend(replies.iter().map(seen));
        }
    }
    found
}

fn numbers_differ(model: &Model) -> bool {
    let sent = &model.single_replies.as_ref().unwrap().per_action;
    sent.iter().map(|sent| sent.iter().sum::<u32>()).collect::<BTreeSet<u32>>().len() > 1
}

/// What is seen of the replies to a command.
fn replies(model: &Model, counts: &[u32], observer: Observer) -> Vec<(Vec<u32>, f64)> {
    let n = counts.iter().sum();
    match observer {
        Observer::Sizes => vec![(Vec::new(), 1.0)],
        // Where actions send different numbers, each reply is there or missing.
        Observer::ReplyCount if numbers_differ(model) => {
            let apart = replies(model, counts, Observer::Replies);
            apart.into_iter().map(|(seen, share)| (vec![seen.iter().sum()], share)).collect()
        }
        Observer::ReplyCount => {
            let all: f64 = (0..200).map(|replies| model.replies.likelihood(replies, n)).sum();
            let counts = (0..60).map(|count| (vec![count], model.replies.likelihood(count, n) / all));
            // Rarer ones change no figure by as much as figures may differ.
            counts.filter(|(_, share)| *share > 1e-15).collect()
        }
        Observer::Replies => {
            let replies = model.single_replies.as_ref().unwrap();
            let mut found = vec![(Vec::new(), 1.0)];
            for (class, sent) in replies.classes.iter().zip(replies.class_counts(counts.iter().copied().enumerate())) {
                // Each reply is there or missing.
                let mut of_class = vec![1.0];
                for _ in 0..sent {
                    let there = |at: usize| of_class.get(at).copied().unwrap_or(0.0);
                    let next = |at: usize| {
                        let before = if at > 0 { there(at - 1) } else { 0.0 };
                        there(at) * class.missing + before * (1.0 - class.missing)
                    };
                    of_class = (0..=of_class.len()).map(next).collect();
                }
                let with = |(seen, share): &(Vec<u32>, f64)| {
                    let longer = (0..)
                        .zip(&of_class)
                        .map(|(count, of_count)| ([&seen[..], &[count]].concat(), share * of_count));
                    longer.collect::<Vec<_>>()
                };
                found = found.iter().flat_map(with).collect();
            }
            found
        }
    }
}

/// The probability of each secret of a command, which depends on its counts and kinds, with what is seen.
fn joint<S: Ord + Clone>(
    prior: &BTreeMap<(Vec<u32>, BTreeSet<usize>), f64>,
    seen: &BTreeMap<&Vec<u32>, Vec<(Seen, f64)>>,
    secret: impl Fn(&Vec<u32>, &BTreeSet<usize>) -> S,
) -> BTreeMap<(S, Seen), f64> {
    // What is seen depends on the counts alone.
    let mut of_counts: BTreeMap<(&Vec<u32>, S), f64> = BTreeMap::new();
    for ((counts, used), probability) in prior {
        *of_counts.entry((counts, secret(counts, used))).or_default() += probability;
    }
    let mut joint = BTreeMap::new();
    for ((counts, secret), probability) in of_counts {
        for (output, share) in &seen[counts] {
            *joint.entry((secret.clone(), output.clone())).or_default() += probability * share;
        }
    }
    joint
}

/// V₀, V, I(A; T) and Σ max C, by their definitions.
fn figures<S: Ord + Clone>(joint: &BTreeMap<(S, Seen), f64>) -> [f64; 4] {
    let mut of_secret: BTreeMap<S, f64> = BTreeMap::new();
    let mut of_output: BTreeMap<Seen, f64> = BTreeMap::new();
    for ((secret, output), probability) in joint {
        *of_secret.entry(secret.clone()).or_default() += probability;
        *of_output.entry(output.clone()).or_default() += probability;
    }
    let mut greatest: BTreeMap<Seen, [f64; 2]> = BTreeMap::new();
    let mut information = 0.0;
    for ((secret, output), probability) in joint.iter().filter(|(_, probability)| **probability > 0.0) {
        let likelihood = probability / of_secret[secret];
        let [best, likeliest] = greatest.entry(output.clone()).or_default();
        (*best, *likeliest) = (best.max(*probability), likeliest.max(likelihood));
        information += probability * (likelihood / of_output[output]).log2();
    }
    let sum = |at: usize| greatest.values().map(|pair| pair[at]).sum();
    [of_secret.values().copied().fold(0.0, f64::max), sum(0), information, sum(1)]
}

fn of_channel(channel: &Channel) -> [f64; 4] {
    let measures = channel.measures();
    [measures.guessing, measures.named, measures.information_bits, measures.capacity]
}

/// The channel of commands whose observer sees their size.
fn of_groups(groups: &[CommandGroup]) -> Channel {
    let mut by_bytes: BTreeMap<u64, SecretSums> = BTreeMap::new();
    for CommandGroup { bytes, commands, probability } in groups {
        by_bytes.entry(*bytes).or_insert(SecretSums::NONE).add(&SecretSums::equal(*commands, *probability));
    }
    let row = |(output, secrets)| ChannelRow { secrets, outputs: vec![(output, 1.0)] };
    Channel { outputs: by_bytes.len(), rows: (0..).zip(by_bytes.into_values()).map(row).collect() }
}

fn are_near(one: [f64; 4], other: [f64; 4]) -> bool {
    one.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-9)
}

fn homes() -> impl Strategy<Value = Home> {
    let kinds = prop::collection::vec((1..3_u32, 1..16_u32), 1..4);
    let replies = || [0..2_u32, 0..2_u32];
    let replies = [replies(), replies(), replies(), replies()];
    (kinds, [1..7_u32, 1..7_u32, 1..7_u32, 1..7_u32], 0.2..1.0_f64, any::<bool>(), replies)
        .prop_map(|(kinds, sizes, decay, varies, replies)| Home { kinds, sizes, decay, varies, replies })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn figures_are_those_of_all_assignments(home in homes()) {
        let model = home.model();
        let priors = [PriorName::Devices, PriorName::Flat].map(|prior| {
            let space = CommandSpace::new(&model, &Premises { prior, decay: Some(home.decay) }).unwrap();
            (prior, space, home.prior(prior))
        });
        for observer in [Observer::Sizes, Observer::ReplyCount, Observer::Replies] {
            let commands = priors.iter().flat_map(|(.., by_definition)| by_definition.keys());
            let seen: BTreeMap<&Vec<u32>, Vec<(Seen, f64)>> =
                commands.map(|(counts, _)| counts).collect::<BTreeSet<_>>().into_iter()
                    .map(|counts| (counts, seen(&model, counts, observer))).collect();
            for (prior, space, by_definition) in &priors {
                let found =
                    Observation::new(space, &model, observer, EpsilonKnowledge::Distribution).unwrap().unwrap();
                let commands = joint(by_definition, &seen, |counts, _| counts.clone());
                let (one, other) = (of_channel(&found.command), figures(&commands));
                prop_assert!(are_near(one, other), "{prior:?} {observer:?} {one:?} {other:?}");
                let numbers = joint(by_definition, &seen, |counts, _| counts.iter().sum::<u32>());
                let (one, other) = (of_channel(&found.number), figures(&numbers));
                prop_assert!(are_near(one, other), "{prior:?} {observer:?} {one:?} {other:?}");
                let kinds = joint(by_definition, &seen, |_, used| used.clone());
                let (one, other) = (of_channel(found.kinds.as_ref().unwrap()), figures(&kinds));
                prop_assert!(are_near(one, other), "{prior:?} {observer:?} {one:?} {other:?}");
            }
        }
    }

    #[test]
    fn recurring_commands_are_as_frequent_as_by_habit_and_their_share(
        home in homes(),
        recurring in prop::collection::vec((prop::collection::vec(0_u32..3, 4), 0.01..0.2_f64), 1..4),
    ) {
        let mut model = home.model();
        let limits = model.limits().unwrap();
        let mut shares: BTreeMap<Vec<u32>, f64> = BTreeMap::new();
        for (counts, share) in recurring {
            let counts = counts[..model.actions.len()].to_vec();
            if counts.iter().sum::<u32>() > 0 && limits.admits(&counts) {
                shares.insert(counts, share);
            }
        }
        let prior = model.prior.as_mut().unwrap();
        prior.recurring = shares
            .iter()
            .map(|(counts, share)| RecurringCommand { counts: counts.clone(), share: *share })
            .collect();
        let space = |prior| CommandSpace::new(&model, &Premises { prior, decay: None }).unwrap();
        let (learned, mixed) = (space(PriorName::Learned), space(PriorName::Recurring));
        let by_habit = 1.0 - shares.values().sum::<f64>();
        let commands: BTreeSet<Vec<u32>> = home.assignments().into_iter().map(|(counts, ..)| counts).collect();
        for observer in [Observer::Sizes, Observer::ReplyCount, Observer::Replies] {
            let mut joint: BTreeMap<(Vec<u32>, Seen), f64> = BTreeMap::new();
            for counts in &commands {
                let share = shares.get(counts).copied().unwrap_or(0.0);
                let probability = by_habit * learned.probability(counts) + share;
                prop_assert!((mixed.probability(counts) - probability).abs() < 1e-12);
                for (output, likelihood) in seen(&model, counts, observer) {
                    *joint.entry((counts.clone(), output)).or_default() += probability * likelihood;
                }
            }
            let found = Observation::new(&mixed, &model, observer, EpsilonKnowledge::Distribution).unwrap().unwrap();
            let (one, other) = (of_channel(&found.command), figures(&joint));
            prop_assert!(are_near(one, other), "{observer:?} {one:?} {other:?}");
        }
        let listed = mixed.groups().unwrap();
        let (listed, rows) = (rows_of_groups(&listed), mixed.size_rows().unwrap());
        for (one, other) in listed.iter().zip(&rows) {
            prop_assert!((one.greatest - other.greatest).abs() + (one.plogp - other.plogp).abs() < 1e-12);
        }
    }

    #[test]
    fn lists_groups_and_rows_agree(home in homes()) {
        let model = Home { varies: false, ..home }.model();
        let space = CommandSpace::new(&model, &Premises { prior: PriorName::Learned, decay: None }).unwrap();
        let (groups, rows) = (space.groups().unwrap(), space.size_rows().unwrap());
        for (one, other) in rows_of_groups(&groups).iter().zip(&rows) {
            prop_assert_eq!((one.bytes, one.commands), (other.bytes, other.commands));
            prop_assert!((one.greatest - other.greatest).abs() + (one.plogp - other.plogp).abs() < 1e-12);
        }
        let knowledge = EpsilonKnowledge::Value;
        let joint = Joint::new(&space, &model, Secret::Command, Observer::Sizes, knowledge).unwrap().unwrap();
        let of_size = |bytes: u64| {
            let entries = joint.entries.iter().filter(move |(_, output, _)| output.size == bytes);
            entries.map(|(.., probability)| *probability).fold(0.0, f64::max)
        };
        prop_assert!(rows.iter().all(|row| (row.greatest - of_size(row.bytes)).abs() < 1e-12));
        let channel = of_groups(&groups);
        prop_assert_eq!(channel.outputs, rows.len());
        let observation = Observation::new(&space, &model, Observer::Sizes, knowledge).unwrap().unwrap();
        prop_assert!(are_near(of_channel(&channel), of_channel(&observation.command)));
    }
}
