//! A gateway whose messages become longer: answers follow, a notice says so, and `adapt` writes a model of it.
//! `cargo test --test answers changing_gateway:: -- --nocapture` shows the figures.

use std::fs;
use std::process::Command;

use sizeleak_frame::{Frame, Identification};
use sizeleak_simulator::scenario::{Framing, IdDraw};
use sizeleak_simulator::{Scenario, bayes_limit};
use support::home::{Home, assert_fails, run, tell_actions_apart_by_replies};
use support::programs::{GATEWAY, pipe, seven_with, sizeleak, stderr, stdout, write};
use support::streams::{answers_of, frames_of, notices_of, stream_of};
use support::timeless::timeless;

/// A home whose replies differ, which was learned from.
struct Learned {
    home: Home,
}

/// The share of first answers that are right by the best that any method could do.
fn limit(scenario: &Scenario) -> f64 {
    bayes_limit(scenario).unwrap().top_1_with_replies
}

/// A home that is as it was while it was learned from.
fn unchanged(framing: Framing) -> Scenario {
    let mut scenario = Scenario::default();
    scenario.session.framing = framing;
    scenario.learn.random = 200;
    scenario.test.commands = 300;
    tell_actions_apart_by_replies(&mut scenario);
    scenario
}

/// New firmware adds 6 bytes to all messages in the middle of the test.
fn new_firmware(framing: Framing) -> Scenario {
    let mut scenario = unchanged(framing);
    scenario.firmware_change.bytes = 6;
    scenario
}

/// Message ids grow from 4 digits to 7 during the test.
fn growing_ids(framing: Framing) -> Scenario {
    let mut scenario = unchanged(framing);
    let id = &mut scenario.command.message_id;
    (id.min_digits, id.max_digits, id.draw) = (4, 7, IdDraw::Growing);
    scenario
}

impl Learned {
    fn new(scenario: &Scenario, seed: u64) -> Self {
        let home = Home::learned(scenario, seed);
        Self { home }
    }

