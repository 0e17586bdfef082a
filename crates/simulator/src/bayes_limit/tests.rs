//! The limit of cases computed by hand, against listed and simulated commands, and its assumptions about framings.

mod brute_force;

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::true_channel::ObservedSizes;
use super::*;
use crate::command_generator::{CommandGenerator, DeviceAction, random_id};
use crate::framing::{self, mqtt};
use crate::message_encoder::{BodyForm, MessageEncoder};
use crate::scenario::{CommandSettings, DeviceKind, Framing, Suite};

/// The distribution of a scenario's random commands, as multisets of actions.
#[derive(Debug)]
struct CommandDistribution {
    /// Probabilities by key. The digits of a key in this base are the counts of the actions, the first action's the
    /// lowest.
    probabilities: BTreeMap<u128, f64>,
    base: u128,
}

impl CommandDistribution {
    fn new(scenario: &Scenario) -> Self {
        let (names, most) = (scenario.action_names(), scenario.command.most_actions);
        let base = u128::from(most) + 1;
        let digits: Vec<u128> = (0..names.len() as u32).map(|action| base.pow(action)).collect();
        // By key: the number of actions, and the number of ways to assign them to devices of the kinds so far.
        let mut ways = BTreeMap::from([(0_u128, (0_u32, 1.0_f64))]);
        for device in &scenario.devices {
            let digit = |name: &String| names.iter().position(|known| known == name).and_then(|at| digits.get(at));
            let actions: Vec<u128> = device.actions.iter().filter_map(digit).copied().collect();
            let kind = ways_of_kind(device.count, &actions, most);
            let mut both = BTreeMap::new();
            for (key, (total, weight)) in &ways {
                for (other, (more, factor)) in kind.iter().filter(|(_, (more, _))| total + more <= most) {
                    both.entry(key + other).or_insert((total + more, 0.0)).1 += weight * factor;
                }
            }
            ways = both;
        }
        let devices = scenario.devices.iter().map(|device| device.count).sum();
        let per_way: Vec<f64> = std::iter::once(0.0)
            .chain(number_probabilities(&scenario.command).iter().zip(1..).map(|(p, n)| p / choose(devices, n)))
            .collect();
        let probability = |total: u32| per_way.get(total as usize).copied().unwrap_or(0.0);
        let probabilities = ways.into_iter().map(|(key, (total, weight))| (key, weight * probability(total)));
        Self { probabilities: probabilities.filter(|(_, probability)| *probability > 0.0).collect(), base }
    }
}

/// For each multiset of a kind's actions: its total, and the number of ways to assign it to the devices, where each
/// choice of an action counts as its probability.
fn ways_of_kind(devices: u32, actions: &[u128], most: u32) -> BTreeMap<u128, (u32, f64)> {
    let mut found = BTreeMap::from([(0, (0, 1.0))]);
    for digit in actions {
        let mut more = BTreeMap::new();
        for (key, (total, weight)) in &found {
            // The action goes to devices without an action so far.
            for count in 0..=devices.min(most) - total {
                let weight = weight * choose(devices - total, count) * (actions.len() as f64).powf(-f64::from(count));
                more.insert(key + digit * u128::from(count), (total + count, weight));
            }
        }
        found = more;
    }
    found
}

/// The binomial coefficient.
fn choose(all: u32, some: u32) -> f64 {
    (0..some).map(|at| f64::from(all.saturating_sub(at)) / f64::from(at + 1)).product()
}

/// The entropy of a distribution, in bits.
fn entropy(probabilities: impl Iterator<Item = f64>) -> f64 {
    probabilities.filter(|probability| *probability > 0.0).map(|probability| -probability * probability.log2()).sum()
}

/// The probability of each number of actions of a random command, from one on.
fn number_probabilities(command: &CommandSettings) -> Vec<f64> {
    let weights = || (0..command.most_actions).map(|n| command.decay.powf(f64::from(n)));
    weights().map(|weight| weight / weights().sum::<f64>()).collect()
}

fn device(name: &str, count: u32, actions: &[&str]) -> DeviceKind {
    DeviceKind { name: name.into(), count, actions: actions.iter().map(|name| (*name).to_owned()).collect() }
}

