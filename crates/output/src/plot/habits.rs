//! Draws what a home usually does as SVG: for each action the hours of a week, and below them the commands that come at about
//! the same time of the day.

use std::fmt::Write as _;

use sizeleak_habits::{ActionWeek, Routine};
use sizeleak_text::shortened;
use svg::node::element::{Group, Title};

use super::page::{
    COLOURS, Key, Legend, MARGIN, PictureSize, TEXT, TooSmall, clean, page, rectangle, rule, text, text_around,
    text_before,
};

/// Actions and routines beyond so many are only counted.
const MAX_PANELS: usize = 12;
const MAX_ROUTINES: usize = 42;

/// Names of actions and commands are shortened to so many columns of text, and titles to so many characters.
const NAME: usize = 26;
const COMMAND: usize = 16;
const MAX_IN_TITLE: usize = 200;

const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const NEVER: &str = "#eeeeee";
const UNKNOWN: &str = "#ffffff";
const SHARE_COLOUR: &str = COLOURS[3];

const TOP: f64 = 76.0;
/// Panels beside each other, unless the picture has a width.
const COLUMNS: usize = 3;
/// The names of weekdays, the hours, and what is between two panels.
const LABELS: f64 = 30.0;
const HOUR: f64 = 12.0;
const BETWEEN: f64 = 26.0;
const PANEL: f64 = LABELS + 24.0 * HOUR;
/// The height of a weekday, unless the picture has a height.
const DAY: f64 = 12.0;
const MIN_DAY: f64 = 10.0;
/// Above the hours of a panel: its title; below them: the clock.
const TITLE: f64 = 22.0;
const CLOCK: f64 = 30.0;
const HEADING: f64 = 24.0;
const ROW: f64 = 18.0;
const LEGEND: f64 = 30.0;
const SHARE: f64 = 34.0;

#[derive(Debug)]
pub struct HomeHabits {
    /// What this was learned from, and by which clock its hours are.
    pub about: String,
    pub actions: Vec<ActionWeek>,
    /// What comes at about the same time, by the time of day.
    pub routines: Vec<Routine>,
}

pub fn habits_svg(home: &HomeHabits, size: PictureSize, title: &str) -> Result<String, TooSmall> {
    let picture = Picture::new(home, size)?;
    let mut shade = "shade: expected commands an hour with the action".to_owned();
    if picture.panels.len() < home.actions.len() {
        let _ = write!(shade, "; the {} most used of {} actions", picture.panels.len(), home.actions.len());
    }
    let lines = [&*clean(&home.about, MAX_IN_TITLE), &shade];
    let mut drawing = page((picture.width, picture.height), &size, &clean(title, MAX_IN_TITLE), lines);
    for (at, action) in picture.panels.iter().enumerate() {
        let y = TOP + (at / picture.columns) as f64 * (TITLE + 7.0 * picture.day + CLOCK);
        drawing = drawing.add(picture.panel(action, column_left(at % picture.columns), y));
    }
    let (top, routines) = (TOP + picture.panels_height(picture.day), picture.routines.len());
    if routines > 0 {
        let all = home.routines.len();
        let of = if routines < all { format!(", the first {routines} of {all}") } else { String::new() };
        let heading = text(MARGIN, top + 12.0, &format!("Routines, by the time of day{of}"));
        drawing = drawing.add(heading.set("font-weight", "bold"));
    }
    let rows = picture.routine_rows();
    for (at, routine) in picture.routines.iter().enumerate() {
        drawing =
            drawing.add(routine_row(routine, column_left(at / rows), top + HEADING + ROW * (at % rows) as f64 + 10.0));
    }
    Ok(format!("{}\n", drawing.add(picture.legend.draw(picture.legend_top()))))
}

struct Picture<'a> {
    panels: &'a [ActionWeek],
    routines: &'a [Routine],
    scale: RateScale,
    legend: Legend,
    columns: usize,
    width: f64,
    height: f64,
    day: f64,
}

