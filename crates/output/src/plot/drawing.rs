//! Draws a timeline as SVG: a lane for each action, with a bar for each command.

use std::io::{self, Write};

use svg::Document;
use svg::node::element::{Description, Group, Line, Rectangle, Text, Title};

use super::axis::Axis;
use super::timeline::{Lane, Mark, Timeline};
use crate::TimeFormat;

const LEFT: f64 = 190.0;
const TOP: f64 = 84.0;
const RIGHT: f64 = 60.0;
const BELOW: f64 = 100.0;
const LANE_HEIGHT: f64 = 40.0;
/// The height of the highest bar in a lane.
const BAR_HEIGHT: f64 = 26.0;

/// Counts are written above the bars of up to this many commands.
const MOST_COUNTS: usize = 60;

/// Names are truncated to this many characters.
const MOST_CHARACTERS: usize = 24;

/// Probabilities from 0 to 1 in five steps of lightness, distinct also in print and for the colour-blind.
const COLOURS: [&str; 5] = ["#a6bddb", "#74a9cf", "#3690c0", "#0570b0", "#023858"];
const UNEXPLAINED: &str = "#d55e00";
const TEXT: &str = "#222222";
const RULE: &str = "#dddddd";

/// Writes a timeline as SVG, with times by the clock of `times`.
///
/// # Errors
/// If the output fails.
pub fn write_svg(output: &mut impl Write, timeline: &Timeline, times: &TimeFormat) -> io::Result<()> {
    svg::write(&mut *output, &draw(timeline, times))?;
    output.write_all(b"\n")
}

fn draw(timeline: &Timeline, times: &TimeFormat) -> Document {
    let width = (timeline.marks.len() as f64 * 3.0).clamp(900.0, 3000.0);
    let height = LANE_HEIGHT * timeline.lanes.len().max(1) as f64;
    let (all_width, all_height) = (LEFT + width + RIGHT, TOP + height + BELOW);
    let (headline, detail) = title(timeline, times);
    let mut drawing = Document::new()
        .set("width", all_width)
        .set("height", all_height)
        .set("viewBox", (0, 0, all_width, all_height))
        .set("role", "img")
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .set("fill", TEXT)
        .add(Title::new(headline.clone()))
        .add(Description::new().add(svg::node::Text::new(detail.clone())))
        .add(rectangle(0.0, 0.0, all_width, all_height).set("fill", "#ffffff"))
        .add(text(20.0, 30.0, &headline).set("font-size", 18))
        .add(text(20.0, 52.0, &detail));
    for (at, lane) in timeline.lanes.iter().enumerate() {
        drawing = drawing.add(lane_of(timeline, at, lane, width));
    }
    if let Some(span) = timeline.span() {
        let axis = Axis::new(span, width);
        drawing = drawing.add(axis_of(&axis, times, height));
        for mark in &timeline.marks {
            drawing = drawing.add(command(timeline, mark, &axis, times, width));
        }
    }
    drawing.add(legend(all_height - 24.0))
}

fn title(timeline: &Timeline, times: &TimeFormat) -> (String, String) {
    let gateways = timeline.gateways();
    let gateways = match gateways.len() {
        0 => "a gateway".to_owned(),
        1..=3 => gateways.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        count => format!("{count} gateways"),
    };
    let flows = match timeline.flows.len() {
        1 => "1 flow".to_owned(),
        count => format!("{count} flows"),
    };
    let (drawn, accepted) = (timeline.drawn(), timeline.accepted());
    let counted = if drawn < accepted { format!("first {drawn} of {accepted}") } else { drawn.to_string() };
    let span = timeline.span().map_or_else(String::new, |(first, last)| {
        format!("{} from {} to {}; ", times.heading(), times.format(first), times.format(last))
    });
    let detail = format!("{span}commands drawn: {counted}; a bar is as high as the command has such actions");
    (format!("Commands to {gateways} in {flows}"), detail)
}

fn lane_of(timeline: &Timeline, at: usize, lane: &Lane, width: f64) -> Group {
    let base = base_of(at);
    let name = match lane {
        Lane::Action(name) => clean(name),
        Lane::OtherActions => "other actions".to_owned(),
        Lane::NoAction => "no action".to_owned(),
        Lane::Unexplained => "unexplained".to_owned(),
    };
    let most = timeline.most(at);
    let scale = if most > 1 { format!("{name} (up to {most})") } else { name };
    let rule = line(LEFT, base, LEFT + width, base);
    Group::new().set("class", "lane").add(rule).add(text(LEFT - 12.0, base - 6.0, &scale).set("text-anchor", "end"))
}

