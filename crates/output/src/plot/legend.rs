//! The legend of a timeline: all bands of probability if there is any, and else what occurs in the picture.

use svg::node::element::{Circle, Group, Path};

use super::page::{COLOURS, Key, TEXT, UNEXPLAINED, circle, diamond, outline, rectangle, rounded};
use super::timeline::Timeline;

const SAMPLE: f64 = 12.0;

/// How the first candidate of a command compares with the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Unknown,
    Right,
    Wrong,
    Unlabelled,
}

impl Verdict {
    pub(super) fn all(timeline: &Timeline) -> Vec<Self> {
        let without = if timeline.truths.is_empty() { Self::Unknown } else { Self::Unlabelled };
        let mut all = vec![without; timeline.marks.len()];
        for truth in &timeline.truths {
            let Some(at) = truth.command else { continue };
            if let (Some(mark), Some(verdict)) = (timeline.marks.get(at), all.get_mut(at)) {
                *verdict = if Timeline::is_right(mark, truth) { Self::Right } else { Self::Wrong };
            }
        }
        all
    }

    fn name(self) -> &'static str {
        match self {
            Self::Wrong => "first candidate wrong",
            Self::Unlabelled => "without a label",
            Self::Right | Self::Unknown => "first candidate right",
        }
    }

    /// A command at its size: a shape that also shows the verdict.
    pub(super) fn draw(self, x: f64, y: f64, colour: &'static str) -> Group {
        let ring = |shape: Circle| shape.set("fill", "none").set("stroke", colour);
        match self {
            Self::Unknown | Self::Right => Group::new().add(circle(x, y).set("fill", colour)),
            Self::Unlabelled => Group::new().add(ring(circle(x, y))),
            Self::Wrong => {
                let at = |dx: f64, dy: f64| (rounded(x + dx), rounded(y + dy));
                let cross = svg::node::element::path::Data::new()
                    .move_to(at(-3.0, -3.0))
                    .line_to(at(3.0, 3.0))
                    .move_to(at(-3.0, 3.0))
                    .line_to(at(3.0, -3.0));
                Group::new().add(Path::new().set("d", cross).set("stroke", colour).set("stroke-width", 1.5))
            }
        }
    }
}

const BANDS: [&str; 5] = [
    "probability below 0.2",
    "probability 0.2 to 0.4",
    "probability 0.4 to 0.6",
    "probability 0.6 to 0.8",
    "probability 0.8 and more",
];

pub(super) fn keys(timeline: &Timeline, verdicts: &[Verdict]) -> Vec<Key> {
    let has_marks = |answered: bool| timeline.marks.iter().any(|mark| mark.best.is_some() == answered);
    let has_labels = |matched: bool| timeline.truths.iter().any(|truth| truth.command.is_some() == matched);
    let shade = |colour: &str| Group::new().add(rectangle(0.0, -11.0, SAMPLE, 12.0).set("fill", colour));
    let label = || outline(2.0, -11.0, 8.0, 12.0);
    let bands = BANDS.into_iter().zip(COLOURS).filter(|_| has_marks(true));
    let mut keys: Vec<(&str, Group)> = bands.map(|(name, colour)| (name, shade(colour))).collect();
    keys.extend(has_marks(false).then(|| ("unexplained", shade(UNEXPLAINED))));
    let occurring =
        [Verdict::Right, Verdict::Wrong, Verdict::Unlabelled].into_iter().filter(|it| verdicts.contains(it));
    keys.extend(occurring.map(|verdict| (verdict.name(), verdict.draw(6.0, -4.0, TEXT))));
    keys.extend(has_labels(true).then(|| ("label", Group::new().add(label()))));
    let alone = || Group::new().add(label().set("stroke-dasharray", "2 2"));
    keys.extend(has_labels(false).then(|| ("label of no command", alone())));
    keys.extend((!timeline.incidents.is_empty()).then(|| ("deviation", Group::new().add(diamond(6.0, -4.0)))));
    keys.into_iter().map(|(name, sample)| Key { name: name.to_owned(), sample, width: SAMPLE }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::identification;
    use super::super::timeline::{CommandFilter, Truth};
    use super::*;

    #[test]
    fn legend_has_all_bands_of_probability_and_else_what_occurs() {
        let mut timeline = Timeline::new(100, CommandFilter::default());
        let entries = |timeline: &Timeline| {
            keys(timeline, &Verdict::all(timeline)).into_iter().map(|key| key.name).collect::<Vec<_>>()
        };
        assert!(entries(&timeline).is_empty());
        timeline.take(&identification(1, Some(vec![("on", 1)])));
        timeline.take(&identification(1, Some(vec![("on", 2)])));
        assert_eq!(entries(&timeline), BANDS);
        timeline.take(&identification(1, None));
        let truth = |command| Truth { time_ns: 0, actions: vec![("on".into(), 1)], command };
        timeline.add_truth(truth(Some(0)));
        timeline.add_truth(truth(Some(1)));
        assert_eq!(Verdict::all(&timeline), [Verdict::Right, Verdict::Wrong, Verdict::Unlabelled]);
        let verdicts = [Verdict::Right, Verdict::Wrong, Verdict::Unlabelled].map(Verdict::name);
        let all = [&BANDS[..], &["unexplained"], &verdicts, &["label"]].concat();
        assert_eq!(entries(&timeline), all);
        timeline.add_truth(truth(None));
        assert_eq!(entries(&timeline).last().map(String::as_str), Some("label of no command"));
    }
}