impl<'a> Picture<'a> {
    fn new(home: &'a HomeHabits, size: PictureSize) -> Result<Self, TooSmall> {
        let panels = home.actions.get(..MAX_PANELS).unwrap_or(&home.actions);
        let routines = home.routines.get(..MAX_ROUTINES).unwrap_or(&home.routines);
        let hours = || panels.iter().flat_map(|action| action.hours.iter().flatten());
        let scale = RateScale::new(hours().flatten().copied().fold(0.0, f64::max));
        let mut keys = vec![key("no command".to_owned(), NEVER, 12.0)];
        keys.extend(scale.steps().map(|(name, colour)| key(name, colour, 12.0)));
        keys.extend(hours().any(Option::is_none).then(|| key("no day learned".to_owned(), UNKNOWN, 12.0)));
        keys.extend((!routines.is_empty()).then(|| key("share of days it came".to_owned(), SHARE_COLOUR, SHARE)));
        let least = size.pixels(2.0 * MARGIN + PANEL);
        if size.width().is_some_and(|width| width < 2.0 * MARGIN + PANEL) {
            let needs = "the hours of a week need".to_owned();
            return Err(TooSmall { needs, dimension: "width", least, less: "a smaller `--font-size`" });
        }
        let own_width = 2.0 * MARGIN + COLUMNS as f64 * (PANEL + BETWEEN) - BETWEEN;
        let width = size.width().unwrap_or(own_width);
        let columns = ((width - 2.0 * MARGIN + BETWEEN) / (PANEL + BETWEEN)).floor().max(1.0) as usize;
        let legend = Legend::new(width, keys);
        let mut picture = Self { panels, routines, scale, legend, columns, width, height: 0.0, day: DAY };
        // The height grows with that of a day.
        let (fixed, all_days) = (picture.height(0.0), picture.height(1.0) - picture.height(0.0));
        picture.day = size.height().map_or(DAY, |height| (height - fixed) / all_days.max(1.0));
        picture.height = picture.height(picture.day);
        if picture.day < MIN_DAY {
            let needs = format!("{} actions need", panels.len());
            let least = size.pixels(picture.height(MIN_DAY));
            return Err(TooSmall { needs, dimension: "height", least, less: "a greater `--size`" });
        }
        Ok(picture)
    }

    fn height(&self, day: f64) -> f64 {
        let heading = if self.routines.is_empty() { 0.0 } else { HEADING };
        let routines = heading + ROW * self.routine_rows() as f64;
        TOP + self.panels_height(day) + routines + LEGEND + self.legend.height
    }

    fn panels_height(&self, day: f64) -> f64 {
        self.panels.len().div_ceil(self.columns) as f64 * (TITLE + 7.0 * day + CLOCK)
    }

    fn routine_rows(&self) -> usize {
        self.routines.len().div_ceil(self.columns)
    }

    fn panel(&self, action: &ActionWeek, left: f64, top: f64) -> Group {
        let name = text(left + LABELS, top + 16.0, &named(&action.action, NAME)).set("font-weight", "bold");
        let weekly = text_before(left + PANEL, top + 16.0, &format!("{:.1} a week", action.weekly));
        let (left, top) = (left + LABELS, top + TITLE);
        let field = rectangle(left, top, 24.0 * HOUR, 7.0 * self.day).set("fill", NEVER);
        let mut group = Group::new().set("class", "panel").add(name).add(weekly).add(field);
        for ((day, hours), row) in WEEKDAYS.iter().zip(&action.hours).zip(0_u32..) {
            let y = top + f64::from(row) * self.day;
            group = group.add(text_before(left - 4.0, y + self.day / 2.0 + 3.5, day).set("font-size", 10));
            for (rate, hour) in hours.iter().zip(0_u32..) {
                let cell = rectangle(left + f64::from(hour) * HOUR, y, HOUR - 1.0, self.day - 1.0);
                group = match rate {
                    None => group.add(cell.set("fill", UNKNOWN)),
                    Some(rate) if *rate > 0.0 => {
                        let tooltip = format!("{day} {hour:02}:00 to {:02}:00: {rate:.2} an hour", hour + 1);
                        let cell = cell.set("fill", self.scale.colour(*rate)).add(Title::new(tooltip));
                        group.add(cell.set("class", "hour"))
                    }
                    Some(_) => group,
                };
            }
        }
        let bottom = top + 7.0 * self.day;
        for hour in [0_u32, 6, 12, 18, 24] {
            let x = left + f64::from(hour) * HOUR;
            group = group.add(rule(x, bottom, x, bottom + 4.0).set("stroke", TEXT));
            group = group.add(text_around(x, bottom + 14.0, &hour.to_string()).set("font-size", 10));
        }
        group
    }

