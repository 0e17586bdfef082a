//! `sizeleak record` over a home that runs now: a gateway with real TLS over loopback, driven by the program itself.
//! What the home's gateway sends and gets is read from the capture that the home writes.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use sizeleak_evaluation::experiment::{Journal, Outcome, Step};
use support::home::{assert_fails, run};
use support::programs::{built, interrupt, sizeleak, stderr};
use tempfile::TempDir;

/// The paper's home, with a gateway that answers at once.
const SCENARIO: &str = "[replies]\ndelay = { min = \"2ms\", max = \"8ms\" }\n";

/// The bytes of each action of that home.
const SIZES: [(&str, i64); 7] =
    [("on", 28), ("off", 29), ("toggle", 32), ("timer", 34), ("dim", 36), ("white", 35), ("colour", 40)];

/// Plugs with two of its actions: a home that is known after half as many commands.
const PLUGS: &str = "[command]\nmost-actions = 12\n\
                     [[device]]\nname = \"plug\"\ncount = 12\nactions = [\"on\", \"timer\"]\n";

/// A folder with a scenario, an inventory and the capture that the home writes.
struct Bench {
    folder: TempDir,
    serve: String,
}

impl Bench {
    /// The paper's home.
    fn new() -> Self {
        Self::of("", "")
    }

    /// A home of the scenario with `more`, and further options of `simulate`.
    fn of(more: &str, options: &str) -> Self {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        fs::write(path("home.toml"), format!("{more}\n{SCENARIO}")).unwrap();
        fs::write(path("home.pcap"), "").unwrap();
        let program = built().join("sizeleak").display().to_string();
        let serve = format!(
            "{program} simulate --serve --quiet --scenario {} --seed 7 --pcap {} {options}",
            path("home.toml"),
            path("home.pcap")
        );
        let mut inventory = Command::new("sh");
        inventory.args(["-c", &format!("{serve} -o {} < /dev/null", folder.path().display())]);
        assert!(run(&mut inventory).status.success());
        Self { folder, serve }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Follows the capture that the home writes, once it has begun.
    fn capture(&self) -> String {
        format!("sleep 0.3; tail -c +1 -f {}", self.path("home.pcap").display())
    }

    /// A recording into a folder, without its way to send and to capture.
    fn plain(&self, output: &str) -> Command {
        // On a busy machine, packets come 100 ms late. Labels alone need no pause.
        self.limited(output, "--silence 150ms --pause 1ms --max-commands 100")
    }

    /// The same, with limits of its own.
    fn limited(&self, output: &str, limits: &str) -> Command {
        let mut command = sizeleak(&format!("record --gateway 192.168.1.20 {limits}"));
        command.arg("--inventory").arg(self.path("inventory.toml")).arg("-o").arg(self.path(output));
        command
    }

    /// A recording of this home.
    fn record(&self, output: &str) -> Command {
        let mut command = self.plain(output);
        command.args(["--do-lines", &self.serve]).args(["--capture-with", &self.capture()]);
        command
    }

    fn journal(&self, output: &str) -> Journal {
        serde_json::from_slice(&fs::read(self.path(output).join("record.json")).unwrap()).unwrap()
    }

    /// Asserts that the model of a folder has the true sizes of all actions of the home.
    fn assert_right(&self, output: &str) {
        let inventory = fs::read_to_string(self.path("inventory.toml")).unwrap();
        let there = |(name, _): &(&str, i64)| inventory.contains(&format!("\"{name}\""));
        let text = fs::read_to_string(self.path(output).join("model.toml")).unwrap();
        let model: toml::Table = text.parse().unwrap();
        let actions = model["action"].as_array().unwrap();
        let found: Vec<(&str, i64)> = actions
            .iter()
            .map(|action| (action["name"].as_str().unwrap(), action["size"].as_integer().unwrap()))
            .collect();
        assert_eq!(found, SIZES.into_iter().filter(there).collect::<Vec<_>>());
        assert!(found.len() > 1, "{inventory}");
    }
}

/// Asserts that a recording came to its end; returns what it said on stderr.
fn ended(output: &Output) -> String {
    let text = stderr(output);
    assert!(output.status.success(), "{text}");
    let ends = ["all sizes are certain and explain the commands held back", "more commands would not help"];
    assert!(ends.iter().any(|end| text.contains(end)), "{text}");
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let words = stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with("An observer who sees only sizes"), "{stdout}");
    text
}

