//! Commands by the multiple of a number of bytes that holds the size that is seen, and by probability.

use std::collections::BTreeMap;

use sizeleak_inference::channel::Observation;
use sizeleak_inference::space::{CommandGroup, KEPT};

/// The commands of an observation by the size that is seen, rounded up to a multiple of `unit` bytes, and by their
/// probability. A command that is seen with several of these counts as several, and rare commands that look alike are taken
/// to be as probable as they are on average: so a floor for these groups is one for the commands.
pub(crate) fn coarse_groups(observation: &Observation, unit: u64) -> Vec<CommandGroup> {
    let mut groups = Vec::new();
    for row in &observation.command.rows {
        let mut sizes: BTreeMap<u64, f64> = BTreeMap::new();
        for (output, probability) in &row.outputs {
            let size = observation.output(*output).size;
            *sizes.entry(size.checked_next_multiple_of(unit.max(1)).unwrap_or(size)).or_default() += probability;
        }
        for (bytes, probability) in sizes {
            let part = row.secrets.scaled(probability);
            let kept = part.greatest.iter().filter(|weight| **weight > 0.0);
            groups.extend(kept.clone().map(|weight| CommandGroup { bytes, commands: 1.0, probability: *weight }));
            let others = part.count - KEPT as f64;
            if others >= 1.0 {
                let weight = (part.weight - kept.sum::<f64>()).max(0.0);
                groups.push(CommandGroup { bytes, commands: others, probability: weight / others });
            }
        }
    }
    groups
}