    fn legend_top(&self) -> f64 {
        self.height - self.legend.height + 6.0
    }
}

fn key(name: String, colour: &str, width: f64) -> Key {
    let sample = rectangle(0.0, -11.0, width, 12.0).set("fill", colour).set("stroke", NEVER);
    Key { name, sample: Group::new().add(sample), width }
}

fn named(name: &str, columns: usize) -> String {
    shortened(&clean(name, MAX_IN_TITLE), columns).into_owned()
}

fn column_left(column: usize) -> f64 {
    MARGIN + column as f64 * (PANEL + BETWEEN)
}

/// A line for a command that comes at about the same time; the bar is as full as it is sure.
fn routine_row(routine: &Routine, left: f64, y: f64) -> Group {
    let Routine { command, at, came, of, days } = routine;
    let (command, share) = (command.to_string(), f64::from(*came) / f64::from((*of).max(1)));
    let days = match *days {
        "all" => "days",
        "weekends" => "weekend days",
        other => other,
    };
    let when = format!("{at}  {came} of {of} {days}");
    let bar = |share: f64, colour: &str| rectangle(left, y - 9.0, SHARE * share, 9.0).set("fill", colour);
    let tooltip = Title::new(format!("{when}: {}", clean(&command, MAX_IN_TITLE)));
    let group = Group::new().set("class", "routine").add(tooltip).add(bar(1.0, NEVER)).add(bar(share, SHARE_COLOUR));
    group.add(text(left + 42.0, y, &when)).add(text(left + 222.0, y, &named(&command, COMMAND)))
}

/// The least and the greatest round number: 0.001 and 1,000,000.
const NUMBERS: std::ops::RangeInclusive<i32> = -9..=18;

pub(super) struct RateScale([f64; COLOURS.len() - 1]);

impl RateScale {
    pub(super) fn new(greatest: f64) -> Self {
        let last = NUMBERS.rev().find(|number| round(*number) <= greatest).unwrap_or(*NUMBERS.start());
        Self([3, 2, 1, 0].map(|below| round(last - below)))
    }

    pub(super) fn colour(&self, rate: f64) -> &'static str {
        let step = self.0.partition_point(|begin| *begin <= rate);
        COLOURS.get(step).copied().unwrap_or_default()
    }

    /// Each step in words, with its colour. Rates are by the hour.
    pub(super) fn steps(&self) -> impl Iterator<Item = (String, &'static str)> {
        let [first, .., last] = self.0;
        let between = self.0.windows(2).map(|pair| format!("{} to {}", pair[0], pair[1]));
        let names = [format!("below {first} an hour")].into_iter().chain(between).chain([format!("{last} and more")]);
        names.zip(COLOURS)
    }
}

