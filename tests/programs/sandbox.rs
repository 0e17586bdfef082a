//! The programs give up what they do not need, and do all the same.
#![cfg(target_os = "linux")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

use support::programs::{GATEWAY, example, program, root, shell, sizeleak, start, stderr, wait_for, with, write};
use support::timeless::timeless;

/// What the system says about each thread of a process: whether it may gain rights, and its system call filter.
fn confinement(child: &Child) -> Vec<[String; 2]> {
    let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).unwrap();
    let statuses = tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok());
    let value = |status: &str, key: &str| {
        status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim().to_owned()
    };
    statuses.map(|status| [value(&status, "NoNewPrivs:"), value(&status, "Seccomp:")]).collect()
}

/// Starts a program whose input stays open, and waits until all its threads are confined as expected.
fn assert_confinement(command: &mut Command, expected: [&str; 2]) {
    let mut child = start(command);
    // An unconfined program looks the same before and after it has started.
    thread::sleep(Duration::from_millis(if expected == ["0", "0"] { 500 } else { 0 }));
    wait_for(|| {
        let threads = confinement(&child);
        let are_confined = !threads.is_empty() && threads.iter().all(|thread| *thread == expected);
        if are_confined { Ok(()) } else { Err(format!("{command:?}: {threads:?}")) }
    });
    drop(child.stdin.take());
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(!stderr(&output).contains("sandbox"), "{}", stderr(&output));
}

#[test]
fn programs_are_confined_while_they_run() {
    for (name, arguments) in [
        ("capture", "- --metrics 127.0.0.1:0"),
        ("flow-filter", &format!("--gateway {GATEWAY}")),
        ("record-sizer", ""),
        ("sizeleak", &format!("run - --gateway {GATEWAY} --model {} --metrics 127.0.0.1:0", example("model.toml"))),
    ] {
        assert_confinement(&mut with(name, arguments), ["1", "2"]);
        assert_confinement(with(name, arguments).arg("--no-sandbox"), ["0", "0"]);
    }
}

#[test]
fn pipeline_file_turns_the_sandbox_off() {
    let folder = tempfile::tempdir().unwrap();
    let stage = "[[stage]]\nrun = \"capture\"\n";
    for (settings, expected) in [("", ["1", "2"]), ("[pipeline]\nsandbox = false\n", ["0", "0"])] {
        let file = write(folder.path(), "pipeline.toml", format!("{settings}{stage}"));
        let run = format!("run {} - --format frames", file.display());
        assert_confinement(&mut sizeleak(&run), expected);
    }
}

/// The captures in a folder, one of them a link out of it.
fn archive(folder: &Path) {
    fs::create_dir(folder).unwrap();
    symlink(root().join(example("test.pcap")), folder.join("linked.pcap")).unwrap();
    fs::copy(root().join(example("learn.pcap")), folder.join("copied.pcap")).unwrap();
}

/// Everything that a run can read and write, in a folder of its own.
fn run_with_everything(folder: &Path, flags: &[&str]) -> Vec<Vec<u8>> {
    for name in ["output", "saves", "logs"] {
        fs::create_dir_all(folder.join(name)).unwrap();
    }
    archive(&folder.join("archive"));
    symlink(folder.join("output/target.frames"), folder.join("link.frames")).unwrap();
    let mut run = program("sizeleak");
    run.current_dir(folder).args(["run", "archive", "--set", "capture.recursive=true", "--gateway", GATEWAY]);
    run.arg("--model").arg(root().join(example("model.toml"))).args(["--format", "frames", "-o", "link.frames"]);
    run.args(["--set", "record-sizer.save=saves/records.frames.zst", "--latency-log", "logs/latency.hlog"]);
    run.args(["--metrics", "127.0.0.1:0", "--time", "local"]).args(flags);
    let output = run.env("TZ", "Europe/Berlin").output().unwrap();
    let said = stderr(&output);
    assert!(output.status.success() && !said.contains("denied") && !said.contains("sandbox"), "{said}");
    assert!(fs::read_to_string(folder.join("logs/latency.hlog")).unwrap().contains("pruner.service"));
    let saved = sizeleak("frames --format ndjson").arg(folder.join("saves/records.frames.zst")).output().unwrap();
    vec![timeless(&fs::read(folder.join("output/target.frames")).unwrap()), saved.stdout]
}

#[test]
fn confined_run_reads_and_writes_all_that_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let [confined, free] = ["confined", "free"].map(|name| folder.path().join(name));
    for folder in [&confined, &free] {
        fs::create_dir(folder).unwrap();
    }
    assert!(run_with_everything(&confined, &[]) == run_with_everything(&free, &["--no-sandbox"]));
}

/// What each option for an output may name beside a file: none of them is opened once the sandbox is complete.
#[test]
fn outputs_are_devices_pipes_descriptors_and_links_to_new_files() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["apart", "elsewhere"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    symlink("../elsewhere/new", folder.path().join("apart/link")).unwrap();
    let run = |line: &str| {
        let output = shell(folder.path(), line).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{line}: {}", stderr(&output));
    };
    let capture = format!("$EXAMPLES/home/test.pcap --gateway {GATEWAY} -q");
    run(&format!("mkfifo apart/fifo && sizeleak run {capture} --kind segments --format frames -o segments"));
    for option in [
        &format!("sizeleak run {capture} --kind command --format ndjson --output"),
        &format!("sizeleak run {capture} --kind command --output /dev/null --latency-log"),
        "record-sizer < segments --latency-log",
    ] {
        for output in [
            "/dev/null",
            "/dev/fd/7 7> /dev/null",
            "/dev/stderr 2> /dev/null",
            "/proc/self/fd/7 7> apart/descriptor && test -s apart/descriptor",
            "apart/link && test -s elsewhere/new && test -L apart/link && rm elsewhere/new",
        ] {
            let (output, and) = output.split_once(" &&").unwrap_or((output, " true"));
            run(&format!("{option} {output} > /dev/null && {and}"));
        }
        run(&format!("{{ {option} apart/fifo > /dev/null & cat apart/fifo > piped; wait $! && test -s piped; }}"));
    }
}

/// With a foreign stage there is no sandbox in `run`, but the programs of its own stages have theirs.
#[test]
fn programs_that_a_run_starts_are_confined_by_themselves() {
    let mut run =
        with("sizeleak", &format!("run --mode processes - --gateway {GATEWAY} --set capture.recursive=false"));
    run.args(["--model", &example("model.toml")]);
    for (flag, expected) in [(None, ["1", "2"]), (Some("--no-sandbox"), ["0", "0"])] {
        let mut child = start(run.args(flag));
        wait_for(|| {
            let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
            let names = children.split_whitespace().filter_map(|id| {
                let name = fs::read_to_string(format!("/proc/{id}/comm")).ok()?;
                let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
                let line = format!("Seccomp:\t{}\n", expected[1]);
                (name.trim() == "record-sizer" && status.contains(&line)).then_some(())
            });
            if names.count() == 1 { Ok(()) } else { Err(children) }
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
