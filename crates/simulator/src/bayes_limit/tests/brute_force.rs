//! The limits against those computed from a list of all that can happen in a small home: devices, parameters, apps, ids,
//! and replies lost or not.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{choose, device, entropy, is_near, number_probabilities};
use crate::application::padded_length;
use crate::bayes_limit::{BayesLimit, bayes_limit};
use crate::command_generator::{DeviceAction, id_widths};
use crate::message_encoder::{App, BodyForm, MessageEncoder, done};
use crate::scenario::{ActionValue, Framing, IdDraw, Parameter, ReplyMode, ReplyPadding, Suite};
use crate::tls::Side;
use crate::{Scenario, bayes_limit as limit};

/// A command: how often each action occurs.
type Counts = Vec<u32>;

/// The joint distribution of observations and commands.
#[derive(Default)]
struct Joint<O>(BTreeMap<O, BTreeMap<Counts, f64>>);

impl<O: Ord> Joint<O> {
    fn add(&mut self, observation: O, counts: &Counts, probability: f64) {
        *self.0.entry(observation).or_default().entry(counts.clone()).or_default() += probability;
    }

    fn top_1(&self) -> f64 {
        self.0.values().map(|commands| commands.values().copied().fold(0.0, f64::max)).sum()
    }

    /// H(observation) + H(actions) − H(both).
    fn leaked_bits(&self) -> f64 {
        let mut commands: BTreeMap<&Counts, f64> = BTreeMap::new();
        let all = self.0.values().flatten();
        all.for_each(|(counts, probability)| *commands.entry(counts).or_default() += probability);
        let observations = self.0.values().map(|commands| commands.values().sum());
        entropy(observations) + entropy(commands.into_values())
            - entropy(self.0.values().flat_map(BTreeMap::values).copied())
    }
}

/// The bytes on the wire.
fn on_the_wire(scenario: &Scenario, side: Side, body: usize) -> usize {
    let message = padded_length(scenario, side, body, |size| size).unwrap();
    if scenario.tls.suite.is_padded() { (message + 21).div_ceil(16) } else { message }
}