/// Of the numbers 1, 2, 5, 10, 20 and so on, and 0.5, 0.2, 0.1 below them, the one in this place from 1.
fn round(place: i32) -> f64 {
    let digit = [1.0, 2.0, 5.0][place.rem_euclid(3) as usize];
    let power = 10_f64.powi(place.div_euclid(3).abs());
    if place < 0 { digit / power } else { digit * power }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use sizeleak_habits::Actions;

    use super::*;

    /// A home with so many actions, which are used at noon on Mondays, and routines.
    fn home(actions: usize, routines: usize) -> HomeHabits {
        let mut hours = [[Some(0.0); 24]; 7];
        (hours[0][12], hours[6]) = (Some(0.5), [None; 24]);
        let action = |at: usize| ActionWeek { action: format!("action {at}").into(), hours, weekly: 0.5 };
        let on = |count: usize| [(Arc::from("on"), count as u32)].into_iter().collect::<Actions>();
        let command = |at: usize| std::iter::once(on(at)).collect();
        let routine = |at: usize| Routine { command: command(at), at: "07:15".into(), came: 1, of: 2, days: "all" };
        let (actions, routines) = ((0..actions).map(action).collect(), (0..routines).map(routine).collect());
        HomeHabits { about: "a week".into(), actions, routines }
    }

    fn count(picture: &str, class: &str) -> usize {
        picture.matches(&format!("class=\"{class}\"")).count()
    }

    #[test]
    fn panels_and_routines_are_bounded_and_what_is_left_out_is_said() {
        let whole = habits_svg(&home(2, 3), PictureSize::default(), "Home").unwrap();
        assert_eq!(["panel", "hour", "routine"].map(|class| count(&whole, class)), [2, 2, 3]);
        assert!(!whole.contains("most used of") && whole.contains("no day learned"), "{whole}");
        let many = habits_svg(&home(99, 100), PictureSize::default(), "Home").unwrap();
        assert_eq!(["panel", "routine"].map(|class| count(&many, class)), [MAX_PANELS, MAX_ROUTINES]);
        assert!(many.contains("the 12 most used of 99 actions") && many.contains(", the first 42 of 100"), "{many}");
        let mut weekends = home(1, 1);
        weekends.routines[0].days = "weekends";
        let weekends = habits_svg(&weekends, PictureSize::default(), "Home").unwrap();
        assert!(weekends.contains("07:15  1 of 2 weekend days"), "two days may be of one weekend: {weekends}");
        let none = habits_svg(&home(0, 0), PictureSize::default(), "Home").unwrap();
        assert!(!none.contains("Routines") && !none.contains("share of days"), "{none}");
    }

    #[test]
    fn all_is_within_the_size_that_is_asked_for() {
        let size = |height| PictureSize { width: Some(400), height: Some(height), font: None };
        let small = habits_svg(&home(5, 9), size(300), "Home").unwrap_err();
        assert!(habits_svg(&home(5, 9), size(small.least - 1), "Home").is_err(), "{small}");
        let (least, home) = (f64::from(small.least), home(5, 9));
        let picture = Picture::new(&home, size(small.least)).unwrap();
        assert!((picture.width, picture.height.round()) == (400.0, least) && picture.columns == 1, "{small}");
        assert!(picture.legend_top() + picture.legend.height < least + 20.0, "{small}");
        assert!(small.to_string().starts_with("5 actions need a height of"), "{small}");
    }

    #[test]
    fn steps_lie_between_round_numbers_up_to_the_greatest_rate() {
        let names = |greatest: f64| RateScale::new(greatest).steps().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names(0.9), ["below 0.05 an hour", "0.05 to 0.1", "0.1 to 0.2", "0.2 to 0.5", "0.5 and more"]);
        assert_eq!(names(49.0)[3..], ["10 to 20", "20 and more"]);
        assert_eq!(names(0.0)[4], "0.001 and more");
        let scale = RateScale::new(1.0);
        let shown = [0.01, 0.1, 0.19, 0.2, 0.5, 0.99, 1.0, f64::INFINITY].map(|rate| scale.colour(rate));
        assert_eq!(shown, [0, 1, 1, 2, 3, 3, 4, 4].map(|step| COLOURS[step]));
    }
}
