//! Draws a timeline as SVG: the size of each command, below it a lane for each action, with a bar for each command, and
//! one for each kind of deviation; and where these are, in pixels. The legend has all bands of probability if there is any,
//! and else what occurs in the picture.

use std::sync::Arc;

use sizeleak_text::counted;
use svg::Document;
use svg::node::element::{Circle, Group, Path, Title};

use super::lanes::{Lane, Lanes};
use super::page::{
    COLOURS, DEVIATION, Key, Legend, PictureSize, TEXT, TooSmall, UNEXPLAINED, circle, clean, colour, diamond, outline,
    page, rectangle, rounded, rule, text, text_around, text_before,
};
use super::scale::{Axis, Scale};
use super::timeline::{Incident, Mark, Timeline, Truth};
use crate::TimeFormat;

/// Counts are written above the bars of up to this many commands.
const MAX_COUNTS: usize = 60;

const MAX_CHARACTERS: usize = 20;

const MAX_IN_TITLE: usize = 200;

/// The least height of a bar, and that of a command without actions.
const MIN_BAR: f64 = 4.0;

/// A timeline as SVG, with times by the clock of `times`, below a title of its own unless one is given.
pub fn svg_of(
    timeline: &Timeline,
    times: &TimeFormat,
    size: PictureSize,
    title: Option<&str>,
) -> Result<String, TooSmall> {
    let picture = Picture::new(timeline, times, size)?;
    Ok(format!("{}\n", picture.draw(title)))
}

struct Picture<'a> {
    timeline: &'a Timeline,
    times: &'a TimeFormat,
    lanes: Lanes,
    verdicts: Vec<Verdict>,
    size: PictureSize,
    layout: Layout,
    axis: Option<Axis>,
    sizes: Scale,
}

impl<'a> Picture<'a> {
    fn new(timeline: &'a Timeline, times: &'a TimeFormat, size: PictureSize) -> Result<Self, TooSmall> {
        let (lanes, verdicts) = (Lanes::of(timeline), Verdict::all(timeline));
        let layout = Layout::new(size, &lanes, timeline.marks.len(), keys(timeline, &verdicts))?;
        let axis = timeline.span().map(|span| Axis::new(span, layout.width));
        let bytes = || timeline.marks.iter().map(|mark| mark.size);
        let bytes = (bytes().min().unwrap_or(0) as f64, bytes().max().unwrap_or(0) as f64);
        let sizes = Scale::linear(bytes, 1.0, layout.sizes_height, 24.0);
        Ok(Self { timeline, times, lanes, verdicts, size, layout, axis, sizes })
    }

    fn draw(&self, title: Option<&str>) -> Document {
        let Layout { all_width, all_height, .. } = self.layout;
        let headline = title.map_or_else(|| self.headline(), |title| clean(title, MAX_IN_TITLE));
        let (span, counts) = (self.span(), self.counts());
        let mut drawing = page((all_width, all_height), &self.size, &headline, [&span, &counts]).add(self.size_axis());
        drawing = self.groups(drawing);
        if let Some(axis) = &self.axis {
            drawing = drawing.add(self.time_axis(axis));
            for (incident, lane) in self.timeline.incidents.iter().zip(&self.lanes.incidents) {
                drawing = drawing.add(self.deviation(axis, incident, *lane));
            }
            for (at, mark) in self.timeline.marks.iter().enumerate() {
                drawing = drawing.add(self.command(axis, at, mark));
            }
            for (at, truth) in self.timeline.truths.iter().enumerate() {
                drawing = drawing.add(self.label(axis, at, truth));
            }
        }
        drawing.add(self.layout.legend.draw(self.layout.legend_top()))
    }

    fn headline(&self) -> String {
        let gateways = self.timeline.gateways();
        let gateways = match gateways.len() {
            0 => "a gateway".to_owned(),
            1..=3 => gateways.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            count => format!("{count} gateways"),
        };
        let flows = counted(self.timeline.flows().len(), "flow", "flows");
        if self.timeline.marks.is_empty() && !self.timeline.incidents.is_empty() {
            return format!("Deviations at {gateways}");
        }
        format!("Commands to {gateways} in {flows}")
    }

    fn span(&self) -> String {
        let Some((first, last)) = self.timeline.span() else { return String::new() };
        format!("{} from {} to {}", self.times.heading(), self.times.format(first), self.times.format(last))
    }

    fn counts(&self) -> String {
        let (drawn, accepted) = (self.timeline.drawn(), self.timeline.accepted);
        let drawn = if drawn < accepted { format!("first {drawn} of {accepted}") } else { drawn.to_string() };
        let what = if self.timeline.incidents.is_empty() { "commands" } else { "commands and deviations" };
        let labels = self.timeline.truths.len();
        if labels == 0 {
            return format!("{what} drawn: {drawn}");
        }
        let count = |wanted: Verdict| self.verdicts.iter().filter(|verdict| **verdict == wanted).count();
        let (right, wrong) = (count(Verdict::Right), count(Verdict::Wrong));
        format!(
            "{what} drawn: {drawn}; labels: {labels}; the first candidate is right for {right} of {}",
            counted(right + wrong, "labelled command", "labelled commands")
        )
    }