/// A scenario whose actions are sent as their names.
fn home(devices: Vec<DeviceKind>, most_actions: u32) -> Scenario {
    let mut scenario = Scenario { devices, actions: Vec::new(), ..Scenario::default() };
    scenario.command.most_actions = most_actions;
    scenario.command.message_id.min_digits = 8;
    scenario
}

/// The bytes that each further action adds to a message.
fn action_sizes(scenario: &Scenario) -> Vec<usize> {
    ScenarioTraits::new(scenario).actions.iter().map(|action| action.bytes).collect()
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-12
}

#[test]
fn distinct_sizes_reveal_everything() {
    let limit = bayes_limit(&home(vec![device("plug", 1, &["on", "off", "toggle", "dimmer!"])], 1)).unwrap();
    assert!(
        is_near(limit.top_1, 1.0) && is_near(limit.leaked_bits, 2.0) && is_near(limit.prior_bits, 2.0),
        "{limit:?}"
    );
}

#[test]
fn equal_sizes_reveal_nothing() {
    let limit = bayes_limit(&home(vec![device("plug", 3, &["aa", "bb"])], 1)).unwrap();
    assert!(
        is_near(limit.top_1, 0.5) && is_near(limit.leaked_bits, 0.0) && is_near(limit.prior_bits, 1.0),
        "{limit:?}"
    );
}

/// Two plugs with `aa` and `bb`, one action or two with equal probability. Of one action the best answer is right in
/// half of the cases; of two it is `aa bb`, also right in half.
#[test]
fn the_number_of_replies_adds_nothing_if_sizes_reveal_it() {
    let mut scenario = home(vec![device("plug", 2, &["aa", "bb"])], 2);
    scenario.command.decay = 1.0;
    scenario.replies.loss = 0.0;
    let limit = bayes_limit(&scenario).unwrap();
    assert!(
        is_near(limit.top_1, 0.5) && is_near(limit.leaked_bits, 1.0) && is_near(limit.prior_bits, 2.25),
        "{limit:?}"
    );
    assert!(is_near(limit.top_1_with_replies, limit.top_1), "sizes already reveal the number");
    assert_eq!(action_sizes(&scenario)[0], 28);
    scenario.command.message_id.min_digits = 1;
    scenario.command.message_id.draw = IdDraw::Digits;
    let varying = bayes_limit(&scenario).unwrap();
    assert!(is_near(varying.top_1, 0.5), "eight widths are less than the 28 bytes of an action: {varying:?}");
    scenario.replies.mode = ReplyMode::PerCommand;
    assert!(is_near(bayes_limit(&scenario).unwrap().top_1_with_replies, 0.5));
}

#[test]
fn a_reply_that_repeats_the_id_reveals_its_width() {
    let mut scenario = home(vec![device("plug", 1, &["a", "bb"])], 1);
    (scenario.command.message_id.min_digits, scenario.command.message_id.draw) = (7, IdDraw::Digits);
    (scenario.replies.mode, scenario.replies.loss) = (ReplyMode::PerCommand, 0.2);
    let limit = bayes_limit(&scenario).unwrap();
    // Sizes a+7, a+8 = bb+7, bb+8; the middle one is a guess without the reply.
    assert!(is_near(limit.top_1, 0.75) && is_near(limit.leaked_bits, 0.5), "{limit:?}");
    assert!(is_near(limit.top_1_with_replies, 0.8 + 0.2 * 0.75), "{limit:?}");
    assert!(is_near(limit.leaked_bits_with_replies, 0.8 + 0.2 * 0.5), "{limit:?}");
}

