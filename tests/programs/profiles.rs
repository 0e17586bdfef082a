//! What a home usually does is learned from answers in any form, and what is not as usual is found, by the command and by
//! the stage alike.

use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde_json::Value;
use sizeleak_frame::{Frame, FrameReader, FrameWriter};
use sizeleak_simulator::scenario::{Attack, AttackKind, HabitSettings};
use sizeleak_simulator::{Scenario, Simulation, TestForm, simulate_as};
use support::home::{assert_fails, run};
use support::programs::{example, feed, root, sizeleak, stderr, stdout, with, write};
use tempfile::TempDir;

/// A model of the simulated home, by a path that holds in every folder.
fn model() -> String {
    root().join(example("model.toml")).display().to_string()
}

/// Answers of a home: of its first weeks, and of these and some days more, in which it is attacked.
struct Answers {
    folder: TempDir,
    attack_ns: i64,
}

impl Answers {
    /// The same answers for each test, in files of its own.
    fn new() -> Self {
        const FILES: [&str; 5] =
            ["learned.commands", "learned.frames", "attacked.commands", "attacked.frames", "p.toml"];
        static MADE: LazyLock<(i64, [Vec<u8>; FILES.len()])> = LazyLock::new(|| {
            let made = Answers::make();
            (made.attack_ns, FILES.map(|name| fs::read(made.path(name)).unwrap()))
        });
        let (attack_ns, contents) = &*MADE;
        let answers = Self { folder: tempfile::tempdir().unwrap(), attack_ns: *attack_ns };
        for (name, content) in FILES.into_iter().zip(contents) {
            write(answers.folder.path(), name, content);
        }
        answers
    }

    fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut scenario = Scenario::default();
        scenario.learn.repeats = 0;
        scenario.learn.random = 1;
        scenario.habits = HabitSettings { days: 25, time_zone: "Europe/Berlin".into(), ..HabitSettings::default() };
        let learned: Simulation = simulate_as(&scenario, 3, TestForm::Frames).unwrap();
        scenario.habits.days = 28;
        scenario.habits.attacks = vec![Attack { kind: AttackKind::Burst, day: 26, at: None }];
        let attacked = simulate_as(&scenario, 3, TestForm::Frames).unwrap();
        let answers = Self { folder, attack_ns: attacked.attacks[0].start_ns };
        for (name, simulation) in [("learned", &learned), ("attacked", &attacked)] {
            let frames = write(answers.folder.path(), &format!("{name}.commands"), &simulation.test.bytes);
            let arguments = format!(
                "run {} --model {} -q -o {}",
                frames.display(),
                example("model.toml"),
                answers.path(&format!("{name}.frames")).display()
            );
            stdout(&mut sizeleak(&arguments));
        }
        let learned = answers.path("learned.frames");
        answers.stdout(&format!(
            "profile {} --time-zone Europe/Berlin -q -o {}",
            learned.display(),
            answers.path("p.toml").display()
        ));
        answers
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn stdout(&self, arguments: &str) -> String {
        let mut command = sizeleak(arguments);
        String::from_utf8(stdout(command.current_dir(self.folder.path()))).unwrap()
    }
}

#[test]
fn an_attack_is_found_by_the_command_and_by_the_stage() {
    let answers = Answers::new();
    let lines = answers.stdout("detect attacked.frames --profile p.toml --format ndjson -q");
    let found: Vec<Value> =
        lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["deviation"].take()).collect();
    let near = |deviation: &&Value| {
        (0..120_000_000_000).contains(&(deviation["time_ns"].as_i64().unwrap() - answers.attack_ns))
    };
    let burst = found.iter().find(near).unwrap_or_else(|| panic!("{lines}"));
    assert_eq!(burst["gateway"], "192.168.1.20");
    assert!(
        burst["p_value"].as_f64().unwrap() < 0.1 && burst["commands"][0]["flow"].as_str().unwrap().starts_with('F')
    );
    assert!(found.len() <= 3, "{lines}");
    // The stage in a pipe, and in a pipeline in both modes.
    let stream = fs::read(answers.path("attacked.frames")).unwrap();
    let profile = answers.path("p.toml");
    let piped = feed(with("detector", &format!("--profile {} --quiet", profile.display())), stream);
    assert!(piped.status.success(), "{}", stderr(&piped));
    write(answers.folder.path(), "piped.frames", &piped.stdout);
    assert_eq!(answers.stdout("frames piped.frames --kind deviation --format ndjson -q"), lines);
    let stages = ["epsilon-corrector", "decomposer", "pruner"];
    let model = model();
    let stages = stages.map(|stage| format!("[[stage]]\nrun = \"{stage}\"\nmodel = \"{model}\"\n"));
    let mut pipeline = stages.concat();
    pipeline.push_str("[[stage]]\nrun = \"detector\"\nprofile = \"p.toml\"\n");
    let all =
        ["capture", "flow-filter", "record-sizer"].map(|stage| format!("[[stage]]\nrun = \"{stage}\"\n")).concat();
    let segmenter = "[[stage]]\nrun = \"command-segmenter\"\n";
    write(answers.folder.path(), "pipeline.toml", format!("{all}{segmenter}{pipeline}"));
    for mode in ["threads", "processes"] {
        let told = answers.stdout(&format!(
            "run pipeline.toml --from attacked.commands --mode {mode} --kind deviation --format ndjson -q"
        ));
        assert_eq!(told, lines, "{mode}");
    }
    let text = answers.stdout("detect attacked.frames --profile p.toml -q");
    assert_eq!(text.lines().count(), found.len(), "{text}");
}

