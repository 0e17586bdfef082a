//! External stages and signals: no process of a stage outlives a run that was ended, and none holds a run up.

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::thread;
use std::time::{Duration, Instant};
use support::programs;

use rustix::process::{Pid, Signal, kill_process};
use support::programs::{GATEWAY, example, program, root, start, stderr, supply, wait_for, write};

/// The longest wait for what must happen.
const PATIENCE: Duration = Duration::from_secs(30);

/// A pipeline of `capture`, a shell script, and `flow-filter`.
fn pipeline(folder: &Path, script: &str) -> PathBuf {
    let command = toml::Value::try_from(["sh", "-c", script]).unwrap();
    let text = format!(
        "[[stage]]\nrun = \"capture\"\n[[stage]]\nname = \"mine\"\ncommand = {command}\n[[stage]]\n\
         run = \"flow-filter\"\ngateway = [\"{GATEWAY}\"]\n"
    );
    write(folder, "pipeline.toml", text)
}

fn run(pipeline: &Path, mode: &str, input: &str) -> Command {
    let mut command = program("sizeleak");
    command.arg("run").arg(pipeline).args(["--mode", mode, input, "--format", "frames"]);
    command
}

/// The processes whose ids a script wrote to a file, as soon as there are two.
fn processes(file: &Path) -> Vec<Pid> {
    wait_for(|| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let ids: Vec<Pid> = text.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)).collect();
        if ids.len() == 2 && text.ends_with('\n') { Ok(ids) } else { Err(format!("the script does not start: {text}")) }
    })
}

fn wait_for_end(child: &mut Child) -> std::process::ExitStatus {
    wait_for(|| child.try_wait().unwrap().ok_or_else(|| "the run does not end".to_owned()))
}

/// Whether a process has ended. Its number may stay: who adopts it may take seconds to wait for it.
fn has_ended(id: Pid) -> bool {
    let about = fs::read_to_string(format!("/proc/{}/stat", id.as_raw_nonzero())).unwrap_or_default();
    about.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with(['Z', 'X']))
}

/// A run on a silent input whose script ignores the end of its input. Nothing of it outlives a test.
struct StubbornRun {
    run: Child,
    /// The script and its child.
    processes: Vec<Pid>,
}

impl StubbornRun {
    fn new(folder: &Path, trap: &str) -> Self {
        programs::signals_end_programs();
        let ids = folder.join("ids");
        let sleep = format!("sleep 1000 & echo $! >> {0}; cat > /dev/null; wait", ids.display());
        let script = format!("{trap} echo $$ >> {}; {sleep}", ids.display());
        let run = start(&mut run(&pipeline(folder, &script), "threads", "-"));
        let mut started = Self { run, processes: Vec::new() };
        started.processes = processes(&ids);
        started
    }

    fn assert_gone(&self) {
        for id in &self.processes {
            wait_for(|| if has_ended(*id) { Ok(()) } else { Err(format!("a process of the stage is left: {id:?}")) });
        }
    }
}

impl Drop for StubbornRun {
    fn drop(&mut self) {
        // Ids of processes that are gone may be others' by now.
        for id in self.processes.iter().filter(|_| thread::panicking()) {
            _ = kill_process(*id, Signal::KILL);
        }
        _ = self.run.kill();
        _ = self.run.wait();
    }
}

#[test]
fn death_of_the_runner_ends_a_stage_and_its_children() {
    let folder = tempfile::tempdir().unwrap();
    let mut stubborn = StubbornRun::new(folder.path(), "");
    kill_process(Pid::from_child(&stubborn.run), Signal::KILL).unwrap();
    assert_eq!(wait_for_end(&mut stubborn.run).signal(), Some(9));
    stubborn.assert_gone();
}

#[test]
fn second_sigint_ends_a_stage_that_ignores_signals() {
    let folder = tempfile::tempdir().unwrap();
    let mut stubborn = StubbornRun::new(folder.path(), "trap '' INT TERM HUP;");
    let begun = Instant::now();
    programs::interrupt(&stubborn.run);
    // Which stage the first signal waits for is said within five seconds.
    let said = BufReader::new(stubborn.run.stderr.take().unwrap()).lines().map_while(Result::ok);
    let said = said.into_iter().find(|line| line.contains("does not end")).unwrap();
    assert_eq!(said, "mine: this stage does not end: a second signal ends all");
    assert!(begun.elapsed() < Duration::from_secs(5) && stubborn.run.try_wait().unwrap().is_none());
    programs::interrupt(&stubborn.run);
    assert_eq!(wait_for_end(&mut stubborn.run).code(), Some(130));
    stubborn.assert_gone();
}