/// If each simulated command is answered by the most probable command of its size, the share of right answers is the
/// limit.
#[test]
fn best_answers_to_simulated_commands_reach_the_limit() {
    let mut mixed =
        home(vec![device("a", 3, &["on", "off"]), device("b", 2, &["off", "red"]), device("c", 1, &["red"])], 5);
    (mixed.command.message_id.min_digits, mixed.command.message_id.draw) = (6, IdDraw::Digits);
    for (scenario, seed) in [(Scenario::default(), 71_001), (mixed, 71_002)] {
        let (commands, sizes) = (CommandDistribution::new(&scenario), action_sizes(&scenario));
        assert!((commands.probabilities.values().sum::<f64>() - 1.0).abs() < 1e-9);
        let limit = bayes_limit(&scenario).unwrap();
        let listed = entropy(commands.probabilities.values().copied());
        assert!((limit.prior_bits - listed).abs() < 1e-9, "{limit:?}, listed {listed}");
        let base = commands.base;
        let counts = |key: u128| {
            let digit = |(rest, counts): (u128, Vec<u32>)| (rest / base, [counts, vec![(rest % base) as u32]].concat());
            (0..sizes.len()).fold((key, Vec::new()), |state, _| digit(state)).1
        };
        let weigh =
            |counts: &[u32]| sizes.iter().zip(counts).map(|(size, count)| size * *count as usize).sum::<usize>();
        let mut answers: BTreeMap<usize, (f64, Vec<u32>)> = BTreeMap::new();
        for (key, probability) in &commands.probabilities {
            let counts = counts(*key);
            for (width, share) in id_widths(scenario.command.message_id) {
                let answer = answers.entry(weigh(&counts) + width as usize).or_default();
                if probability * share > answer.0 {
                    *answer = (probability * share, counts.clone());
                }
            }
        }
        let generator = CommandGenerator::new(&scenario, &mut ChaCha20Rng::seed_from_u64(0));
        let encoder = MessageEncoder::new(&scenario);
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let (draws, mut right) = (20_000, 0);
        let action = DeviceAction::new(0, 0);
        let empty = encoder.command(BodyForm::default(), 1, 1_767_600_000_000_000_000, &[action]).len() - sizes[0];
        for _ in 0..draws {
            let command = generator.random_command(&mut random);
            let id = random_id(scenario.command.message_id, &mut random);
            let size = encoder.command(BodyForm::default(), id, 1_767_600_000_000_000_000, &command).len() - empty + 1;
            right += u32::from(answers[&size].1 == generator.counts(&command));
        }
        let share = f64::from(right) / f64::from(draws);
        let deviation = (limit.top_1 * (1.0 - limit.top_1) / f64::from(draws)).sqrt();
        assert!((share - limit.top_1).abs() < 4.0 * deviation, "{share} right, the limit is {}", limit.top_1);
        let possible: f64 = answers.values().map(|(joint, _)| joint).sum();
        assert!((limit.top_1 - possible).abs() < 1e-9, "{limit:?}, listed {possible}");
        let rising = [limit.leaked_bits, limit.leaked_bits_with_replies, limit.prior_bits];
        assert!(rising.is_sorted_by(|less, more| *less <= more + 1e-6), "{limit:?}");
        let rising = [limit.top_1, limit.top_1_with_replies, 1.0];
        assert!(rising.is_sorted_by(|less, more| *less <= more + 1e-6), "{limit:?}");
    }
}

/// The limit assumes that no two lengths of a message become equal.
#[test]
fn longer_messages_are_longer_in_every_framing() {
    let mut random = ChaCha20Rng::seed_from_u64(71_003);
    let some = (0..100).map(|_| random.random_range(0..70_000_usize));
    for length in [0, 9, 99, 125, 126, 127, 999, 9_999, 16_383, 65_535, 65_536].into_iter().chain(some) {
        let (one, longer) = (vec![b'x'; length], vec![b'x'; length + 1]);
        let frame = |body: &[u8]| framing::frame(framing::Opcode::Text, body, None).len();
        let publish = |body: &[u8]| mqtt::publish("home/20/set", Some(1), body).unwrap().len();
        let found = |body: &[u8]| framing::found(0, body, crate::scenario::Compression::None, 0).len();
        assert!(frame(&one) < frame(&longer) && publish(&one) < publish(&longer) && found(&one) < found(&longer));
    }
}

