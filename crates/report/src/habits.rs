//! What a profile says of a home: when it uses which action, and its routines.

use sizeleak_habits::{ActionWeek, Home, Routine};

use crate::document::{Chart, Figure, Section, Table, Unit, Value, Verdict};
use crate::observed::MIN_SHOWN;

/// What a profile says in one sentence.
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
    let actions = weeks.iter().map(|week| [(&*week.action).into(), week.weekly.into()]);
    let actions = Figure {
        id: "weekly",
        title: "Commands with an action in a week".to_owned(),
        note: "Expected numbers: an answer counts by its probability.".to_owned(),
        table: Table::new([("action", Unit::Words), ("a week", Unit::Decimal)], actions),
        chart: Some(Chart::Bars { label: 0, values: vec![1], guessing: None }),
    };
    let hours = weeks.iter().flat_map(|week| by_hour(week, days));
    let hours = Figure {
        id: "habits-by-hour",
        title: "When actions are used".to_owned(),
        note: format!("Commands with an action in an hour of the day, in a week, by the clock of {zone}. Hours with fewer than \
                       five commands in all are left out."),
        table: Table::new([("hour", Unit::Count), ("action", Unit::Words), ("a week", Unit::Decimal)], hours),
        chart: Some(Chart::Field { x: 0, y: 1, shade: 2 }),
    };
    let routines = home.routines().into_iter().map(|Routine { command, at, came, of, days }| {
        [at.into(), command.to_string().into(), u64::from(came).into(), u64::from(of).into(), days.into()]
    });
    let columns = [
        ("at about", Unit::Words),
        ("command", Unit::Words),
        ("came", Unit::Count),
        ("of days", Unit::Count),
        ("which days", Unit::Words),
    ];
    let routines = Figure {
        id: "routines",
        title: "Routines".to_owned(),
        note: "Commands that come at about the same time on most days.".to_owned(),
        table: Table::new(columns, routines),
        chart: None,
    };
    Section {
        id: "habits",
        title: "Habits of the home",
        text: vec![format!("Learned from {days} whole days.")],
        figures: vec![actions, hours, routines],
        command: None,
    }
}

/// The hours of a day in which an action is used, by commands a week.
fn by_hour(week: &ActionWeek, days: usize) -> impl Iterator<Item = [Value; 3]> {
    let weeks = days as f64 / 7.0;
    (0_u64..24).filter_map(move |hour| {
        let weekly: f64 = week.hours.iter().filter_map(|day| day.get(hour as usize).copied().flatten()).sum();
        (weekly * weeks >= MIN_SHOWN).then(|| [hour.into(), (&*week.action).into(), weekly.into()])
    })
}
