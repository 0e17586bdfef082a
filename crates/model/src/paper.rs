//! The paper's procedure (section IV): |aᵢ| = |s₂ᵢ| − |sᵢ| and |ac| = |sᵢ| − |aᵢ|, from commands of one action alone on
//! one device and on two.
//!
//! Where an experiment was repeated its median counts, and |ac| is the median over the actions. The estimate is biased
//! where a length field grows between the single and the double; that is the procedure's own.

use crate::fit::{FitError, LabelledCommand, Sizes, median, weigh};

pub(crate) fn sizes(names: &[String], commands: &[LabelledCommand]) -> Result<Sizes, FitError> {
    let mut actions = Vec::new();
    let mut overheads = Vec::new();
    for (action, name) in names.iter().enumerate() {
        let one = alone(name, action, 1, commands)?;
        let size = alone(name, action, 2, commands)? - one;
        actions.push(size);
        overheads.push(one - size);
    }
    // Of a range of sizes, which the paper has none of, the middle counts.
    let remainder = |command: &LabelledCommand| command.middle().saturating_sub(weigh(&actions, &command.counts));
    Ok(Sizes {
        overhead: median(&mut overheads),
        remainders: commands.iter().map(remainder).collect(),
        deviations: vec![0.0; actions.len()],
        actions,
        outliers: Vec::new(),
        ambiguous_shifts: Vec::new(),
    })
}

/// The size of the commands that are this action alone, on so many devices.
fn alone(name: &str, action: usize, devices: u32, commands: &[LabelledCommand]) -> Result<i64, FitError> {
    let is_alone = |command: &&LabelledCommand| {
        command.counts.iter().enumerate().all(|(at, count)| *count == if at == action { devices } else { 0 })
    };
    let mut sizes: Vec<i64> = commands.iter().filter(is_alone).map(LabelledCommand::middle).collect();
    if sizes.is_empty() {
        return Err(FitError::MissingExperiment { action: name.to_owned(), devices });
    }
    Ok(median(&mut sizes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::command;

    #[test]
    fn singles_and_doubles() {
        let commands = [
            command(140, &[1, 0]),
            command(141, &[1, 0]),
            command(140, &[1, 0]),
            command(180, &[2, 0]),
            command(145, &[0, 1]),
            command(190, &[0, 2]),
            command(999, &[1, 1]),
        ];
        let sizes = sizes(&["on".into(), "off".into()], &commands).unwrap();
        assert_eq!((sizes.overhead, sizes.actions), (100, vec![40, 45]));
    }
}