#[test]
fn impossible_computations_are_errors() {
    let mut scenario = Scenario::default();
    scenario.command.device_ids = DeviceIds::Varying;
    assert!(matches!(bayes_limit(&scenario), Err(BayesLimitError::DeviceIds)));
    let mut scenario = Scenario::default();
    scenario.session.compression = Compression::Deflate;
    assert!(matches!(bayes_limit(&scenario), Err(BayesLimitError::Setting(_))));
    let mut scenario = Scenario::default();
    scenario.command.overlap.share = 0.1;
    let error = bayes_limit(&scenario).unwrap_err().to_string();
    let wanted =
        "the limit is not known where `command.overlap.share` is not 0: replies may belong to several commands";
    assert_eq!(error, wanted);
    scenario.replies.mode = ReplyMode::None;
    assert!(bayes_limit(&scenario).is_ok(), "commands themselves do not mix");
    let mut crowd = home(vec![device("plug", 10_000, &["on"])], 10_000);
    crowd.command.decay = 1.0;
    assert!(matches!(bayes_limit(&crowd), Err(BayesLimitError::TooMany)));
    let none = home(Vec::new(), 1);
    assert!(matches!(bayes_limit(&none), Err(BayesLimitError::Scenario(_))));
}

/// The computed lengths of records equal those of real TLS.
#[test]
fn computed_wire_sizes_equal_those_of_simulated_records() {
    let mut random = ChaCha20Rng::seed_from_u64(71_004);
    for framing in [Framing::Websocket, Framing::Mqtt, Framing::Http] {
        for (suite, chunk) in [(Suite::Aes128CbcSha, 0), (Suite::Aes128CbcSha256, 0), (Suite::Aes256CbcSha, 100)] {
            let mut scenario = Scenario::default();
            (scenario.session.framing, scenario.tls.suite, scenario.tls.chunk) = (framing, suite, chunk);
            (scenario.learn.repeats, scenario.learn.random, scenario.test.commands) = (1, 1, 40);
            scenario.command.message_id.draw = IdDraw::Digits;
            let (mut observed, traits) = (ObservedSizes::new(&scenario, 0), ScenarioTraits::new(&scenario));
            for truth in crate::simulate(&scenario, random.random()).unwrap().test.truths {
                let sizes = traits.actions.iter().zip(&truth.counts);
                let actions: usize = sizes.map(|(action, count)| action.bytes * *count as usize).sum();
                let body = traits.apps[0].base + actions + truth.message_id_width;
                assert_eq!(observed.command(body).unwrap(), truth.wire_size, "{framing:?} {suite:?} {truth:?}");
            }
        }
    }
}

/// Two actions whose sizes differ by 20 bytes or by one, for all widths of the id.
#[test]
fn a_block_cipher_reveals_the_number_of_blocks() {
    let mut scenario = home(vec![device("plug", 1, &["a", "b--------------------"])], 1);
    scenario.tls.suite = Suite::Aes128CbcSha;
    let limit = bayes_limit(&scenario).unwrap();
    assert!(is_near(limit.top_1, 1.0) && is_near(limit.leaked_bits, 1.0), "20 bytes are visible: {limit:?}");
    let mut hidden = 0;
    for digits in 3..=18 {
        let mut scenario = home(vec![device("plug", 1, &["a", "bb"])], 1);
        scenario.tls.suite = Suite::Aes128CbcSha;
        (scenario.command.message_id.min_digits, scenario.command.message_id.max_digits) = (digits, digits);
        let limit = bayes_limit(&scenario).unwrap();
        let expected = if is_near(limit.top_1, 0.5) { 0.0 } else { 1.0 };
        assert!(is_near(limit.leaked_bits, expected), "{limit:?}");
        hidden += u32::from(expected < 0.5);
    }
    assert_eq!(hidden, 15, "one more byte needs another block for one of sixteen lengths");
}

#[test]
fn a_block_cipher_leaks_less() {
    for mode in [ReplyMode::PerAction, ReplyMode::PerCommand, ReplyMode::None] {
        let mut scenario = Scenario::default();
        (scenario.replies.mode, scenario.command.message_id.draw) = (mode, IdDraw::Digits);
        let exact = bayes_limit(&scenario).unwrap();
        scenario.tls.suite = Suite::Aes128CbcSha;
        let padded = bayes_limit(&scenario).unwrap();
        assert!(padded.top_1 < exact.top_1 && padded.top_1_with_replies < exact.top_1_with_replies, "{padded:?}");
        assert!(padded.leaked_bits < exact.leaked_bits && is_near(padded.prior_bits, exact.prior_bits), "{padded:?}");
        assert!(padded.leaked_bits <= padded.leaked_bits_with_replies + 1e-6, "{padded:?}");
    }
}
