//! Homes whose commands are drawn at random: what is learned of them, and from how many commands.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use sizeleak_learning::fit::blind::{BlindFit, BlindFitError, LengthFields, Observation, learn};

/// A gateway whose actions and length fields are known.
struct Home {
    /// The size of a command without actions, in bytes.
    overhead: i64,
    fields: LengthFields,
    /// Size, size of the reply, and weight of each action.
    actions: Vec<(i64, Option<i64>, u32)>,
    /// Probability that a reply is lost.
    loss: f64,
    seed: u64,
}

impl Home {
    /// Plugs and lamps: two actions share a reply's size.
    fn plugs(fields: LengthFields, overhead: i64, seed: u64) -> Self {
        let actions = vec![
            (28, Some(29), 4),
            (29, Some(29), 4),
            (32, Some(32), 4),
            (34, Some(35), 4),
            (36, Some(32), 1),
            (35, Some(37), 1),
            (40, Some(37), 1),
        ];
        Self { overhead, fields, actions, loss: 0.01, seed }
    }

    /// One action sends no reply.
    fn with_a_mute_action(fields: LengthFields, overhead: i64, seed: u64) -> Self {
        let mut home = Self::plugs(fields, overhead, seed);
        home.actions[3].1 = None;
        home
    }

    fn blinds(seed: u64) -> Self {
        let actions =
            vec![(41, Some(60), 2), (44, Some(60), 2), (52, Some(66), 3), (57, Some(71), 1), (75, Some(71), 1)];
        Self { overhead: 112, fields: LengthFields::None, actions, loss: 0.02, seed }
    }

    /// Commands as observed, with how often each action occurs.
    fn commands(&self, count: usize) -> Vec<(Observation, Vec<u32>)> {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        (0..count).map(|_| self.command(&mut random)).collect()
    }

    fn command(&self, random: &mut ChaCha8Rng) -> (Observation, Vec<u32>) {
        let mut counts = vec![0; self.actions.len()];
        let total: u32 = self.actions.iter().map(|(_, _, weight)| weight).sum();
        for number in 0..16 {
            if number > 0 && random.random_range(0.0..1.0) > 0.75 {
                break;
            }
            let mut left = random.random_range(0..total);
            let drawn = self.actions.iter().position(|(_, _, weight)| {
                let is_it = left < *weight;
                left = left.saturating_sub(*weight);
                is_it
            });
            counts[drawn.unwrap_or(0)] += 1;
        }
        let id: u32 = random.random_range(10_000..100_000_000);
        let epsilon = i64::from(id.ilog10()) - 7;
        (self.observation(&counts, epsilon, random), counts)
    }

    fn observation(&self, counts: &[u32], epsilon: i64, random: &mut ChaCha8Rng) -> Observation {
        let sum: i64 = self.actions.iter().zip(counts).map(|((size, _, _), count)| size * i64::from(*count)).sum();
        let short = self.overhead + epsilon + sum;
        // The growth that the longer message shows.
        let mut sizes = (0..=3).map(|grown| short + grown);
        let size = sizes.find(|size| size - self.fields.grown(*size) == short).unwrap_or(short);
        let mut replies = Vec::new();
        for ((_, reply, _), count) in self.actions.iter().zip(counts) {
            let sent = (0..*count).filter(|_| random.random_range(0.0..1.0) >= self.loss);
            replies.extend(sent.filter_map(|_| *reply));
        }
        Observation { size, replies: Some(replies), counts: None }
    }

    fn learn(&self, commands: usize) -> Result<BlindFit, BlindFitError> {
        let observations: Vec<Observation> = self.commands(commands).into_iter().map(|(seen, _)| seen).collect();
        learn(&observations, &[], false)
    }

    fn sizes(&self) -> Vec<(i64, Option<i64>)> {
        let mut sizes: Vec<(i64, Option<i64>)> = self.actions.iter().map(|(size, reply, _)| (*size, *reply)).collect();
        sizes.sort_unstable();
        sizes
    }

    /// How many of the actions a fit has, if |ac| is right.
    fn found(&self, fit: &BlindFit) -> usize {
        let has = |size: &&(i64, Option<i64>)| fit.actions.iter().any(|action| (action.size, action.reply) == **size);
        if fit.overhead == self.overhead { self.sizes().iter().filter(has).count() } else { 0 }
    }
}

fn found_sizes(fit: &BlindFit) -> Vec<(i64, Option<i64>)> {
    fit.actions.iter().map(|action| (action.size, action.reply)).collect()
}

fn homes() -> Vec<Home> {
    let http = LengthFields::Http { head: 109 };
    vec![
        Home::plugs(LengthFields::WebSocket, 65, 1),
        Home::plugs(LengthFields::Mqtt, 80, 2),
        Home::plugs(http, 171, 3),
        Home::with_a_mute_action(LengthFields::WebSocket, 65, 4),
        Home::with_a_mute_action(LengthFields::Mqtt, 80, 5),
        Home::with_a_mute_action(http, 171, 6),
        Home::blinds(7),
    ]
}

