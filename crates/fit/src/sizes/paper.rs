//! The paper's procedure (section IV): |aᵢ| = |s₂ᵢ| − |sᵢ|, |ac| = |sᵢ| − |aᵢ|, from one action on one device and two.
//!
//! Of repeated experiments the median counts; |ac| is the median over the actions. As in the paper, the estimate is
//! biased if a length field grows between the single and the double.

use sizeleak_model::LabelledCommand;

use super::fitted_sizes::{Fit, FitError, median};
use super::remainders::action_bytes;

pub(crate) fn fit(names: &[String], commands: &[LabelledCommand]) -> Result<Fit, FitError> {
    let mut actions = Vec::new();
    let mut overheads = Vec::new();
    for (action, name) in names.iter().enumerate() {
        let one = size_alone(name, action, 1, commands)?;
        let size = size_alone(name, action, 2, commands)? - one;
        actions.push(size);
        overheads.push(one - size);
    }
    // The paper knows no ranges of sizes: take their middle.
    let remainder =
        |command: &LabelledCommand| command.middle().saturating_sub(action_bytes(&actions, &command.counts));
    let remainders: Vec<i64> = commands.iter().map(remainder).collect();
    Fit::of(names, &actions, median(&mut overheads), commands, &remainders, Vec::new())
}

/// The median size of the commands that consist of this action alone, on `devices` devices.
fn size_alone(name: &str, action: usize, devices: u32, commands: &[LabelledCommand]) -> Result<i64, FitError> {
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
    fn singles_and_doubles_determine_sizes_and_overhead() {
        let commands = [
            command(140, &[1, 0]),
            command(141, &[1, 0]),
            command(140, &[1, 0]),
            command(180, &[2, 0]),
            command(145, &[0, 1]),
            command(190, &[0, 2]),
            command(999, &[1, 1]),
        ];
        let fit = fit(&["on".into(), "off".into()], &commands).unwrap();
        assert_eq!((fit.overhead, fit.actions[0].size, fit.actions[1].size), (100, 40, 45));
    }
}
