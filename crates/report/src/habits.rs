//! What a profile says of a home: when it uses which action, and its routines.

use sizeleak_habits::{ActionWeek, Home, Routine};

use crate::document::{ChartKind, Figure, Section, Value, Verdict};
use crate::observed::MIN_SHOWN;

pub fn verdict(home: &Home) -> Verdict {
    let (routines, days) = (home.routines().len(), home.learned_days());
    Verdict {
        sentence: format!("The sizes of {days} days of commands give away {routines} routines of this home."),
        meaning: "A routine is a command that comes at about the same time on most days. Whoever sees the lengths of \
                  encrypted records can learn as much: when people get up, come home and go to bed."
            .to_owned(),
    }
}

/// The habits of a home that lives by the clock of this zone.
pub fn section(home: &Home, zone: &str) -> Section {
    let weeks = home.week();
    let days = home.learned_days();
    let actions = weeks.iter().map(|week| [(&*week.action).into(), Value::Number(week.weekly, 2)]);
    let actions = Figure::new("weekly", "action | a week", actions)
        .titled("Commands with an action in a week", "Expected numbers: an answer counts by its probability.")
        .drawn(ChartKind::Bars, &[0, 1]);
    let hours = weeks.iter().flat_map(|week| by_hour(week, days));
    let note = format!(
        "Commands with an action in an hour of the day, in a week, by the clock of {zone}. Hours with fewer than five \
         commands in all are left out."
    );
    let hours = Figure::new("habits-by-hour", "hour | action | a week", hours)
        .titled("When actions are used", note)
        .drawn(ChartKind::Hours, &[0, 1, 2]);
    let routines = home.routines().into_iter().map(|Routine { command, at, came, of, days }| {
        [about(&at).into(), command.to_string().into(), u64::from(came).into(), u64::from(of).into(), days.into()]
    });
    let routines = Figure::new("routines", "from | command | came | of days | which days", routines).titled(
        "Routines",
        "Commands that come at about the same time on most days, by the quarter of an hour in which they begin.",
    );
    let text = format!("Learned from {days} whole days.");
    Section::new("habits", vec![text], vec![actions, hours, routines])
}

/// The quarter of an hour of a time like `07:12`, which is that of a single command.
fn about(time: &str) -> String {
    let minutes = time.split_once(':').and_then(|(hour, minute)| Some((hour, minute.parse::<u32>().ok()? / 15 * 15)));
    minutes.map_or_else(String::new, |(hour, quarter)| format!("{hour}:{quarter:02}"))
}

fn by_hour(week: &ActionWeek, days: usize) -> impl Iterator<Item = [Value; 3]> {
    let weeks = days as f64 / 7.0;
    (0_u64..24).filter_map(move |hour| {
        let weekly: f64 = week.hours.iter().filter_map(|day| day.get(hour as usize).copied().flatten()).sum();
        (weekly * weeks >= MIN_SHOWN as f64).then(|| [hour.into(), (&*week.action).into(), Value::Number(weekly, 2)])
    })
}
