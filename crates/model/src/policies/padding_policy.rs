//! A padding policy: to which sizes it pads a command of each size, the sizes that a padded command may have had, the
//! limits that a policy must keep, and why one cannot be used.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// To which sizes commands are padded. Sizes are bytes of plaintext: what an application gives to TLS as one message.
///
/// Commands larger than the last size of a table, or than a constant size, are padded to the next multiple of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum PaddingPolicy {
    #[default]
    None,
    Multiple {
        bytes: u64,
    },
    PowersOfTwo,
    /// Padmé: to the next size with as many significant bits as its exponent has (Nikitin et al., "Reducing Metadata
    /// Leakage from Encrypted Files and Communication with PURBs", PETS 2019, section 4).
    Padme,
    /// TLS 1.3 record padding, as OpenSSL's `SSL_CTX_set_block_padding`: each record that is not full, with the byte of
    /// its content type, to the next multiple, at most 16384 bytes.
    Tls13Multiple {
        bytes: u64,
    },
    /// Random padding of 0 to `most` bytes, each number as likely.
    Random {
        most: u64,
        draw: Draw,
    },
    Constant {
        bytes: u64,
    },
    /// To the smallest bucket that holds the command.
    Table {
        /// The sizes of the buckets in bytes, ascending.
        buckets: Vec<u64>,
    },
    /// Each size of a list to sizes of its own.
    Map {
        /// Sizes, and what each is padded to; by ascending size. A size between two is padded as the next larger one.
        sizes: Vec<[u64; 2]>,
    },
    RandomTable {
        /// The distributions, by ascending size. A size between two is padded as the next larger one.
        rows: Vec<RandomRow>,
        draw: Draw,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Draw {
    /// Anew for every message, which averages out over repetitions of a command
    Independent,
    /// By a secret key and the command: the same command always has the same padding
    Keyed,
}

/// To which sizes commands of one size are padded at random.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RandomRow {
    pub size: u64,
    pub padded: Vec<PaddedSize>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PaddedSize {
    pub bytes: u64,
    pub probability: f64,
}

impl PaddingPolicy {
    /// How padding is drawn; `None` if nothing is random.
    pub fn draw(&self) -> Option<Draw> {
        match self {
            Self::Random { draw, .. } | Self::RandomTable { draw, .. } => Some(*draw),
            _ => None,
        }
    }

    /// The padded size of a command of `size` bytes; `None` if it is random.
    pub fn padded(&self, size: u64) -> Option<u64> {
        let padded = match self {
            Self::None => size,
            Self::Multiple { bytes } | Self::Constant { bytes } => next_multiple(size, *bytes),
            Self::PowersOfTwo => size.checked_next_power_of_two().unwrap_or(u64::MAX),
            Self::Padme => padme(size),
            Self::Tls13Multiple { bytes } => in_records(size, *bytes),
            Self::Table { buckets } => {
                let bucket = buckets.get(buckets.partition_point(|bucket| *bucket < size)).copied();
                bucket.unwrap_or_else(|| beyond(size, buckets.last().copied()))
            }
            Self::Map { sizes } => {
                let row = sizes.get(sizes.partition_point(|[from, _]| *from < size));
                let greatest = sizes.iter().map(|[_, to]| *to).max();
                row.map_or_else(|| beyond(size, greatest), |[_, to]| *to)
            }
            Self::Random { .. } | Self::RandomTable { .. } => return None,
        };
        Some(padded)
    }

    /// All padded sizes of a command of `size` bytes with their probabilities, which sum to 1, by ascending size.
    pub fn padded_sizes(&self, size: u64) -> Vec<PaddedSize> {
        match self {
            Self::Random { most, .. } => {
                let probability = 1.0 / (*most as f64 + 1.0);
                let padded = (0..=*most).map(|added| PaddedSize { bytes: size.saturating_add(added), probability });
                padded.collect()
            }
            Self::RandomTable { rows, .. } => match rows.get(rows.partition_point(|row| row.size < size)) {
                Some(row) => row.padded.clone(),
                None => vec![PaddedSize::certain(beyond(size, greatest_of(rows)))],
            },
            _ => self.padded(size).map(PaddedSize::certain).into_iter().collect(),
        }
    }

    /// The padded size of a command of `size` bytes for one `draw` of 64 random bits, each of which is as likely: of a
    /// generator, or of a [`crate::policies::PaddingKey`]. Policies without chance do not need it.
    pub fn drawn(&self, size: u64, draw: u64) -> u64 {
        let padded = match self {
            // (most + 1) · draw / 2^64 is below most + 1.
            Self::Random { most, .. } => {
                size.saturating_add((((u128::from(*most) + 1) * u128::from(draw)) >> 64) as u64)
            }
            Self::RandomTable { rows, .. } => match rows.get(rows.partition_point(|row| row.size < size)) {
                Some(row) => row.at(draw as f64 / 2_f64.powi(64)),
                None => beyond(size, greatest_of(rows)),
            },
            _ => self.padded(size).unwrap_or(size),
        };
        padded.max(size)
    }

    /// Checks what the types do not enforce.
    pub fn check(&self) -> Result<(), PolicyError> {
        match self {
            Self::None | Self::PowersOfTwo | Self::Padme => Ok(()),
            Self::Multiple { bytes } | Self::Constant { bytes } | Self::Tls13Multiple { bytes } => {
                if (1..=MAX_PADDING_UNIT).contains(bytes) { Ok(()) } else { Err(PolicyError::Unit(*bytes)) }
            }
            Self::Random { most, .. } => {
                if *most <= MAX_RANDOM_BYTES {
                    Ok(())
                } else {
                    Err(PolicyError::Most(*most))
                }
            }
            Self::Table { buckets } => check_sizes(buckets.iter().copied()),
            Self::Map { sizes } => {
                check_sizes(sizes.iter().map(|[from, _]| *from))?;
                sizes.iter().try_for_each(|[from, to]| check_padded(*from, *to))
            }
            Self::RandomTable { rows, .. } => {
                check_sizes(rows.iter().map(|row| row.size))?;
                rows.iter().try_for_each(RandomRow::check)
            }
        }
    }
}

impl PaddedSize {
    fn certain(bytes: u64) -> Self {
        Self { bytes, probability: 1.0 }
    }
}

impl RandomRow {
    /// The size that as large a share of the row's probabilities leads to, from 0 to below 1.
    fn at(&self, share: f64) -> u64 {
        let mut left = share;
        for padded in &self.padded {
            left -= padded.probability;
            if left < 0.0 {
                return padded.bytes;
            }
        }
        // Rounding: the probabilities sum to slightly less than 1.
        self.padded.last().map_or(self.size, |padded| padded.bytes)
    }

    fn check(&self) -> Result<(), PolicyError> {
        check_sizes(self.padded.iter().map(|padded| padded.bytes))?;
        self.padded.iter().try_for_each(|padded| check_padded(self.size, padded.bytes))?;
        let sum: f64 = self.padded.iter().map(|padded| padded.probability).sum();
        let are_probable = self.padded.iter().all(|padded| padded.probability > 0.0);
        if are_probable && (sum - 1.0).abs() < 1e-6 { Ok(()) } else { Err(PolicyError::Probabilities(self.size)) }
    }
}

fn greatest_of(rows: &[RandomRow]) -> Option<u64> {
    rows.iter().flat_map(|row| &row.padded).map(|padded| padded.bytes).max()
}

/// The padded size of a command that is larger than all sizes of a table, of which `greatest` is the greatest.
fn beyond(size: u64, greatest: Option<u64>) -> u64 {
    next_multiple(size, greatest.unwrap_or(1))
}

fn next_multiple(size: u64, unit: u64) -> u64 {
    size.checked_next_multiple_of(unit.max(1)).unwrap_or(u64::MAX)
}

/// Clears all but the first bits of the size, as many as its exponent has, and rounds up.
fn padme(size: u64) -> u64 {
    let Some(exponent) = size.checked_ilog2().filter(|exponent| *exponent > 0) else { return size };
    let cleared = exponent - (exponent.ilog2() + 1);
    size.checked_next_multiple_of(1 << cleared).unwrap_or(u64::MAX)
}

/// The plaintext of a message in records of which each, with its byte of content type, is padded to a multiple. Full
/// records are not padded.
fn in_records(size: u64, unit: u64) -> u64 {
    let last = size % TLS_RECORD_BYTES;
    if last == 0 {
        return size;
    }
    let padded = next_multiple(last + 1, unit).min(TLS_RECORD_BYTES) - 1;
    (size - last).saturating_add(padded.max(last))
}

fn check_sizes(sizes: impl ExactSizeIterator<Item = u64>) -> Result<(), PolicyError> {
    if !(1..=MAX_BUCKETS).contains(&sizes.len()) {
        return Err(PolicyError::Buckets(sizes.len()));
    }
    let mut before = 0;
    for size in sizes {
        if size <= before || size > MAX_PADDING_UNIT {
            return Err(PolicyError::Order(size));
        }
        before = size;
    }
    Ok(())
}

fn check_padded(size: u64, padded: u64) -> Result<(), PolicyError> {
    if padded > MAX_PADDING_UNIT {
        return Err(PolicyError::Order(padded));
    }
    if padded < size { Err(PolicyError::Cut { size, padded }) } else { Ok(()) }
}

impl PaddingPolicy {
    /// The smallest and the largest size that may be padded to `padded` bytes; `None` if no size is. Where the policy is a
    /// [`PaddingPolicy::Map`] or random, not every size between them need be: [`Self::probability`] says which.
    pub fn sizes_before(&self, padded: u64) -> Option<[u64; 2]> {
        match self {
            Self::Random { most, .. } => Some([padded.saturating_sub(*most), padded]),
            Self::Map { sizes } => {
                let rows = sizes.iter().map(|[from, to]| (*from, *to == padded));
                hull(rows, padded, sizes.iter().map(|[_, to]| *to).max())
            }
            Self::RandomTable { rows, .. } => {
                let leads = |row: &RandomRow| row.padded.iter().any(|possible| possible.bytes == padded);
                hull(rows.iter().map(|row| (row.size, leads(row))), padded, greatest_of(rows))
            }
            // Larger sizes are padded to larger ones, so that those which are padded to one size are a range.
            _ => {
                let first = first_size(padded, |size| self.padded(size) >= Some(padded));
                let last = first_size(padded, |size| self.padded(size) > Some(padded)).checked_sub(1);
                (self.padded(first) == Some(padded)).then(|| [first, last.unwrap_or(padded).max(first)])
            }
        }
    }

    /// The probability that a command of `size` bytes is padded to `padded` bytes.
    pub fn probability(&self, size: u64, padded: u64) -> f64 {
        match self {
            Self::Random { most, .. } => match padded.checked_sub(size) {
                Some(added) if added <= *most => 1.0 / (*most as f64 + 1.0),
                _ => 0.0,
            },
            Self::RandomTable { .. } => {
                let possible = self.padded_sizes(size).into_iter().filter(|possible| possible.bytes == padded);
                possible.map(|PaddedSize { probability, .. }| probability).sum()
            }
            _ => f64::from(u8::from(self.padded(size) == Some(padded))),
        }
    }
}

/// The smallest size up to `limit` for which `holds`, which holds for all larger ones too; else the next size.
fn first_size(limit: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, limit.saturating_add(1));
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// From the smallest to the largest size that rows lead from, each given by its size and whether it leads to `padded`. A
/// row is for all sizes above the one before; beyond the last, sizes are padded to multiples of the greatest.
fn hull(rows: impl Iterator<Item = (u64, bool)>, padded: u64, greatest: Option<u64>) -> Option<[u64; 2]> {
    let (mut hull, mut next) = (None, 0);
    let mut add = |from: u64, to: u64| {
        let [first, _] = hull.unwrap_or([from, to]);
        hull = Some([first, to]);
    };
    for (size, leads) in rows {
        if leads {
            add(next, size);
        }
        next = size + 1;
    }
    let unit = greatest.unwrap_or(1).max(1);
    if padded >= next && padded.is_multiple_of(unit) {
        add(next.max(padded.saturating_sub(unit - 1)), padded);
    }
    hull
}

#[derive(Debug, Error, Clone, PartialEq, Eq)]
pub enum PolicyError {
    #[error("the padding policy cannot be read: {0}")]
    Syntax(String),
    #[error("the padding policy has version {found}, while this program reads version {known}: make it again")]
    Version { found: u32, known: u32 },
    #[error(
        "there is no padding policy `{0}`: give none, multiple:BYTES, powers-of-two, padme, tls13:BYTES, \
         random:BYTES, keyed-random:BYTES or constant:BYTES"
    )]
    Name(String),
    #[error("a padding policy's `bytes` must be from 1 to {MAX_PADDING_UNIT}, not {0}")]
    Unit(u64),
    #[error("random padding may add up to {MAX_RANDOM_BYTES} bytes, not {0}")]
    Most(u64),
    #[error("a padding table must have from 1 to {MAX_BUCKETS} sizes, not {0}")]
    Buckets(usize),
    #[error("the sizes of a padding table must ascend from 1 to {MAX_PADDING_UNIT}, and {0} does not")]
    Order(u64),
    #[error("the probabilities of the padding table's row of {0} bytes must be above 0 and sum to 1")]
    Probabilities(u64),
    #[error("the padding table pads {size} bytes to {padded}: padding can only add bytes")]
    Cut { size: u64, padded: u64 },
}

/// The most bytes of a unit of padding, or of a size in a table.
pub const MAX_PADDING_UNIT: u64 = 1 << 30;

/// The most random bytes: every padded size of every command is summed over.
pub const MAX_RANDOM_BYTES: u64 = 4096;

pub const MAX_BUCKETS: usize = 65_536;

/// The most plaintext bytes of a TLS record (RFC 8446, section 5.1).
pub const TLS_RECORD_BYTES: u64 = 1 << 14;
