//! The table of identifications; frames of other kinds are lines between its rows.
//!
//! What all rows share stands above them, once: the day, and the gateway and the service as long as there is one.
//! Therefore a row fits 80 columns. When a second gateway or service appears, or a longer name, the headings are
//! repeated, with a column for it.

use std::io::{self, Write};

use anstyle::Style;
use sizeleak_frame::{Actions, FlowId, Frame, Identification};
use sizeleak_text::{escaped, fitted, width};

use crate::flow_names::{FlowEnds, FlowNames};
use crate::text_style::{TextFormat, painted};
use crate::{TextStyle, TimeFormat, line};

pub(crate) struct IdentificationTable {
    style: TextStyle,
    gateways: NameColumn,
    services: NameColumn,
    /// The day of the row before, by the clock of the style.
    date: Option<String>,
}

/// Columns of names widen by this many characters, so that headings are seldom repeated.
const STEP: usize = 8;

#[derive(Default)]
enum NameColumn {
    #[default]
    Empty,
    Single(String),
    /// Several; a column for the longest, in steps of [`STEP`].
    Several(usize),
}

impl NameColumn {
    /// Takes the name in the next row; returns whether that changes the column.
    fn add(&mut self, name: &str) -> bool {
        *self = match self {
            Self::Empty => Self::Single(name.to_owned()),
            Self::Single(single) if single == name => return false,
            Self::Single(single) => Self::Several(width(single).max(width(name)).next_multiple_of(STEP)),
            Self::Several(widest) if width(name) <= *widest => return false,
            Self::Several(_) => Self::Several(width(name).next_multiple_of(STEP)),
        };
        true
    }

    fn cell(&self, text: &str) -> String {
        match self {
            Self::Several(widest) => format!("  {}", fitted(text, *widest)),
            Self::Empty | Self::Single(_) => String::new(),
        }
    }
}

impl IdentificationTable {
    pub(crate) fn new(style: TextStyle) -> Self {
        Self { style, gateways: NameColumn::Empty, services: NameColumn::Empty, date: None }
    }

    fn write_row(
        &mut self,
        identification: &Identification,
        names: &FlowNames,
        output: &mut dyn Write,
    ) -> io::Result<()> {
        let command = &identification.command;
        let ends = names.ends(command.flow);
        let gateway = ends.and_then(FlowEnds::gateway_name).unwrap_or_else(|| FlowId(command.flow).to_string());
        let service = ends.and_then(FlowEnds::service_name).unwrap_or_else(|| "-".to_owned());
        let (gateway, service) = (escaped(&gateway), escaped(&service));
        let is_new = self.gateways.add(&gateway) | self.services.add(&service);
        let date = Some(self.style.times.date(command.time_ns));
        if is_new || date != self.date {
            self.date = date;
            writeln!(output, "{}", painted(self.style.colours.heading(), &self.caption()))?;
        }
        if is_new {
            writeln!(output, "{}", painted(self.style.colours.heading(), &self.headings()))?;
        }
        writeln!(output, "{}", self.row(identification, &gateway, &service))
    }

    fn caption(&self) -> String {
        let shared = [("gateway", &self.gateways), ("service", &self.services)].map(|(what, names)| match names {
            NameColumn::Single(name) => format!("  {what} {name}"),
            NameColumn::Empty | NameColumn::Several(_) => String::new(),
        });
        format!("{}{}", self.date.as_deref().unwrap_or_default(), shared.concat())
    }

    fn headings(&self) -> String {
        let time = self.style.times.heading();
        let cells = self.cells([time, "gateway", "service", "size", "replies", "candidates"]);
        format!("{cells}  prob.  most probable actions")
    }

    fn row(&self, identification: &Identification, gateway: &str, service: &str) -> String {
        let command = &identification.command;
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
        let style = self.style.colours.probability(best.map(|best| best.probability));
        let last = painted(style, &format!("{probability:>5}  {actions}"));
        let time = self.style.times.time_of_day(command.time_ns);
        let (size, replies) = (command.size.to_string(), command.replies.to_string());
        format!("{}  {last}", self.cells([&time, gateway, service, &size, &replies, &count]))
    }

    fn cells(&self, [time, gateway, service, size, replies, candidates]: [&str; 6]) -> String {
        let (gateway, service) = (self.gateways.cell(gateway), self.services.cell(service));
        let width = TimeFormat::TIME_OF_DAY_WIDTH;
        format!("{time:<width$}{gateway}{service}  {size:>5}  {replies:>7}  {candidates:>10}")
    }
}

/// `2 on, 1 colour`.
fn named(actions: &Actions) -> String {
    let each: Vec<String> = actions.iter().map(|(name, count)| format!("{count} {}", escaped(name))).collect();
    if each.is_empty() { "none".to_owned() } else { each.join(", ") }
}

impl TextFormat for IdentificationTable {
    fn write(&mut self, frame: &Frame, names: &FlowNames, output: &mut dyn Write) -> io::Result<()> {
        if let Frame::Identification(identification) = frame {
            return self.write_row(identification, names, output);
        }
        let colours = self.style.colours;
        let style = if matches!(frame, Frame::Notice(_)) { colours.notice() } else { Style::new() };
        let mut lines = line::lines(frame, &self.style).into_iter();
        lines.try_for_each(|line| writeln!(output, "{}", painted(style, line.trim_end())))
    }
}

#[cfg(test)]
mod tests;
