//! Draws what padding gives away against what it costs.

use serde::Deserialize;

use super::marks::{SERIES, Style, reference};
use super::page::{PictureSize, TooSmall};
use super::panel::{Heading, Panel, Surroundings, labels_width};
use super::scale::Scale;
use super::shapes::clean;

/// The names of policies are truncated to this many characters.
const MAX_NAME: usize = 24;

/// Policies against their cost, as far as they are drawn: what `sizeleak pad` writes as JSON.
#[derive(Debug, Deserialize)]
pub struct PaddingFigure {
    pub(super) prior: String,
    pub(super) guessing: f64,
    pub(super) points: Vec<PaddingPoint>,
}

#[derive(Debug, Deserialize)]
pub(super) struct PaddingPoint {
    pub(super) policy: String,
    pub(super) added_share: f64,
    pub(super) named: f64,
}

impl PaddingFigure {
    /// As SVG. Policies of one form are a series.
    pub fn svg(&self, size: PictureSize, title: Option<&str>) -> Result<String, TooSmall> {
        let costs = || self.points.iter().filter(|point| point.added_share > 0.0);
        let mut forms: Vec<&str> = Vec::new();
        for point in costs() {
            let form = form(&point.policy);
            if !forms.contains(&form) {
                forms.push(form);
            }
        }
        forms.sort_unstable();
        let style = |at: usize| {
            let style = SERIES.get(at % SERIES.len()).copied().unwrap_or(SERIES[0]);
            if forms.get(at).is_some_and(|form| costs().filter(|it| self::form(&it.policy) == *form).count() > 2) {
                style.joined()
            } else {
                style
            }
        };
        let without = self.points.iter().find(|point| point.added_share <= 0.0);
        let [of_none, of_guessing] = [reference("7 3"), reference("7 3 2 3")];
        let mut keys: Vec<_> =
            forms.iter().enumerate().map(|(at, form)| style(at).key(clean(form, MAX_NAME))).collect();
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        keys.extend(without.map(|point| of_none.key(format!("no padding ({})", percent(point.named)))));
        keys.push(of_guessing.key(format!("guessing ({})", percent(self.guessing))));
        let about = format!("commands as probable as {}", self.prior);
        let heading = Heading { title, own: "What padding hides, and what it costs", about: &about };
        let labels = labels_width(["axis", "100"].into_iter());
        let around = Surroundings { labels, has_axis: true, ..Surroundings::default() };
        let mut panel = Panel::new(size, heading, keys, around)?;
        let x = Scale::logarithmic(costs().map(|point| point.added_share * 100.0), panel.x_length(), 34.0);
        let named = self.points.iter().map(|point| point.named);
        let y = Scale::logarithmic(named.chain([self.guessing]).map(|named| named * 100.0), panel.y_length(), 24.0);
        panel.axis_below(&x, "bytes added to commands (%)");
        panel.axis_left(&y, "command named (%)");
        let place =
            |panel: &Panel, (share, named): (f64, f64)| (panel.x(&x, share * 100.0), panel.y(&y, named * 100.0));
        let level = |panel: &Panel, style: Style, named: f64| {
            let y = panel.y(&y, named * 100.0);
            style.line([(panel.left, y), (panel.left + panel.width, y)].into_iter())
        };
        for (style, named) in [(of_none, without.map(|it| it.named)), (of_guessing, Some(self.guessing))] {
            if let Some(named) = named {
                panel.add(level(&panel, style, named));
            }
        }
        for (at, form) in forms.iter().enumerate() {
            let own: Vec<(f64, f64)> = costs()
                .filter(|point| self::form(&point.policy) == *form)
                .map(|point| place(&panel, (point.added_share, point.named)))
                .collect();
            if style(at).dashes.is_some() {
                panel.add(style(at).line(own.iter().copied()));
            }
            for (x, y) in own {
                panel.add(style(at).mark(x, y).set("class", "policy"));
            }
        }
        Ok(panel.svg())
    }
}

/// The form of a policy, without its number: `multiple` of `multiple:16`, `best table` of `best table of 24 buckets`.
fn form(policy: &str) -> &str {
    let name = policy.split_once(" of ").map_or(policy, |(name, _)| name);
    name.split_once(':').map_or(name, |(name, _)| name)
}
