//! The table of identifications; frames of other kinds are lines between its rows.

use std::io::{self, Write};

use anstyle::Style;
use sizeleak_frame::{Actions, Frame, Identification};
use sizeleak_text::escaped;

use crate::colours::painted;
use crate::flow_names::FlowNames;
use crate::text_format::TextFormat;
use crate::{TextStyle, line};

/// A human-readable table.
pub(crate) struct IdentificationTable {
    style: TextStyle,
    names: FlowNames,
    has_headings: bool,
}

impl IdentificationTable {
    pub(crate) fn new(style: TextStyle) -> Self {
        Self { style, names: FlowNames::default(), has_headings: false }
    }

    fn row(&self, identification: &Identification) -> String {
        let command = &identification.command;
        let unknown = || format!("flow {:08x}", command.flow >> 32);
        let gateway = self.names.gateway(command.flow).map_or_else(unknown, str::to_owned);
        let service = escaped(self.names.service(command.flow).unwrap_or("-")).into_owned();
        let count = match identification.candidate_count {
            u64::MAX => "too many".to_owned(),
            count => count.to_string(),
        };
        let best = identification.candidates.first();
        let (probability, actions) = match best {
            Some(best) => (format!("{:.3}", best.probability), named(&best.actions)),
            // Without a model for its flow there is no probability of its size.
            None if identification.size_probability.is_none() => ("-".to_owned(), "not answered".to_owned()),
            None => ("-".to_owned(), "no actions add up to this size".to_owned()),
        };
        let time = self.style.times.format(command.time_ns);
        let style = self.style.colours.probability(best.map(|best| best.probability));
        let last = painted(style, &format!("{probability:>11}  {actions}"));
        self.cells([&time, &gateway, &service, &command.size, &command.replies, &count], &last)
    }

    fn headings(&self) -> String {
        let last = format!("{:>11}  most probable actions", "probability");
        let heading = self.style.times.heading();
        let all = self.cells([&heading, &"gateway", &"service", &"size", &"replies", &"candidates"], &last);
        painted(self.style.colours.heading(), &all)
    }

    fn cells(&self, cells: [&dyn std::fmt::Display; 6], last: &str) -> String {
        let [time, gateway, service, size, replies, candidates] = cells.map(ToString::to_string);
        let width = self.style.times.width();
        format!("{time:<width$}  {gateway:<15}  {service:<21}  {size:>6}  {replies:>7}  {candidates:>10}  {last}")
    }
}

/// `2 on, 1 colour`.
fn named(actions: &Actions) -> String {
    let each: Vec<String> = actions.iter().map(|(name, count)| format!("{count} {}", escaped(name))).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

impl TextFormat for IdentificationTable {
    fn write(&mut self, frame: &Frame, output: &mut dyn Write) -> io::Result<()> {
        self.observe(frame);
        let Frame::Identification(identification) = frame else {
            let colours = self.style.colours;
            let style = if matches!(frame, Frame::Notice(_)) { colours.notice() } else { Style::new() };
            let mut lines = line::lines(frame, &self.style).into_iter();
            return lines.try_for_each(|line| writeln!(output, "{}", painted(style, line.trim_end())));
        };
        if !std::mem::replace(&mut self.has_headings, true) {
            writeln!(output, "{}", self.headings())?;
        }
        writeln!(output, "{}", self.row(identification))
    }

    fn observe(&mut self, frame: &Frame) {
        self.names.observe(frame);
    }
}

#[cfg(test)]
mod tests;
