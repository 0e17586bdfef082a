//! The legend of a timeline: all bands of probability if there is any, and else what occurs in the picture.

use svg::node::element::{Circle, Group, Path};

use super::page::{COLOURS, Key, TEXT, UNEXPLAINED, circle, colour, diamond, outline, rectangle, rounded};
use super::timeline::{Mark, Timeline, Truth};

const SAMPLE: f64 = 12.0;

/// How the first candidate of a command compares with the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
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
            let Some((mark, verdict)) = of_truth(timeline, truth).zip(truth.command.and_then(|at| all.get_mut(at)))
            else {
                continue;
            };
            *verdict = if Timeline::is_right(mark, truth) { Self::Right } else { Self::Wrong };
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

fn of_truth<'a>(timeline: &'a Timeline, truth: &Truth) -> Option<&'a Mark> {
    timeline.marks.get(truth.command?)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    Probability(usize),
    Unexplained,
    Verdict(Verdict),
    Label,
    LabelAlone,
    Deviation,
}

impl Entry {
    fn of(timeline: &Timeline, verdicts: &[Verdict]) -> Vec<Self> {
        let is_answered = timeline.marks.iter().any(|mark| mark.best.is_some());
        let steps = (0..COLOURS.len()).filter(|_| is_answered).map(Self::Probability);
        let colours = timeline.marks.iter().filter(|mark| mark.best.is_none()).map(|_| Self::Unexplained);
        let verdicts = verdicts.iter().filter(|verdict| **verdict != Verdict::Unknown).map(|it| Self::Verdict(*it));
        let labels = timeline.truths.iter().map(|truth| match truth.command {
            Some(_) => Self::Label,
            None => Self::LabelAlone,
        });
        let deviations = timeline.incidents.iter().map(|_| Self::Deviation);
        let mut entries: Vec<Self> = steps.chain(colours).chain(verdicts).chain(labels).chain(deviations).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    fn key(self) -> Key {
        let shade = |colour: &str| Group::new().add(rectangle(0.0, -11.0, SAMPLE, 12.0).set("fill", colour));
        let label = || outline(2.0, -11.0, 8.0, 12.0);
        let (name, sample) = match self {
            Self::Probability(step) => {
                let name = BANDS.get(step).copied().unwrap_or_default();
                (name, shade(COLOURS.get(step).copied().unwrap_or(colour(None))))
            }
            Self::Unexplained => ("unexplained", shade(UNEXPLAINED)),
            Self::Verdict(verdict) => (verdict.name(), verdict.draw(6.0, -4.0, TEXT)),
            Self::Label => ("label", Group::new().add(label())),
            Self::LabelAlone => ("label of no command", Group::new().add(label().set("stroke-dasharray", "2 2"))),
            Self::Deviation => ("deviation", Group::new().add(diamond(6.0, -4.0))),
        };
        Key { name: name.to_owned(), sample, width: SAMPLE }
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
    Entry::of(timeline, verdicts).into_iter().map(Entry::key).collect()
}

#[cfg(test)]
mod tests {
    use super::super::samples::identification;
    use super::super::timeline::CommandFilter;
    use super::*;

    #[test]
    fn legend_has_all_bands_of_probability_and_else_what_occurs() {
        let mut timeline = Timeline::new(100, CommandFilter::default());
        let entries = |timeline: &Timeline| Entry::of(timeline, &Verdict::all(timeline));
        assert_eq!(entries(&timeline), []);
        timeline.take(&identification(1, Some(vec![("on", 1)])));
        timeline.take(&identification(1, Some(vec![("on", 2)])));
        let bands = [0, 1, 2, 3, 4].map(Entry::Probability);
        assert_eq!(entries(&timeline), bands);
        timeline.take(&identification(1, None));
        let truth = |command| Truth { time_ns: 0, actions: vec![("on".into(), 1)], command };
        timeline.add_truth(truth(Some(0)));
        timeline.add_truth(truth(Some(1)));
        assert_eq!(Verdict::all(&timeline), [Verdict::Right, Verdict::Wrong, Verdict::Unlabelled]);
        let verdicts = [Verdict::Right, Verdict::Wrong, Verdict::Unlabelled].map(Entry::Verdict);
        let all = [&bands[..], &[Entry::Unexplained], &verdicts, &[Entry::Label]].concat();
        assert_eq!(entries(&timeline), all);
        timeline.add_truth(truth(None));
        assert_eq!(entries(&timeline).last(), Some(&Entry::LabelAlone));
    }
}
