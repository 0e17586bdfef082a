//! How often the command is named and how much is learned of it, size by size, so that no channel is kept.
//!
//! The same figures as [`super::Measures`] has of [`super::Observation::command`], for homes of more outputs. What is
//! too improbable to change a figure is left out, and its probability is known.

use std::collections::{BTreeMap, HashMap};

use foldhash::fast::FixedState;

use super::measures::entropy_bits;
use super::observation::{Row, RowKey, rows};
use super::reply_noise::{MIN_PROBABILITY, ReplyNoise, SeenReplies};
use super::size_noise::SizeNoise;
use crate::space::{CommandSpace, SpaceError};

/// The most pairs of a size and commands that look alike: as many take some seconds and 500 MB.
const MAX_CELLS: usize = 1 << 23;

/// The most outputs: as many take some ten seconds.
const MAX_OUTPUTS: usize = 1 << 28;

/// What an observer learns of the command.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CommandFigures {
    /// V₀: the probability that the best guess is right before anything is seen.
    pub guessing: f64,
    /// V: the same afterwards.
    pub named: f64,
    /// H(A) in bits.
    pub prior_bits: f64,
    /// I(A; T) in bits.
    pub information_bits: f64,
    /// The probability of what was left out: V is at most so much greater.
    pub left_out: f64,
}

/// Commands of which the same should be seen, and what is the probability of both.
#[derive(Debug, Clone, Copy)]
struct Cell<'a> {
    size: u64,
    actions: u32,
    /// How many replies of each class should come.
    classes: &'a [u32],
    joint: Joint,
}

/// J of some secrets with an output: the sum, and the greatest.
#[derive(Debug, Clone, Copy, Default)]
struct Joint {
    all: f64,
    greatest: f64,
}

impl Joint {
    fn add(&mut self, other: Self, share: f64) {
        self.all += share * other.all;
        self.greatest = self.greatest.max(share * other.greatest);
    }
}

impl CommandFigures {
    /// What is learned of the commands of a space by who sees their sizes and replies.
    ///
    /// # Errors
    /// [`SpaceError::TooMany`].
    pub fn new(space: &CommandSpace, sizes: &mut impl SizeNoise, replies: &ReplyNoise<'_>) -> Result<Self, SpaceError> {
        let rows = rows(space, sizes, replies)?;
        let mut seen = SeenReplies::new(replies);
        let mut figures = Self { left_out: space.left_out(), ..Self::default() };
        let cells = figures.cells(&rows, sizes, &mut seen)?;
        let mut outputs = 0;
        for of_size in cells.chunk_by(|one, next| one.size == next.size) {
            let mut joint: HashMap<Vec<u32>, Joint, FixedState> = HashMap::default();
            for cell in of_size {
                let mut all = 0.0;
                seen.visit(cell.actions, cell.classes, MIN_PROBABILITY / cell.joint.all, &mut |replies, share| {
                    all += share;
                    if let Some(joint) = joint.get_mut(replies) {
                        joint.add(cell.joint, share);
                    } else {
                        joint.entry(replies.to_vec()).or_default().add(cell.joint, share);
                    }
                })?;
                figures.left_out += (1.0 - all).max(0.0) * cell.joint.all;
            }
            outputs += joint.len();
            if outputs > MAX_OUTPUTS {
                return Err(SpaceError::TooMany);
            }
            figures.named += joint.values().map(|joint| joint.greatest).sum::<f64>();
            // I(A; T) = H(T) − H(T | A); the latter was taken off before.
            figures.information_bits += entropy_bits(joint.values().map(|joint| joint.all));
        }
        Ok(figures)
    }

    /// The commands by size and replies, in this order. Takes H(T | A) off the information.
    fn cells<'a>(
        &mut self,
        rows: &'a BTreeMap<RowKey, Row>,
        sizes: &mut impl SizeNoise,
        seen: &mut SeenReplies<'_>,
    ) -> Result<Vec<Cell<'a>>, SpaceError> {
        let mut of_sizes = BTreeMap::new();
        let mut cells: Vec<Cell<'_>> = Vec::new();
        for (key, Row { secrets, .. }) in rows {
            let of_size = of_sizes
                .entry((key.bytes, key.actions, &key.varying))
                .or_insert_with(|| sizes.sizes(key.bytes, key.actions, &key.varying));
            let size_bits = entropy_bits(of_size.iter().map(|(_, share)| *share));
            let cell = |size, share: f64| Cell {
                size,
                actions: key.actions,
                classes: &key.replies,
                joint: Joint { all: share * secrets.weight, greatest: share * secrets.most() },
            };
            let reply_bits = seen.bits(key.actions, &key.replies)?;
            self.guessing = self.guessing.max(secrets.most());
            self.prior_bits -= secrets.weighted_log;
            self.information_bits -= secrets.weight * (size_bits + reply_bits);
            cells.extend(of_size.iter().map(|(size, share)| cell(*size, *share)));
            if cells.len() > MAX_CELLS {
                return Err(SpaceError::TooMany);
            }
        }
        let looks = |cell: &Cell<'a>| (cell.size, cell.classes, cell.actions);
        cells.sort_by(|one, other| looks(one).cmp(&looks(other)));
        cells.dedup_by(|next, kept| {
            let is_same = looks(next) == looks(kept);
            if is_same {
                kept.joint.add(next.joint, 1.0);
            }
            is_same
        });
        Ok(cells)
    }
}
