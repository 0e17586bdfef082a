//! The limit against hand-made cases, the simulator's own draws, and its framings.

use std::collections::BTreeMap;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;

use super::*;
use crate::framing::{http, mqtt, websocket};
use crate::plan::{CommandGenerator, number};
use crate::scenario::{DeviceKind, Framing, IdDraw, Suite};

fn device(name: &str, count: u32, actions: &[&str]) -> DeviceKind {
    DeviceKind { name: name.into(), count, actions: actions.iter().map(|name| (*name).to_owned()).collect() }
}

/// A home without actions of its own making: each is sent as its name.
fn home(devices: Vec<DeviceKind>, most_actions: u32) -> Scenario {
    let mut scenario = Scenario { devices, actions: Vec::new(), ..Scenario::default() };
    scenario.command.most_actions = most_actions;
    scenario.command.message_id.min_digits = 8;
    scenario
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 1e-12
}

#[test]
fn sizes_that_differ_tell_everything() {
    let limit = bayes_limit(&home(vec![device("plug", 1, &["on", "off", "toggle", "dimmer!"])], 1)).unwrap();
    assert!(
        is_near(limit.top_1, 1.0) && is_near(limit.leaked_bits, 2.0) && is_near(limit.prior_bits, 2.0),
        "{limit:?}"
    );
}

#[test]
fn sizes_that_are_alike_tell_nothing() {
    let limit = bayes_limit(&home(vec![device("plug", 3, &["aa", "bb"])], 1)).unwrap();
    assert!(
        is_near(limit.top_1, 0.5) && is_near(limit.leaked_bits, 0.0) && is_near(limit.prior_bits, 1.0),
        "{limit:?}"
    );
}

/// Two plugs with `aa` and `bb`, up to two actions, two as likely as one. Of one: 1/2 right. Of two: `aa bb` half the time.
#[test]
fn replies_tell_how_many() {
    let mut scenario = home(vec![device("plug", 2, &["aa", "bb"])], 2);
    scenario.command.decay = 1.0;
    scenario.replies.loss = 0.0;
    let limit = bayes_limit(&scenario).unwrap();
    assert!(
        is_near(limit.top_1, 0.5) && is_near(limit.leaked_bits, 1.0) && is_near(limit.prior_bits, 2.25),
        "{limit:?}"
    );
    assert!(is_near(limit.top_1_with_replies, limit.top_1), "sizes tell how many already");
    // Where the number's width may hide an action, a reply for each tells how many there are.
    let entry = sizes(&scenario).unwrap()[0] as u32;
    assert_eq!(entry, 28);
    scenario.command.message_id.min_digits = 1;
    scenario.command.message_id.draw = IdDraw::Digits;
    let blurred = bayes_limit(&scenario).unwrap();
    assert!(is_near(blurred.top_1, 0.5), "eight widths are less than the 28 bytes of an action: {blurred:?}");
    scenario.replies.mode = ReplyMode::PerCommand;
    assert!(is_near(bayes_limit(&scenario).unwrap().top_1_with_replies, 0.5));
}

#[test]
fn a_reply_that_repeats_the_number_tells_its_width() {
    let mut scenario = home(vec![device("plug", 1, &["a", "bb"])], 1);
    (scenario.command.message_id.min_digits, scenario.command.message_id.draw) = (7, IdDraw::Digits);
    (scenario.replies.mode, scenario.replies.loss) = (ReplyMode::PerCommand, 0.2);
    let limit = bayes_limit(&scenario).unwrap();
    // Sizes a+7, a+8 = bb+7, bb+8, a quarter each; the middle one is a guess unless the reply tells.
    assert!(is_near(limit.top_1, 0.75) && is_near(limit.leaked_bits, 0.5), "{limit:?}");
    assert!(is_near(limit.top_1_with_replies, 0.8 + 0.2 * 0.75), "{limit:?}");
    assert!(is_near(limit.leaked_bits_with_replies, 0.8 + 0.2 * 0.5), "{limit:?}");
}

/// Of the default home as of others, commands the simulator draws are as often right as the limit says, when each is
/// answered by the most probable one of its size.
#[test]
fn the_simulators_own_draws_reach_the_limit() {
    let mut mixed =
        home(vec![device("a", 3, &["on", "off"]), device("b", 2, &["off", "red"]), device("c", 1, &["red"])], 5);
    (mixed.command.message_id.min_digits, mixed.command.message_id.draw) = (6, IdDraw::Digits);
    for (scenario, seed) in [(Scenario::default(), 71_001), (mixed, 71_002)] {
        let (commands, sizes) = (CommandDistribution::new(&scenario).unwrap(), sizes(&scenario).unwrap());
        assert!((commands.probabilities.values().sum::<f64>() - 1.0).abs() < 1e-9);
        let limit = bayes_limit(&scenario).unwrap();
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
        let (home, writer) = (CommandGenerator::new(&scenario), MessageEncoder::new(&scenario));
        let mut random = ChaCha20Rng::seed_from_u64(seed);
        let (draws, mut right) = (20_000, 0);
        let order = DeviceAction { device: 0, action: 0 };
        let empty = writer.command(1, 1_767_600_000_000_000_000, &[order]).unwrap().len() - sizes[0];
        for _ in 0..draws {
            let orders = home.random(&scenario, &mut random);
            let id = number(scenario.command.message_id, &mut random);
            let size = writer.command(id, 1_767_600_000_000_000_000, &orders).unwrap().len() - empty + 1;
            right += u32::from(answers[&size].1 == home.counts(&orders));
        }
        let share = f64::from(right) / f64::from(draws);
        let deviation = (limit.top_1 * (1.0 - limit.top_1) / f64::from(draws)).sqrt();
        assert!((share - limit.top_1).abs() < 4.0 * deviation, "{share} right, the limit is {}", limit.top_1);
        let rising = [limit.leaked_bits, limit.leaked_bits_with_replies, limit.prior_bits];
        assert!(rising.is_sorted_by(|less, more| *less <= more + 1e-9), "{limit:?}");
        let rising = [limit.top_1, limit.top_1_with_replies, 1.0];
        assert!(rising.is_sorted_by(|less, more| *less <= more + 1e-9), "{limit:?}");
    }
}

