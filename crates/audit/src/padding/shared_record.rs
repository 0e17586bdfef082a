//! Records that several commands share: how many they are, and what an observer of the record's size sees of one of them.

use sizeleak_model::Pmf;
use sizeleak_model::policies::PaddingPolicy;

use crate::padding::countermeasures::{CountermeasureError, Sending};
use crate::padding::expected_padding;
use crate::padding::padded_observation::{PaddedOutputs, SparseSums};
use sizeleak_inference::channel::{Channel, ChannelRow, KeyFigures, Observation};
use sizeleak_inference::space::SizeRow;

/// The most commands that are expected to share a record with another one: sums of more have more sizes than are summed
/// over in seconds.
const MAX_OTHERS: f64 = 32.0;

/// Less probable numbers of commands in an interval are left out, and less probable sums of sizes: below the rounding of a
/// sum that is near 1 (2⁻⁵³).
const MIN_PROBABILITY: f64 = 1e-17;

/// The worst cases are those of sizes of records that have at least this probability: what is left out does not change
/// them.
const MIN_RECORD: f64 = 1e-9;

/// The most sizes from the smallest to the greatest one of a record.
const MAX_WIDTH: usize = 1 << 18;

/// The most products of probabilities that are added up: a few seconds of work.
const MAX_ADDITIONS: usize = 1 << 31;

/// The most entries of a channel, which take longer.
const MAX_ENTRIES: usize = 1 << 28;

/// The most padded sizes of all sizes of records.
const MAX_SPREAD: usize = 1 << 23;

/// The commands of a record, as they are expected for a command in it. Each of the others is as probable as all commands
/// are, and independent.
#[derive(Debug)]
pub(crate) struct SharedRecord {
    /// The bytes of all commands but one.
    others: Pmf,
    /// By the number of commands from one on: the probability that a command is among so many, and their bytes.
    of_number: Vec<(f64, Pmf)>,
    sending: Sending,
}

impl SharedRecord {
    /// The records of commands of these sizes, of which so many come a second; `None` if each has a record of its own.
    pub(crate) fn new(
        rows: &[SizeRow],
        sending: Sending,
        commands_per_second: f64,
    ) -> Result<Option<Self>, CountermeasureError> {
        // Of a Poisson process, what comes beside a given command is a Poisson process, too.
        let numbers = match sending {
            Sending::AtOnce => return Ok(None),
            Sending::Batches(commands) => {
                (1..=commands).map(|number| if number == commands { 1.0 } else { 0.0 }).collect()
            }
            Sending::Every(seconds) => poisson(commands_per_second * seconds)?,
        };
        let sizes = rows.first().zip(rows.last()).map_or(0, |(first, last)| last.bytes - first.bytes);
        let width = usize::try_from(sizes).unwrap_or(usize::MAX).saturating_add(1);
        let most = numbers.len().max(1);
        if most.saturating_mul(width) > MAX_WIDTH || most * (most + 1) / 2 * width > MAX_ADDITIONS / rows.len().max(1) {
            return Err(CountermeasureError::TooManySizes);
        }
        let one = Pmf::from_values(rows.iter().map(|row| (row.bytes.cast_signed(), row.probability)));
        let (mut others, mut sum, mut of_number) = (Pmf::default(), Pmf::certain(0), Vec::new());
        for probability in numbers {
            if probability > 0.0 {
                others.add_moved(&sum, 0, probability);
            }
            sum = sum.convolve(&one);
            of_number.push((probability, sum.clone()));
        }
        if let Sending::Every(_) = sending {
            let likely = others.iter().filter(|(_, share)| **share >= MIN_PROBABILITY);
            others = Pmf::from_values(likely.map(|(bytes, share)| (bytes, *share))).normalised();
        }
        Ok(Some(Self { others, of_number, sending }))
    }

    pub(crate) fn records_per_command(&self) -> f64 {
        (1..).map(f64::from).zip(&self.of_number).map(|(number, (probability, _))| probability / number).sum()
    }

