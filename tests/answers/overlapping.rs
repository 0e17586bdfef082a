//! Commands that begin before the replies to the one before have ended share those replies out by probability.
//! `cargo test --test answers overlapping:: -- --nocapture` shows the figures.

use std::process::Command;

use sizeleak_frame::Frame;
use sizeleak_simulator::Scenario;
use support::home::{Home, tell_actions_apart_by_replies};
use support::programs::{GATEWAY, feed, pipe, seven_with, sizeleak, stderr, stdout, with};
use support::streams::{answers_of, frames_of, stream_of};
use support::timeless::timeless;

/// A home of which this share of the commands comes within 300 ms of the one before. Labels have the exact time: others
/// could not tell which of two such commands they are for.
fn overlapping(share: f64) -> Home {
    let mut scenario = Scenario::default();
    scenario.command.overlap.share = share;
    scenario.labels.error = jiff::SignedDuration::ZERO;
    scenario.learn.random = 200;
    scenario.test.commands = 300;
    tell_actions_apart_by_replies(&mut scenario);
    Home::learned(&scenario, 6_101)
}

/// `run` over the test up to a stage, as frames.
fn run(home: &Home) -> Command {
    let mut command = sizeleak("run --format frames --quiet");
    command.arg(home.path("test.pcap")).args(["--gateway", GATEWAY, "--model"]).arg(home.path("model.toml"));
    command
}

#[test]
fn overlapping_commands_are_identified_nearly_as_well_as_others() {
    let home = overlapping(0.3);
    let figures = home.figures("model.toml", &[]);
    let commands = figures["commands"].as_f64().unwrap();
    let of = |name: &str| figures[name].as_f64().unwrap();
    let right = figures["after_pruning"]["top_1"].as_f64().unwrap() / commands;
    let calibration = &figures["after_pruning"]["calibration"];
    let error = calibration["expected_error_with_missed"].as_f64().unwrap();
    let chance = calibration["by_chance"].as_f64().unwrap();
    let precision = figures["after_pruning"]["precision"].as_f64().unwrap();
    eprintln!("first right {right:.3}, truth kept {precision:.3}, calibration error {error:.3}, by chance {chance:.3}");
    assert_eq!((of("missed"), of("ambiguous"), of("spurious")), (0.0, 0.0, 0.0));
    assert!(right > 0.85 && precision > 0.985 && error < chance + 0.03, "{right} {precision} {error} {chance}");
}

#[test]
fn threads_processes_and_a_pipe_share_out_alike_and_in_order() {
    let home = overlapping(0.2);
    let threads = stdout(run(&home).args(["--mode", "threads"]));
    let answers = answers_of(&threads);
    assert!(answers.iter().filter(|answer| answer.command.overlapped).count() > 30);
    assert!(answers.is_sorted_by_key(|answer| answer.command.time_ns));
    assert_eq!(timeless(&threads), timeless(&stdout(run(&home).args(["--mode", "processes"]))));
    let [capture, model] = ["test.pcap", "model.toml"].map(|name| home.path(name).display().to_string());
    let piped = pipe(seven_with(&capture, &model));
    assert_eq!(timeless(&threads), timeless(&piped[6].stdout));
}

#[test]
fn a_command_whose_neighbour_is_missing_is_answered_by_its_size_alone() {
    let home = overlapping(0.2);
    let model = home.path("model.toml").display().to_string();
    let frames = frames_of(&stdout(run(&home).args(["--set", "pruner.mode=none"])));
    // A stage of somebody's drops every command that overlaps an earlier one.
    let kept = frames.into_iter().filter(|frame| match frame {
        Frame::Identification(one) => one.command.shared_replies.is_empty(),
        _ => true,
    });
    let kept: Vec<Frame> = kept.map(without_last_stage).collect();
    let pruned = feed(with("pruner", &format!("--model {model}")), stream_of(&kept));
    assert!(pruned.status.success(), "{}", stderr(&pruned));
    let before = kept.iter().filter_map(|frame| if let Frame::Identification(one) = frame { Some(one) } else { None });
    let after = answers_of(&pruned.stdout);
    let mut alone = 0;
    for (before, after) in before.zip(&after) {
        assert_eq!(before.command, after.command);
        if before.command.overlapped {
            assert_eq!(before.candidates, after.candidates);
            alone += 1;
        }
    }
    assert!(alone > 20, "{alone}");
}

/// A frame as `decomposer` would pass it on to `pruner`.
fn without_last_stage(frame: Frame) -> Frame {
    match frame {
        Frame::Hello(mut hello) => {
            hello.stage = "decomposer".into();
            hello.upstream.pop();
            Frame::Hello(hello)
        }
        Frame::Summary(mut summary) => {
            summary.stages.pop();
            Frame::Summary(summary)
        }
        other => other,
    }
}
