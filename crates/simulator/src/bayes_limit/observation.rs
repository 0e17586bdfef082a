//! What an observer sees of commands, and how often the best answer to it is right.

use std::collections::BTreeMap;

use super::action_traits::{Lengths, ScenarioTraits};
use super::command_groups::{CommandGroup, CommandGroups};
use super::counting::{CountKey, entropy, merge_by_key};
use super::limit_error::BayesLimitError;
use super::observed_sizes::ObservedSizes;
use super::reply_evidence::{Outcome, ReplyEvidence, SeenReplies};
use crate::scenario::{ReplyMode, Scenario};

/// The most pairs of a size and a group of commands; as many take some seconds and 500 MB.
const MAX_CELLS: usize = 1 << 23;
/// The most observations; as many take some ten seconds.
const MAX_OBSERVATIONS: usize = 1 << 28;
/// Observations of a group of commands that are less probable are neglected.
const NEGLIGIBLE: f64 = 1e-11;
/// The largest probability of all that is neglected.
const MAX_NEGLECTED: f64 = 0.002;

/// Commands whose bodies have the same form: those before or after new firmware, with ids of one width if ids grow.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Period {
    /// The share of commands.
    pub(super) share: f64,
    /// The bytes that new firmware adds to each body.
    pub(super) added_bytes: usize,
    /// The digits of the message id, with their probabilities.
    pub(super) id_widths: Vec<(u32, f64)>,
}

/// What an observer learns.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Learned {
    /// The probability that the best answer is right.
    pub(super) top_1: f64,
    /// The mutual information of actions and observation, in bits.
    pub(super) leaked_bits: f64,
    /// The probability of all that was neglected.
    pub(super) neglected: f64,
}

/// Commands that look alike but for the replies to single actions.
#[derive(Debug, Clone, Copy)]
struct Cell {
    /// The size of the command, and of the reply to the whole command, which is 0 if there is none.
    sizes: (usize, usize),
    /// Their numbers of replies with each distribution of sizes; in an observation, those of each size.
    replies: u128,
    /// Their probability.
    mass: f64,
    /// The joint probability of the sizes and the most probable command.
    best: f64,
}

/// The observer of a scenario's commands in one period.
#[derive(Debug)]
pub(super) struct Observer<'a> {
    pub(super) scenario: &'a Scenario,
    pub(super) traits: &'a ScenarioTraits,
    pub(super) commands: &'a CommandGroups,
    pub(super) period: &'a Period,
}

