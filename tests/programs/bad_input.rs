//! Bad input is reported in one clear sentence, with the contract's exit code, and everything before the damage is
//! processed.

use std::fs;
use std::path::Path;
use std::process::Output;

use support::programs::{GATEWAY, example, feed, program, root, sizeleak, stderr, stdout, with, write};

/// Checks the exit code and that stderr is one line with these words (and, from `run`, a line that counts the output).
fn assert_says(output: &Output, code: i32, words: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    let faults: Vec<&str> =
        said.lines().filter(|line| !line.contains("notices:") && !is_count(line) && !is_quote(line)).collect();
    assert_eq!(faults.len(), 1, "{said}");
    assert!(words.iter().all(|word| faults[0].contains(word)), "{said}");
}

/// The line of a pipeline file that an error is about.
fn is_quote(line: &str) -> bool {
    line.starts_with("  ") && line.contains(" | ")
}

fn is_count(line: &str) -> bool {
    line == "sizeleak: nothing came out" || line.starts_with("sizeleak: flow ") || line.starts_with("sizeleak: identif")
}

/// Runs the bundled pipeline over a capture, in every mode and as a pipe's first stage.
fn assert_capture_says(capture: &Path, words: &[&str]) {
    let file = capture.display().to_string();
    for mode in ["threads", "processes"] {
        let output = sizeleak(&format!("run pipeline.toml --input {file} --mode {mode}")).output().unwrap();
        assert_says(&output, 1, words);
    }
    assert_says(&with("capture", &file).output().unwrap(), 1, words);
}

#[test]
fn files_that_are_not_captures_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (name, content, words) in [
        ("empty.pcap", &b""[..], &["empty.pcap", "is empty"][..]),
        ("text.pcap", b"time,on,off\n1,1,0\n", &["text.pcap", "is no capture", "text `time`"]),
        ("short.pcap", b"\xd4\xc3\xb2", &["short.pcap", "is no capture"]),
        ("zeros.pcap", &[0; 64], &["zeros.pcap", "is no capture", "00 00 00 00"]),
    ] {
        assert_capture_says(&write(folder.path(), name, content), words);
    }
    assert_capture_says(&folder.path().join("missing.pcap"), &["missing.pcap", "No such file"]);
    assert_capture_says(folder.path(), &["is a folder", "--recursive"]);
}

#[test]
fn a_capture_cut_in_a_packet_is_processed_up_to_there() {
    let whole = fs::read(root().join(example("test.pcap"))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "cut.pcap", &whole[..whole.len() / 2 + 7]);
    assert_capture_says(&file, &["cut.pcap", "is cut at byte"]);
    let all = stdout(&mut sizeleak("run pipeline.toml --format csv --quiet"));
    let part =
        sizeleak(&format!("run pipeline.toml --format csv --quiet --input {}", file.display())).output().unwrap();
    let (all, part) = (String::from_utf8(all).unwrap(), String::from_utf8(part.stdout).unwrap());
    // The last command's replies may lie behind the cut.
    let whole_rows: Vec<&str> = part.lines().rev().skip(1).collect();
    assert!(whole_rows.len() > all.lines().count() / 3, "{} rows", whole_rows.len());
    assert!(whole_rows.iter().rev().eq(all.lines().take(whole_rows.len()).collect::<Vec<_>>().iter()));
}

#[test]
fn a_gateway_without_packets_is_an_error() {
    for mode in ["threads", "processes"] {
        let output = sizeleak(&format!("run pipeline.toml --gateway 10.9.8.7 --mode {mode}")).output().unwrap();
        assert_says(&output, 1, &["flow-filter", "10.9.8.7", GATEWAY]);
    }
}

#[test]
fn unusable_models_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let model = fs::read_to_string(root().join(example("model.toml"))).unwrap();
    for (name, content, words) in [
        ("newer.toml", model.replacen("schema = 2", "schema = 7", 1), ["newer.toml", "7"]),
        ("cut.toml", model[..model.len() / 2].to_owned(), ["cut.toml", ""]),
        ("other.toml", "[[stage]]\nrun = \"capture\"\n".to_owned(), ["other.toml", "not a model"]),
    ] {
        let file = write(folder.path(), name, content);
        let output = sizeleak(&format!("run pipeline.toml --model {}", file.display())).output().unwrap();
        assert_says(&output, 1, &words);
        for stage in ["epsilon-corrector", "decomposer", "pruner"] {
            let output = feed(with(stage, &format!("--model {}", file.display())), Vec::new());
            assert_says(&output, 1, &words);
        }
    }
    let output = sizeleak("run pipeline.toml --model no-such.toml").output().unwrap();
    assert_says(&output, 1, &["no-such.toml", "No such file"]);
}

