//! Draws which sizes the commands of a model have, and how many commands share each.

use svg::node::element::Title;

use super::page::{COLOURS, PictureSize, TooSmall, clean, rectangle, rule, text};
use super::panel::{DOTS, GREY, Heading, Panel, Surroundings, labels_width, shade_key};
use super::scale::Scale;

const MAX_NAME: usize = 16;
/// Between the names of two actions.
const NAME_DISTANCE: f64 = 18.0;
/// The slope that leads from an action to its name.
const LEADER: f64 = 12.0;
/// The share of a row that a size takes, and its least width.
const TALL: f64 = 0.62;
const MIN_WIDTH: f64 = 1.4;

/// Numbers of commands that have one size, from the most revealing on.
const BANDS: [(f64, &str); 5] = [
    (1.0, "1 command: it is named"),
    (9.0, "2 to 9 commands alike"),
    (99.0, "10 to 99"),
    (999.0, "100 to 999"),
    (f64::INFINITY, "1000 and more"),
];

#[derive(Debug)]
pub struct CommandSizes {
    pub about: String,
    /// The actions, with the size in bytes of a command that has only this one.
    pub actions: Vec<(String, u64)>,
    /// The sizes of commands of one action, of two, and so on: bytes, and how many commands of all have this size.
    pub rows: Vec<Vec<(u64, f64)>>,
}

impl CommandSizes {
    pub fn svg(&self, size: PictureSize, title: Option<&str>) -> Result<String, TooSmall> {
        let colour = |commands: f64| {
            let band = BANDS.iter().position(|(most, _)| commands <= most + 0.5).unwrap_or(BANDS.len() - 1);
            COLOURS.get(COLOURS.len() - 1 - band).copied().unwrap_or_default()
        };
        let keys = BANDS.iter().map(|(most, name)| shade_key(*name, colour(*most)));
        let heading = Heading { title, own: "Which commands a size gives away", about: &self.about };
        let name = |actions: usize| if actions == 1 { "1 action".to_owned() } else { format!("{actions} actions") };
        let names: Vec<String> = (1..=self.rows.len()).map(name).collect();
        let mut actions = self.actions.clone();
        actions.sort_by(|one, other| (one.1, &one.0).cmp(&(other.1, &other.0)));
        let shown: Vec<String> = actions.iter().map(|(name, _)| clean(name, MAX_NAME)).collect();
        let widest = labels_width(shown.iter().map(String::as_str)) - 14.0;
        let above = LEADER + widest * 0.71 + 14.0;
        let around = Surroundings { above, ..Surroundings::rows(&names) };
        let mut panel = Panel::new(size, heading, keys.collect(), around)?;
        let sizes = || self.rows.iter().flatten().map(|(bytes, _)| *bytes as f64);
        let span = (sizes().fold(f64::INFINITY, f64::min).min(1e15), sizes().fold(0.0, f64::max));
        let x = Scale::linear((span.0.min(span.1), span.1), 1.0, panel.x_length(), 30.0);
        panel.axis_below(&x, "size of the command (bytes, without ε)");
        let row = panel.name_rows(&names);
        let width = (x.at(span.0 + 1.0) - x.at(span.0) - 0.5).clamp(MIN_WIDTH, 6.0);
        for (at, sizes) in self.rows.iter().enumerate() {
            let middle = panel.top + (at as f64 + 0.5) * row;
            for (bytes, commands) in sizes {
                let left = panel.x(&x, *bytes as f64) - width / 2.0;
                let bar = rectangle(left, middle - TALL * row / 2.0, width, TALL * row).set("fill", colour(*commands));
                let word = if *commands < 1.5 { "command" } else { "commands" };
                panel.add(bar.set("class", "size").add(Title::new(format!("{bytes} bytes: {commands:.0} {word}"))));
            }
        }
        let places: Vec<f64> = actions.iter().map(|(_, bytes)| panel.x(&x, *bytes as f64)).collect();
        let spread = spread(&places, panel.left, panel.left + panel.width, NAME_DISTANCE);
        for ((name, from), to) in shown.iter().zip(places).zip(spread) {
            let y = panel.top - LEADER;
            panel.add(DOTS.straight((from, panel.top), (to, y)).set("stroke", GREY).set("stroke-width", 0.8));
            panel.add(rule(from, panel.top, from, panel.top + (1.0 - TALL) * row / 2.0).set("stroke", GREY));
            let turned = format!("rotate(-45 {to:.2} {y:.2})");
            panel.add(text(to + 2.0, y, name).set("transform", turned).set("class", "action"));
        }
        Ok(panel.svg())
    }
}

/// Places in the same order and as near as can be, but as far apart, as long as there is room for all between two ends;
/// those beyond are left out.
fn spread(places: &[f64], from: f64, to: f64, apart: f64) -> Vec<f64> {
    let count = (((to - from) / apart).floor() as usize + 1).min(places.len());
    let mut spread: Vec<f64> = Vec::new();
    for place in places.iter().take(count) {
        spread.push(spread.last().map_or(*place, |last| place.max(last + apart)));
    }
    let mut end = to;
    for place in spread.iter_mut().rev() {
        *place = place.min(end);
        end = *place - apart;
    }
    spread
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_keep_their_distance_and_their_order() {
        assert_eq!(spread(&[10.0, 12.0, 13.0, 60.0], 0.0, 100.0, 10.0), [10.0, 20.0, 30.0, 60.0]);
        assert_eq!(spread(&[95.0, 96.0, 97.0], 0.0, 100.0, 10.0), [80.0, 90.0, 100.0]);
        assert_eq!(spread(&[1.0; 20], 0.0, 30.0, 10.0).len(), 4, "no more than there is room for");
        assert!(spread(&[], 0.0, 30.0, 10.0).is_empty());
    }
}
