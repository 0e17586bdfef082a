//! Which commands to record next, in words and as a label file to fill in.

/// Each command is to be recorded this many times, to outvote a wrong label or a rare number's width.
const TIMES: usize = 3;

/// How many commands a sentence names; the others are counted.
const SHOWN: usize = 12;

/// Commands to record, by how often each action occurs in them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordingPlan {
    actions: Vec<String>,
    commands: Vec<Vec<u32>>,
}

impl RecordingPlan {
    pub(crate) fn new(actions: &[String], commands: Vec<Vec<u32>>) -> Self {
        Self { actions: actions.to_vec(), commands }
    }

    /// How often each action occurs in each of the commands.
    pub fn commands(&self) -> &[Vec<u32>] {
        &self.commands
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// The commands with their counts, in words.
    pub(crate) fn in_words(&self) -> String {
        let shown: Vec<String> = self.commands.iter().take(SHOWN).map(|counts| self.command(counts)).collect();
        let more = self.commands.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more (`--suggest` writes them all)") } else { String::new() };
        format!("record next, three times each: {}{more}", shown.join("; "))
    }

    fn command(&self, counts: &[u32]) -> String {
        let counts = self.actions.iter().zip(counts).filter(|(_, count)| **count > 0);
        counts.map(|(action, count)| format!("{action}={count}")).collect::<Vec<_>>().join(", ")
    }

    /// A label file without times, with a row for each time a command is to be recorded.
    ///
    /// # Errors
    /// If the rows cannot be written as CSV.
    pub fn label_template(&self) -> csv::Result<Vec<u8>> {
        let mut text = Vec::new();
        let mut writer = csv::Writer::from_writer(&mut text);
        writer.write_record(std::iter::once("time").chain(self.actions.iter().map(String::as_str)))?;
        for counts in &self.commands {
            for _ in 0..TIMES {
                writer.write_record(std::iter::once(String::new()).chain(counts.iter().map(ToString::to_string)))?;
            }
        }
        writer.flush()?;
        drop(writer);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_listed_in_words_and_as_labels() {
        let plan = RecordingPlan::new(&["on".into(), "a,b".into()], vec![vec![1, 0], vec![2, 1]]);
        assert_eq!(plan.in_words(), "record next, three times each: on=1; on=2, a,b=1");
        let template = String::from_utf8(plan.label_template().unwrap()).unwrap();
        assert_eq!(template, "time,on,\"a,b\"\n,1,0\n,1,0\n,1,0\n,2,1\n,2,1\n,2,1\n");
        let many = RecordingPlan::new(&["on".into()], (1..=14).map(|count| vec![count]).collect());
        assert!(many.in_words().ends_with("; on=12 and 2 more (`--suggest` writes them all)"), "{}", many.in_words());
    }
}