#[test]
fn a_missing_file_is_reported_with_its_line_in_the_pipeline() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(root().join("pipeline.toml")).unwrap();
    let file = write(folder.path(), "pipeline.toml", &text);
    let line = 1 + text.lines().position(|line| line.starts_with("files")).unwrap();
    let output = sizeleak(&format!("run {}", file.display())).output().unwrap();
    assert_says(&output, 1, &[&format!("pipeline.toml, line {line}: "), "test.pcap", "No such file"]);
    assert!(stderr(&output).ends_with(&format!("\n  {line} | files = [\"examples/home/test.pcap\"]\n")));
}

#[test]
fn cut_and_broken_streams_are_reported() {
    let whole = stdout(&mut with("capture", &example("test.pcap")));
    for cut in [whole.len() - 1, whole.len() / 2, 1000, 3] {
        let output = feed(with("flow-filter", &format!("--gateway {GATEWAY}")), whole[..cut].to_vec());
        assert_says(&output, 3, &["flow-filter", "ended"]);
    }
    // Half a stream yields what half a capture holds.
    let half = feed(with("flow-filter", &format!("--gateway {GATEWAY}")), whole[..whole.len() / 2].to_vec());
    assert!(half.stdout.len() > 50_000, "{} bytes", half.stdout.len());
    for (bytes, code, words) in [
        (Vec::new(), 3, "empty"),
        (b"GET / HTTP/1.1\r\n".to_vec(), 1, "value 1 of the frame stream"),
        (vec![0xdf, 0xff, 0xff, 0xff, 0xff], 1, "16777216 bytes"),
        ([vec![0x91; 1 << 16], vec![0xc0]].concat(), 1, "value 1"),
    ] {
        for stage in ["flow-filter --gateway 1.2.3.4", "record-sizer", "command-segmenter"] {
            let (name, arguments) = stage.split_once(' ').unwrap_or((stage, ""));
            assert_says(&feed(with(name, arguments), bytes.clone()), code, &[words]);
        }
        assert_says(&feed(sizeleak("frames"), bytes), code, &[words]);
    }
    let half = feed(sizeleak("frames"), whole[..whole.len() / 2].to_vec());
    assert_says(&half, 3, &["stdin", "ended"]);
    assert!(half.stdout.len() > 10_000);
}

#[test]
fn a_newer_schema_is_refused() {
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
    assert_says(&feed(with("record-sizer", ""), hello), 1, &["`capture` 9", "schema 2", "knows 1"]);
}

#[test]
fn wrong_usage_is_exit_code_2() {
    for arguments in [
        "run pipeline.toml --set pruner.mod=paper",
        "run pipeline.toml --set pruner",
        "run pipeline.toml --mode fibres",
        "run --input examples/home/test.pcap --set decomposer.limit=many",
        "frames --format csv examples/home/test.pcap",
        "frames --format csv --kind no_such examples/home/test.pcap",
        "man --program nobody",
        "no-such-command",
    ] {
        let output = sizeleak(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", stderr(&output));
    }
    let folder = tempfile::tempdir().unwrap();
    let outside =
        program("sizeleak").current_dir(folder.path()).arg("run").arg("--input").arg("x.pcap").output().unwrap();
    assert_eq!(outside.status.code(), Some(1), "{}", stderr(&outside));
    for stage in
        ["capture", "flow-filter", "record-sizer", "command-segmenter", "epsilon-corrector", "decomposer", "pruner"]
    {
        assert_eq!(with(stage, "--no-such-flag").output().unwrap().status.code(), Some(2), "{stage}");
        for flag in ["--help", "--version"] {
            assert!(!stdout(&mut with(stage, flag)).is_empty(), "{stage} {flag}");
        }
    }
    for stage in ["flow-filter", "epsilon-corrector", "decomposer", "pruner"] {
        let output = feed(with(stage, ""), Vec::new());
        assert_says(&output, 2, &["is missing"]);
    }
}
