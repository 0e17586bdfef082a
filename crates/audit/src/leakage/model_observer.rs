//! The observer of an audit on single commands: whether the best guess by size is right, and how often the model says
//! that it is.

use std::collections::BTreeMap;

use sizeleak_model::Model;

use sizeleak_inference::channel::{Channel, EpsilonKnowledge, ModelSizes, Observation, Observer, SizeNoise};
use sizeleak_inference::space::{CommandSpace, SpaceError};

/// Probabilities that differ by rounding are equal.
const ROUNDING: f64 = 1e-9;

/// An observer who knows a model and how probable commands are, and sees sizes.
#[derive(Debug)]
pub struct ModelObserver<'a> {
    space: &'a CommandSpace,
    sizes: ModelSizes,
    guesses: BTreeMap<u64, Guess>,
    /// How often the guesses are right over all commands: V of the command and of the number of actions.
    named: NamedSecrets,
}

#[derive(Debug, Clone, Copy, Default)]
struct Guess {
    /// `max_A J(A, t)`.
    joint: f64,
    /// How many commands have it: the guess is one of them.
    commands: f64,
    /// The most probable number of actions, and J of it.
    number: u32,
    joint_of_number: f64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct NamedSecrets {
    pub command: f64,
    /// The number of its actions.
    pub number: f64,
}

impl<'a> ModelObserver<'a> {
    pub fn new(space: &'a CommandSpace, model: &Model) -> Result<Self, SpaceError> {
        let knowledge = EpsilonKnowledge::Distribution;
        let observation = Observation::new(space, model, Observer::Sizes, knowledge)?.ok_or(SpaceError::TooMany)?;
        let mut guesses = vec![Guess::default(); observation.command.outputs];
        find_commands(&observation.command, &mut guesses);
        for (number, row) in observation.numbers.iter().zip(&observation.number.rows) {
            for (output, probability) in &row.outputs {
                let joint = row.secrets.weight * probability;
                if let Some(guess) = guesses.get_mut(*output as usize).filter(|guess| joint > guess.joint_of_number) {
                    (guess.number, guess.joint_of_number) = (*number, joint);
                }
            }
        }
        let named = NamedSecrets {
            command: guesses.iter().map(|guess| guess.joint).sum(),
            number: guesses.iter().map(|guess| guess.joint_of_number).sum(),
        };
        let guesses = (0..).zip(guesses).map(|(output, guess)| (observation.output(output).size, guess)).collect();
        Ok(Self { space, sizes: ModelSizes::new(model, knowledge), guesses, named })
    }

    /// V over all commands, as probable as the prior says.
    pub fn named(&self) -> NamedSecrets {
        self.named
    }

    /// Whether a command of some size is possible.
    pub fn knows_size(&self, size: u64) -> bool {
        self.guesses.contains_key(&size)
    }

    /// Whether a command is possible: the counts of the model's actions.
    pub fn knows_command(&self, counts: &[u32]) -> bool {
        self.space.probability(counts) > 0.0
    }

    /// The probability that the guess is right about a command that was seen with some size: 1 or 0, or less than 1 where
    /// it is drawn from several that are as probable. A size that is not possible leaves nothing to guess, and a command that
    /// is not possible is never guessed.
    pub fn right(&mut self, counts: &[u32], size: u64) -> NamedSecrets {
        let prior = self.space.probability(counts);
        if prior <= 0.0 {
            return NamedSecrets::default();
        }
        let sizes = self.sizes_of(counts);
        let likelihood = sizes.iter().find(|(seen, _)| *seen == size).map_or(0.0, |(_, probability)| *probability);
        self.right_given(counts, size, prior * likelihood)
    }

    /// How often the model says that the guess is right about a command, over the sizes that it is seen with.
    pub fn expected(&mut self, counts: &[u32]) -> NamedSecrets {
        let prior = self.space.probability(counts);
        let mut expected = NamedSecrets::default();
        if prior > 0.0 {
            for (size, likelihood) in self.sizes_of(counts) {
                let right = self.right_given(counts, size, prior * likelihood);
                expected.command += likelihood * right.command;
                expected.number += likelihood * right.number;
            }
        }
        expected
    }

    fn right_given(&self, counts: &[u32], size: u64, joint: f64) -> NamedSecrets {
        let Some(guess) = self.guesses.get(&size) else { return NamedSecrets::default() };
        let is_best = joint > 0.0 && joint >= guess.joint * (1.0 - ROUNDING);
        let is_number = guess.joint_of_number > 0.0 && guess.number == counts.iter().sum::<u32>();
        NamedSecrets {
            command: if is_best { guess.commands.max(1.0).recip() } else { 0.0 },
            number: f64::from(u8::from(is_number)),
        }
    }

    /// The sizes that a command is seen with, and their probabilities.
    fn sizes_of(&mut self, counts: &[u32]) -> Vec<(u64, f64)> {
        let varying = self.sizes.varying().of_counts(counts);
        self.sizes.sizes(self.space.bytes_of(counts), counts.iter().sum(), &varying)
    }
}

/// For each output the most probable commands.
fn find_commands(channel: &Channel, guesses: &mut [Guess]) {
    for row in &channel.rows {
        for (output, probability) in &row.outputs {
            if let Some(guess) = guesses.get_mut(*output as usize) {
                guess.joint = guess.joint.max(row.secrets.most() * probability);
            }
        }
    }
    for row in &channel.rows {
        for (output, probability) in &row.outputs {
            let Some(guess) = guesses.get_mut(*output as usize) else { continue };
            let is_best = |weight: &&f64| **weight * probability >= guess.joint * (1.0 - ROUNDING);
            let best = row.secrets.greatest.iter().filter(|weight| **weight > 0.0).filter(is_best).count();
            // Of more commands than are kept, all are as probable, or it is not known how many are.
            let are_equal = row.secrets.weight >= row.secrets.count * row.secrets.most() * (1.0 - ROUNDING);
            guess.commands += match best {
                best if best == row.secrets.greatest.len() && are_equal => row.secrets.count,
                best => best as f64,
            };
        }
    }
}