fn axis_of(axis: &Axis, times: &TimeFormat, height: f64) -> Group {
    let mut group = Group::new().set("class", "axis");
    for tick in axis.ticks(times, 110.0) {
        let x = LEFT + tick.x;
        group = group
            .add(line(x, TOP, x, TOP + height + 6.0))
            .add(text(x, TOP + height + 20.0, &tick.time).set("text-anchor", "middle"));
        if let Some(date) = tick.date {
            group = group.add(text(x, TOP + height + 36.0, &date).set("text-anchor", "middle"));
        }
    }
    group
}

fn command(timeline: &Timeline, mark: &Mark, axis: &Axis, times: &TimeFormat, width: f64) -> Group {
    let commands = timeline.marks.len();
    let bar_width = (width / commands.max(1) as f64 * 0.8).clamp(1.0, 8.0);
    let middle = LEFT + axis.at(mark.time_ns);
    let colour = mark.probability.map_or(UNEXPLAINED, colour);
    let mut group =
        Group::new().set("class", "command").set("fill", colour).add(Title::new(tooltip(timeline, mark, times)));
    for (lane, count) in &mark.bars {
        let share = *count as f64 / timeline.most(*lane).max(1) as f64;
        let high = (BAR_HEIGHT * share).max(4.0);
        let top = base_of(*lane) - high;
        group = group.add(rectangle(middle - bar_width / 2.0, top, bar_width, high));
        if *count > 0 && commands <= MOST_COUNTS {
            let label = text(middle, top - 2.0, &count.to_string());
            group = group.add(label.set("text-anchor", "middle").set("font-size", 9).set("fill", TEXT));
        }
    }
    group
}

/// The tooltip of a command.
fn tooltip(timeline: &Timeline, mark: &Mark, times: &TimeFormat) -> String {
    let named = |(lane, count): &(usize, u64)| match timeline.lanes.get(*lane) {
        Some(Lane::Action(name)) => format!("{count} {}", clean(name)),
        Some(Lane::OtherActions) => format!("{count} other"),
        Some(Lane::NoAction) => "no action".to_owned(),
        Some(Lane::Unexplained) | None => "no actions add up to this size".to_owned(),
    };
    let actions = mark.bars.iter().map(named).collect::<Vec<_>>().join(", ");
    let probability = mark.probability.map_or_else(String::new, |value| format!(", probability {value:.3}"));
    format!("{}, {} bytes: {actions}{probability}", times.format(mark.time_ns), mark.size)
}

fn legend(y: f64) -> Group {
    let mut group = Group::new().set("class", "legend").add(text(LEFT, y, "probability"));
    let names = ["below 0.2", "0.2 to 0.4", "0.4 to 0.6", "0.6 to 0.8", "0.8 and more", "unexplained"];
    let mut x = LEFT + 80.0;
    for (name, colour) in names.iter().zip(COLOURS.iter().chain([&UNEXPLAINED])) {
        group = group.add(rectangle(x, y - 11.0, 12.0, 12.0).set("fill", *colour)).add(text(x + 18.0, y, name));
        x += 110.0;
    }
    group
}

fn base_of(lane: usize) -> f64 {
    TOP + LANE_HEIGHT * (lane as f64 + 1.0)
}

fn colour(probability: f64) -> &'static str {
    let step = (probability * COLOURS.len() as f64) as usize;
    COLOURS.get(step).or(COLOURS.last()).copied().unwrap_or(UNEXPLAINED)
}

/// A name without characters that XML does not allow, truncated.
fn clean(name: &str) -> String {
    let is_allowed = |character: char| !character.is_control() && !matches!(character, '\u{fffe}' | '\u{ffff}');
    let shown = name.chars().take(MOST_CHARACTERS);
    let mut text: String = shown.map(|character| if is_allowed(character) { character } else { '\u{fffd}' }).collect();
    if name.chars().nth(MOST_CHARACTERS).is_some() {
        text.push('…');
    }
    text
}

fn text(x: f64, y: f64, content: &str) -> Text {
    Text::new(content).set("x", rounded(x)).set("y", rounded(y))
}

fn line(x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    let line = Line::new().set("x1", rounded(x1)).set("y1", rounded(y1)).set("x2", rounded(x2));
    line.set("y2", rounded(y2)).set("stroke", RULE)
}

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    let corner = Rectangle::new().set("x", rounded(x)).set("y", rounded(y));
    corner.set("width", rounded(width)).set("height", rounded(height))
}

/// Rounds to a hundredth of a pixel.
fn rounded(pixels: f64) -> f64 {
    (pixels * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_depends_on_the_probability() {
        assert_eq!([0.0, 0.19, 0.2, 0.79, 0.8, 1.0].map(colour), [0, 0, 1, 3, 4, 4].map(|at| COLOURS[at]));
        assert_eq!([-1.0, f64::NAN, 7.0].map(colour), [0, 0, 4].map(|at| COLOURS[at]));
    }

    #[test]
    fn names_lose_characters_that_xml_does_not_allow() {
        assert_eq!(clean("a\u{0}b\u{ffff}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(clean(&"é".repeat(30)), "é".repeat(24) + "…");
    }
}