    fn size_axis(&self) -> Group {
        let bottom = TOP + self.layout.sizes_height;
        let mut group = Group::new().set("class", "sizes");
        if self.layout.sizes_height == 0.0 {
            return group;
        }
        group = group.add(text_before(LEFT - 8.0, TOP - 12.0, "size in bytes"));
        for tick in self.sizes.ticks() {
            let y = bottom - self.sizes.at(*tick);
            group = group.add(rule(LEFT, y, LEFT + self.layout.width, y));
            if !self.timeline.marks.is_empty() {
                group = group.add(text_before(LEFT - 8.0, y + 4.0, &tick.to_string()));
            }
        }
        group
    }

    fn groups(&self, mut drawing: Document) -> Document {
        for (group, y) in self.lanes.groups.iter().zip(&self.layout.headings) {
            let heading = text(20.0, *y, &clean(&group.name, MAX_IN_TITLE)).set("font-weight", "bold");
            drawing = drawing.add(heading.set("class", "group"));
        }
        let lanes = self.lanes.groups.iter().flat_map(|group| &group.lanes);
        for (lane, base) in lanes.zip(&self.layout.bases) {
            drawing = drawing.add(self.lane(lane, *base));
        }
        drawing
    }

    fn lane(&self, lane: &Lane, base: f64) -> Group {
        let group = Group::new().set("class", "lane").add(rule(LEFT, base, LEFT + self.layout.width, base));
        let group = group.add(text_before(LEFT - 30.0, base - 6.0, &name(lane)));
        if !matches!(lane, Lane::Action(..) | Lane::OtherActions) {
            return group;
        }
        let number = |y: f64, number: u64| text_before(LEFT - 8.0, y, &number.to_string()).set("font-size", 9);
        group.add(number(base, 0)).add(number(base - self.layout.bar_height + 6.0, self.lanes.most))
    }

    fn time_axis(&self, axis: &Axis) -> Group {
        let bottom = self.layout.bottom;
        let heading = text_before(LEFT - 34.0, bottom + 18.0, self.times.heading());
        let mut group = Group::new().set("class", "axis").add(heading);
        for tick in axis.ticks(self.times, 110.0) {
            let x = LEFT + tick.x;
            group = group.add(rule(x, TOP, x, bottom + 6.0)).add(text_around(x, bottom + 18.0, &tick.time));
            if let Some(date) = tick.date {
                group = group.add(text_around(x, bottom + 32.0, &date));
            }
        }
        group
    }

    fn bar_width(&self) -> f64 {
        (self.layout.width / self.timeline.marks.len().max(1) as f64 * 0.8).clamp(1.0, 8.0)
    }

    fn bar_height(&self, count: u64) -> f64 {
        (self.layout.bar_height * count as f64 / self.lanes.most.max(1) as f64).max(MIN_BAR)
    }

    fn command(&self, axis: &Axis, at: usize, mark: &Mark) -> Group {
        let (x, width) = (LEFT + axis.at(mark.time_ns), self.bar_width());
        let colour = colour(mark.best.as_ref().map(|best| best.probability));
        let mut group =
            Group::new().set("class", "command").set("fill", colour).add(Title::new(self.tooltip(at, mark)));
        // Outlines of labels would hide them.
        let has_counts = self.timeline.marks.len() <= MAX_COUNTS && self.timeline.truths.is_empty();
        for (lane, count) in self.lanes.marks.get(at).into_iter().flatten() {
            let high = self.bar_height(*count);
            let top = self.layout.base(*lane) - high;
            group = group.add(rectangle(x - width / 2.0, top, width, high));
            if *count > 0 && has_counts {
                let label = text_around(x, top - 2.0, &count.to_string());
                group = group.add(label.set("font-size", 9).set("fill", TEXT));
            }
        }
        let y = TOP + self.layout.sizes_height - self.sizes.at(mark.size as f64);
        let verdict = self.verdicts.get(at).copied().unwrap_or(Verdict::Unknown);
        group.add(verdict.draw(x, y, colour))
    }

