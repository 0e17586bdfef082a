//! Tests of profiles, on a small home.

use super::*;
use crate::What;
use crate::home::{Evidence, Peak};

const HOUR: i64 = 3_600_000_000_000;
const DAY: i64 = 24 * HOUR;
/// Monday, the fifth of January 2026.
const MONDAY: i64 = 1_767_571_200_000_000_000;

fn command(name: &str, time_ns: i64) -> Sighting {
    let actions = |count| std::iter::once((Arc::from(name), count)).collect::<Actions>();
    Sighting { time_ns, flow: 7, candidates: vec![(actions(1), 1.0), (actions(2), 0.01)] }
}

/// Three commands a day, minutes apart from one day to the next.
fn day(number: i64) -> Vec<Sighting> {
    let minutes = |factor: i64| (number * factor).rem_euclid(17) * 60_000_000_000;
    let start = MONDAY + number * DAY;
    vec![
        command("on", start + 7 * HOUR + minutes(5)),
        command("dim", start + 18 * HOUR + minutes(3)),
        command("off", start + 22 * HOUR + minutes(11)),
    ]
}

fn profile(days: i64) -> Profile {
    let mut profile = Profile::new("UTC").unwrap();
    profile.add("192.168.1.20", (0..days).flat_map(day).collect());
    profile
}

/// The deviations of some commands after a profile.
fn deviations(profile: &Profile, sightings: Vec<Sighting>) -> Vec<crate::Deviation> {
    let mut detector = profile.detector("192.168.1.20", Budget::WEEKLY);
    sightings.into_iter().flat_map(|sighting| detector.observe(sighting)).collect()
}

#[test]
fn a_profile_reads_back_as_it_was() {
    let profile = profile(30);
    let text = profile.to_toml();
    let again = Profile::from_toml(&text).unwrap();
    assert_eq!(again.to_toml(), text);
    assert!(text.contains("{ command = \"1 on\", a-week = 7."), "{text}");
    assert!(text.contains("at = \"07:") && text.contains("learned = { days = 28, commands = 90 }"), "{text}");
}

#[test]
fn usual_days_keep_the_budget_and_strange_ones_are_found() {
    let profile = profile(40);
    let usual = deviations(&profile, (40..47).flat_map(day).collect());
    assert!(usual.len() <= 1, "the budget is one a week: {usual:?}");
    let start = MONDAY + 40 * DAY;
    let burst = (0..9).map(|at| command("dim", start + 12 * HOUR + at * 5_000_000_000));
    let found = deviations(&profile, day(40).into_iter().take(1).chain(burst).collect());
    assert!(
        matches!(found[..], [ref one] if matches!(one.what, What::Burst | What::Command | What::ShiftedRoutine)),
        "{found:?}"
    );
    let never = command("unlock", start + 12 * HOUR);
    let found = deviations(&profile, vec![day(40)[0].clone(), never]);
    assert!(
        found.iter().any(|one| one.commands == [(7, start + 12 * HOUR)] && one.seen.contains("unlock")),
        "{found:?}"
    );
    let silent = deviations(&profile, day(43));
    assert!(silent.iter().any(|one| matches!(one.what, What::Silence | What::Overdue)), "{silent:?}");
}

/// What is usual in a small home is rare in minutes, and a new action is in no command: neither is a number that is 0.
#[test]
fn a_number_below_a_tenth_is_not_shown_as_zero() {
    let mut home = profile(100).home("192.168.1.20");
    home.observe(command("unlock", MONDAY + 100 * DAY));
    let expected = |evidence| {
        let peak = Peak { time_ns: MONDAY + 100 * DAY, score: 9.0, evidence };
        crate::Deviation::of(&peak, 0.1, &home).expected
    };
    let of_count = |usual: f64| expected(Evidence::Count { window: 0, count: 5, expected: 0.5 + usual });
    assert_eq!(of_count(0.0), "less than 0.1 in 2 minutes");
    assert_eq!(of_count(0.049), "less than 0.1 in 2 minutes");
    assert_eq!(of_count(0.06), "about 0.1 in 2 minutes");
    let silence = |count| expected(Evidence::Silence { since_ns: MONDAY, expected: count });
    assert_eq!((silence(0.01), silence(3.04)), ("less than 0.1 commands".into(), "about 3.0 commands".into()));
    let action = expected(Evidence::Action);
    assert!(action.starts_with("`unlock` in none of 294 "), "{action}");
}

