//! Commands of one size: those that are equally probable, and what is known of all together. Rows of several sizes can be merged, as padding merges them.

use super::secret_sums::weight_log;

/// Commands of one size that are equally probable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CommandGroup {
    /// Their size in bytes.
    pub bytes: u64,
    /// How many there are; as a floating-point number, since it may exceed any integer type.
    pub commands: f64,
    /// The prior probability of each of them.
    pub probability: f64,
}

/// All commands of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizeRow {
    /// The size in bytes.
    pub bytes: u64,
    /// How many commands have it; as a floating-point number, since it may exceed any integer type.
    pub commands: f64,
    /// The prior probability of all of them together.
    pub probability: f64,
    /// The prior probability of the most probable one.
    pub greatest: f64,
    /// The sum of p·log₂(p) over their prior probabilities p, which is not positive.
    pub plogp: f64,
}

impl SizeRow {
    /// The rows of some commands, by size.
    pub fn of_groups(groups: &[CommandGroup]) -> Vec<Self> {
        let mut rows: Vec<Self> = groups.iter().map(Self::of).collect();
        rows.sort_by_key(|row| row.bytes);
        rows.dedup_by(|next, row| {
            let is_same = next.bytes == row.bytes;
            if is_same {
                row.add(next);
            }
            is_same
        });
        rows
    }

    fn of(group: &CommandGroup) -> Self {
        let CommandGroup { bytes, commands, probability } = *group;
        let plogp = commands * weight_log(probability);
        Self { bytes, commands, probability: commands * probability, greatest: probability, plogp }
    }

    /// Adds the commands of another size, as padding of both to one size would. The size stays.
    pub fn add(&mut self, other: &Self) {
        self.commands += other.commands;
        self.probability += other.probability;
        self.greatest = self.greatest.max(other.greatest);
        self.plogp += other.plogp;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_of_one_size_are_in_one_row() {
        let group = |bytes, commands, probability| CommandGroup { bytes, commands, probability };
        let rows = SizeRow::of_groups(&[group(7, 1.0, 0.5), group(5, 1.0, 0.25), group(7, 2.0, 0.125)]);
        let of_seven = SizeRow { bytes: 7, commands: 3.0, probability: 0.75, greatest: 0.5, plogp: -1.25 };
        let of_five = SizeRow { bytes: 5, commands: 1.0, probability: 0.25, greatest: 0.25, plogp: -0.5 };
        assert_eq!(rows, [of_five, of_seven]);
    }
}
