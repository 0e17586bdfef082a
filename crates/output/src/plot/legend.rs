//! The legend: what occurs in the picture, and nothing else.

use svg::node::element::{Circle, Group, Path};

use super::layout::Layout;
use super::shapes::{
    COLOURS, TEXT, UNEXPLAINED, circle, colour, colour_step, diamond, outline, rectangle, rounded, text,
};
use super::timeline::{Mark, Timeline, Truth};

/// How the first candidate of a command compares with the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// There are no labels.
    Unknown,
    /// It has the actions of the label.
    Right,
    /// It has others.
    Wrong,
    /// The command has no label.
    Unlabelled,
}

impl Verdict {
    /// Of each command.
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

/// An entry of the legend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Entry {
    /// Commands of a step of probability.
    Probability(usize),
    Unexplained,
    /// Commands with a verdict.
    Verdict(Verdict),
    /// What was labelled.
    Label,
    /// A label that no command belongs to.
    LabelAlone,
    /// A deviation.
    Deviation,
}

impl Entry {
    /// The entries that a timeline needs, in order.
    pub(super) fn of(timeline: &Timeline, verdicts: &[Verdict]) -> Vec<Self> {
        let colours = timeline.marks.iter().map(|mark| match &mark.best {
            Some(best) => Self::Probability(colour_step(best.probability)),
            None => Self::Unexplained,
        });
        let verdicts = verdicts.iter().filter(|verdict| **verdict != Verdict::Unknown).map(|it| Self::Verdict(*it));
        let labels = timeline.truths.iter().map(|truth| match truth.command {
            Some(_) => Self::Label,
            None => Self::LabelAlone,
        });
        let deviations = timeline.incidents.iter().map(|_| Self::Deviation);
        let mut entries: Vec<Self> = colours.chain(verdicts).chain(labels).chain(deviations).collect();
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    fn name(self) -> &'static str {
        match self {
            Self::Probability(0) => "probability below 0.2",
            Self::Probability(1) => "0.2 to 0.4",
            Self::Probability(2) => "0.4 to 0.6",
            Self::Probability(3) => "0.6 to 0.8",
            Self::Probability(_) => "0.8 and more",
            Self::Unexplained => "unexplained",
            Self::Verdict(Verdict::Wrong) => "first candidate wrong",
            Self::Verdict(Verdict::Unlabelled) => "without a label",
            Self::Verdict(Verdict::Right | Verdict::Unknown) => "first candidate right",
            Self::Label => "label",
            Self::LabelAlone => "label of no command",
            Self::Deviation => "deviation",
        }
    }

    fn sample(self, x: f64, y: f64) -> Group {
        match self {
            Self::Probability(step) => {
                let colour = COLOURS.get(step).copied().unwrap_or(colour(None));
                Group::new().add(rectangle(x, y - 11.0, 12.0, 12.0).set("fill", colour))
            }
            Self::Unexplained => Group::new().add(rectangle(x, y - 11.0, 12.0, 12.0).set("fill", UNEXPLAINED)),
            Self::Verdict(verdict) => verdict.draw(x + 6.0, y - 4.0, TEXT),
            Self::Label => Group::new().add(outline(x + 2.0, y - 11.0, 8.0, 12.0)),
            Self::LabelAlone => Group::new().add(outline(x + 2.0, y - 11.0, 8.0, 12.0).set("stroke-dasharray", "2 2")),
            Self::Deviation => Group::new().add(diamond(x + 6.0, y - 4.0)),
        }
    }
}

/// Draws the entries.
pub(super) fn legend(entries: &[Entry], layout: &Layout) -> Group {
    let mut group = Group::new().set("class", "legend");
    for (at, entry) in entries.iter().enumerate() {
        let (x, y) = layout.legend_entry(at);
        group = group.add(entry.sample(x, y)).add(text(x + 18.0, y, entry.name()));
    }
    group
}

#[cfg(test)]
mod tests {
    use super::super::command_filter::CommandFilter;
    use super::super::samples::identification;
    use super::*;

    #[test]
    fn legend_has_what_occurs_and_nothing_else() {
        let mut timeline = Timeline::new(100, CommandFilter::default());
        let entries = |timeline: &Timeline| Entry::of(timeline, &Verdict::all(timeline));
        assert_eq!(entries(&timeline), []);
        timeline.take(&identification(1, Some(vec![("on", 1)])));
        timeline.take(&identification(1, Some(vec![("on", 2)])));
        assert_eq!(entries(&timeline), [Entry::Probability(2)]);
        timeline.take(&identification(1, None));
        let truth = |command| Truth { time_ns: 0, actions: vec![("on".into(), 1)], command };
        timeline.add_truth(truth(Some(0)));
        timeline.add_truth(truth(Some(1)));
        assert_eq!(Verdict::all(&timeline), [Verdict::Right, Verdict::Wrong, Verdict::Unlabelled]);
        let verdicts = [Verdict::Right, Verdict::Wrong, Verdict::Unlabelled].map(Entry::Verdict);
        let all = [&[Entry::Probability(2), Entry::Unexplained][..], &verdicts, &[Entry::Label]].concat();
        assert_eq!(entries(&timeline), all);
        timeline.add_truth(truth(None));
        assert_eq!(entries(&timeline).last(), Some(&Entry::LabelAlone));
    }
}