#[test]
fn a_home_is_recorded_and_learned_by_itself() {
    let bench = Bench::new();
    let text = ended(&run(&mut bench.record("out")));
    bench.assert_right("out");
    assert!(text.contains("sizeleak audit --model"), "{text}");
    let journal = bench.journal("out");
    assert!(journal.steps.len() <= 80, "{} commands", journal.steps.len());
    assert!(journal.steps.iter().all(|step| step.outcome == Outcome::Sent && !step.why.is_empty()));

    // The files alone teach the same: labels have the times of their commands.
    let capture = bench.path("out").join("capture-0001.pcapng");
    let mut learn = sizeleak("learn --gateway 192.168.1.20 --tolerance 1ms");
    learn.arg(&capture).arg("--labels").arg(bench.path("out/labels.csv"));
    learn.arg("--inventory").arg(bench.path("out/inventory.toml")).arg("-o").arg(bench.path("out/again.toml"));
    assert!(run(&mut learn).status.success());
    let sizes = |name: &str| {
        let text = fs::read_to_string(bench.path("out").join(name)).unwrap();
        text.parse::<toml::Table>().unwrap()["action"].clone()
    };
    assert_eq!(sizes("again.toml"), sizes("model.toml"));
}

/// Records a home that reads commands from a file, into which `send` writes them.
fn driven(bench: &Bench, record: &mut Command, send: &str) -> Output {
    let commands = bench.path("commands.ndjson");
    fs::write(&commands, "").unwrap();
    let mut home = Command::new("sh");
    home.args(["-c", &format!("exec tail -f {} | exec {}", commands.display(), bench.serve)]);
    let mut home = home.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let send = send.replace("COMMANDS", &commands.display().to_string());
    let output = run(record.args(["--do", &send]).args(["--capture-with", &bench.capture()]));
    kill_process_group(Pid::from_child(&home), Signal::KILL).unwrap();
    home.wait().unwrap();
    output
}

/// A command as a home reads it, from how a person is asked for it: `  7.  lamp 2 on, plug 3 off, as one command`.
fn asked(line: &str) -> Option<(u64, String)> {
    let (number, devices) = line.trim().split_once(".  ")?;
    let devices = devices.trim_end_matches(", as one command").split(", ").map(|device| {
        let mut words = device.split(' ');
        let [kind, index, action] = [0; 3].map(|_| words.next().unwrap());
        format!("{{\"device\": \"{kind}\", \"index\": {index}, \"action\": \"{action}\"}}")
    });
    let devices: Vec<String> = devices.collect();
    Some((number.parse().ok()?, format!("{{\"devices\": [{}]}}", devices.join(", "))))
}

#[test]
fn a_person_is_asked_where_no_program_sends() {
    let bench = Bench::of(PLUGS, "");
    let mut home = Command::new("sh");
    let home = home.args(["-c", &format!("exec {}", bench.serve)]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut home = home.stderr(Stdio::null()).spawn().unwrap();
    let mut record = bench.plain("out");
    record.args(["--ask", "--capture-with", &bench.capture()]);
    let mut record = record.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut phone, mut keys) = (home.stdin.take().unwrap(), record.stdin.take().unwrap());
    let mut said = String::new();
    for line in BufReader::new(record.stderr.take().unwrap()).lines() {
        let line = line.unwrap();
        said += &line;
        said.push('\n');
        let Some((number, command)) = asked(&line) else { continue };
        match number {
            // Another command is sent, which is noticed at the next question; one is skipped.
            3 => writeln!(phone, "{{\"devices\": [{{\"device\": \"plug\", \"index\": 0, \"action\": \"timer\"}}]}}")
                .unwrap(),
            4 => writeln!(keys, "u").unwrap(),
            5 => {
                writeln!(keys, "s").unwrap();
                continue;
            }
            _ => {}
        }
        if number != 3 {
            writeln!(phone, "{command}").unwrap();
        }
        thread::sleep(Duration::from_millis(40));
        writeln!(keys).unwrap();
    }
    assert!(record.wait().unwrap().success(), "{said}");
    drop(phone);
    home.wait().unwrap();
    bench.assert_right("out");
    let journal = bench.journal("out");
    let failed = |number: usize| matches!(&journal.steps[number - 1].outcome, Outcome::Failed(_));
    assert!(failed(3) && failed(5) && !failed(4), "{:?}", journal.steps);
    assert!(said.contains("Enter when it is done · s to skip it · u if the last one went wrong"), "{said}");
}