    /// The expected bytes that a policy adds for each command.
    pub(crate) fn added_bytes(&self, policy: &PaddingPolicy) -> f64 {
        let mut added_bytes = 0.0;
        for (number, (probability, sums)) in (1..).map(f64::from).zip(&self.of_number) {
            if *probability > 0.0 {
                let padding = |bytes: i64| expected_padding(policy, bytes.unsigned_abs());
                let of_record: f64 = sums.iter().map(|(bytes, share)| share * padding(bytes)).sum();
                added_bytes += probability / number * of_record;
            }
        }
        added_bytes
    }

    /// What is learned about the secrets of a channel of an observation of sizes, which are those of one command, from the
    /// size of the record that it shares.
    pub(crate) fn figures(
        &self,
        observation: &Observation,
        channel: &Channel,
        policy: &PaddingPolicy,
    ) -> Result<KeyFigures, CountermeasureError> {
        let sizes: Vec<u64> = (0..channel.outputs as u32).map(|output| observation.output(output).size).collect();
        let (least, most) = (sizes.iter().min().copied().unwrap_or(0), sizes.iter().max().copied().unwrap_or(0));
        let others = self.others.between(self.others.least(), self.others.end());
        let width = (most - least) as usize + others.len();
        let records = padded_records(least + self.others.least().unsigned_abs(), width, policy)?;
        let entries: usize = channel.rows.iter().map(|row| row.outputs.len()).sum();
        let is_too_much = entries.saturating_mul(others.len()) > MAX_ADDITIONS
            || channel.rows.len().saturating_mul(records.of_outputs.iter().map(Vec::len).sum()) > MAX_ENTRIES;
        if is_too_much {
            return Err(CountermeasureError::TooManySizes);
        }
        let (mut sums, mut seen) = (vec![0.0; width], SparseSums::new(records.outputs));
        let in_records = |row: &ChannelRow| {
            sums.fill(0.0);
            for (output, probability) in &row.outputs {
                let first = sizes.get(*output as usize).map_or(0, |size| (size - least) as usize);
                for (sum, other) in sums.iter_mut().skip(first).zip(others) {
                    *sum += probability * other;
                }
            }
            for (sum, padded) in sums.iter().zip(&records.of_outputs).filter(|(sum, _)| **sum > 0.0) {
                for (output, share) in padded {
                    seen.add(*output, sum * share);
                }
            }
            ChannelRow { secrets: row.secrets, outputs: seen.take() }
        };
        let least_probability = if let Sending::Every(_) = self.sending { MIN_RECORD } else { 0.0 };
        Ok(KeyFigures::of_rows(channel.rows.iter().map(in_records), records.outputs, least_probability))
    }
}

/// What records of so many sizes from `first` on are padded to.
fn padded_records(first: u64, width: usize, policy: &PaddingPolicy) -> Result<PaddedOutputs, CountermeasureError> {
    if width > MAX_WIDTH {
        return Err(CountermeasureError::TooManySizes);
    }
    let mut spread = 0;
    let padded = (first..).take(width).map_while(|size| {
        let padded = policy.padded_sizes(size);
        spread += padded.len();
        (spread <= MAX_SPREAD).then(|| padded.iter().map(|padded| (padded.bytes, padded.probability)).collect())
    });
    let (records, _) = PaddedOutputs::of(padded);
    if spread > MAX_SPREAD { Err(CountermeasureError::TooManySizes) } else { Ok(records) }
}

/// The probability that a command is among 1, 2, … commands where `expected` others come in the same time.
fn poisson(expected: f64) -> Result<Vec<f64>, CountermeasureError> {
    if expected > MAX_OTHERS {
        return Err(CountermeasureError::Crowded(expected));
    }
    let mut probabilities = Vec::new();
    let mut probability = (-expected).exp();
    // They fall beyond the expected number.
    while probability > MIN_PROBABILITY || (probabilities.len() as f64) < expected {
        probabilities.push(probability);
        probability *= expected / probabilities.len() as f64;
    }
    let all: f64 = probabilities.iter().sum();
    Ok(probabilities.into_iter().map(|probability| probability / all).collect())
}