#[test]
fn nothing_is_said_before_the_budget_can_be_kept() {
    let profile = profile(8);
    let detector = profile.detector("192.168.1.20", Budget::WEEKLY);
    assert_eq!(detector.days_needed(), 4);
    let night = command("unlock", MONDAY + 8 * DAY + 3 * HOUR);
    assert_eq!(deviations(&profile, vec![night]), []);
    let month: Budget = "1/month".parse().unwrap();
    assert_eq!(profile.detector("192.168.1.20", month).days_needed(), 28);
    assert_eq!(profile.detector("192.168.1.21", month).days_needed(), 34, "another gateway");
}

/// A budget of nearly every day needs no days, but what is strange has to be compared with some.
#[test]
fn few_days_are_enough_for_no_alarm() {
    for budget in ["1/day", "0.9/day", "6/week", "30/month"] {
        let budget: Budget = budget.parse().unwrap();
        for days in 0..9 {
            let known = profile(days);
            let mut detector = known.detector("192.168.1.20", budget);
            let needed = detector.days_needed();
            let night = command("unlock", MONDAY + days * DAY + 3 * HOUR);
            let found = detector.observe(night);
            assert!(needed == 0 || found.is_empty(), "{budget} after {days} days, of which {needed} lack: {found:?}");
        }
    }
}

#[test]
fn the_same_answers_twice_teach_once_and_parts_teach_like_the_whole() {
    let mut parts = Profile::new("UTC").unwrap();
    parts.add("192.168.1.20", (15..30).flat_map(day).collect());
    parts.add("192.168.1.20", (0..20).flat_map(day).collect());
    assert_eq!(parts.to_toml(), profile(30).to_toml());
}

/// What a home did before the days that it remembers says nothing of it any more.
#[test]
fn a_profile_is_that_of_the_days_it_remembers() {
    // The high bits of a number times an odd one say little of the number.
    let any = |number: i64, of: i64| (number.wrapping_mul(0x4f1b_bcdc_bfa5_3e0b) >> 33).rem_euclid(of);
    let changes = |days: std::ops::Range<i64>| {
        let commands = days.flat_map(|day| (5 * day..5 * day + 5).map(move |at| (day, at)));
        commands.map(move |(day, at)| {
            let (first, name) = (at - at.rem_euclid(5), any(at + 7, 3) as usize);
            // Five within minutes, each time in the same order; later at any time, and in any.
            let (minute, name) = if day < 400 {
                (any(first, 1_400) + 5 * (at - first), (at - first) as usize % 3)
            } else {
                (any(at, 1_439), name)
            };
            command(["on", "dim", "off"][name], MONDAY + day * DAY + minute * 60_000_000_000)
        })
    };
    let mut whole = Profile::new("UTC").unwrap();
    whole.add("192.168.1.20", changes(0..530).collect());
    let mut parts = Profile::new("UTC").unwrap();
    for days in [0..400, 400..522, 522..530] {
        parts.add("192.168.1.20", changes(days).collect());
    }
    assert_eq!(parts.to_toml(), whole.to_toml());
    assert!(!whole.home("192.168.1.20").components().order, "its commands come in any order now");
}