/// What the limit rests on: no two lengths of a message become one.
#[test]
fn longer_messages_are_longer_in_every_framing() {
    let mut random = ChaCha20Rng::seed_from_u64(71_003);
    let some = (0..100).map(|_| random.random_range(0..70_000_usize));
    for length in [0, 9, 99, 125, 126, 127, 999, 9_999, 16_383, 65_535, 65_536].into_iter().chain(some) {
        let (one, longer) = (vec![b'x'; length], vec![b'x'; length + 1]);
        let frame = |body: &[u8]| websocket::frame(websocket::Opcode::Text, body, None).len();
        let publish = |body: &[u8]| mqtt::publish("home/20/set", Some(1), body).unwrap().len();
        let found = |body: &[u8]| http::found(0, body).len();
        assert!(frame(&one) < frame(&longer) && publish(&one) < publish(&longer) && found(&one) < found(&longer));
    }
}

#[test]
fn what_cannot_be_computed_is_said() {
    let mut scenario = Scenario::default();
    scenario.command.device_ids = DeviceIds::Varying;
    assert!(matches!(bayes_limit(&scenario), Err(BayesLimitError::DeviceIds)));
    let many: Vec<String> = (0..60).map(|at| format!("action-{at}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert!(matches!(bayes_limit(&home(vec![device("panel", 9, &many)], 9)), Err(BayesLimitError::TooMany)));
    let crowd = home(vec![device("plug", 10_000, &["on"])], 10_000);
    assert!(matches!(bayes_limit(&crowd), Err(BayesLimitError::TooMany)));
    let none = home(Vec::new(), 1);
    assert!(matches!(bayes_limit(&none), Err(BayesLimitError::Scenario(_))));
}

/// What is computed of records is what TLS makes of messages.
#[test]
fn lengths_on_the_wire_are_those_of_records() {
    let mut random = ChaCha20Rng::seed_from_u64(71_004);
    for framing in [Framing::Websocket, Framing::Mqtt, Framing::Http] {
        for (suite, chunk) in [(Suite::Aes128CbcSha, 0), (Suite::Aes128CbcSha256, 0), (Suite::Aes256CbcSha, 100)] {
            let mut scenario = Scenario::default();
            (scenario.session.framing, scenario.tls.suite, scenario.tls.chunk) = (framing, suite, chunk);
            (scenario.learn.repeats, scenario.learn.random, scenario.test.commands) = (1, 1, 40);
            scenario.command.message_id.draw = IdDraw::Digits;
            let (mut observed, sizes) = (ObservedSizes::new(&scenario).unwrap(), sizes(&scenario).unwrap());
            for truth in crate::simulate(&scenario, random.random()).unwrap().test.truths {
                let actions = sizes.iter().zip(&truth.counts).map(|(size, count)| size * *count as usize).sum();
                let width = u32::try_from(truth.message_id_width).unwrap();
                assert_eq!(
                    observed.command(actions, width).unwrap(),
                    truth.wire_size,
                    "{framing:?} {suite:?} {truth:?}"
                );
            }
        }
    }
}

/// Two sizes of an action each, a block apart or within one, from the least to the most that the number's digits allow.
#[test]
fn of_a_block_cipher_blocks_are_seen() {
    let mut scenario = home(vec![device("plug", 1, &["a", "b--------------------"])], 1);
    scenario.tls.suite = Suite::Aes128CbcSha;
    let limit = bayes_limit(&scenario).unwrap();
    assert!(is_near(limit.top_1, 1.0) && is_near(limit.leaked_bits, 1.0), "20 bytes are seen: {limit:?}");
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
    assert_eq!(hidden, 15, "one byte more is a block more for one of sixteen lengths");
}

#[test]
fn a_block_cipher_gives_away_less() {
    for mode in [ReplyMode::PerAction, ReplyMode::PerCommand, ReplyMode::None] {
        let mut scenario = Scenario::default();
        (scenario.replies.mode, scenario.command.message_id.draw) = (mode, IdDraw::Digits);
        let seen = bayes_limit(&scenario).unwrap();
        scenario.tls.suite = Suite::Aes128CbcSha;
        let padded = bayes_limit(&scenario).unwrap();
        assert!(padded.top_1 < seen.top_1 && padded.top_1_with_replies < seen.top_1_with_replies, "{padded:?}");
        assert!(padded.leaked_bits < seen.leaked_bits && is_near(padded.prior_bits, seen.prior_bits), "{padded:?}");
        assert!(padded.leaked_bits <= padded.leaked_bits_with_replies + 1e-9, "{padded:?}");
    }
}
