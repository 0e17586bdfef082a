//! The segmenters of `examples/segmenters`, in Python and in Rust: the same commands from both, in a Unix pipe and in a
//! pipeline of threads or of processes.

use std::fs;
use std::path::Path;
use std::process::Command;
use support::segmenters;

use sizeleak_frame::Frame;
use support::programs::{example, pipe, root, seven, sizeleak, stderr, stdout, write};
use support::streams::frames_of;
use support::timeless::timeless;

/// The streams of a pipe of programs, of threads and of processes; they must be equal but for latencies.
fn stream_of(segmenter: &[String]) -> Vec<u8> {
    let mut stages = seven(&example("test.pcap"));
    let [program, arguments @ ..] = segmenter else { panic!("no program") };
    let mut own = Command::new(program);
    own.args(arguments);
    *stages.get_mut(3).unwrap() = own;
    let piped = pipe(stages);
    for output in &piped {
        assert!(output.status.success(), "{}", stderr(output));
    }
    let piped = timeless(&piped.last().unwrap().stdout);
    let folder = tempfile::tempdir().unwrap();
    let file = pipeline_with(segmenter, folder.path());
    for mode in ["threads", "processes"] {
        let ran = stdout(&mut sizeleak(&format!("run {file} --format frames --quiet --mode {mode}")));
        assert!(timeless(&ran) == piped, "{segmenter:?} in {mode} differs from a pipe");
    }
    piped
}

/// `burst.toml` with another program in its segmenter's place.
fn pipeline_with(segmenter: &[String], folder: &Path) -> String {
    let text = fs::read_to_string(segmenters::folder().join("burst.toml")).unwrap();
    let theirs = "[\"python3\", \"burst.py\", \"40\"]";
    assert!(text.contains(theirs), "{text}");
    let home = format!("{}/", root().join("examples/home").display());
    let text = text.replace(theirs, &format!("{segmenter:?}")).replace("../home/", &home);
    write(folder, "pipeline.toml", text).display().to_string()
}

/// All frames but those in which stages describe themselves.
fn traffic(stream: &[u8]) -> Vec<Frame> {
    frames_of(stream).into_iter().filter(|frame| !matches!(frame, Frame::Hello(_) | Frame::Summary(_))).collect()
}

fn identified(frames: &[Frame]) -> usize {
    frames.iter().filter(|frame| matches!(frame, Frame::Identification(found) if !found.candidates.is_empty())).count()
}

#[test]
fn the_segmenter_in_rust_is_a_stage_in_a_pipe_and_in_both_modes() {
    let frames = traffic(&stream_of(&segmenters::rust()));
    // The bundled home has 307 commands; other bursts to the gateway are not commands, and no actions explain them.
    assert_eq!(identified(&frames), 308);
}

#[test]
#[ignore = "second tier: needs python3 with msgpack"]
fn the_segmenter_in_python_does_the_same_in_a_pipe_and_in_both_modes() {
    let frames = traffic(&stream_of(&segmenters::python()));
    assert!(frames == traffic(&stream_of(&segmenters::rust())), "Python and Rust find different commands");
    // Unchanged, in its folder.
    let file = segmenters::folder().join("burst.toml").display().to_string();
    let ran = stdout(&mut sizeleak(&format!("run {file} --format frames --quiet")));
    assert!(traffic(&ran) == frames);
}

#[test]
fn the_segmenter_in_python_is_as_short_as_its_readme_says() {
    let text = fs::read_to_string(segmenters::folder().join("burst.py")).unwrap();
    let readme = fs::read_to_string(segmenters::folder().join("README.md")).unwrap();
    assert!(text.lines().count() <= 60 && readme.contains("60 lines of Python"), "{} lines", text.lines().count());
}
