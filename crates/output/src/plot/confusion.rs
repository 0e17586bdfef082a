//! Draws which actions are taken for which others.

use std::fmt::Write as _;

use serde::Deserialize;
use sizeleak_text::counted;
use svg::node::element::Title;

use super::page::{
    COLOURS, PictureSize, TEXT, TooSmall, clean, colour_step, rectangle, text, text_around, text_before, text_width,
};
use super::panel::{Heading, Panel, Surroundings, labels_width, shade_key};

/// Actions beyond so many are left out: their cells would be too small to read.
const MAX_ACTIONS: usize = 24;
const MAX_NAME: usize = 14;
/// The least width and height of a cell that has room for its number.
const MIN_NUMBER: (f64, f64) = (21.0, 12.0);
/// The shade of cells below this share, which are many and seldom matter.
const RARE: f64 = 0.05;
const RARE_COLOUR: &str = "#e4ecf5";
/// Colours from this step on are too dark for dark text.
const DARK_STEP: usize = 2;

/// Which actions are taken for which others, as far as it is drawn: what `sizeleak evaluate` writes as JSON.
#[derive(Debug, Deserialize)]
pub struct ConfusionFigure {
    commands: u64,
    actions: Vec<Action>,
    confusion: Confusion,
}

#[derive(Debug, Deserialize)]
struct Action {
    action: String,
}

#[derive(Debug, Deserialize)]
struct Confusion {
    /// How often each true action is taken for each action.
    taken: Vec<Vec<f64>>,
    /// How often each is in no answer.
    missed: Vec<f64>,
    /// How often each is answered although it did not occur.
    invented: Vec<f64>,
}

/// A true action: what it is taken for, and how often it occurs.
struct Row<'a> {
    name: &'a str,
    cells: Vec<f64>,
    total: f64,
}

impl ConfusionFigure {
    pub fn svg(&self, size: PictureSize, title: Option<&str>) -> Result<String, TooSmall> {
        let drawn = self.drawn();
        let rows: Vec<Row<'_>> = drawn.iter().map(|at| self.row(*at, &drawn)).collect();
        let mut columns: Vec<String> = rows.iter().map(|row| clean(row.name, MAX_NAME)).collect();
        columns.push("missed".to_owned());
        let left_out = self.actions.len() - rows.len();
        let invented: f64 = self.confusion.invented.iter().sum();
        let labelled = counted(self.commands, "labelled command", "labelled commands");
        let mut about = format!("{labelled}; a row is 100 % of an action's occurrences");
        if invented > 0.0 {
            let _ = write!(about, "; besides, {invented:.0} actions were answered that did not occur");
        }
        if left_out > 0 {
            let _ = write!(about, "; {left_out} rarer actions are left out");
        }
        let heading = Heading { title, own: "Which actions are taken for which?", about: &about };
        let steps = ["5 to 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 % and more"];
        let mut keys = vec![shade_key("below 5 %", RARE_COLOUR)];
        keys.extend(steps.iter().zip(COLOURS).map(|(name, colour)| shade_key(*name, colour)));
        let labels: Vec<String> =
            rows.iter().map(|row| format!("{} ({:.0})", clean(row.name, MAX_NAME), row.total)).collect();
        let left = labels_width(labels.iter().map(String::as_str)) + text_width("x") * 2.0;
        let widest = columns.iter().map(|name| text_width(name)).fold(0.0, f64::max);
        // Turned by 45 degrees, and the title above.
        let above = widest * 0.71 + 30.0;
        let around = Surroundings { labels: left, above, has_axis: false, rows: rows.len() };
        let mut panel = Panel::new(size, heading, keys, around)?;
        let (width, height) = (panel.width / columns.len() as f64, panel.height / rows.len().max(1) as f64);
        for (at, name) in columns.iter().enumerate() {
            let (x, y) = (panel.left + (at as f64 + 0.5) * width, panel.top - 5.0);
            panel.add(text(x, y, name).set("transform", format!("rotate(-45 {x:.2} {y:.2})")).set("class", "column"));
        }
        panel.add(text_around(panel.left + panel.width / 2.0, panel.top - above + 12.0, "answered action (%)"));
        panel.title_left("true action (occurrences)");
        for (at, (row, label)) in rows.iter().zip(&labels).enumerate() {
            let y = panel.top + at as f64 * height;
            panel.add(text_before(panel.left - 7.0, y + height / 2.0 + 4.0, label).set("class", "row"));
            for (column, count) in row.cells.iter().enumerate() {
                let (x, share) = (panel.left + column as f64 * width, count / row.total.max(f64::MIN_POSITIVE));
                draw_cell(&mut panel, (x, y), (width, height), share);
            }
        }
        Ok(panel.svg())
    }

    /// The most frequent actions, by their indices, in their order.
    fn drawn(&self) -> Vec<usize> {
        let mut drawn: Vec<usize> = (0..self.actions.len()).collect();
        drawn.sort_by(|one, other| self.total(*other).total_cmp(&self.total(*one)).then(one.cmp(other)));
        drawn.truncate(MAX_ACTIONS);
        drawn.sort_unstable();
        drawn
    }

    /// What a true action is taken for, and how often it is in no answer.
    fn answers(&self, truth: usize) -> (&[f64], f64) {
        let Confusion { taken, missed, .. } = &self.confusion;
        (taken.get(truth).map_or(&[], Vec::as_slice), missed.get(truth).copied().unwrap_or_default())
    }

    fn total(&self, truth: usize) -> f64 {
        let (taken, missed) = self.answers(truth);
        taken.iter().sum::<f64>() + missed
    }

    fn row(&self, truth: usize, drawn: &[usize]) -> Row<'_> {
        let (taken, missed) = self.answers(truth);
        let cells = drawn.iter().map(|at| taken.get(*at).copied().unwrap_or_default()).chain([missed]);
        let name = self.actions.get(truth).map_or("", |action| action.action.as_str());
        Row { name, cells: cells.collect(), total: self.total(truth) }
    }
}

fn draw_cell(panel: &mut Panel, (x, y): (f64, f64), (width, height): (f64, f64), share: f64) {
    if share <= 0.0 {
        return;
    }
    let step = colour_step(share);
    let colour = if share < RARE { RARE_COLOUR } else { COLOURS.get(step).copied().unwrap_or_default() };
    let cell = rectangle(x, y, width, height).set("fill", colour);
    panel.add(cell.set("stroke", "#ffffff").set("class", "cell").add(Title::new(format!("{:.2} %", share * 100.0))));
    if width >= MIN_NUMBER.0 && height >= MIN_NUMBER.1 {
        let number = if share < 0.005 { "<1".to_owned() } else { format!("{:.0}", share * 100.0) };
        let colour = if step < DARK_STEP { TEXT } else { "#ffffff" };
        panel.add(text_around(x + width / 2.0, y + height / 2.0 + 4.0, &number).set("fill", colour));
    }
}