    fn label(&self, axis: &Axis, at: usize, truth: &Truth) -> Group {
        let (x, width) = (LEFT + axis.at(truth.time_ns), self.bar_width() + 2.0);
        let is_alone = truth.command.is_none();
        let alone = if is_alone { ", no command" } else { "" };
        let tooltip = format!("label of {}: {}{alone}", self.times.format(truth.time_ns), listed(&truth.actions));
        let mut group = Group::new().set("class", "label").add(Title::new(tooltip));
        if is_alone {
            group = group.set("stroke-dasharray", "2 2");
            let bottom = TOP + self.layout.sizes_height;
            group = group.add(rule(x, bottom - MIN_BAR, x, bottom + MIN_BAR).set("stroke", TEXT));
        }
        for (lane, count) in self.lanes.truths.get(at).into_iter().flatten() {
            let high = self.bar_height(*count);
            group = group.add(outline(x - width / 2.0, self.layout.base(*lane) - high, width, high));
        }
        group
    }

    /// A deviation in its lane, with a line up to the commands of its time, if there are any.
    fn deviation(&self, axis: &Axis, incident: &Incident, lane: usize) -> Group {
        let (x, y) = (LEFT + axis.at(incident.time_ns), self.layout.base(lane) - self.layout.bar_height / 2.0);
        let gateway = incident.gateway.map_or_else(String::new, |gateway| format!(" at {gateway}"));
        let tooltip = format!("{}{gateway}: {}", self.times.format(incident.time_ns), incident.words);
        let mut group = Group::new().set("class", "deviation").add(Title::new(tooltip));
        if !self.timeline.marks.is_empty() {
            group = group.add(rule(x, TOP, x, y).set("stroke", DEVIATION).set("stroke-dasharray", "2 3"));
        }
        group.add(diamond(x, y))
    }

    fn tooltip(&self, at: usize, mark: &Mark) -> String {
        let answer = match &mark.best {
            Some(best) => {
                let twin = best.twin.as_ref().map_or_else(String::new, |twin| format!(" or {}", listed(twin)));
                format!("{}{twin}, probability {:.3}", listed(&best.actions), best.probability)
            }
            None => "no actions add up to this size".to_owned(),
        };
        let has_twin = mark.best.as_ref().is_some_and(|best| best.twin.is_some());
        let verdict = match (self.verdicts.get(at), has_twin) {
            (Some(Verdict::Right), false) => ", right",
            (Some(Verdict::Wrong), false) => ", wrong",
            (Some(Verdict::Right), true) => ", the first is right",
            (Some(Verdict::Wrong), true) => ", the first is wrong",
            (Some(Verdict::Unlabelled), _) => ", without a label",
            (Some(Verdict::Unknown) | None, _) => "",
        };
        format!("{}, {} bytes: {answer}{verdict}", self.times.format(mark.time_ns), mark.size)
    }
}

fn listed(actions: &[(Arc<str>, u64)]) -> String {
    let each = actions.iter().filter(|(_, count)| *count > 0);
    let each: Vec<String> = each.map(|(name, count)| format!("{count} {}", clean(name, MAX_CHARACTERS))).collect();
    if each.is_empty() { "no action".to_owned() } else { each.join(", ") }
}

fn name(lane: &Lane) -> String {
    match lane {
        Lane::Action(_, name) => clean(name, MAX_CHARACTERS),
        Lane::OtherActions => "other actions".to_owned(),
        Lane::NoAction => "no action".to_owned(),
        Lane::Unexplained => "unexplained".to_owned(),
        Lane::Deviation(kind) => clean(kind, MAX_CHARACTERS),
    }
}

const SAMPLE: f64 = 12.0;

/// How the first candidate of a command compares with the label.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Unknown,
    Right,
    Wrong,
    Unlabelled,
}

