//! Interfaces are captured by the tcpdump that is on the PATH: here mostly by scripts that do what it may do.

use std::env;
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use sizeleak::frame::{Frame, Summary};
use support::programs::{self, GATEWAY, ended, example, root, sizeleak, stderr, stdout, with, write};
use support::streams::frames_of;
use tempfile::TempDir;

/// A folder whose `tcpdump` is a script with these lines; `$capture` is that of the bundled home.
fn fake(lines: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("#!/bin/sh\ncapture={}\necho \"$@\" > \"$0.arguments\"\n{lines}", whole().display());
    let script = write(folder.path(), "tcpdump", script);
    fs::set_permissions(script, Permissions::from_mode(0o755)).unwrap();
    folder
}

fn whole() -> std::path::PathBuf {
    root().join(example("test.pcap"))
}

/// A program that finds the `tcpdump` of this folder.
fn finding(folder: &Path, mut command: Command) -> Command {
    command.env("PATH", format!("{}:{}", folder.display(), env::var("PATH").unwrap()));
    command
}

/// `capture --interface eth7` with the `tcpdump` of this folder, started.
fn started(folder: &Path) -> Child {
    programs::start(&mut finding(folder, with("capture", "--interface eth7")))
}

/// What it writes until SIGINT, which it gets once it has written a first batch.
fn interrupted(folder: &Path) -> Output {
    let mut child = started(folder);
    let mut first = [0; 4096];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    programs::interrupt(&child);
    let mut output = ended(child);
    output.stdout.splice(0..0, first);
    output
}

struct Captured {
    packets: usize,
    notices: Vec<(String, String)>,
    summary: Option<Summary>,
}

fn captured(output: &Output) -> Captured {
    let mut captured = Captured { packets: 0, notices: Vec::new(), summary: None };
    for frame in frames_of(&output.stdout) {
        match frame {
            Frame::Packets(batch) => captured.packets += batch.len(),
            Frame::Notice(notice) => {
                captured.notices.push((notice.what.to_string(), notice.detail.unwrap_or_default()));
            }
            Frame::Summary(summary) => captured.summary = Some(summary),
            _ => {}
        }
    }
    captured
}

fn packets_of_whole() -> usize {
    captured(&with("capture", &example("test.pcap")).output().unwrap()).packets
}

const UNTIL_SIGINT: &str =
    "trap 'echo \"tcpdump: listening on eth7, link-type EN10MB\" >&2; echo \"7 packets captured\" >&2
    echo \"5 packets dropped by kernel\" >&2; echo \"1 packet dropped by interface\" >&2; exit 0' INT
while :; do sleep 0.02; done\n";

#[test]
fn packets_captured_before_sigint_are_processed_and_drops_are_said() {
    // The second half comes when tcpdump is asked to end: it had captured it.
    let half = whole().metadata().unwrap().len() / 2;
    let folder = fake(&format!(
        "trap 'tail -c +{} \"$capture\"; echo \"5 packets dropped by kernel\" >&2\n\
         echo \"1 packet dropped by interface\" >&2; exit 0' INT\n\
         head -c {half} \"$capture\"\nwhile :; do sleep 0.02; done\n",
        half + 1
    ));
    let output = interrupted(folder.path());
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let captured = captured(&output);
    assert_eq!(captured.packets, packets_of_whole());
    let detail =
        "eth7: 6 packets were dropped (5 by the kernel, 1 by the interface): they came faster than they were read";
    assert_eq!(captured.notices, [("gap".to_owned(), detail.to_owned())]);
    let counters = &captured.summary.unwrap().stages[0].counters;
    assert_eq!((counters["kernel_drops"], counters["interface_drops"]), (5, 1));
    let arguments = fs::read_to_string(folder.path().join("tcpdump.arguments")).unwrap();
    assert_eq!(arguments, "-i eth7 -B 8192 -U --immediate-mode -w -\n");
}

#[test]
fn packets_are_passed_on_while_tcpdump_waits_for_more() {
    let folder = fake(&format!("cat \"$capture\"\n{UNTIL_SIGINT}"));
    let mut run = finding(folder.path(), sizeleak("run pipeline.toml --kind record --format ndjson"));
    let pipeline = format!(
        "[[stage]]\nrun = \"capture\"\ninterface = \"eth7\"\nsnaplen = 200\nfilter = \"tcp or udp\"\n[[stage]]\nrun = \
         \"flow-filter\"\ngateway = [\"{GATEWAY}\"]\n[[stage]]\nrun = \"record-sizer\"\n"
    );
    write(folder.path(), "pipeline.toml", pipeline);
    let mut child = programs::start(run.current_dir(folder.path()));
    let mut first = [0; 64];
    // Before its end.
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    programs::interrupt(&child);
    let output = ended(child);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let arguments = fs::read_to_string(folder.path().join("tcpdump.arguments")).unwrap();
    assert!(arguments.ends_with(" -s 200 -- tcp or udp\n"), "{arguments}");
    let of_file = sizeleak(&format!("run --kind record --format ndjson -q --gateway {GATEWAY}")).arg(whole()).output();
    assert!([&first[..], &output.stdout].concat() == of_file.unwrap().stdout);
}

#[test]
fn a_tcpdump_that_writes_nothing_ends_with_sigint_or_is_killed() {
    for (lines, most) in [(UNTIL_SIGINT, 2), ("trap '' INT\nwhile :; do sleep 0.02; done\n", 5)] {
        let folder = fake(&format!("echo $$ > \"$0.pid\"\n{lines}"));
        let child = started(folder.path());
        let pid = loop {
            match fs::read_to_string(folder.path().join("tcpdump.pid")) {
                Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
                _ => thread::sleep(Duration::from_millis(5)),
            }
        };
        programs::interrupt(&child);
        let start = Instant::now();
        let output = ended(child);
        assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
        assert!(start.elapsed() < Duration::from_secs(most), "{:?}", start.elapsed());
        let captured = captured(&output);
        assert!(
            captured.packets == 0
                && captured.notices.iter().all(|(what, _)| what == "gap")
                && captured.summary.is_some()
        );
        assert!(!Path::new("/proc").join(pid).exists());
    }
}

#[test]
#[ignore = "second tier: needs root, unshare, ip and tcpdump"]
fn tcpdump_itself_captures_until_the_user_stops() {
    let shell = "ip link set lo up; \"$0\" --interface lo --filter 'udp port 9999' > \"$1\" 2> \"$2\" & capture=$!\n\
                 for number in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do\n\
                 sleep 0.1; echo \"number $number\" > /dev/udp/127.0.0.1/9999; done\n\
                 kill -INT $capture; wait $capture";
    let folder = tempfile::tempdir().unwrap();
    let (frames, said) = (folder.path().join("frames"), folder.path().join("said"));
    let mut command = Command::new("unshare");
    command.args(["--net", "bash", "-c", shell]).arg(with("capture", "").get_program()).args([&frames, &said]);
    let status = command.stdout(Stdio::null()).status().unwrap();
    let said = fs::read_to_string(said).unwrap();
    assert_eq!(status.code(), Some(130), "{said}");
    let shown = stdout(sizeleak("frames --format ndjson").arg(&frames));
    let output = Output { status, stdout: fs::read(&frames).unwrap(), stderr: Vec::new() };
    // It takes a moment to begin.
    let packets = captured(&output).packets;
    assert!((5..=20).contains(&packets), "{packets}: {said} {}", String::from_utf8_lossy(&shown));
}
