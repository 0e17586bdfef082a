//! Threads, processes and a plain Unix pipe give the same bytes; foreign programs are stages in both modes; a failing
//! stage ends the whole run and is named.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use support::programs::{GATEWAY, example, pipe, program, root, seven, sizeleak, stderr, stdout, write};
use support::streams::summary_of;
use support::timeless::timeless;

fn home(mode: &str) -> Command {
    let (capture, model) = (example("test.pcap"), example("model.toml"));
    sizeleak(&format!(
        "run pipeline.toml {capture} --gateway {GATEWAY} --model {model} --format frames --quiet --mode {mode}"
    ))
}

#[test]
fn threads_processes_and_a_unix_pipe_give_the_same_bytes() {
    let threads = timeless(&stdout(&mut home("threads")));
    assert_eq!(threads, timeless(&stdout(&mut home("processes"))));
    let piped = pipe(seven(&example("test.pcap")));
    for output in &piped {
        assert!(output.status.success(), "{}", stderr(output));
    }
    assert_eq!(threads, timeless(&piped[6].stdout));
    assert_eq!(threads, timeless(&stdout(&mut home("threads"))), "a second run");
}

/// Two runs differ only in their histograms, so no other test checks these.
#[test]
fn every_stage_measures_its_latency() {
    for mode in ["threads", "processes"] {
        let summary = summary_of(&stdout(&mut home(mode)));
        assert_eq!(summary.stages.len(), 7);
        assert!(summary.stages.iter().all(|row| !row.latency.is_empty()), "{mode}: {summary:?}");
    }
}

#[test]
fn output_does_not_depend_on_the_queue_depth() {
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(root().join("pipeline.toml")).unwrap();
    let results = [1, 16, 4096].map(|depth| {
        let mut table: toml::Table = text.parse().unwrap();
        let settings = table.entry("pipeline").or_insert_with(|| toml::Table::new().into());
        settings.as_table_mut().unwrap().insert("queue-depth".into(), depth.into());
        let file = write(folder.path(), "pipeline.toml", table.to_string());
        let (capture, model) = (example("test.pcap"), example("model.toml"));
        let arguments = format!("run {} {capture} --model {model} --format frames --quiet", file.display());
        timeless(&stdout(&mut sizeleak(&arguments)))
    });
    assert!(results[0] == results[1] && results[1] == results[2]);
}

/// A pipeline file of the first stages of the bundled home with foreign programs among them.
fn pipeline_file(folder: &Path, between: &str) -> String {
    let capture = root().join(example("test.pcap"));
    let text = format!(
        "[[stage]]\nrun = \"capture\"\nfiles = [\"{}\"]\n[[stage]]\nrun = \"flow-filter\"\ngateway = [\"{GATEWAY}\"]\n\
         {between}\n[[stage]]\nrun = \"record-sizer\"\n[[stage]]\nrun = \"command-segmenter\"\n",
        capture.display()
    );
    write(folder, "foreign.toml", text).display().to_string()
}

fn run_foreign(between: &str, mode: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = pipeline_file(folder.path(), between);
    sizeleak(&format!("run {file} --format frames --quiet --mode {mode}")).output().unwrap()
}

fn foreign(script: &str) -> String {
    format!("[[stage]]\nname = \"mine\"\ncommand = [\"sh\", \"-c\", '{script}']\n")
}

#[test]
fn external_stage_works_in_both_modes_and_at_any_place() {
    let plain = run_foreign("", "threads");
    for mode in ["threads", "processes"] {
        let through = run_foreign(&foreign("exec cat"), mode);
        assert!(through.status.success(), "{}", stderr(&through));
        assert_eq!(timeless(&through.stdout), timeless(&plain.stdout), "{mode}");
        let twice = run_foreign(&[foreign("exec cat"), foreign("exec cat")].concat(), mode);
        assert_eq!(timeless(&twice.stdout), timeless(&plain.stdout), "{mode}");
    }
    // First and last.
    let folder = tempfile::tempdir().unwrap();
    let capture = program("capture").get_program().to_str().unwrap().to_owned();
    let text = format!(
        "[[stage]]\ncommand = [\"{capture}\", \"--quiet\", \"{}\"]\n[[stage]]\nrun = \"flow-filter\"\ngateway = \
         [\"{GATEWAY}\"]\n[[stage]]\ncommand = [\"cat\"]\n",
        root().join(example("test.pcap")).display()
    );
    let file = write(folder.path(), "p.toml", text);
    let output = stdout(&mut sizeleak(&format!("run {} --format frames --quiet", file.display())));
    assert!(timeless(&output).len() > 10_000);
}