#[test]
fn files_that_are_no_profile_are_refused() {
    let fault = |text: &str| Profile::from_toml(text).unwrap_err().to_string();
    assert!(fault("schema = 2\ntime-zone = \"UTC\"").contains("schema 2"));
    assert!(fault("schema = 1\ntime-zone = \"Mars/Olympus\"").contains("Mars/Olympus"));
    let home = "schema = 1\ntime-zone = \"UTC\"\n[[home]]\ngateway = \"\"\nuses = []\n";
    assert!(fault(&format!("{home}diary = [[\"noon\", []]]")).contains("noon"));
    assert!(fault(&format!("{home}diary = [[1, 2]]")).contains("no profile"));
    assert!(Profile::from_toml(&format!("{home}diary = [[\"2026-01-05T07:00:00Z\", [[nan, {{ on = 1 }}]]]]")).is_ok());
}

#[test]
fn a_command_that_ends_a_strange_silence_can_be_strange_itself() {
    let profile = profile(40);
    let found = deviations(&profile, vec![command("unlock", MONDAY + 42 * DAY + 3 * HOUR)]);
    let missing = found.iter().any(|one| matches!(one.what, What::Silence | What::Overdue));
    let own = found.iter().any(|one| one.time_ns == MONDAY + 42 * DAY + 3 * HOUR && one.seen.contains("unlock"));
    assert!(missing && own, "{found:?}");
}

/// Candidates below a hundredth are not learned.
#[test]
fn weeks_have_the_mean_of_the_days_that_were_learned() {
    // On Monday at 23:00, but not on the second one, and twice after the midnight that follows.
    let midnight = MONDAY - MONDAY.rem_euclid(DAY);
    let mut sightings = Vec::new();
    for day in 0..16 {
        let start = midnight + day * DAY;
        sightings.push(command("dim", start + 12 * HOUR));
        if day % 7 == 0 && day != 7 {
            sightings.extend([command("on", start + 23 * HOUR), command("on", start + 24 * HOUR)]);
            sightings.push(command("on", start + 24 * HOUR + HOUR / 4));
        }
    }
    let mut profile = Profile::new("UTC").unwrap();
    profile.add("192.168.1.20", sightings);
    let home = profile.home("192.168.1.20");
    // The first day is not whole, and the last one is not over.
    assert_eq!(home.whole_days().len(), 14);
    let week = home.week();
    let names: Vec<&str> = week.iter().map(|week| &*week.action).collect();
    assert_eq!(names, ["dim", "on"]);
    let near = |one: Option<f64>, other: f64| one.is_some_and(|one| (one - other).abs() < 0.01);
    assert!(near(week[0].hours[0][12], 1.0) && near(week[0].hours[6][12], 1.0), "{week:?}");
    assert!((week[0].weekly - 7.0).abs() < 0.01, "{week:?}");
    // Of the Mondays, the second and the third were learned.
    assert!(near(week[1].hours[0][23], 0.5) && near(week[1].hours[1][0], 1.0), "{week:?}");
    assert!(near(week[1].hours[1][1], 0.0) && near(week[1].hours[2][0], 0.0), "{week:?}");
    let few = {
        let mut few = Profile::new("UTC").unwrap();
        few.add("", (0..4).flat_map(day).collect());
        few.home("").week()
    };
    assert!(few.iter().all(|week| near(week.hours[1][12], 0.0) && week.hours[6][12].is_none()), "{few:?}");
}

#[test]
fn routines_say_on_which_days_they_come() {
    let start = MONDAY - MONDAY.rem_euclid(DAY);
    let mut sightings = Vec::new();
    for day in 0..30 {
        sightings.push(command("lock", start + day * DAY + 22 * HOUR));
        let (name, hour) = if day % 7 < 5 { ("wake", 6) } else { ("brunch", 10) };
        sightings.push(command(name, start + day * DAY + hour * HOUR));
    }
    let mut profile = Profile::new("UTC").unwrap();
    profile.add("", sightings);
    let routines = profile.home("").routines();
    let shown: Vec<String> =
        routines.iter().map(|it| format!("{} {} {} {}/{}", it.command, it.at, it.days, it.came, it.of)).collect();
    assert_eq!(shown, ["1 wake 06:00 weekdays 20/20", "1 brunch 10:00 weekends 8/8", "1 lock 22:00 all 28/28"]);
}