#[test]
fn five_hundred_commands_give_all_sizes() {
    for home in homes() {
        let fit = home.learn(500).unwrap();
        assert_eq!((fit.overhead, found_sizes(&fit)), (home.overhead, home.sizes()), "{:?}: {fit:#?}", home.fields);
        assert_eq!(fit.epsilons.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0, 0);
        assert!(fit.outliers < 0.05 && fit.lost < 0.05, "{fit:#?}");
        let shares: f64 = fit.actions.iter().map(|action| action.frequency).sum();
        assert!((shares - 1.0).abs() < 1e-9);
    }
}

#[test]
fn names_that_labels_fit_either_way_are_uncertain() {
    let home = Home::plugs(LengthFields::WebSocket, 65, 9);
    let names = ["on", "off"].map(str::to_owned);
    // `on` has 28 bytes and `off` 29, with replies of equal sizes.
    let fit = |epsilon_of_off: i64| {
        let mut random = ChaCha8Rng::seed_from_u64(9);
        let mut observations: Vec<Observation> = home.commands(500).into_iter().map(|(seen, _)| seen).collect();
        for (at, epsilon) in [(0, 0), (1, epsilon_of_off)] {
            let counts: Vec<u32> = (0..home.actions.len()).map(|action| u32::from(action == at)).collect();
            let mut labelled = home.observation(&counts, epsilon, &mut random);
            labelled.counts = Some(counts[..2].to_vec());
            observations.push(labelled);
        }
        learn(&observations, &names, false).unwrap()
    };
    assert_eq!(fit(0).uncertain_names, []);
    let size_of = |name: &str| fit(0).actions.iter().find(|action| action.name.as_deref() == Some(name)).unwrap().size;
    assert_eq!([size_of("on"), size_of("off")], [28, 29]);
    // The labelled `off` is as long as the labelled `on`.
    let uncertain = fit(-1).uncertain_names;
    assert!(uncertain.len() == 1 && uncertain[0].names == names, "{uncertain:?}");
    assert!((uncertain[0].probability - 0.5).abs() < 1e-9, "{uncertain:?}");
}

#[test]
fn two_hundred_commands_give_most_sizes() {
    let (mut found, mut all) = (0, 0);
    for home in homes() {
        found += home.learn(200).map_or(0, |fit| home.found(&fit));
        all += home.actions.len();
    }
    assert!(10 * found >= 8 * all, "{found} of {all}");
}

#[test]
fn lengths_alone_give_the_sizes_from_two_thousand_commands() {
    for home in [Home::plugs(LengthFields::WebSocket, 65, 11), Home::plugs(LengthFields::Mqtt, 80, 12)] {
        let mute = |(seen, _)| Observation { replies: None, ..seen };
        let observations: Vec<Observation> = home.commands(2000).into_iter().map(mute).collect();
        let fit = learn(&observations, &[], false).unwrap();
        let sizes: Vec<i64> = fit.actions.iter().map(|action| action.size).collect();
        let found = home.actions.iter().filter(|(size, _, _)| sizes.contains(size)).count();
        assert!(fit.overhead == home.overhead && found >= 6, "{fit:#?}");
        assert!(fit.actions.iter().all(|action| action.reply.is_none()));
    }
}

#[test]
fn a_labelled_single_of_each_action_names_them_all() {
    let home = Home::with_a_mute_action(LengthFields::WebSocket, 65, 21);
    let names: Vec<String> = (0..7).map(|action| format!("action {action}")).collect();
    let mut observations: Vec<Observation> = home.commands(300).into_iter().map(|(seen, _)| seen).collect();
    let mut random = ChaCha8Rng::seed_from_u64(9);
    for action in 0..7 {
        let counts: Vec<u32> = (0..7).map(|other| u32::from(other == action)).collect();
        let seen = home.observation(&counts, 0, &mut random);
        observations.push(Observation { counts: Some(counts), ..seen });
    }
    let fit = learn(&observations, &names, false).unwrap();
    for (name, (size, reply, _)) in names.iter().zip(&home.actions) {
        let found: Vec<_> = fit.actions.iter().filter(|action| action.name.as_ref() == Some(name)).collect();
        assert_eq!(found.len(), 1, "{fit:#?}");
        assert_eq!((found[0].size, found[0].reply), (*size, *reply), "{name}: {fit:#?}");
    }
}

#[test]
fn equal_commands_in_another_order_give_the_same() {
    let home = Home::blinds(31);
    let mut observations: Vec<Observation> = home.commands(150).into_iter().map(|(seen, _)| seen).collect();
    // Labels are drawn for one command after the other.
    let learned =
        |observations: &[Observation]| BlindFit { drawn: Vec::new(), ..learn(observations, &[], false).unwrap() };
    let fit = learned(&observations);
    observations.reverse();
    assert_eq!(fit, learned(&observations));
}

#[test]
fn commands_without_structure_are_refused_or_left_unexplained() {
    let mut random = ChaCha8Rng::seed_from_u64(41);
    let observations: Vec<Observation> =
        (0..300).map(|_| Observation { size: random.random_range(100..900), replies: None, counts: None }).collect();
    assert!(learn(&observations, &[], false).is_err());
}
