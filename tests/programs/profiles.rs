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