/// All assignments of actions to devices, with their probabilities.
fn assignments(scenario: &Scenario) -> Vec<(Vec<DeviceAction>, f64)> {
    let names = scenario.action_names();
    let mut all = vec![(Vec::new(), 1.0)];
    let kinds = scenario.devices.iter().flat_map(|kind| (0..kind.count).map(move |_| kind));
    for (device, kind) in (0..).zip(kinds) {
        let with = |(actions, weight): &(Vec<DeviceAction>, f64)| {
            let (actions, weight) = (actions.clone(), *weight);
            let own = kind.actions.iter().map(|name| names.iter().position(|known| known == name).unwrap());
            let own: Vec<usize> = own.collect();
            let none = (actions.clone(), weight);
            let share = weight / own.len() as f64;
            let more = own.into_iter().map(move |action| {
                let new = DeviceAction::new(device, action);
                (actions.iter().copied().chain([new]).collect::<Vec<_>>(), share)
            });
            std::iter::once(none).chain(more).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    let numbers = number_probabilities(&scenario.command);
    let devices = scenario.device_count();
    all.retain(|(actions, _)| (1..=scenario.command.most_actions as usize).contains(&actions.len()));
    for (actions, weight) in &mut all {
        *weight *= numbers[actions.len() - 1] / choose(devices, actions.len() as u32);
    }
    all
}

/// All choices of the parameters of a command.
fn with_parameters(encoder: &MessageEncoder, actions: &[DeviceAction]) -> Vec<(Vec<DeviceAction>, f64)> {
    let mut all = vec![(actions.to_vec(), 1.0)];
    for at in 0..actions.len() {
        let Some(parameter) = encoder.parameter(actions[at].action) else { continue };
        let choices = parameter.choices();
        let chosen = |(actions, weight): &(Vec<DeviceAction>, f64)| {
            let (actions, weight) = (actions.clone(), *weight);
            (0..choices).map(move |choice| {
                let mut actions = actions.clone();
                actions[at].parameter = choice;
                (actions, weight / choices as f64)
            })
        };
        all = all.iter().flat_map(chosen).collect();
    }
    all
}

/// The sizes of the replies that arrive, in order of size, with their probabilities.
fn replies(
    scenario: &Scenario,
    encoder: &MessageEncoder,
    form: BodyForm,
    id: u64,
    actions: &[DeviceAction],
) -> BTreeMap<Vec<usize>, f64> {
    let wire = |body: Vec<u8>| on_the_wire(scenario, Side::Client, body.len());
    let sent: Vec<Vec<usize>> = match scenario.replies.mode {
        ReplyMode::None => Vec::new(),
        ReplyMode::PerCommand => vec![vec![wire(done(form, id))]],
        ReplyMode::PerAction => {
            let paddings = actions.iter().flat_map(|action| encoder.replies(action.action));
            let sizes = |ReplyPadding { min, max }: &ReplyPadding| {
                (*min..=*max).map(|padding| wire(encoder.status(form, 0, padding))).collect()
            };
            paddings.map(sizes).collect()
        }
    };
    let mut all = BTreeMap::from([(Vec::new(), 1.0)]);
    for sizes in sent {
        let mut more: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        for (seen, chance) in all {
            for size in &sizes {
                let mut seen = seen.clone();
                seen.push(*size);
                seen.sort_unstable();
                *more.entry(seen).or_default() += chance * (1.0 - scenario.replies.loss) / sizes.len() as f64;
            }
            *more.entry(seen).or_default() += chance * scenario.replies.loss;
        }
        all = more;
    }
    all
}

/// The limits, from all that can happen, in a period with bodies that are some bytes longer.
fn listed(scenario: &Scenario, added_bytes: usize) -> BayesLimit {
    let encoder = MessageEncoder::new(scenario);
    let time_ns = scenario.epoch.as_second() * 1_000_000_000;
    let (mut alone, mut count, mut sizes, mut prior) =
        (Joint::default(), Joint::default(), Joint::default(), Joint::default());
    let second = scenario.command.second_app;
    for (actions, weight) in assignments(scenario) {
        let mut counts = vec![0; scenario.action_names().len()];
        for action in &actions {
            counts[action.action] += 1;
        }
        prior.add(counts.clone(), &counts, weight);
        for (width, width_chance) in id_widths(scenario.command.message_id) {
            let id = 10_u64.pow(width - 1);
            for (app, share) in [(App::First, 1.0 - second), (App::Second, second)] {
                let form = BodyForm { app, added_bytes };
                let replies = replies(scenario, &encoder, form, id, &actions);
                for (actions, choice) in with_parameters(&encoder, &actions) {
                    let body = encoder.command(form, id, time_ns, &actions);
                    let size = on_the_wire(scenario, Side::Server, body.len());
                    let weight = weight * width_chance * share * choice;
                    alone.add(size, &counts, weight);
                    for (seen, chance) in &replies {
                        count.add((size, seen.len()), &counts, weight * chance);
                        sizes.add((size, seen.clone()), &counts, weight * chance);
                    }
                }
            }
        }
    }
    BayesLimit {
        top_1: alone.top_1(),
        top_1_with_reply_count: count.top_1(),
        top_1_with_replies: sizes.top_1(),
        prior_bits: prior.leaked_bits(),
        leaked_bits: alone.leaked_bits(),
        leaked_bits_with_reply_count: count.leaked_bits(),
        leaked_bits_with_replies: sizes.leaked_bits(),
        neglected: 0.0,
    }
}

fn figures(limit: BayesLimit) -> [f64; 7] {
    [
        limit.top_1,
        limit.top_1_with_reply_count,
        limit.top_1_with_replies,
        limit.prior_bits,
        limit.leaked_bits,
        limit.leaked_bits_with_reply_count,
        limit.leaked_bits_with_replies,
    ]
}

fn are_near(one: BayesLimit, other: BayesLimit) -> bool {
    figures(one).iter().zip(figures(other)).all(|(one, other)| (one - other).abs() < 1e-7)
}

const NAMES: [&str; 5] = ["a", "bb", "c", "dddd", "eee"];

fn any_action(name: &'static str) -> impl Strategy<Value = ActionValue> {
    let padding = (0_u32..20, 0_u32..2).prop_map(|(min, more)| ReplyPadding { min, max: min + more });
    let parameter = prop_oneof![
        3 => Just(None),
        1 => (1_u64..12).prop_map(|max| Some(Parameter::Number { min: max.saturating_sub(3), max })),
        1 => Just(Some(Parameter::Name(vec!["x".into(), "yü".into(), "zzzz".into()]))),
    ];
    (parameter, prop::option::of(prop::collection::vec(padding, 0..3)))
        .prop_map(move |(parameter, replies)| ActionValue { name: name.into(), set: name.into(), parameter, replies })
}

prop_compose! {
    fn small_home()(
        actions in NAMES.map(any_action),
        kinds in prop::collection::vec(prop::sample::subsequence(NAMES.to_vec(), 1..=3), 1..=2),
        first in 1_u32..=2,
        mode in prop::sample::select(vec![ReplyMode::PerAction; 4].into_iter().chain([ReplyMode::PerCommand, ReplyMode::None]).collect::<Vec<_>>()),
        loss in prop::sample::select(vec![0.0, 0.02, 0.4]),
        decay in prop::sample::select(vec![0.5, 1.0]),
        second_app in prop::sample::select(vec![0.0, 0.3]),
        min_digits in 7_u32..=8,
        draw in prop::sample::select(vec![IdDraw::Digits, IdDraw::Number]),
        suite in prop::sample::select(vec![Suite::Aes128Gcm, Suite::Aes128CbcSha]),
        framing in prop::sample::select(vec![Framing::Websocket, Framing::Http]),
        most in 1_u32..=3,
    ) -> Scenario {
        let mut scenario = Scenario::default();
        let count = |at: usize| if at == 0 { first } else { 1 };
        scenario.devices = kinds.iter().enumerate().map(|(at, own)| device(&format!("kind-{at}"), count(at), own)).collect();
        let used = scenario.action_names().into_iter().map(str::to_owned).collect::<Vec<_>>();
        scenario.actions = actions.into_iter().filter(|action| used.contains(&action.name)).collect();
        if mode != ReplyMode::PerAction {
            scenario.actions.iter_mut().for_each(|action| action.replies = None);
        }
        (scenario.replies.mode, scenario.replies.loss, scenario.replies.coalesce) = (mode, loss, 0.0);
        (scenario.command.decay, scenario.command.second_app) = (decay, second_app);
        scenario.command.most_actions = most.min(scenario.device_count());
        (scenario.command.message_id.min_digits, scenario.command.message_id.draw) = (min_digits, draw);
        (scenario.tls.suite, scenario.session.framing) = (suite, framing);
        scenario
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn limits_equal_those_of_all_that_can_happen(scenario in small_home(), bytes in 1_usize..40) {
        let (found, listed_before) = (limit(&scenario).unwrap(), listed(&scenario, 0));
        prop_assert!(are_near(found, listed_before), "{found:?}\n{listed_before:?}");
        prop_assert!(found.neglected < 1e-9);
        // New firmware in the middle: the mean of both halves.
        let mut changing = scenario.clone();
        (changing.firmware_change.after, changing.firmware_change.bytes, changing.test.commands) = (0.5, bytes, 10);
        let (found, listed_after) = (limit(&changing).unwrap(), listed(&scenario, bytes));
        for ((found, before), after) in figures(found).into_iter().zip(figures(listed_before)).zip(figures(listed_after)) {
            prop_assert!((found - f64::midpoint(before, after)).abs() < 1e-7);
        }
    }
}

#[test]
fn growing_ids_are_known_to_the_observer() {
    for suite in [Suite::Aes128Gcm, Suite::Aes128CbcSha] {
        let mut scenario = Scenario::default();
        (scenario.tls.suite, scenario.test.commands) = (suite, 1);
        let mut of_width = |width| {
            let id = &mut scenario.command.message_id;
            (id.min_digits, id.max_digits) = (width, width);
            bayes_limit(&scenario).unwrap().top_1_with_replies
        };
        let widths = [4, 5, 6, 7].map(&mut of_width);
        let mut growing = scenario;
        let id = &mut growing.command.message_id;
        (id.min_digits, id.max_digits, id.draw) = (4, 7, IdDraw::Growing);
        growing.test.commands = 4_000;
        let found = bayes_limit(&growing).unwrap().top_1_with_replies;
        // The ids below 2000 were used while learning, so fewer have four digits.
        let shares = [5_000.0_f64 / 1_000.0, 10.0, 10.0, 10.0].map(f64::ln);
        let all: f64 = shares.iter().sum();
        let expected: f64 = widths.iter().zip(shares).map(|(limit, share)| limit * share / all).sum();
        assert!((found - expected).abs() < 2e-4, "{found} {expected}");
        assert!(suite != Suite::Aes128Gcm || is_near(found, widths[0]));
    }
}