#[test]
fn a_routine_of_all_days_is_one_of_all_days_though_it_was_left_out_once() {
    let start = MONDAY - MONDAY.rem_euclid(DAY);
    // Left out on a day of the weekend, or of the week, or on no day; or on all days of the weekend.
    for (left_out, expected) in [
        (&[12][..], "1 lock 22:00 all 27/28"),
        (&[13, 19], "1 lock 22:00 all 26/28"),
        (&[9], "1 lock 22:00 all 27/28"),
        (&[5, 6, 12, 13, 19, 20, 26, 27], "1 lock 22:00 weekdays 20/20"),
    ] {
        let mut sightings = Vec::new();
        for day in 0..30 {
            sightings.push(command("other", start + day * DAY + (7 + day * 5 % 11) * HOUR));
            if !left_out.contains(&day) {
                sightings.push(command("lock", start + day * DAY + 22 * HOUR));
            }
        }
        let mut profile = Profile::new("UTC").unwrap();
        profile.add("", sightings);
        let routines = profile.home("").routines();
        let shown: Vec<String> =
            routines.iter().map(|it| format!("{} {} {} {}/{}", it.command, it.at, it.days, it.came, it.of)).collect();
        assert_eq!(shown, [expected], "{left_out:?}");
    }
}

/// A command that may have been any of these, each as likely as it says.
fn one_of(commands: &[(&[&str], f64)], time_ns: i64) -> Sighting {
    let actions = |names: &[&str]| names.iter().map(|name| (Arc::from(*name), 1)).collect::<Actions>();
    let candidates = commands.iter().map(|(names, likelihood)| (actions(names), *likelihood)).collect();
    Sighting { time_ns, flow: 7, candidates }.reduced()
}

fn routines(sightings: Vec<Sighting>) -> Vec<String> {
    let mut profile = Profile::new("UTC").unwrap();
    profile.add("", sightings);
    let again = Profile::from_toml(&profile.to_toml()).unwrap();
    assert_eq!(again.to_toml(), profile.to_toml());
    again.home("").routines().iter().map(|it| format!("{} {} {}/{}", it.command, it.at, it.came, it.of)).collect()
}

/// Warm, open and dark always have the same size. What an answer lists last is not all that is as improbable.
#[test]
fn commands_that_an_answer_lacks_as_improbable_are_not_told_apart() {
    let start = MONDAY - MONDAY.rem_euclid(DAY);
    let mut sightings = Vec::new();
    for day in 0..30 {
        let alike: [(&[&str], f64); 4] = [(&["open"], 1.0), (&["dark"], 1.0), (&["warm"], 1.0), (&["close"], 0.07)];
        sightings.push(one_of(&alike, start + day * DAY + 7 * HOUR));
        let tail: [(&[&str], f64); 3] = [(&["close"], 1.0), (&["open"], 0.06), (&["dark"], 0.06)];
        sightings.push(one_of(&tail, start + day * DAY + 7 * HOUR + HOUR / 9));
    }
    let mut profile = Profile::new("UTC").unwrap();
    profile.add("", sightings);
    let text = profile.to_toml();
    assert!(text.contains("command = \"1 dark or 1 open or 1 warm\", a-week = "), "{text}");
    let week = profile.home("").week();
    let weekly = |action: &str| week.iter().find(|week| &*week.action == action).map(|week| week.weekly);
    assert!(weekly("warm") == weekly("open") && weekly("warm") == weekly("dark"), "{week:?}");
    assert!(weekly("warm").is_some_and(|warm| (warm - 7.0 / 3.0).abs() < 0.2), "{week:?}");
}

