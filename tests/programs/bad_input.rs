//! Bad input is reported in one clear sentence, with the contract's exit code, and everything before the damage is
//! processed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use support::programs::{GATEWAY, example, feed, root, sizeleak, stderr, stdout, with, write};
use support::transcript::Transcript;

/// Checks the exit code and that stderr is one line (and, from `run`, a line that counts the output), and adds it.
#[track_caller]
fn add(said: &mut Transcript, command: &Command, output: &Output, code: i32) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    let faults = text.lines().filter(|line| !line.contains("notices:") && !is_count(line) && !is_quote(line));
    assert_eq!(faults.count(), 1, "{text}");
    said.add_fault(command, output);
}

#[track_caller]
fn run(said: &mut Transcript, mut command: Command, code: i32) -> Output {
    let output = command.output().unwrap();
    add(said, &command, &output, code);
    output
}

#[track_caller]
fn feed_to(said: &mut Transcript, command: Command, input: Vec<u8>, code: i32) -> Output {
    let mut line = Command::new(command.get_program());
    line.args(command.get_args());
    let output = feed(command, input);
    add(said, &line, &output, code);
    output
}

/// The line of a pipeline file that an error is about.
fn is_quote(line: &str) -> bool {
    line.starts_with("  ") && line.contains(" | ")
}

fn is_count(line: &str) -> bool {
    line == "sizeleak: nothing came out" || line.starts_with("sizeleak: flow ") || line.starts_with("sizeleak: identif")
}

/// Runs the bundled pipeline over a capture, in every mode and as a pipe's first stage.
fn run_capture(said: &mut Transcript, capture: &Path) {
    let file = capture.display().to_string();
    for mode in ["threads", "processes"] {
        run(said, sizeleak(&format!("run pipeline.toml {file} --mode {mode}")), 1);
    }
    run(said, with("capture", &file), 1);
}

#[test]
fn files_that_are_not_captures_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut said = Transcript::of_folder(folder.path(), "[folder]");
    for (name, content) in
        [("text.pcap", &b"on,off\n1,1,0\n"[..]), ("short.pcap", b"\xd4\xc3\xb2"), ("zeros.pcap", &[0; 64])]
    {
        run_capture(&mut said, &write(folder.path(), name, content));
    }
    run_capture(&mut said, &folder.path().join("missing.pcap"));
    run(&mut said, with("capture", &folder.path().display().to_string()), 1);
    for mode in ["threads", "processes"] {
        run(&mut said, sizeleak(&format!("run pipeline.toml --gateway 10.9.8.7 --mode {mode}")), 1);
    }
    said.assert_shown("bad-captures");
}

#[test]
fn a_capture_cut_in_a_packet_is_processed_up_to_there() {
    let whole = fs::read(root().join(example("test.pcap"))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "cut.pcap", &whole[..whole.len() / 2 + 7]);
    let mut said = Transcript::of_folder(folder.path(), "[folder]");
    run_capture(&mut said, &file);
    said.assert_shown("cut-capture");
    let all = stdout(&mut sizeleak("run pipeline.toml --format csv --quiet"));
    let part = sizeleak(&format!("run pipeline.toml --format csv --quiet {}", file.display())).output().unwrap();
    let (all, part) = (String::from_utf8(all).unwrap(), String::from_utf8(part.stdout).unwrap());
    // The last command's replies may lie behind the cut.
    let whole_rows: Vec<&str> = part.lines().rev().skip(1).collect();
    assert!(whole_rows.len() > all.lines().count() / 3, "{} rows", whole_rows.len());
    assert!(whole_rows.iter().rev().eq(all.lines().take(whole_rows.len()).collect::<Vec<_>>().iter()));
}

#[test]
fn unusable_models_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = fs::read_to_string(root().join(example("model.toml"))).unwrap();
    let mut said = Transcript::of_folder(folder.path(), "[folder]");
    for (name, content) in [
        ("newer.toml", model.replacen("schema = 2", "schema = 7", 1)),
        ("cut.toml", model[..model.len() / 2].to_owned()),
        ("other.toml", "[[stage]]\nrun = \"capture\"\n".to_owned()),
    ] {
        let file = write(folder.path(), name, content);
        run(&mut said, sizeleak(&format!("run pipeline.toml --model {}", file.display())), 1);
        for stage in ["epsilon-corrector", "decomposer", "pruner"] {
            feed_to(&mut said, with(stage, &format!("--model {}", file.display())), Vec::new(), 1);
        }
    }
    run(&mut said, sizeleak("run pipeline.toml --model no-such.toml"), 1);
    said.assert_shown("bad-models");
}

#[test]
fn a_missing_file_is_reported_with_its_line_in_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(root().join("pipeline.toml")).unwrap();
    let file = write(folder.path(), "pipeline.toml", &text);
    let line = 1 + text.lines().position(|line| line.starts_with("files")).unwrap();
    let output = sizeleak(&format!("run {}", file.display())).output().unwrap();
    let words = stderr(&output);
    assert!(words.contains(&format!("pipeline.toml, line {line}: ")) && words.contains("No such file"), "{words}");
    assert!(stderr(&output).ends_with(&format!("\n  {line} | files = [\"examples/home/test.pcap\"]\n")));
}

#[test]
fn cut_and_broken_streams_are_reported() {
    let whole = stdout(&mut with("capture", &example("test.pcap")));
    let mut said = Transcript::default();
    // The end of a stream holds latencies, so its length differs between runs.
    let last = feed(with("flow-filter", &format!("--gateway {GATEWAY}")), whole[..whole.len() - 1].to_vec());
    assert!(last.status.code() == Some(3) && stderr(&last).contains("ended inside a frame"), "{}", stderr(&last));
    for cut in [200_000, 1000, 3] {
        feed_to(&mut said, with("flow-filter", &format!("--gateway {GATEWAY}")), whole[..cut].to_vec(), 3);
    }
    // Half a stream yields what half a capture holds.
    let half = feed(with("flow-filter", &format!("--gateway {GATEWAY}")), whole[..whole.len() / 2].to_vec());
    assert!(half.stdout.len() > 50_000, "{} bytes", half.stdout.len());
    for (bytes, code) in [
        (Vec::new(), 3),
        (b"GET / HTTP/1.1\r\n".to_vec(), 1),
        (vec![0xdf, 0xff, 0xff, 0xff, 0xff], 1),
        ([vec![0x91; 1 << 16], vec![0xc0]].concat(), 1),
    ] {
        for stage in ["flow-filter --gateway 1.2.3.4", "record-sizer", "command-segmenter", "sizeleak frames"] {
            let (name, arguments) = stage.split_once(' ').unwrap_or((stage, ""));
            feed_to(&mut said, with(name, arguments), bytes.clone(), code);
        }
    }
    let half = feed_to(&mut said, sizeleak("frames"), whole[..200_000].to_vec(), 3);
    assert!(half.stdout.len() > 10_000);
    // {"hello": {"schema": 2, "stage": "capture", "version": "9", "upstream": []}}
    let mut hello = vec![0x81, 0xa5];
    hello.extend(b"hello");
    hello.push(0x84);
    for (name, value) in [("schema", &[2][..]), ("stage", b"\xa7capture"), ("version", b"\xa19"), ("upstream", &[0x90])]
    {
        hello.push(0xa0 | name.len() as u8);
        hello.extend(name.bytes());
        hello.extend(value);
    }
    feed_to(&mut said, with("record-sizer", ""), hello, 1);
    said.assert_shown("bad-streams");
}