#[test]
fn a_gateway_that_drops_most_commands_is_refused() {
    let bench = Bench::new();
    let send =
        "read -r told; number=${told#*:}; number=${number%%,*}; [ $((number % 3)) != 0 ] || echo \"$told\" >> COMMANDS";
    let output = driven(&bench, &mut bench.limited("out", "--silence 60ms --pause 100ms --max-commands 24 -q"), send);
    assert_fails(&output, 1, &["no model can be learned"]);
    // With hardly a message, none is taken for a command.
    let said = ["drops the others", "there is no command in the captures"];
    assert!(said.iter().any(|words| stderr(&output).contains(words)), "{}", stderr(&output));
    assert!(!bench.path("out/model.toml").exists());
}

#[test]
fn programs_that_fail_clocks_that_are_off_and_lost_packets_are_survived() {
    let plugs = PLUGS.replace("\"on\", ", "\"on\", \"off\", ");
    let bench = Bench::of(&format!("{plugs}[capture]\nloss = 0.01"), "--clock-ahead 20s");
    // Every fifth command is not sent, and says so; one in ten gets lost without a word.
    let send = "read -r told; case $told in *:[0-9]*[05],*actions*|*:[05],*actions*) echo no luck >&2; exit 3;; \
                *:[0-9]*7,*actions*|*:7,*actions*) exit 0;; esac; echo \"$told\" >> COMMANDS";
    let output = driven(&bench, &mut bench.plain("out"), send);
    let text = ended(&output);
    bench.assert_right("out");
    let journal = bench.journal("out");
    let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed(reason) if reason.contains("no luck"));
    let count = journal.steps.iter().filter(|step| failed(&step.outcome)).count();
    assert_eq!(count, journal.steps.len() / 5);
    let unseen = |step: &&Step| step.outcome == Outcome::NotSeen;
    let lost = journal.steps.iter().filter(|step| step.number % 10 == 7);
    assert!(lost.clone().all(|step| unseen(&step)) && lost.count() >= 4, "{text}");
    // A packet in a hundred is lost, too.
    let others = journal.steps.iter().filter(unseen).filter(|step| step.number % 10 != 7).count();
    assert!(others <= 3 && text.contains("have no message in their turn, and do not count: "), "{text}");
    let rows = |name: &str| fs::read_to_string(bench.path("out").join(name)).unwrap().lines().count() - 1;
    assert_eq!(
        rows("labels.csv") + rows("test.csv"),
        journal.steps.iter().filter(|step| step.outcome == Outcome::Sent).count()
    );
    assert!(text.contains(&format!("{count} of {} commands were not sent", journal.steps.len())), "{text}");
    assert!(text.contains("the capture's clock is 20.0 s ahead of this one"), "{text}");
}

#[test]
fn packets_that_arrive_late_are_said() {
    let assert_said = |silence: &str, is_late: bool| {
        let bench = Bench::new();
        let late = format!("sleep 0.3; exec < {}; while sleep 0.5; do cat; done", bench.path("home.pcap").display());
        let capture = if is_late { late } else { bench.capture() };
        let mut record = bench.limited("out", &format!("--silence {silence} --pause 100ms --max-commands 3"));
        let output = run(record.args(["--do-lines", &bench.serve, "--capture-with", &capture]));
        let text = stderr(&output);
        assert_eq!(text.contains("late, longer than `--silence`"), is_late, "{text}");
    };
    thread::scope(|scope| {
        scope.spawn(|| assert_said("60ms", true));
        scope.spawn(|| assert_said("1s", false));
    });
}