/// They would else share the days, and neither would be a routine.
#[test]
fn commands_that_nothing_tells_apart_are_one_routine() {
    let start = MONDAY - MONDAY.rem_euclid(DAY);
    let pair: &[(&[&str], f64)] = &[(&["timer", "white"], 1.0), (&["colour", "off"], 1.0), (&["on"], 0.002)];
    let seven = |pair| (0..30).map(|day| one_of(pair, start + day * DAY + 7 * HOUR)).collect::<Vec<_>>();
    assert_eq!(routines(seven(pair)), ["1 colour, 1 off or 1 timer, 1 white 07:00 28/28"]);
    let three: &[(&[&str], f64)] = &[(&["a", "b"], 1.0), (&["b", "c"], 1.0), (&["d"], 1.0)];
    assert_eq!(routines(seven(three)), ["1 d or 1 a, 1 b or 1 b, 1 c 07:00 28/28"]);
    let four: &[(&[&str], f64)] = &[(&["a", "b"], 1.0), (&["b", "c"], 1.0), (&["d"], 1.0), (&["e"], 1.0)];
    assert_eq!(routines(seven(four)), ["1 d or 1 e or 2 others 07:00 28/28"]);
    let near: &[(&[&str], f64)] = &[(&["on"], 1.0), (&["off"], 0.3)];
    assert_eq!(routines(seven(near)), ["1 on 07:00 28/28"], "the size says more of the one");
}

/// What once was the one and not the other is another command: replies that were lost told them apart, or another size.
#[test]
fn commands_that_were_told_apart_are_two() {
    let start = MONDAY - MONDAY.rem_euclid(DAY);
    let pair: &[(&[&str], f64)] = &[(&["timer", "white"], 1.0), (&["colour", "off"], 1.0)];
    let alone: &[(&[&str], f64)] = &[(&["colour", "off"], 1.0), (&["timer", "white"], 0.1)];
    let week = |day: i64| if day % 2 == 0 { alone } else { pair };
    let sightings = (0..30).map(|day| one_of(week(day), start + day * DAY + 7 * HOUR)).collect();
    assert_eq!(routines(sightings), ["1 colour, 1 off 07:00 28/28"]);
}

/// Deviations name both.
#[test]
fn commands_that_nothing_tells_apart_are_named_together_where_they_deviate() {
    let start = MONDAY - MONDAY.rem_euclid(DAY);
    let pair: &[(&[&str], f64)] = &[(&["timer", "white"], 1.0), (&["colour", "off"], 1.0)];
    let at = |day: i64, hour: i64| one_of(pair, start + day * DAY + hour * HOUR);
    let mut profile = Profile::new("UTC").unwrap();
    let usual = |day: i64| [at(day, 7), command("dim", start + day * DAY + 18 * HOUR + day % 5 * HOUR / 10)];
    profile.add("192.168.1.20", (0..40).flat_map(usual).collect());
    let missing = deviations(&profile, vec![usual(40)[1].clone(), usual(41)[1].clone()]);
    let words = "1 colour, 1 off or 1 timer, 1 white at 07:00, as on 39 of 39 days";
    assert!(missing.iter().any(|one| one.what == What::Overdue && one.expected.starts_with(words)), "{missing:?}");
    let moved = deviations(&profile, vec![at(40, 12)]);
    assert!(moved.iter().any(|one| one.seen.starts_with("1 colour, 1 off or 1 timer, 1 white at 12:00")), "{moved:?}");
}

#[test]
fn misses_of_a_command_are_counted_in_a_row() {
    let start = MONDAY - MONDAY.rem_euclid(DAY);
    let mut profile = Profile::new("UTC").unwrap();
    let evening = |day: i64| command("dim", start + day * DAY + 18 * HOUR);
    let usual = |day: i64| [command("on", start + day * DAY + 7 * HOUR), evening(day)];
    profile.add("192.168.1.20", (0..40).flat_map(usual).collect());
    let missing = deviations(&profile, (40..45).map(evening).collect());
    let overdue: Vec<&str> = missing.iter().filter(|one| one.what == What::Overdue).map(|one| &*one.seen).collect();
    // That it did not come once is within the budget; after three days the home has given it up, but on weekdays.
    let [second, third] = ["second", "third"].map(|number| format!("missed for the {number} time in a row"));
    assert_eq!(overdue, [&second, &third, &third], "{missing:?}");
}