impl Verdict {
    fn all(timeline: &Timeline) -> Vec<Self> {
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
    fn draw(self, x: f64, y: f64, colour: &'static str) -> Group {
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

fn keys(timeline: &Timeline, verdicts: &[Verdict]) -> Vec<Key> {
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

/// From the left: names, and the numbers of axes.
const LEFT: f64 = 190.0;
/// Above: the title.
const TOP: f64 = 96.0;
const RIGHT: f64 = 40.0;
/// Of the part with commands.
const MIN_WIDTH: f64 = 100.0;
/// Between the sizes and the lanes.
const GAP: f64 = 20.0;
/// Below the lanes: the labels of the time axis.
const AXIS: f64 = 48.0;
const HEADING: f64 = 22.0;
/// The height of a lane, unless the picture has a height.
const LANE: f64 = 40.0;
const MIN_LANE: f64 = 16.0;
/// The sizes take as much height as this many lanes, if there are commands or nothing else.
const SIZES: f64 = 3.0;
/// The share of a lane that its highest bar takes.
const BAR: f64 = 0.65;

#[derive(Debug)]
struct Layout {
    all_width: f64,
    all_height: f64,
    /// Of the part with commands, which begins at [`LEFT`].
    width: f64,
    /// Of the part with sizes, which begins at [`TOP`].
    sizes_height: f64,
    /// Where each group has its heading; empty if there is one group.
    headings: Vec<f64>,
    bases: Vec<f64>,
    /// Of the highest bar in a lane.
    bar_height: f64,
    bottom: f64,
    legend: Legend,
}

impl Layout {
    fn new(size: PictureSize, lanes: &Lanes, commands: usize, keys: Vec<Key>) -> Result<Self, TooSmall> {
        let by_commands = LEFT + (commands as f64 * 3.0).clamp(900.0, 3000.0) + RIGHT;
        let all_width = size.width().unwrap_or(by_commands);
        let legend = Legend::new(all_width, keys);
        let has_headings = lanes.groups.len() > 1;
        let all_headings = if has_headings { HEADING * lanes.groups.len() as f64 } else { 0.0 };
        let fixed = TOP + GAP + all_headings + AXIS + legend.height;
        let sizes = if commands == 0 && lanes.count() > 0 { 0.0 } else { SIZES };
        let units = sizes + lanes.count().max(1) as f64;
        let (width, least) = (all_width - LEFT - RIGHT, size.pixels(LEFT + MIN_WIDTH + RIGHT));
        if width < MIN_WIDTH {
            let needs = "a timeline needs".to_owned();
            return Err(TooSmall { needs, dimension: "width", least, less: "a smaller `--font-size`" });
        }
        let lane = size.height().map_or(LANE, |height| (height - fixed) / units);
        if lane < MIN_LANE {
            let (needs, least) = (format!("{} lanes need", lanes.count()), size.pixels(fixed + units * MIN_LANE));
            return Err(TooSmall { needs, dimension: "height", least, less: "fewer gateways or flows" });
        }
        let (mut headings, mut bases, mut y) = (Vec::new(), Vec::new(), TOP + lane * sizes + GAP);
        for group in &lanes.groups {
            if has_headings {
                y += HEADING;
                headings.push(y - 4.0);
            }
            for _ in &group.lanes {
                y += lane;
                bases.push(y);
            }
        }
        Ok(Self {
            all_width,
            all_height: fixed + units * lane,
            width,
            sizes_height: lane * sizes,
            headings,
            bases,
            bar_height: lane * BAR,
            bottom: y,
            legend,
        })
    }

    fn base(&self, lane: usize) -> f64 {
        self.bases.get(lane).copied().unwrap_or(self.bottom)
    }

    fn legend_top(&self) -> f64 {
        self.bottom + AXIS + 4.0
    }
}

#[cfg(test)]
mod tests {
    use svg::node::element;

    use super::super::lanes::{Group, Lane};
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

    fn lanes(groups: usize) -> Lanes {
        let group = |_| Group { name: "x".into(), lanes: vec![Lane::NoAction, Lane::Unexplained] };
        Lanes { groups: (0..groups).map(group).collect(), ..Lanes::default() }
    }

    fn so_many_keys(count: usize) -> Vec<Key> {
        (0..count).map(|_| Key { name: "x".into(), sample: element::Group::new(), width: 12.0 }).collect()
    }

    #[test]
    fn picture_has_the_size_that_was_asked_for() {
        let size = PictureSize { width: Some(600), height: Some(500), font: None };
        let layout = Layout::new(size, &lanes(3), 10, so_many_keys(4)).unwrap();
        assert_eq!((layout.all_width, layout.all_height.round()), (600.0, 500.0));
        assert!(layout.bases.len() == 6 && layout.headings.len() == 3 && layout.bases.is_sorted());
        assert!(layout.legend_top() + layout.legend.height <= 520.0, "{layout:?}");
        let twice = PictureSize { width: Some(1200), height: Some(1000), font: Some(24) };
        let twice = Layout::new(twice, &lanes(3), 10, so_many_keys(4)).unwrap();
        assert_eq!((twice.all_width, twice.bases), (600.0, layout.bases), "a greater font enlarges all");
    }

    #[test]
    fn too_small_a_height_names_the_least() {
        let size = |height| PictureSize { width: None, height: Some(height), font: None };
        let error = Layout::new(size(200), &lanes(3), 10, so_many_keys(4)).unwrap_err();
        assert!(Layout::new(size(error.least), &lanes(3), 10, so_many_keys(4)).is_ok(), "{error}");
        assert!(Layout::new(size(error.least - 1), &lanes(3), 10, so_many_keys(4)).is_err(), "{error}");
    }

    #[test]
    fn size_without_wishes_grows_with_the_commands_and_lanes() {
        let layout =
            |groups, commands| Layout::new(PictureSize::default(), &lanes(groups), commands, so_many_keys(1)).unwrap();
        assert!(layout(1, 1000).width > layout(1, 10).width && layout(2, 10).all_height > layout(1, 10).all_height);
        assert!((layout(0, 0).all_height - layout(0, 0).bottom) > 40.0, "an empty timeline has a layout too");
    }
}