#[test]
fn a_profile_is_the_same_from_every_form_of_answers_and_in_parts() {
    let answers = Answers::new();
    let expected = fs::read_to_string(answers.path("p.toml")).unwrap();
    fs::create_dir(answers.path("many")).unwrap();
    let model = model();
    for name in ["answers.ndjson", "answers.parquet", "many/answers.parquet"] {
        answers.stdout(&format!("run learned.commands --model {model} -q -o {name}"));
    }
    for form in ["answers.ndjson", "answers.parquet", "many", "learned.frames learned.frames"] {
        answers.stdout(&format!("profile {form} --time-zone Europe/Berlin -q -o again.toml"));
        assert!(fs::read_to_string(answers.path("again.toml")).unwrap() == expected, "{form}");
    }
    answers.stdout("profile learned.frames --add p.toml -q -o p.toml");
    assert!(fs::read_to_string(answers.path("p.toml")).unwrap() == expected, "answers that it has");
    let said =
        stderr(&run(sizeleak("profile learned.frames --add p.toml -o p.toml").current_dir(answers.folder.path())));
    assert!(said.contains("learning: ") && said.contains("more whole days needed to keep 1/month"), "{said}");
}

fn frames_of(mut stream: &[u8]) -> Vec<Frame> {
    let mut reader = FrameReader::new(&mut stream);
    std::iter::from_fn(|| reader.next_frame().unwrap()).collect()
}

