//! The output of a stage is saved whole or not at all, and a run that continues from it has the same results as the
//! whole run, in both modes.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output};

use support::programs::{GATEWAY, STAGES, example, feed, root, sizeleak, stderr, stdout, stop, write};
use support::timeless::timeless;

const MODES: [&str; 2] = ["threads", "processes"];

/// The bundled home's pipeline with these additional arguments.
fn home(mode: &str, arguments: &str) -> Command {
    let model = example("model.toml");
    sizeleak(&format!("run pipeline.toml --model {model} --quiet --mode {mode} {arguments}"))
}

/// What a file holds, decompressed.
fn content(path: &Path) -> Vec<u8> {
    let mut content = Vec::new();
    sizeleak::recording::open(Some(path)).unwrap().0.read_to_end(&mut content).unwrap();
    content
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Runs with `--set STAGE.save=…` for each of these stages.
fn saving(mode: &str, folder: &Path, stages: &[&str], arguments: &str) -> Command {
    let sets: Vec<String> =
        stages.iter().map(|stage| format!("--set {stage}.save={}/{stage}.frames.zst", folder.display())).collect();
    home(mode, &format!("{} {arguments}", sets.join(" ")))
}

#[test]
fn run_from_any_saved_stream_equals_the_whole_run() {
    let whole = stdout(&mut home("threads", "--format ndjson"));
    let frames = timeless(&stdout(&mut home("threads", "--format frames")));
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(
        stdout(&mut saving("threads", folder.path(), &STAGES, "--format ndjson")),
        whole,
        "saving changes nothing"
    );
    for mode in MODES {
        for stage in STAGES {
            let from = format!("--from {}/{stage}.frames.zst", folder.path().display());
            // No capture is read: this one does not exist.
            let nothing = "--set capture.files=no-such.pcap";
            // Lines say no more than frames do.
            if stage == "pruner" {
                assert!(stdout(&mut home(mode, &format!("{from} {nothing} --format ndjson"))) == whole, "{mode}");
            }
            let again = stdout(&mut home(mode, &format!("{from} {nothing} --format frames")));
            assert!(timeless(&again) == frames, "{mode} {stage}");
        }
    }
}

#[test]
fn both_modes_save_the_same() {
    let folders = MODES.map(|mode| {
        let folder = tempfile::tempdir().unwrap();
        stdout(&mut saving(mode, folder.path(), &STAGES, "--format ndjson"));
        folder
    });
    for stage in &STAGES[1..] {
        let [threads, processes] =
            folders.each_ref().map(|folder| content(&folder.path().join(format!("{stage}.frames.zst"))));
        // `timeless` also sees that both are whole streams.
        assert!(timeless(&threads) == timeless(&processes), "{stage}");
        assert!(threads.len() > 10_000, "{stage}");
    }
    // A summary of one row: all before it.
    let [threads, processes] = folders.each_ref().map(|folder| {
        let file = folder.path().join("capture.frames.zst");
        stdout(&mut sizeleak(&format!("frames --format ndjson --whole {}", file.display())))
    });
    assert!(threads == processes && threads.len() > 10_000);
}

#[test]
fn save_compresses_by_file_name() {
    let folder = tempfile::tempdir().unwrap();
    let capture = root().join(example("test.pcap"));
    let pipeline = |mode: &str| {
        let text = format!(
            "[pipeline]\nmode = \"{mode}\"\n[[stage]]\nrun = \"capture\"\nfiles = [\"{}\"]\n[[stage]]\nrun = \
             \"flow-filter\"\ngateway = [\"{GATEWAY}\"]\nsave = \"segments.frames.gz\"\n[[stage]]\n\
             name = \"mine\"\ncommand = \
             [\"cat\"]\nsave = \"mine.frames\"\n[[stage]]\nrun = \"record-sizer\"\nsave = \"records.frames.zst\"\n",
            capture.display()
        );
        write(folder.path(), "p.toml", text).display().to_string()
    };
    for mode in MODES {
        let file = pipeline(mode);
        let whole = stdout(&mut sizeleak(&format!("run {file} --format ndjson --quiet")));
        assert_eq!(
            names(folder.path()),
            ["mine.frames", "p.toml", "records.frames.zst", "segments.frames.gz"],
            "{mode}"
        );
        let raw = |name: &str| fs::read(folder.path().join(name)).unwrap();
        assert_eq!(
            (&raw("segments.frames.gz")[..2], &raw("records.frames.zst")[..2]),
            (&b"\x1f\x8b"[..], &b"\x28\xb5"[..])
        );
        // The output of `cat` says that flow-filter made it, but where it was saved is known.
        let segments = content(&folder.path().join("segments.frames.gz"));
        assert!(segments == raw("mine.frames"), "not one byte of a foreign stream is changed");
        for name in ["mine.frames", "records.frames.zst", "segments.frames.gz"] {
            let output = sizeleak(&format!("run {file} --format ndjson --from {}/{name}", folder.path().display()))
                .output()
                .unwrap();
            assert!(output.stdout == whole, "{mode} {name}: {}", stderr(&output));
            let skipped = stderr(&output);
            assert!(skipped.contains(if name == "mine.frames" { "frames of mine from" } else { " of " }), "{skipped}");
        }
        let piped = feed(sizeleak(&format!("run {file} --format ndjson --from -")), raw("records.frames.zst"));
        assert!(piped.stdout == whole, "{mode} stdin: {}", stderr(&piped));
    }
}

#[test]
fn frames_command_reads_saved_streams() {
    let folder = tempfile::tempdir().unwrap();
    stdout(&mut saving("threads", folder.path(), &["pruner"], ""));
    let file = folder.path().join("pruner.frames.zst").display().to_string();
    let plain = write(folder.path(), "plain.frames", content(Path::new(&file))).display().to_string();
    for command in ["frames --format ndjson", "plot"] {
        let [packed, plain] = [&file, &plain].map(|file| stdout(&mut sizeleak(&format!("{command} {file}"))));
        assert!(packed == plain && !plain.is_empty(), "{command}");
    }
    let from_stdin = feed(sizeleak("frames --format ndjson"), fs::read(&file).unwrap());
    assert_eq!(from_stdin.stdout, stdout(&mut sizeleak(&format!("frames --format ndjson {plain}"))));
}

/// A pipeline of three stages and a foreign one after them, which runs this script.
fn with_foreign(folder: &Path, script: &str) -> String {
    let capture = root().join(example("test.pcap"));
    let text = format!(
        "[[stage]]\nrun = \"capture\"\nfiles = [\"{}\"]\n[[stage]]\nrun = \"flow-filter\"\ngateway = [\"{GATEWAY}\"]\n\
         save = \"segments.frames\"\n[[stage]]\nname = \"mine\"\ncommand = [\"sh\", \"-c\", '{script}']\nsave = \
         \"mine.frames\"\n[[stage]]\nrun = \"record-sizer\"\nsave = \"records.frames\"\n",
        capture.display()
    );
    write(folder, "p.toml", text).display().to_string()
}

#[test]
fn failed_run_leaves_saved_files_unchanged() {
    for mode in MODES {
        for script in ["head -c 2000 > /dev/null; exit 7", "head -c 20000", "cat; kill -9 $$"] {
            let folder = tempfile::tempdir().unwrap();
            let file = with_foreign(folder.path(), script);
            let before = stdout(&mut sizeleak("run pipeline.toml --format frames --quiet"));
            write(folder.path(), "mine.frames", &before);
            let output = sizeleak(&format!("run {file} --mode {mode}")).output().unwrap();
            assert!(!output.status.success(), "{mode} {script}");
            let said = stderr(&output);
            assert!(said.contains("records.frames is not written: the run failed"), "{mode} {script}: {said}");
            assert_eq!(names(folder.path()), ["mine.frames", "p.toml"], "{mode} {script}");
            assert!(fs::read(folder.path().join("mine.frames")).unwrap() == before);
        }
    }
}

#[test]
fn interrupted_run_leaves_no_file() {
    let capture = fs::read(root().join(example("test.pcap"))).unwrap();
    for mode in MODES {
        let folder = tempfile::tempdir().unwrap();
        let mut command = sizeleak(&format!(
            "run pipeline.toml - --mode {mode} --format frames --set record-sizer.save={}/r.frames.zst",
            folder.path().display()
        ));
        let output = stop(&mut command, capture[..capture.len() / 2].to_vec(), 1, || {
            assert!(names(folder.path())[0].starts_with(".r.frames.zst."), "written under another name");
        });
        assert_eq!(output.status.code(), Some(130), "{mode}: {}", stderr(&output));
        assert!(stderr(&output).contains("r.frames.zst is not written: the run was stopped"), "{}", stderr(&output));
        assert_eq!(names(folder.path()), Vec::<String>::new(), "{mode}");
    }
}

fn fails(output: &Output, code: i32, words: &str) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(words), "no {words:?} in: {said}");
    assert_eq!(
        said.lines().filter(|line| line.starts_with("sizeleak: ") && !line.contains("is not written: the")).count(),
        1,
        "{said}"
    );
}

