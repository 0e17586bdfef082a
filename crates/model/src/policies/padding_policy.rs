//! A padding policy: to which sizes it pads a command of each size.

mod before_padding;

use serde::{Deserialize, Serialize};

use crate::policies::policy_error::{MAX_BUCKETS, MAX_PADDING_UNIT, MAX_RANDOM_BYTES, PolicyError, TLS_RECORD_BYTES};

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

#[cfg(test)]
mod tests;
