//! What a home usually does is learned from answers in any form, and what is not as usual is found, by the command and by
//! the stage alike.

use std::fs;

use serde_json::Value;
use sizeleak_frame::Frame;
use support::home::{Home, assert_fails};
use support::programs::{feed, stderr, with, write};
use support::streams::{answers_of, frames_of, stream_of};

const DAY_NS: i64 = 86_400_000_000_000;

#[test]
fn a_burst_is_found_when_the_home_is_attacked() {
    let (home, attack_ns) = Home::of_weeks();
    let lines = home.text("detect attacked.frames --profile p.toml --format ndjson -q");
    let found = of_kind("deviation", &lines);
    let near = |deviation: &&Value| (0..120_000_000_000).contains(&(time_ns(deviation) - attack_ns));
    let burst = found.iter().find(near).unwrap_or_else(|| panic!("{lines}"));
    assert!(burst["p_value"].as_f64().unwrap() < 0.1 && found.len() <= 3, "{lines}");
}

/// The bodies of JSON lines, which are of one kind.
fn of_kind(kind: &str, lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()[kind].take()).collect()
}

fn time_ns(frame: &Value) -> i64 {
    frame["time_ns"].as_i64().unwrap()
}

#[test]
fn a_profile_is_the_same_from_every_form_of_answers() {
    let (home, _) = Home::of_weeks();
    let expected = home.text_of("p.toml");
    fs::create_dir(home.path("many")).unwrap();
    for name in ["answers.ndjson", "answers.parquet", "many/answers.parquet"] {
        home.text(&format!("run learned.commands --model model.toml -q -o {name}"));
    }
    for form in ["answers.ndjson", "answers.parquet", "many", "learned.frames learned.frames"] {
        home.text(&format!("profile {form} --time-zone Europe/Berlin -q -o again.toml"));
        assert!(home.text_of("again.toml") == expected, "{form}");
    }
}

/// Where a clock is set back and the gateway connects anew, later answers were taken for a burst at the time before.
#[test]
fn a_clock_that_is_set_back_makes_no_deviation() {
    let (home, _) = Home::of_weeks();
    let stream = fs::read(home.path("learned.frames")).unwrap();
    let mut frames = frames_of(&stream);
    let times: Vec<i64> = answers_of(&stream).iter().map(|answer| answer.command.time_ns).collect();
    let middle = times[times.len() / 2];
    for frame in &mut frames {
        if let Frame::Identification(answer) = frame
            && answer.command.time_ns >= middle
        {
            answer.command.time_ns -= 20 * DAY_NS;
            answer.command.end_ns -= 20 * DAY_NS;
            answer.command.flow += 1;
        }
    }
    let mut of_new: Vec<Frame> = frames.iter().filter(|frame| matches!(frame, Frame::Flow(_))).cloned().collect();
    for frame in &mut of_new {
        if let Frame::Flow(flow) = frame {
            flow.flow += 1;
        }
    }
    frames.splice(1..1, of_new);
    let changed = stream_of(&frames);
    write(home.folder(), "back.frames", &changed);
    home.text(&format!("profile learned.frames --until {} -q -o half.toml", sizeleak_text::utc(times[60])));
    assert_fails(&home.run("detect back.frames --profile half.toml"), 1, &["back.frames", "in order of time"]);
    let profile = home.path("half.toml");
    let piped = feed(with("detector", &format!("--profile {} -v", profile.display())), changed);
    assert!(piped.status.success(), "{}", stderr(&piped));
    let said = stderr(&piped);
    assert!(said.contains("back in time, the first from ") && said.contains("did not count"), "{said}");
    let found = frames_of(&piped.stdout);
    let after = found.iter().filter(|frame| matches!(frame, Frame::Deviation(one) if one.time_ns >= middle)).count();
    assert_eq!(after, 0);
}

#[test]
fn answers_of_a_time_make_the_profile_and_the_deviations() {
    let (home, attack_ns) = Home::of_weeks();
    let [before, behind] = [-2, 1].map(|days| sizeleak_text::utc(attack_ns + days * DAY_NS));
    let all = of_kind("identification", &home.text("frames attacked.frames --kind identification --format ndjson -q"));
    let early = all.iter().filter(|answer| time_ns(answer) < attack_ns - 2 * DAY_NS).count();
    assert!(early > 0 && early < all.len());
    // Cut by `profile`, or by `run` before it.
    home.text(&format!("profile attacked.frames --until {before} -q -o one.toml"));
    for name in ["early.frames", "early.ndjson", "early.parquet"] {
        home.text(&format!("run attacked.frames --until {before} -q -o {name}"));
        home.text(&format!("profile {name} -q -o other.toml"));
        assert!(home.text_of("one.toml") == home.text_of("other.toml"), "{name}");
    }
    for (command, output, what) in [("profile", "one.toml", "answers"), ("run", "early.frames", "rows")] {
        let told = stderr(&home.run(&format!("{command} attacked.frames --until {before} -o {output}")));
        assert!(told.contains(&format!("{early} of {} {what} are before {before}", all.len())), "{told}");
    }
    // What deviates is that of the whole, as far as it is of the time.
    let detect = "detect attacked.frames --profile p.toml -q --format ndjson";
    let whole = home.text(detect);
    assert!(!whole.is_empty());
    assert_eq!(home.text(&format!("{detect} --since {before}")), whole);
    assert_eq!(home.text(&format!("{detect} --since {behind}")), "");
    assert_eq!(home.text(&format!("{detect} --until {before}")), "");
}

#[test]
fn a_profile_is_a_prior_of_the_answers_that_it_was_not_learned_from() {
    let (home, _) = Home::of_weeks();
    let answered = |more: &str| {
        home.text(&format!("run attacked.commands --kind identification --format ndjson -q --model model.toml {more}"))
    };
    let (plain, by_habits) = (answered(""), answered("--profile p.toml"));
    assert_eq!(by_habits, answered("--set pruner.profile=p.toml"));
    assert_eq!(by_habits, answered("--profile p.toml --mode processes"));
    let (plain, by_habits) = (of_kind("identification", &plain), of_kind("identification", &by_habits));
    assert_eq!(plain.len(), by_habits.len());
    let known = plain.iter().zip(&by_habits).filter(|(plain, by_habits)| plain == by_habits).count();
    let learned = home.text("frames learned.frames --kind identification --format ndjson -q").lines().count();
    assert!(known >= learned && known < plain.len(), "{known} of {}", plain.len());
    // What the replies and the size say of each candidate stays, whatever is usual.
    let likelihoods = |answer: &Value| -> Vec<(String, f64)> {
        let candidates = answer["candidates"].as_array().unwrap().iter();
        let all: Vec<(String, f64)> =
            candidates.map(|one| (one["actions"].to_string(), one["likelihood"].as_f64().unwrap())).collect();
        let greatest = all.iter().map(|(_, likelihood)| *likelihood).fold(0.0, f64::max);
        all.into_iter().map(|(actions, likelihood)| (actions, likelihood / greatest)).collect()
    };
    for (plain, by_habits) in plain.iter().zip(&by_habits) {
        let plain = likelihoods(plain);
        for (actions, likelihood) in likelihoods(by_habits) {
            let known = plain.iter().find(|(one, _)| *one == actions);
            let is_same = known.is_none_or(|(_, known)| (known - likelihood).abs() < 1e-9);
            assert!(is_same, "{actions} {known:?} {likelihood}");
        }
    }
}