impl Observer<'_> {
    /// What an observer learns who sees sizes and these replies, apart from all other traffic.
    pub(super) fn learns(&self, seen: SeenReplies) -> Result<Learned, BayesLimitError> {
        let mut observed = ObservedSizes::new(self.scenario, self.period.added_bytes);
        let evidence = ReplyEvidence::new(self.scenario, self.traits, &self.commands.replies, seen, &mut observed)?;
        let (cells, noise_bits) = self.cells(seen, &evidence, &mut observed)?;
        let (mut learned, mut count, mut kept) = (Learned::default(), 0_usize, 0.0);
        let (mut alike, mut outcomes): (Vec<Cell>, Vec<Outcome>) = (Vec::new(), Vec::new());
        for cells in cells.chunk_by(|one, next| one.sizes == next.sizes) {
            alike.clear();
            for cell in cells {
                kept += cell.mass;
                let unused = evidence.outcomes(cell.replies, NEGLIGIBLE / cell.mass, &mut outcomes);
                alike.extend(outcomes.iter().map(|outcome| {
                    let (mass, best) = (cell.mass * outcome.chance, cell.best * outcome.chance);
                    Cell { replies: outcome.seen, mass, best, ..*cell }
                }));
                learned.neglected += unused * cell.mass;
            }
            count = count.saturating_add(alike.len());
            if count > MAX_OBSERVATIONS {
                return Err(BayesLimitError::TooMany);
            }
            merge_by_key(&mut alike, |cell| cell.replies, Cell::add);
            learned.top_1 += alike.iter().map(|cell| cell.best).sum::<f64>();
            learned.leaked_bits += entropy(alike.iter().map(|cell| cell.mass));
        }
        learned.neglected += (1.0 - kept).max(0.0);
        if learned.neglected > MAX_NEGLECTED {
            return Err(BayesLimitError::TooMany);
        }
        // I(actions; observation) = H(observation) − H(observation | actions).
        learned.leaked_bits -= noise_bits;
        Ok(learned)
    }

    /// The commands by size, and the entropy of the observation if the actions are known, in bits.
    fn cells(
        &self,
        seen: SeenReplies,
        evidence: &ReplyEvidence<'_>,
        observed: &mut ObservedSizes<'_>,
    ) -> Result<(Vec<Cell>, f64), BayesLimitError> {
        let mut parameters =
            ParameterLengths { traits: self.traits, key: &self.commands.parameters, sums: BTreeMap::new() };
        let mut reply_bits: BTreeMap<u128, f64> = BTreeMap::new();
        let (mut cells, mut noise_bits) = (Vec::new(), 0.0);
        let is_same_size = |one: &CommandGroup, next: &CommandGroup| {
            (one.bytes, one.total, one.parameters) == (next.bytes, next.total, next.parameters)
        };
        for groups in self.commands.groups.chunk_by(is_same_size) {
            let Some(first) = groups.first() else { continue };
            let sizes = self.sizes(first, seen, parameters.of(first.parameters), observed)?;
            let size_bits = entropy(sizes.values().copied());
            if cells.len() > MAX_CELLS {
                return Err(BayesLimitError::TooMany);
            }
            for group in groups {
                let replies = evidence.replies(group.replies);
                let bits = reply_bits.entry(replies).or_insert_with(|| evidence.entropy(replies));
                noise_bits += group.mass * (size_bits + *bits);
                let likely = sizes.iter().filter(|(_, chance)| group.mass * **chance >= NEGLIGIBLE);
                cells.extend(likely.map(|(sizes, chance)| Cell {
                    sizes: *sizes,
                    replies,
                    mass: group.mass * chance,
                    best: group.best * chance,
                }));
            }
        }
        merge_by_key(&mut cells, |cell| (cell.sizes, cell.replies), Cell::add);
        Ok((cells, noise_bits))
    }

    /// The sizes of a group's commands and of the replies to them as a whole, with their probabilities.
    fn sizes(
        &self,
        group: &CommandGroup,
        seen: SeenReplies,
        parameters: &Lengths,
        observed: &mut ObservedSizes<'_>,
    ) -> Result<BTreeMap<(usize, usize), f64>, BayesLimitError> {
        let mut sizes: BTreeMap<(usize, usize), f64> = BTreeMap::new();
        for (width, width_chance) in &self.period.id_widths {
            let whole = self.whole_reply(*width, seen, observed)?;
            for app in &self.traits.apps {
                let fixed = app.base + app.more_bytes * group.total as usize + group.bytes + *width as usize;
                for (length, length_chance) in parameters {
                    let size = observed.command(fixed + length)?;
                    for (reply, reply_chance) in &whole {
                        let chance = width_chance * app.share * length_chance * reply_chance;
                        *sizes.entry((size, *reply)).or_default() += chance;
                    }
                }
            }
        }
        Ok(sizes)
    }

    /// The size of the reply to a whole command, 0 if there is none, with its probability.
    fn whole_reply(
        &self,
        id_width: u32,
        seen: SeenReplies,
        observed: &mut ObservedSizes<'_>,
    ) -> Result<Vec<(usize, f64)>, BayesLimitError> {
        let settings = self.scenario.replies;
        let size = match (settings.mode, seen) {
            (ReplyMode::PerAction | ReplyMode::None, _) | (_, SeenReplies::None) => return Ok(vec![(0, 1.0)]),
            (ReplyMode::PerCommand, SeenReplies::Number) => 1,
            (ReplyMode::PerCommand, SeenReplies::Sizes) => observed.done(id_width)?,
        };
        Ok(vec![(size, 1.0 - settings.loss), (0, settings.loss)])
    }
}

impl Cell {
    fn add(&mut self, other: &Self) {
        self.mass += other.mass;
        self.best = self.best.max(other.best);
    }
}

/// The total lengths of the parameters of commands.
#[derive(Debug)]
struct ParameterLengths<'a> {
    traits: &'a ScenarioTraits,
    key: &'a CountKey,
    /// By the numbers of parameters of each distribution.
    sums: BTreeMap<u128, Lengths>,
}

impl ParameterLengths<'_> {
    fn of(&mut self, parameters: u128) -> &Lengths {
        let Self { traits, key, sums } = self;
        sums.entry(parameters).or_insert_with(|| {
            let mut sum: Lengths = vec![(0, 1.0)];
            for (count, lengths) in key.counts(parameters).zip(&traits.parameters) {
                for _ in 0..count {
                    let more = |(so_far, chance): &(usize, f64)| {
                        let (so_far, chance) = (*so_far, *chance);
                        lengths.iter().map(move |(length, share)| (so_far + length, chance * share))
                    };
                    sum = sum.iter().flat_map(more).collect();
                    merge_by_key(&mut sum, |(length, _)| *length, |kept, (_, chance)| kept.1 += chance);
                }
            }
            sum
        })
    }
}
