//! What padding costs.

use sizeleak_inference::space::SizeRow;

use sizeleak_model::policies::PaddingPolicy;

/// Bytes of commands, expected over all commands of an inventory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PaddingCost {
    /// The expected bytes of a command without padding.
    pub command_bytes: f64,
    /// The expected bytes that padding adds to it.
    pub added_bytes: f64,
}

impl PaddingCost {
    /// What a policy costs for commands of these sizes.
    pub fn of(rows: &[SizeRow], policy: &PaddingPolicy) -> Self {
        let expected = |bytes: &dyn Fn(u64) -> f64| rows.iter().map(|row| row.probability * bytes(row.bytes)).sum();
        let added = |size: u64| -> f64 {
            let padded = policy.padded_sizes(size);
            padded.iter().map(|padded| padded.probability * padded.bytes.saturating_sub(size) as f64).sum()
        };
        Self { command_bytes: expected(&|size| size as f64), added_bytes: expected(&added) }
    }

    /// The bytes added, as a share of the bytes without padding; 0 if there are none.
    pub fn share(&self) -> f64 {
        if self.command_bytes > 0.0 { self.added_bytes / self.command_bytes } else { 0.0 }
    }

    /// The megabytes (10⁶ bytes) that so many commands a day are longer by.
    pub fn megabytes_a_day(&self, commands: f64) -> f64 {
        self.added_bytes * commands / 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_expected_over_commands() {
        let row = |bytes, probability| SizeRow { bytes, commands: 1.0, probability, greatest: probability, plogp: 0.0 };
        let rows = [row(10, 0.75), row(30, 0.25)];
        let cost = PaddingCost::of(&rows, &PaddingPolicy::Multiple { bytes: 16 });
        assert_eq!(cost, PaddingCost { command_bytes: 15.0, added_bytes: 5.0 });
        assert!((cost.share() - 1.0 / 3.0).abs() < 1e-12 && (cost.megabytes_a_day(1000.0) - 0.005).abs() < 1e-12);
        let random = PaddingCost::of(&rows, &"random:6".parse().unwrap());
        assert!((random.added_bytes - 3.0).abs() < 1e-12);
        assert!(PaddingCost::of(&[], &PaddingPolicy::Padme).share().abs() < 1e-12);
    }
}
