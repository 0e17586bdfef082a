//! Texts, lines and rectangles with rounded coordinates, and the colours of the plot.

use svg::node::element::path::Data;
use svg::node::element::{Circle, Line, Path, Rectangle, Text};

/// Probabilities from 0 to 1 in five steps of lightness, distinct also in print and for the colour-blind.
pub(super) const COLOURS: [&str; 5] = ["#a6bddb", "#74a9cf", "#3690c0", "#0570b0", "#023858"];
pub(super) const UNEXPLAINED: &str = "#d55e00";
pub(super) const DEVIATION: &str = "#aa3377";
pub(super) const TEXT: &str = "#222222";
const RULE: &str = "#dddddd";

pub(super) fn colour_step(probability: f64) -> usize {
    ((probability * COLOURS.len() as f64) as usize).min(COLOURS.len() - 1)
}

pub(super) fn colour(probability: Option<f64>) -> &'static str {
    let step = probability.map(colour_step);
    step.and_then(|step| COLOURS.get(step)).copied().unwrap_or(UNEXPLAINED)
}

/// A text without characters that XML does not allow, or that would turn the order of others, truncated to this many.
pub(super) fn clean(text: &str, most: usize) -> String {
    let text = &sizeleak_text::escaped(text);
    let is_allowed = |character: char| !matches!(character, '\u{fffe}' | '\u{ffff}');
    let shown = text.chars().take(most);
    let mut clean: String = shown.map(|character| if is_allowed(character) { character } else { '\u{fffd}' }).collect();
    if text.chars().nth(most).is_some() {
        clean.push('…');
    }
    clean
}

pub(super) fn text(x: f64, y: f64, content: &str) -> Text {
    Text::new(content).set("x", rounded(x)).set("y", rounded(y))
}

pub(super) fn text_before(x: f64, y: f64, content: &str) -> Text {
    text(x, y, content).set("text-anchor", "end")
}

pub(super) fn text_around(x: f64, y: f64, content: &str) -> Text {
    text(x, y, content).set("text-anchor", "middle")
}

pub(super) fn rule(x1: f64, y1: f64, x2: f64, y2: f64) -> Line {
    let line = Line::new().set("x1", rounded(x1)).set("y1", rounded(y1)).set("x2", rounded(x2));
    line.set("y2", rounded(y2)).set("stroke", RULE)
}

pub(super) fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    let corner = Rectangle::new().set("x", rounded(x)).set("y", rounded(y));
    corner.set("width", rounded(width)).set("height", rounded(height))
}

pub(super) fn outline(x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    rectangle(x, y, width, height).set("fill", "none").set("stroke", TEXT)
}

pub(super) fn circle(x: f64, y: f64) -> Circle {
    Circle::new().set("cx", rounded(x)).set("cy", rounded(y)).set("r", 2.5)
}

pub(super) fn diamond(x: f64, y: f64) -> Path {
    let at = |dx: f64, dy: f64| (rounded(x + dx), rounded(y + dy));
    let corners = Data::new().move_to(at(0.0, -6.0)).line_to(at(5.0, 0.0)).line_to(at(0.0, 6.0)).line_to(at(-5.0, 0.0));
    Path::new().set("d", corners.close()).set("fill", DEVIATION)
}

/// To a hundredth of a pixel, which keeps the file small.
pub(super) fn rounded(pixels: f64) -> f64 {
    (pixels * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colour_depends_on_the_probability() {
        let shown = |probabilities: &[f64]| probabilities.iter().map(|it| colour(Some(*it))).collect::<Vec<_>>();
        assert_eq!(shown(&[0.0, 0.19, 0.2, 0.79, 0.8, 1.0]), [0, 0, 1, 3, 4, 4].map(|at| COLOURS[at]));
        assert_eq!(shown(&[-1.0, f64::NAN, 7.0]), [0, 0, 4].map(|at| COLOURS[at]));
        assert_eq!(colour(None), UNEXPLAINED);
    }

    #[test]
    fn names_lose_characters_that_xml_does_not_allow() {
        assert_eq!(clean("a\u{0}b\u{ffff}", 20), "a\\u{0}b\u{fffd}");
        // Nor may a name turn what stands behind it.
        assert_eq!(clean("lamp\u{202e}no", 20), "lamp\\u{202e}no");
        assert_eq!(clean(&"é".repeat(30), 20), "é".repeat(20) + "…");
    }
}