/// A home of many days forgets the first of them, and with these the commands that nobody sends any more.
#[test]
fn commands_stay_what_they_are_when_days_before_them_are_forgotten() {
    let start = MONDAY - MONDAY.rem_euclid(DAY);
    let pair: &[(&[&str], f64)] = &[(&["timer", "white"], 1.0), (&["colour", "off"], 1.0)];
    let once = |day: i64| command(&format!("once-{day}"), start + day * DAY + 5 * HOUR);
    let seven = |day: i64| one_of(pair, start + day * DAY + 7 * HOUR);
    let begun_late = (0..40).map(once).chain((40..200).map(seven)).collect();
    assert_eq!(routines(begun_late), ["1 colour, 1 off or 1 timer, 1 white 07:00 57/57"]);

    // A day is forgotten between the time that a command was due and the next one.
    let mut profile = Profile::new("UTC").unwrap();
    profile.add("192.168.1.20", (0..130).flat_map(|day| [once(day), seven(day)]).collect());
    let missing = deviations(&profile, vec![once(130), once(131)]);
    let overdue: Vec<&str> = missing.iter().filter(|one| one.what == What::Overdue).map(|one| &*one.expected).collect();
    assert!(
        matches!(overdue[..], [expected] if expected.starts_with("1 colour, 1 off or 1 timer, 1 white at 07:00")),
        "{missing:?}"
    );
}

/// Captures clamp times to the ends of their range.
#[test]
fn the_ends_of_time_are_days_like_others() {
    let profile = profile(30);
    let mut detector = profile.detector("192.168.1.20", Budget::WEEKLY);
    detector.observe(command("on", i64::MAX - 5 * HOUR));
    detector.observe(command("on", i64::MAX));
    detector.advance(i64::MAX);
    let mut home = Home::new(TimeZone::UTC, Components::ALL);
    for time_ns in [i64::MIN, i64::MIN + 1, 0, i64::MAX - 1, i64::MAX] {
        home.observe(command("on", time_ns));
        home.advance(time_ns);
    }
    let mut ends = Profile::new("Europe/Berlin").unwrap();
    ends.add("192.168.1.20", vec![command("on", i64::MIN), command("on", i64::MAX)]);
    assert_eq!(Profile::from_toml(&ends.to_toml()).unwrap().gateways().count(), 1);
}

/// A long silence is said once, whether it is counted in minutes or in days; the expected commands are those of all its days.
#[test]
fn a_long_silence_is_counted_by_the_day() {
    let profile = profile(40);
    let mut detector = profile.detector("192.168.1.20", Budget::WEEKLY);
    let start = MONDAY + 40 * DAY;
    let said = |found: Vec<crate::Deviation>| found.into_iter().filter(|one| one.what == What::Silence).count();
    let first = said(detector.advance(start + 10 * DAY));
    assert_eq!((first, said(detector.advance(start + 390 * DAY))), (1, 0));
    let score = |by: &[i64]| {
        let mut home = profile.home("192.168.1.20");
        for days in by {
            home.peaks.clear();
            home.advance(start + days * DAY);
        }
        home.peaks.iter().map(|peak| peak.score).fold(0.0, f64::max)
    };
    let days: Vec<i64> = (1..=200).collect();
    let (by_day, at_once) = (score(&days), score(&[200]));
    assert!((by_day - at_once).abs() < 1e-6 * by_day, "{by_day} and {at_once}");
    // Three commands a day, each of which begins a session.
    assert!((500.0..700.0).contains(&by_day), "{by_day}");
}