#[test]
fn stderr_of_an_external_stage_is_shown() {
    let output = run_foreign(&foreign("echo I am here >&2; exec cat"), "threads");
    assert!(stderr(&output).contains("mine: I am here"), "{}", stderr(&output));
}

#[test]
fn failing_stage_fails_the_run_and_is_named() {
    for (script, code, words) in [
        ("head -c 2000 > /dev/null; echo no more >&2; exit 7", 1, "`mine`: ended with exit code 7: no more"),
        ("kill -9 $$", 1, "`mine`: was killed by signal 9"),
        // A program that succeeds, but ends in the middle of the stream.
        ("head -c 20000", 3, "`record-sizer`: the frame stream"),
        ("cat > /dev/null", 3, "`record-sizer`:"),
        ("yes", 1, "`record-sizer`: value 1 of the frame stream"),
    ] {
        for mode in ["threads", "processes"] {
            let output = run_foreign(&foreign(script), mode);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{script} {mode}: {said}");
            assert!(said.contains(words), "{script} {mode}: {said}");
            assert!(said.lines().filter(|line| line.starts_with("sizeleak: ")).count() == 1, "{said}");
        }
    }
}

#[test]
fn whole_frames_before_a_failure_are_processed() {
    let whole = run_foreign("", "threads").stdout.len();
    let cut = run_foreign(&foreign("head -c 200000"), "threads");
    assert_eq!(cut.status.code(), Some(3));
    assert!(cut.stdout.len() > whole / 20 && cut.stdout.len() < whole, "{} of {whole} bytes", cut.stdout.len());
}

#[test]
fn missing_program_is_an_error_before_the_run() {
    for mode in ["threads", "processes"] {
        let output = run_foreign("[[stage]]\ncommand = [\"./no-such-program\"]\n", mode);
        assert_eq!(output.status.code(), Some(1));
        assert!(stderr(&output).contains("foreign.toml, line 8: the program `"), "{}", stderr(&output));
    }
    // The runner alone in a folder: none of the stages' programs is next to it.
    let folder = tempfile::tempdir().unwrap();
    let alone = folder.path().join("sizeleak");
    std::fs::copy(env!("CARGO_BIN_EXE_sizeleak"), &alone).unwrap();
    let file = pipeline_file(folder.path(), "");
    let output = loop {
        match Command::new(&alone).args(["run", &file, "--mode", "processes"]).env("PATH", "").output() {
            // A process that another test forks at this moment holds the copy open until it executes its own program.
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => thread::sleep(Duration::from_millis(10)),
            output => break output.unwrap(),
        }
    };
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("the program `capture` is missing"), "{}", stderr(&output));
}

/// Back-pressure: a sink that does not read stalls the whole pipeline, and memory stops growing.
#[test]
fn slow_reader_stops_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let fifty: Vec<String> = (0..50).map(|_| root().join(example("test.pcap")).display().to_string()).collect();
    let text = format!("[[stage]]\nrun = \"capture\"\nfiles = {fifty:?}\n");
    let file = write(folder.path(), "p.toml", text);
    let mut command = sizeleak(&format!("run {} --format frames --quiet", file.display()));
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut last = 0;
    // It is stalled once its memory no longer grows; it has not ended then, since there is more to read.
    let peak = loop {
        std::thread::sleep(Duration::from_millis(200));
        let peak = peak_kib(child.id());
        if peak == last && peak > 0 || Instant::now() > deadline {
            break peak;
        }
        last = peak;
    };
    assert!(child.try_wait().unwrap().is_none(), "it ended although its output was not read");
    assert!(peak < 64 << 10, "{peak} KiB");
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stdout.len() > 10 << 20, "{} bytes", output.stdout.len());
}

fn peak_kib(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}