#[test]
fn full_disk_fails_the_run_and_names_the_file() {
    for mode in MODES {
        let folder = tempfile::tempdir().unwrap();
        let mut limited = Command::new("sh");
        // What is written to pipes is not limited; a file may have 4 KiB or so.
        let script = "trap '' XFSZ; ulimit -f 8; exec \"$@\"";
        let run = home(mode, &format!("--set record-sizer.save={}/r.frames", folder.path().display()));
        limited.args(["-c", script, "sh"]).arg(run.get_program()).args(run.get_args()).current_dir(root());
        let output = limited.output().unwrap();
        fails(&output, 1, "r.frames: File too large");
        assert!(stderr(&output).contains("`record-sizer`: the output cannot be written: "), "{}", stderr(&output));
        assert_eq!(names(folder.path()), Vec::<String>::new(), "{mode}");
    }
}

#[test]
fn unsuitable_stream_is_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    stdout(&mut saving("threads", folder.path(), &["record-sizer"], ""));
    let packed = folder.path().join("record-sizer.frames.zst");
    let from =
        |path: &Path, more: &str| home("threads", &format!("--from {} {more}", path.display())).output().unwrap();
    let conflict = from(&packed, "x.pcap");
    assert_eq!(conflict.status.code(), Some(2), "{}", stderr(&conflict));
    let short = write(folder.path(), "short.toml", "[[stage]]\nrun = \"capture\"\n");
    let other = sizeleak(&format!("run {} --from {}", short.display(), packed.display())).output().unwrap();
    fails(&other, 2, "`record-sizer` made this stream, and it is not in this pipeline, which has capture");
    fails(&from(Path::new("no-such.frames"), ""), 1, "no-such.frames: No such file");
    fails(&from(Path::new("pipeline.toml"), ""), 1, "pipeline.toml: value 1 of the frame stream");
    let whole = content(&packed);
    let cut = write(folder.path(), "cut.frames", &whole[..whole.len() / 2]);
    fails(&from(&cut, ""), 3, "`command-segmenter`: the frame stream from `record-sizer` ended");
    let short = fs::read(&packed).unwrap();
    fails(&from(&write(folder.path(), "cut.zst", &short[..short.len() / 2]), ""), 3, "cut.zst: the frame stream");
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(&whole).unwrap();
    let gzip = gzip.finish().unwrap();
    let cut = write(folder.path(), "cut.gz", &gzip[..gzip.len() * 3 / 4]);
    for mode in MODES {
        let output = home(mode, &format!("--from {}", cut.display())).output().unwrap();
        fails(&output, 3, "the frame stream from `record-sizer` cannot be read");
    }
    let mut damaged = fs::read(&packed).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x55;
    // What is found first depends on the latencies that are packed: corrupt data, a wrong checksum, or a frame that is none.
    let output = from(&write(folder.path(), "damaged.zst", damaged), "");
    fails(&output, 1, "cannot be read");
    let said = stderr(&output);
    let of_file = said.contains("damaged.zst: the frame stream cannot be read");
    assert!(of_file || said.contains("of the frame stream from `record-sizer`, at byte"), "{said}");
    let mut damaged = fs::read(&packed).unwrap();
    damaged[0] ^= 0x55;
    let output = from(&write(folder.path(), "headless.zst", damaged), "");
    fails(&output, 1, "headless.zst: value 1 of the frame stream");
}
