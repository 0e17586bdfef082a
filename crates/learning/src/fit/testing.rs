//! Test data shared by the tests of several modules; not part of the library.

use sizeleak_model::{Action, Device, Inventory, LabelledCommand};

pub(crate) fn device(name: &str, count: u32, actions: &[&str]) -> Device {
    Device {
        name: name.into(),
        count,
        actions: actions.iter().map(|action| (*action).to_owned()).collect(),
        safe: true,
    }
}

/// Twelve plugs, and four lamps that share two actions with the plugs.
pub(crate) fn home() -> Inventory {
    Inventory { devices: vec![device("plug", 12, &["on", "off"]), device("lamp", 4, &["on", "off", "red"])] }
}

/// Actions with these names; their sizes do not matter.
pub(crate) fn actions(names: &[&str]) -> Vec<Action> {
    names.iter().map(|name| Action::new(*name, 1)).collect()
}

/// A labelled command without replies.
pub(crate) fn command(size: i64, counts: &[u32]) -> LabelledCommand {
    LabelledCommand {
        sizes: [size; 2],
        counts: counts.to_vec(),
        replies: 0,
        reply_bytes: 0,
        single_replies: None,
        has_own_replies: true,
    }
}

/// Replaces the sizes of commands with the ranges that remain under a block cipher of 16 bytes.
pub(crate) fn in_blocks(mut commands: Vec<LabelledCommand>) -> Vec<LabelledCommand> {
    for command in &mut commands {
        let least = command.sizes[0] & !15;
        command.sizes = [least, least + 15];
    }
    commands
}

/// A small random generator: test results must not depend on the version of another crate.
pub(crate) struct TestRandom(pub(crate) u64);

impl TestRandom {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

/// A simulated gateway with length fields, ids of varying width and wrong labels.
pub(crate) struct SimulatedGateway<'a> {
    pub(crate) seed: u64,
    pub(crate) actions: Vec<i64>,
    pub(crate) base: i64,
    /// Sizes at which a length field grows, each with the additional bytes.
    pub(crate) steps: &'a [(i64, i64)],
    /// Differences of the id's width from the usual one, each with its frequency in a thousand.
    pub(crate) ids: &'a [(i64, u64)],
    pub(crate) wrong_percent: u64,
}

impl SimulatedGateway<'_> {
    pub(crate) const MOSTLY_SIX_DIGITS: &'static [(i64, u64)] = &[(0, 900), (-1, 90), (-2, 9), (-4, 1)];
    pub(crate) const SKEWED: &'static [(i64, u64)] = &[(0, 600), (1, 250), (2, 100), (3, 40), (4, 10)];

    /// Commands of 1 to 16 random actions.
    pub(crate) fn mixed(&self, commands: usize) -> Vec<LabelledCommand> {
        self.commands(commands, |random, _| {
            let mut counts = vec![0; self.actions.len()];
            for _ in 0..=random.below(16) {
                counts[random.below(self.actions.len() as u64) as usize] += 1;
            }
            counts
        })
    }

    /// Repeated rounds of each action alone, then each alone twice.
    pub(crate) fn singles_and_doubles(&self, commands: usize) -> Vec<LabelledCommand> {
        let actions = self.actions.len();
        self.commands(commands, |_, at| {
            let mut counts = vec![0; actions];
            counts[at % actions] = 1 + (at / actions % 2) as u32;
            counts
        })
    }

    fn commands(&self, commands: usize, counts: impl Fn(&mut TestRandom, usize) -> Vec<u32>) -> Vec<LabelledCommand> {
        let mut random = TestRandom(self.seed.wrapping_mul(77).wrapping_add(5));
        let mut made = Vec::new();
        for at in 0..commands {
            let counts = counts(&mut random, at);
            let mut chance = random.below(1000);
            let id = self.ids.iter().find(|(_, share)| {
                let found = chance < *share;
                chance = chance.saturating_sub(*share);
                found
            });
            made.push(self.with_id(id.map_or(0, |(bytes, _)| *bytes), &counts));
        }
        self.mislabel(&mut made, &mut random);
        made
    }

    /// A command with these actions and an id of the usual width.
    pub(crate) fn command(&self, counts: &[u32]) -> LabelledCommand {
        self.with_id(0, counts)
    }

    fn with_id(&self, more_bytes: i64, counts: &[u32]) -> LabelledCommand {
        let weight: i64 = self.actions.iter().zip(counts).map(|(size, count)| size * i64::from(*count)).sum();
        let body = self.base + more_bytes + weight;
        let grown: i64 = self.steps.iter().filter(|(from, _)| body >= *from).map(|(_, by)| by).sum();
        command(body + grown, counts)
    }

    /// Replaces some labels with that of another command, or adds one action.
    fn mislabel(&self, made: &mut [LabelledCommand], random: &mut TestRandom) {
        for at in 0..made.len() {
            if random.below(100) < self.wrong_percent {
                let other = random.below(made.len() as u64) as usize;
                if random.below(2) == 0 {
                    made[at].counts = made[other].counts.clone();
                } else {
                    made[at].counts[random.below(self.actions.len() as u64) as usize] += 1;
                }
            }
        }
    }
}