/// Waits until a recording has handed over so many commands.
fn wait_for(bench: &Bench, child: &mut Child, steps: usize) {
    let begun = Instant::now();
    while child.try_wait().unwrap().is_none() && begun.elapsed() < Duration::from_mins(1) {
        let text = fs::read(bench.path("out/record.json")).unwrap_or_default();
        let journal: Value = serde_json::from_slice(&text).unwrap_or_default();
        if journal["steps"].as_array().is_some_and(|all| all.len() >= steps) {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Kills a recording after each of these numbers of commands, a little later each time, and goes on with it.
fn killed(moments: &[usize]) {
    let bench = Bench::of(PLUGS, "");
    for (at, steps) in moments.iter().enumerate() {
        let mut child = bench.record("out").stderr(Stdio::null()).spawn().unwrap();
        wait_for(&bench, &mut child, *steps);
        thread::sleep(Duration::from_millis(7 * at as u64));
        child.kill().unwrap();
        child.wait().unwrap();
        let journal = bench.journal("out");
        assert!(journal.steps.len() >= *steps, "{} of {steps}", journal.steps.len());
    }
    let left = bench.path("out/.record.json.4711abcDEFgh");
    fs::write(&left, "{").unwrap();
    let text = ended(&run(&mut bench.record("out")));
    assert!(text.contains("goes on in"), "{text}");
    assert!(!left.exists(), "what was half written is removed");
    bench.assert_right("out");
}

#[test]
fn a_recording_that_was_killed_goes_on() {
    killed(&[3, 14]);
}

#[test]
#[ignore = "second tier: takes minutes"]
fn a_recording_that_was_killed_at_twenty_moments_ends_with_the_same_model() {
    killed(&(1..=20).collect::<Vec<usize>>());
}

#[test]
fn ctrl_c_ends_after_the_command_and_writes_everything() {
    let bench = Bench::new();
    let mut child = bench.record("out").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(&bench, &mut child, 16);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let journal = bench.journal("out");
    assert!(journal.steps.iter().all(|step| step.outcome == Outcome::Sent), "the last one was finished");
    assert_eq!(journal.end.as_deref(), Some("interrupted"));
    assert!(bench.path("out/model.toml").exists(), "{}", stderr(&output));
}

#[test]
fn a_recording_of_kinds_says_what_is_known_and_a_next_step_that_works() {
    let device = "[command]\nmost-actions = 1\n[[device]]\nname = \"plug\"\ncount = 1\nactions = [\"on\", \"timer\"]\n";
    let bench = Bench::of(device, "");
    let text = ended(&run(&mut bench.record("out")));
    assert!(text.contains("more commands would not help: on, timer stay open"), "{text}");
    assert!(text.contains("known: kinds of commands as a whole, and no sizes of actions"), "{text}");
    let next = text.lines().find_map(|line| line.strip_prefix("next: ")).unwrap();
    let command = next.replacen("sizeleak", &built().join("sizeleak").display().to_string(), 1);
    let output = run(Command::new("sh").args(["-c", &command]).current_dir(bench.path("")));
    assert!(output.status.success(), "{next}: {}", stderr(&output));
    let page = fs::read_to_string(bench.path("report.html")).unwrap();
    assert!(page.contains("names the kind, as it was labelled, of"), "{next}");
}

#[test]
fn a_capture_without_the_gateways_commands_is_refused_with_what_to_do() {
    let bench = Bench::new();
    let capture = format!("{}; exec sleep 60", bench.capture().replace(" -f", ""));
    let mut record = bench.plain("silent");
    let output = run(record.args(["--do", "true", "-q", "--capture-with", &capture]));
    assert_fails(&output, 1, &["3 commands were sent", "192.168.1.20", "`-U --immediate-mode`"]);
}