#[test]
#[ignore = "second tier: takes ten seconds"]
fn sigterm_ends_a_stage_that_ignores_signals_after_ten_seconds() {
    let folder = tempfile::tempdir().unwrap();
    let mut stubborn = StubbornRun::new(folder.path(), "trap '' INT TERM HUP;");
    let begun = Instant::now();
    kill_process(Pid::from_child(&stubborn.run), Signal::TERM).unwrap();
    assert_ne!(wait_for_end(&mut stubborn.run).code(), Some(0));
    assert!((9..14).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
    stubborn.assert_gone();
}

support::tests_of! { assert_hang_up_ends_all {
    hang_up_ends_the_run_and_its_stages("");
    #[ignore = "second tier: takes ten seconds"]
    hang_up_ends_a_stage_that_ignores_it("trap '' HUP;");
}}

fn assert_hang_up_ends_all(trap: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut stubborn = StubbornRun::new(folder.path(), trap);
    kill_process(Pid::from_child(&stubborn.run), Signal::HUP).unwrap();
    assert_ne!(wait_for_end(&mut stubborn.run).code(), Some(0));
    stubborn.assert_gone();
}

#[test]
fn hang_up_keeps_what_was_read_until_then() {
    programs::signals_end_programs();
    let capture = fs::read(root().join(example("test.pcap"))).unwrap();
    let mut child = start(program("capture").arg("-"));
    let input = supply(&mut child, capture);
    let stdin = input.join().unwrap();
    thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    let output = programs::ended(child);
    drop(stdin);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(output.stdout.windows(7).any(|bytes| bytes == b"summary"), "the stream is whole");
}

/// As `nohup` starts it.
#[test]
fn ignored_hang_up_stays_ignored() {
    let mut command = Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" -"]).arg(program("capture").get_program());
    let mut child = start(&mut command);
    let stdin = supply(&mut child, fs::read(root().join(example("test.pcap"))).unwrap()).join().unwrap();
    thread::sleep(Duration::from_millis(300));
    kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
    thread::sleep(Duration::from_millis(300));
    assert!(child.try_wait().unwrap().is_none());
    drop(stdin);
    assert!(programs::ended(child).status.success());
}

/// A run whose script leaves a process behind that holds something open.
fn run_with_leftover(script: &str, mode: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let ids = folder.path().join("ids");
    let pipeline = pipeline(folder.path(), &script.replace("LEFT", &format!("& echo $! > {}", ids.display())));
    // More than a pipe holds.
    let capture = fs::read(root().join(example("test.pcap"))).unwrap();
    let (header, packets) = capture.split_at(24);
    let input = write(folder.path(), "long.pcap", [header, &packets.repeat((4 << 20) / packets.len())].concat());
    let child = start(&mut run(&pipeline, mode, input.to_str().unwrap()));
    let (id, waiting) = (Pid::from_child(&child), thread::spawn(move || child.wait_with_output().unwrap()));
    let start = Instant::now();
    while !waiting.is_finished() && start.elapsed() < PATIENCE {
        thread::sleep(Duration::from_millis(50));
    }
    let is_late = !waiting.is_finished();
    if is_late {
        _ = kill_process(id, Signal::KILL);
    }
    if let Some(left) = fs::read_to_string(&ids).ok().and_then(|id| Pid::from_raw(id.trim().parse().ok()?)) {
        _ = kill_process(left, Signal::KILL);
    }
    let output = waiting.join().unwrap();
    assert!(!is_late, "{script} in {mode}: the run does not end; {}", stderr(&output));
    output
}

#[test]
fn process_that_holds_a_pipe_open_does_not_hold_the_run() {
    // In the shell a process in the background has no stdin, unless it has another name.
    let stdin = "exec 3<&0; head -c 1000; sleep 1000 > /dev/null 2>&1 LEFT; exit 4";
    let outputs = ["cat; sleep 1000 2> /dev/null LEFT", "cat; sleep 1000 > /dev/null LEFT"];
    in_all_modes(&[stdin, outputs[0], outputs[1]], |script, mode| {
        let output = run_with_leftover(script, mode);
        let said = stderr(&output);
        if script == stdin {
            assert!(output.status.code() == Some(1) && said.contains("exit code 4"), "{mode}: {said}");
        } else {
            let named = said.lines().filter(|line| line.starts_with("mine: ")).count();
            assert!(output.status.success() && named == 1, "{script} in {mode}: {said}");
        }
    });
}

/// Tries scripts in threads and in processes, all at once: each run waits for what is left behind.
fn in_all_modes(scripts: &[&str], attempt: impl Fn(&str, &str) + Sync) {
    let attempt = &attempt;
    thread::scope(|scope| {
        for mode in ["threads", "processes"] {
            for script in scripts {
                scope.spawn(move || attempt(script, mode));
            }
        }
    });
}