/// Where a clock is set back and the gateway connects anew, later answers were taken for a burst at the time before.
#[test]
fn a_clock_that_is_set_back_makes_no_deviation() {
    let answers = Answers::new();
    let stream = fs::read(answers.path("learned.frames")).unwrap();
    let mut frames = frames_of(&stream);
    let times = frames.iter().filter_map(|frame| match frame {
        Frame::Identification(answer) => Some(answer.command.time_ns),
        _ => None,
    });
    let times: Vec<i64> = times.collect();
    let middle = times[times.len() / 2];
    for frame in &mut frames {
        if let Frame::Identification(answer) = frame
            && answer.command.time_ns >= middle
        {
            answer.command.time_ns -= 20 * 86_400_000_000_000;
            answer.command.end_ns -= 20 * 86_400_000_000_000;
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
    let mut writer = FrameWriter::new(Vec::new());
    writer.write_all(&frames).unwrap();
    let changed = writer.into_output().unwrap();
    write(answers.folder.path(), "back.frames", &changed);
    answers.stdout(&format!("profile learned.frames --until {} -q -o half.toml", sizeleak_text::utc(times[60])));
    let refused = run(sizeleak("detect back.frames --profile half.toml").current_dir(answers.folder.path()));
    assert_fails(&refused, 1, &["back.frames", "in order of time"]);
    let profile = answers.path("half.toml");
    let piped = feed(with("detector", &format!("--profile {} -v", profile.display())), changed);
    assert!(piped.status.success(), "{}", stderr(&piped));
    let said = stderr(&piped);
    assert!(said.contains("back in time, the first from ") && said.contains("did not count"), "{said}");
    let found = frames_of(&piped.stdout);
    let after = found.iter().filter(|frame| matches!(frame, Frame::Deviation(one) if one.time_ns >= middle)).count();
    assert_eq!(after, 0);
}

#[test]
fn files_and_options_that_cannot_be_used_are_named() {
    let answers = Answers::new();
    let run = |arguments: &str| sizeleak(arguments).current_dir(answers.folder.path()).output().unwrap();
    let said = stderr(&run("detect attacked.frames --profile p.toml --alarms 1/year"));
    assert!(said.contains("no alarm yet: ") && said.contains("to keep 1/year"), "{said}");
    assert!(said.contains("are not after those of the profile, and were passed over"), "{said}");
    let usage = |arguments: &str, words: &str| {
        let output = run(arguments);
        assert!(output.status.code() == Some(2) && stderr(&output).contains(words), "{}", stderr(&output));
    };
    usage("detect attacked.frames --profile p.toml --alarms often", "1/week");
    assert_fails(&run("detect attacked.frames --profile missing.toml"), 1, &["missing.toml"]);
    assert_fails(&run("detect attacked.frames --profile attacked.frames"), 1, &["attacked.frames"]);
    assert_fails(&run("profile learned.commands -o none.toml"), 1, &["no answer to learn from"]);
    assert_fails(&run("profile learned.frames --time-zone Moon -o none.toml"), 2, &["Moon"]);
    assert_fails(&run("profile learned.frames --add p.toml --time-zone UTC -o none.toml"), 2, &["Europe/Berlin"]);
    assert!(!answers.path("none.toml").exists());
    let whole = fs::read(answers.path("attacked.frames")).unwrap();
    write(answers.folder.path(), "cut.frames", &whole[..whole.len() / 2]);
    assert_fails(&run("detect cut.frames --profile p.toml"), 3, &["cut.frames"]);
    fs::create_dir(answers.path("empty")).unwrap();
    assert_fails(&run("profile empty -o none.toml"), 1, &["empty holds no answers"]);
    // Whoever watches live says until when: what should have come by then is missed.
    let late = run("detect learned.frames --profile p.toml --until 2026-02-03");
    usage("detect learned.frames --profile p.toml --until soon", "2026-01-06");
    assert!(late.status.success());
}

#[test]
fn answers_of_a_time_make_the_profile_and_the_deviations() {
    let answers = Answers::new();
    let day = |days: i64| sizeleak_text::utc(answers.attack_ns + days * 86_400_000_000_000);
    let (before, behind) = (day(-2), day(1));
    let all = identifications(&answers.stdout("frames attacked.frames --kind identification --format ndjson -q"));
    let is_early = |answer: &&Value| answer["time_ns"].as_i64().unwrap() < answers.attack_ns - 172_800_000_000_000;
    let early = all.iter().filter(is_early).count();
    assert!(early > 0 && early < all.len());
    // Cut by `profile`, or by `run` before it.
    answers.stdout(&format!("profile attacked.frames --until {before} -q -o one.toml"));
    for name in ["early.frames", "early.ndjson", "early.parquet"] {
        answers.stdout(&format!("run attacked.frames --until {before} -q -o {name}"));
        answers.stdout(&format!("profile {name} -q -o other.toml"));
        assert!(fs::read(answers.path("one.toml")).unwrap() == fs::read(answers.path("other.toml")).unwrap(), "{name}");
    }
    let said = |arguments: &str| stderr(&run(sizeleak(arguments).current_dir(answers.folder.path())));
    let told = said(&format!("profile attacked.frames --until {before} -o one.toml"));
    assert!(told.contains(&format!("{early} of {} answers are before {before}", all.len())), "{told}");
    let told = said(&format!("run attacked.frames --until {before} -o early.frames"));
    assert!(told.contains(&format!("{early} of {} rows are before {before}", all.len())), "{told}");
    // What deviates is that of the whole, as far as it is of the time.
    let detect = "detect attacked.frames --profile p.toml -q --format ndjson";
    let whole = answers.stdout(detect);
    assert!(!whole.is_empty());
    assert_eq!(answers.stdout(&format!("{detect} --since {before}")), whole);
    assert_eq!(answers.stdout(&format!("{detect} --since {behind}")), "");
    assert_eq!(answers.stdout(&format!("{detect} --until {before}")), "");
    let fails = |arguments: &str, words: &str| {
        let output = run(sizeleak(arguments).current_dir(answers.folder.path()));
        assert!(output.status.code() == Some(1) && stderr(&output).contains(words), "{}", stderr(&output));
    };
    let none = format!("none of the {} answers is from 2100", all.len());
    fails("profile attacked.frames --since 2100-01-01 -o none.toml", &none);
    fails("detect attacked.frames --profile p.toml --since 2100-01-01", "no answer is from 2100");
    fails(
        "run attacked.frames --since 2100-01-01 -o none.frames",
        &format!("none of the {} rows is from 2100", all.len()),
    );
    assert!(!answers.path("none.toml").exists() && !answers.path("none.frames").exists());
}

/// The answers of a stream, by their times.
fn identifications(lines: &str) -> Vec<Value> {
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["identification"].take()).collect()
}

#[test]
fn a_profile_is_a_prior_of_the_answers_that_it_was_not_learned_from() {
    let answers = Answers::new();
    let answered = |more: &str| {
        let run = "run attacked.commands --kind identification --format ndjson -q";
        answers.stdout(&format!("{run} --model {} {more}", model()))
    };
    let (plain, by_habits) = (answered(""), answered("--profile p.toml"));
    assert_eq!(by_habits, answered("--set pruner.profile=p.toml"));
    assert_eq!(by_habits, answered("--profile p.toml --mode processes"));
    let (plain, by_habits) = (identifications(&plain), identifications(&by_habits));
    assert_eq!(plain.len(), by_habits.len());
    let known = plain.iter().zip(&by_habits).filter(|(plain, by_habits)| plain == by_habits).count();
    let learned = identifications(&answers.stdout("frames learned.frames --kind identification --format ndjson -q"));
    assert!(known >= learned.len() && known < plain.len(), "{known} of {}", plain.len());
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
            assert!(
                known.is_none_or(|(_, known)| (known - likelihood).abs() < 1e-9),
                "{actions} {known:?} {likelihood}"
            );
        }
    }
    let arguments = format!("run attacked.commands --model {} --profile p.toml --set pruner.mode=paper -q", model());
    let refused = run(sizeleak(&arguments).current_dir(answers.folder.path()));
    assert_fails(&refused, 2, &["`profile` is used by mode `learned` alone"]);
}