    /// The share of the commands of the second half of the test whose first answer is right.
    fn in_the_end(&self, model: &str, more: &[&str]) -> f64 {
        let details = self.home.path("details.csv");
        let arguments = ["--details", details.to_str().unwrap()];
        let output = self.home.evaluate(model, &[&arguments[..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let mut reader = csv::Reader::from_path(&details).unwrap();
        let (outcome, rank) = (3, 12);
        let rows: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        let labels: Vec<&csv::StringRecord> = rows.iter().filter(|row| &row[outcome] != "spurious").collect();
        let second = &labels[labels.len() / 2..];
        let right = second.iter().filter(|row| &row[rank] == "1").count();
        right as f64 / second.len() as f64
    }

    /// `run` over the test with a model.
    fn run(&self, model: &str, more: &[&str]) -> Command {
        let mut command = sizeleak("run --format frames");
        command.arg(self.home.path("test.pcap")).args(["--gateway", GATEWAY, "--model"]).arg(self.home.path(model));
        command.args(more);
        command
    }

    fn adapt(&self, more: &[&str]) -> std::process::Output {
        let mut command = sizeleak("adapt");
        command.arg(self.home.path("test.pcap")).args(["--gateway", GATEWAY, "--model"]);
        command.arg(self.home.path("model.toml")).arg("-o").arg(self.home.path("adapted.toml"));
        run(command.args(more))
    }
}

/// The details of the notices on shifts.
fn shifted(stream: &[u8]) -> Vec<String> {
    let notices = notices_of(stream).into_iter().filter(|notice| notice.what == "shifted");
    notices.map(|notice| notice.detail.unwrap()).collect()
}

support::tests_of! { answers_follow_new_firmware_from_the_second_command_on {
    answers_follow_new_firmware_in_websocket_frames(Framing::Websocket, 5_101);
    answers_follow_new_firmware_in_mqtt_messages(Framing::Mqtt, 5_102);
    answers_follow_new_firmware_in_http_messages(Framing::Http, 5_103);
} }

fn answers_follow_new_firmware_from_the_second_command_on(framing: Framing, seed: u64) {
    let scenario = new_firmware(framing);
    let (learned, limit) = (Learned::new(&scenario, seed), limit(&scenario));
    let fixed = learned.in_the_end("model.toml", &["--set", "epsilon-corrector.fixed=true"]);
    let followed = learned.in_the_end("model.toml", &[]);
    eprintln!("{framing:?}, 6 bytes more: fixed {fixed:.3}, followed {followed:.3}, limit {limit:.3}");
    assert!(fixed < 0.5 * limit && followed >= 0.95 * limit, "{framing:?}: {fixed} {followed} {limit}");

    let output = run(&mut learned.run("model.toml", &["-v"]));
    assert!(output.status.success() && !stderr(&output).contains("misfit"), "{}", stderr(&output));
    let said = shifted(&output.stdout);
    assert!(said.len() == 1 && said[0].contains("commands and replies are 6 bytes longer"), "{said:?}");
    let answers = answers_of(&output.stdout);
    let first = answers.iter().position(|answer| answer.shifts.first().is_some_and(|shift| shift.bytes == 6));
    let shift = &answers[first.unwrap()].shifts[0];
    assert_eq!((shift.reply_bytes, shift.since_ns.is_some()), (6, true));
    let since = answers.iter().position(|answer| Some(answer.command.time_ns) == shift.since_ns).unwrap();
    assert!(since.abs_diff(answers.len() / 2) <= 2 && first.unwrap() - since <= 2, "{since} {first:?}");
}

#[test]
fn answers_follow_growing_message_ids() {
    for (framing, seed) in [(Framing::Websocket, 5_201), (Framing::Mqtt, 5_202)] {
        let scenario = growing_ids(framing);
        let (learned, limit) = (Learned::new(&scenario, seed), limit(&scenario));
        let fixed = learned.in_the_end("model.toml", &["--set", "epsilon-corrector.fixed=true"]);
        let followed = learned.in_the_end("model.toml", &[]);
        eprintln!("{framing:?}, growing ids: fixed {fixed:.3}, followed {followed:.3}, limit {limit:.3}");
        assert!(fixed < 0.5 * limit && followed >= 0.95 * limit, "{framing:?}: {fixed} {followed} {limit}");
        let said = shifted(&stdout(&mut learned.run("model.toml", &["--quiet"])));
        assert!(said.last().unwrap().contains("commands are 3 bytes longer"), "{said:?}");
        assert!(said.len() <= 3, "one notice a change: {said:?}");
    }
}

#[test]
fn an_adapted_model_gives_the_same_answers_without_a_notice() {
    let scenario = new_firmware(Framing::Websocket);
    let (learned, limit) = (Learned::new(&scenario, 5_301), limit(&scenario));
    let adapted = learned.adapt(&[]);
    assert!(adapted.status.success(), "{}", stderr(&adapted));
    assert!(stderr(&adapted).contains("|ac| from"), "{}", stderr(&adapted));
    let model = fs::read_to_string(learned.home.path("adapted.toml")).unwrap();
    assert!(model.contains("adapted without labels"), "{model}");
    let followed = learned.in_the_end("model.toml", &[]);
    let with_adapted = learned.in_the_end("adapted.toml", &["--set", "epsilon-corrector.fixed=true"]);
    assert!(with_adapted >= followed - 0.01 && with_adapted >= 0.95 * limit, "{with_adapted} {followed} {limit}");

    // On a capture from after the change there is nothing to say any more.
    let mut after = new_firmware(Framing::Websocket);
    after.firmware_change.after = 0.0;
    let later = Home::new(&after, 5_302);
    fs::copy(learned.home.path("adapted.toml"), later.path("adapted.toml")).unwrap();
    let later = Learned { home: later };
    let stream = stdout(&mut later.run("adapted.toml", &["--quiet"]));
    assert_eq!(shifted(&stream), Vec::<String>::new());
    assert!(answers_of(&stream).len() > 250);
}

#[test]
fn a_gateway_that_did_not_change_is_answered_as_before() {
    for (framing, seed) in [(Framing::Websocket, 5_401), (Framing::Http, 5_402)] {
        let learned = Learned::new(&unchanged(framing), seed);
        let followed = stdout(&mut learned.run("model.toml", &["--quiet"]));
        let fixed = stdout(&mut learned.run("model.toml", &["--quiet", "--set", "epsilon-corrector.fixed=true"]));
        assert_eq!(shifted(&followed), Vec::<String>::new());
        let first = |answer: &Identification| answer.candidates.first().map(|candidate| candidate.actions.clone());
        let [followed, fixed] = [&followed, &fixed].map(|stream| answers_of(stream));
        let different = followed.iter().zip(&fixed).filter(|(one, other)| first(one) != first(other)).count();
        eprintln!("{framing:?}, unchanged: {different} of {} first answers differ", followed.len());
        // Those that are as good as even.
        assert!(followed.len() > 250 && different <= 5, "{different}");
        let refused = learned.adapt(&["--quiet"]);
        assert_fails(&refused, 1, &["nothing to adapt"]);
        assert!(!learned.home.path("adapted.toml").exists());
    }
}

#[test]
fn threads_processes_and_a_pipe_follow_alike() {
    let learned = Learned::new(&new_firmware(Framing::Mqtt), 5_501);
    let threads = timeless(&stdout(&mut learned.run("model.toml", &["--quiet", "--mode", "threads"])));
    assert_eq!(threads, timeless(&stdout(&mut learned.run("model.toml", &["--quiet", "--mode", "processes"]))));
    let [capture, model] = ["test.pcap", "model.toml"].map(|name| learned.home.path(name).display().to_string());
    let piped = pipe(seven_with(&capture, &model));
    assert_eq!(threads, timeless(&piped[6].stdout));
}

/// The flow of a bystander.
const BYSTANDER: u64 = 7;

#[test]
fn a_flow_that_changes_leaves_another_one_of_the_same_service_as_it_is() {
    let learned = Learned::new(&unchanged(Framing::Websocket), 5_601);
    let commands = stdout(&mut learned.run("model.toml", &["--quiet"]));
    // The stream of commands, alone and with the same ones 6 bytes longer in another flow.
    let mut streams = [Vec::new(), Vec::new()];
    for frame in frames_of(&commands) {
        let both = match frame {
            Frame::Identification(body) => {
                let mut longer = body.command.clone();
                (longer.flow, longer.size) = (BYSTANDER, longer.size + 6);
                longer.plaintext = longer.plaintext.map(|sizes| sizes.map(|size| size + 6));
                vec![Frame::from(body.command), longer.into()]
            }
            Frame::Flow(flow) => vec![Frame::Flow(flow.clone()), {
                let mut other = flow;
                other.flow = BYSTANDER;
                Frame::Flow(other)
            }],
            Frame::Hello(mut hello) => {
                hello.stage = "command-segmenter".into();
                hello.upstream.truncate(3);
                streams[1].push(Frame::Hello(hello.clone()));
                vec![Frame::Hello(hello)]
            }
            Frame::Summary(mut summary) => {
                summary.stages.truncate(4);
                streams[1].push(Frame::Summary(summary.clone()));
                vec![Frame::Summary(summary)]
            }
            Frame::Session(session) => vec![Frame::Session(session)],
            _ => continue,
        };
        streams[0].extend(both.first().cloned());
        if !matches!(both[0], Frame::Hello(_) | Frame::Summary(_)) {
            streams[1].extend(both);
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let [alone, beside] = streams.map(|frames| {
        let file = write(folder.path(), "commands.frames", stream_of(&frames));
        let mut command = sizeleak("run --quiet --format frames --from");
        command.arg(file).arg("--model").arg(learned.home.path("model.toml"));
        stdout(&mut command)
    });
    assert!(shifted(&alone).is_empty());
    assert!(shifted(&beside).len() == 1 && shifted(&beside)[0].contains("commands are 6 bytes longer"));
    let own = |stream: &[u8]| -> Vec<Identification> {
        answers_of(stream).into_iter().filter(|answer| answer.command.flow != BYSTANDER).collect()
    };
    assert!(own(&alone).len() > 250 && own(&alone) == own(&beside));
}
