//! What the picture of a profile shows: a home, with what is learned from its diary.

use std::net::IpAddr;

use anyhow::{anyhow, ensure};
use sizeleak_habits::{ActionWeek, Home, Profile, Routine};
use sizeleak_output::plot::{ActionHours, HomeHabits, RoutineRow};

pub(crate) fn parsed(text: &str) -> anyhow::Result<Profile> {
    // Its words hold what its source says.
    Profile::from_toml(text).map_err(|error| anyhow!("it is nothing that can be drawn, and {error}"))
}

pub(crate) fn home<'a>(profile: &'a Profile, gateways: &[IpAddr]) -> anyhow::Result<(&'a str, Home)> {
    let is_meant =
        |gateway: &&str| gateways.is_empty() || gateway.parse().is_ok_and(|it: IpAddr| gateways.contains(&it));
    ensure!(profile.gateways().next().is_some(), "it holds no home: `sizeleak profile --add` adds answers");
    let meant: Vec<&str> = profile.gateways().filter(is_meant).collect();
    let [gateway] = meant[..] else {
        let known = profile.gateways().map(named).collect::<Vec<_>>().join(", ");
        return Err(anyhow!("a picture is of one home: name its gateway by `--gateway`; the profile has {known}"));
    };
    let home = profile.home(gateway);
    ensure!(
        home.learned_days() > 0,
        "no whole day, from four in the morning to the next, is learned yet: `sizeleak profile --add` adds answers"
    );
    Ok((named(gateway), home))
}

fn named(gateway: &str) -> &str {
    if gateway.is_empty() { "an unknown gateway" } else { gateway }
}

/// What is drawn of a home that lives by the clock of this zone.
pub(super) fn habits(home: &Home, zone: &str) -> HomeHabits {
    let (commands, days) = (home.sightings().count(), home.learned_days());
    let hours = |ActionWeek { action, hours, weekly }| ActionHours { name: action, hours, weekly };
    let row = |Routine { command, at, came, of, days }| RoutineRow {
        command: command.to_string(),
        when: format!("{at}  {came} of {of} {}", if days == "all" { "days" } else { days }),
        share: f64::from(came) / f64::from(of.max(1)),
    };
    HomeHabits {
        about: format!("{days} whole days, {commands} commands; clock: {zone}"),
        actions: home.week().into_iter().map(hours).collect(),
        routines: home.routines().into_iter().map(row).collect(),
    }
}
