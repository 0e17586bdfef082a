//! Which commands to record next, as a person reads it and as a label file to fill in.

use std::fmt::Write;

use anyhow::Context;

/// Each command is to be recorded so often: one wrong label, or a rare number's width, is then outvoted.
const TIMES: usize = 3;

/// So many commands are named in a sentence, the others counted.
const SHOWN: usize = 12;

/// Commands to record, by how often each action occurs in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Advice {
    actions: Vec<String>,
    commands: Vec<Vec<u32>>,
}

impl Advice {
    pub(super) fn new(actions: &[String], commands: Vec<Vec<u32>>) -> Self {
        Self { actions: actions.to_vec(), commands }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The commands with their counts, in words.
    pub(super) fn in_words(&self) -> String {
        let shown: Vec<String> = self.commands.iter().take(SHOWN).map(|counts| self.command(counts)).collect();
        let more = self.commands.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more (`--record` writes them all)") } else { String::new() };
        format!("record next, three times each: {}{more}", shown.join("; "))
    }

    fn command(&self, counts: &[u32]) -> String {
        let mut text = String::new();
        for (action, count) in self.actions.iter().zip(counts).filter(|(_, count)| **count > 0) {
            let comma = if text.is_empty() { "" } else { ", " };
            // Writing to a string does not fail.
            let _ = write!(text, "{comma}{action}={count}");
        }
        text
    }

    /// A label file without times, a row for each time each command is to be recorded.
    pub(super) fn template(&self) -> anyhow::Result<String> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(std::iter::once("time").chain(self.actions.iter().map(String::as_str)))?;
        for counts in &self.commands {
            let counts = counts.iter().map(ToString::to_string);
            let row: Vec<String> = std::iter::once(String::new()).chain(counts).collect();
            for _ in 0..TIMES {
                writer.write_record(&row)?;
            }
        }
        String::from_utf8(writer.into_inner()?).context("labels are text")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_in_words_and_as_labels() {
        let advice = Advice::new(&["on".into(), "a,b".into()], vec![vec![1, 0], vec![2, 1]]);
        assert_eq!(advice.in_words(), "record next, three times each: on=1; on=2, a,b=1");
        assert_eq!(advice.template().unwrap(), "time,on,\"a,b\"\n,1,0\n,1,0\n,1,0\n,2,1\n,2,1\n,2,1\n");
        let many = Advice::new(&["on".into()], (1..=14).map(|count| vec![count]).collect());
        assert!(many.in_words().ends_with("; on=12 and 2 more (`--record` writes them all)"), "{}", many.in_words());
    }
}
