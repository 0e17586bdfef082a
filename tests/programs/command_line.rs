//! What is named on the command line is understood as it is meant, or refused with what to do.

use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

use flate2::Compression;
use flate2::write::GzEncoder;
use support::home::{Home, small};
use support::programs::{GATEWAY, example, feed, root, sizeleak, stderr, stdout, write};
use support::transcript::Transcript;

/// `sizeleak` with arguments, in a folder.
fn within(folder: &Path, arguments: &str) -> Command {
    let mut command = sizeleak(arguments);
    command.current_dir(folder);
    command
}

/// The answers to the bundled capture, as NDJSON.
fn answers() -> &'static [u8] {
    static ANSWERS: LazyLock<Vec<u8>> =
        LazyLock::new(|| stdout(&mut sizeleak("run pipeline.toml --quiet --format ndjson")));
    &ANSWERS
}

/// Options by which a capture of the bundled home is answered as the bundled pipeline does.
fn of_home() -> String {
    let model = root().join(example("model.toml"));
    format!("--gateway {GATEWAY} --model {} --quiet --format ndjson", model.display())
}

fn bundled(name: &str) -> Vec<u8> {
    fs::read(root().join(example(name))).unwrap()
}

/// Runs a command that is refused.
#[track_caller]
fn refused(said: &mut Transcript, command: &mut Command) {
    let output = said.run(command);
    assert!(output.status.code() == Some(2) && output.stdout.is_empty(), "{}", stderr(&output));
}

#[test]
fn captures_are_recognised_by_content_whatever_their_names() {
    let folder = tempfile::tempdir().unwrap();
    let capture = bundled("test.pcap");
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&capture).unwrap();
    for (name, content) in [
        ("monday", capture.clone()),
        ("capture.toml", capture.clone()),
        ("packed", gzip.finish().unwrap()),
        ("packed.bin", zstd::encode_all(&*capture, 1).unwrap()),
    ] {
        write(folder.path(), name, content);
        let answered = stdout(&mut within(folder.path(), &format!("run {name} {}", of_home())));
        assert!(answered == answers(), "{name}");
    }
}

#[test]
fn a_pipeline_file_is_named_among_captures() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(root().join("pipeline.toml")).unwrap();
    let home = format!("{}/examples", root().display());
    let file = write(folder.path(), "mine", text.replace("examples", &home));
    for arguments in [
        format!("run --gateway {GATEWAY} pipeline.toml"),
        format!("run pipeline.toml {}", example("test.pcap")),
        format!("run {} pipeline.toml", example("test.pcap")),
        format!("run {}", file.display()),
    ] {
        assert!(stdout(&mut sizeleak(&format!("{arguments} --quiet --format ndjson"))) == answers(), "{arguments}");
    }
    let both = sizeleak(&format!("run pipeline.toml {}", file.display())).output().unwrap();
    assert!(stderr(&both).contains("are both pipeline files"), "{}", stderr(&both));
}

#[test]
fn a_flag_takes_one_value_or_a_list_with_commas() {
    let (learn, test) = (example("learn.pcap"), example("test.pcap"));
    let run = |arguments: String| stdout(&mut sizeleak(&format!("run {arguments} {}", of_home())));
    let one_by_one = run(format!("{learn} {test} --gateway 10.9.9.9 --set flow-filter.allow-absent=true"));
    for arguments in
        [format!("--gateway 10.9.9.9 {learn} {test}"), format!("--gateway 10.9.9.9,10.0.0.0/30 {learn} {test}")]
    {
        assert!(run(format!("{arguments} --set flow-filter.allow-absent=true")) == one_by_one, "{arguments}");
    }
    let kinds = |arguments: &str| stdout(&mut sizeleak(&format!("run --format ndjson --quiet {arguments}")));
    let listed = kinds("pipeline.toml --kind session,notice");
    assert!(!listed.is_empty());
    assert!(kinds("--kind session pipeline.toml --kind notice") == listed);
}

#[test]
fn learn_and_evaluate_take_captures_like_run() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("model.toml");
    let (learn, test) = (example("learn.pcap"), example("test.pcap"));
    for captures in [format!("{learn} {test}"), format!("{test} {learn}")] {
        let labels = example("learn.csv");
        let learned = format!("learn {captures} --labels {labels} --gateway {GATEWAY} -w {}", model.display());
        stdout(&mut sizeleak(&learned));
        let written = fs::read_to_string(&model).unwrap();
        assert!(written.contains("\"learn.pcap\"") && written.contains("\"test.pcap\""), "{captures}: {written}");
    }
    let figures = |arguments: &str| {
        let labels = example("test.csv");
        let given = format!("evaluate {arguments} --labels {labels} --model {} --format=json", model.display());
        stdout(&mut sizeleak(&given))
    };
    let by_name = figures(&format!("{test} --gateway {GATEWAY}"));
    assert!(by_name == figures(&format!("{test} pipeline.toml")));
}

#[test]
fn arguments_missing_or_at_the_wrong_place_are_named() {
    let (test, labels, model) = (example("test.pcap"), example("test.csv"), example("model.toml"));
    let mut said = Transcript::default();
    for arguments in [
        format!("run {test} {model} --gateway {GATEWAY}"),
        format!("learn {test} {labels} --gateway {GATEWAY} -o x"),
        "run pipeline.toml pruner.mode=paper".to_owned(),
        format!("evaluate {test} --model {model} --gateway {GATEWAY}"),
        format!("evaluate --labels {labels} --model {model} --gateway {GATEWAY}"),
        format!("learn - --labels {labels} --gateway {GATEWAY} -o x"),
        format!("evaluate standard {test} --labels {labels} --model {model}"),
        "run pipeline.toml --kind comand".to_owned(),
        "run pipeline.toml --kind dance".to_owned(),
    ] {
        refused(&mut said, &mut sizeleak(&arguments));
    }
    said.assert_shown("refused-arguments");
    let piped = feed(sizeleak(&format!("learn --labels {labels} --gateway {GATEWAY} -o x")), bundled("learn.pcap"));
    assert_eq!(piped.status.code(), Some(2), "{}", stderr(&piped));
}

#[test]
fn folders_are_read_as_the_captures_in_them_by_run_learn_and_evaluate() {
    let home = Home::new(&small(), 3);
    assert!(home.learn("model.toml", &[]).status.success());
    let archive = home.path("archive");
    fs::create_dir_all(archive.join("day")).unwrap();
    for name in ["learn.pcap", "test.pcap", "learn.csv"] {
        fs::copy(home.path(name), archive.join("day").join(name)).unwrap();
    }
    let [whole, both] =
        [vec![archive.clone()], ["learn.pcap", "test.pcap"].map(|name| archive.join("day").join(name)).to_vec()];
    let done = |words: &str, captures: &[PathBuf], more: &[&Path]| {
        stdout(sizeleak(words).args(captures).args(["-q", "--gateway", GATEWAY]).args(more))
    };
    let with_model = [Path::new("--model"), &home.path("model.toml")];
    let run = |captures: &[PathBuf]| done("run --format ndjson --kind identification", captures, &with_model);
    let answers = run(&both);
    assert!(run(&whole) == answers && answers.split(|byte| *byte == b'\n').count() > 100);

    let (labels, model) = (home.path("learn.csv"), home.path("both.toml"));
    let learned = |captures: &[PathBuf]| {
        done("learn", captures, &[Path::new("--labels"), &labels, Path::new("-o"), &model]);
        fs::read_to_string(&model).unwrap()
    };
    assert_eq!(learned(&whole), learned(&both));

    let mut labels = fs::read(home.path("learn.csv")).unwrap();
    labels.extend(fs::read(home.path("test.csv")).unwrap().split_inclusive(|byte| *byte == b'\n').skip(1).flatten());
    let labels = write(&archive, "../both.csv", labels);
    let figures = |captures: &[PathBuf], more: &[&Path]| {
        done("evaluate --format=json", captures, &[&[Path::new("--labels"), &labels][..], more].concat())
    };
    assert!(figures(&whole, &with_model) == figures(&both, &with_model));
    // One after another: each file of its own.
    let in_folds = ["--folds", "captures"].map(Path::new);
    assert!(figures(&whole, &in_folds) == figures(&both, &in_folds));
}

#[test]
fn a_dangling_link_in_a_folder_does_not_stop_learning() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("archive");
    fs::create_dir(&archive).unwrap();
    write(&archive, "learn.pcap", bundled("learn.pcap"));
    symlink("nowhere.pcap", archive.join("lost.pcap")).unwrap();
    let (labels, model) = (example("learn.csv"), folder.path().join("model.toml"));
    let arguments = format!("learn {} --labels {labels} --gateway {GATEWAY}", archive.display());
    let output = sizeleak(&arguments).arg("-o").arg(&model).output().unwrap();
    let said = stderr(&output);
    assert!(said.contains("lost.pcap: is a link to nothing"), "{said}");
    assert!(model.exists(), "{said}");
}

/// A folder like that of a project: a pipeline with a model of its own.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["test.pcap", "model.toml"] {
        write(folder.path(), name, bundled(name));
    }
    let text = fs::read_to_string(root().join("pipeline.toml")).unwrap();
    write(folder.path(), "pipeline.toml", text.replace("examples/home/", ""));
    folder
}

#[test]
fn a_pipeline_that_is_found_is_named() {
    let folder = project();
    let output = within(folder.path(), "run --format ndjson").output().unwrap();
    assert!(stderr(&output).starts_with("sizeleak: pipeline ./pipeline.toml\n"), "{}", stderr(&output));
    assert!(output.stdout == answers());
    let quiet = within(folder.path(), "run --format ndjson --quiet").output().unwrap();
    assert!(quiet.stderr.is_empty() && quiet.stdout == answers());
    let named = within(folder.path(), "run pipeline.toml --format ndjson").output().unwrap();
    assert!(!stderr(&named).contains("pipeline ./"), "{}", stderr(&named));
}

#[test]
fn traffic_that_is_named_is_not_answered_with_the_model_of_a_pipeline_that_is_found() {
    let folder = project();
    stdout(&mut within(folder.path(), "run pipeline.toml --quiet --set record-sizer.save=records.frames -o all.txt"));
    let mut said = Transcript::default();
    for input in ["test.pcap", "records.frames", "--from records.frames", "-"] {
        refused(&mut said, &mut within(folder.path(), &format!("run {input} --gateway {GATEWAY}")));
        let own = format!("run {input} --model model.toml --quiet --format ndjson");
        let named = format!("run {input} pipeline.toml --quiet --format ndjson");
        for arguments in [own, named] {
            let answered = feed(within(folder.path(), &arguments), bundled("test.pcap"));
            assert!(answered.status.success(), "{arguments}: {}", stderr(&answered));
            let count = |rows: &[u8]| String::from_utf8_lossy(rows).matches("{\"identification\"").count();
            assert_eq!(count(&answered.stdout), count(answers()), "{arguments}");
        }
    }
    said.assert_shown("refused-model-of-a-found-pipeline");
    // A pipeline without a model has none that could be another's.
    let text = "[[stage]]\nrun = \"capture\"\n[[stage]]\nrun = \"flow-filter\"\n[[stage]]\nrun = \"record-sizer\"\n";
    write(folder.path(), "pipeline.toml", text);
    let records = stdout(&mut within(folder.path(), &format!("run test.pcap --gateway {GATEWAY} --format ndjson")));
    assert!(String::from_utf8_lossy(&records).contains("{\"record\""));
}

#[test]
fn stdin_is_read_where_no_input_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = feed(within(folder.path(), &format!("run {}", of_home())), bundled("test.pcap"));
    assert!(output.stdout == answers(), "{}", stderr(&output));
    // Where the pipeline names captures, these are read, and it is said.
    for arguments in ["run pipeline.toml", "run"] {
        let output = feed(within(project().path(), arguments), bundled("learn.pcap"));
        assert!(stderr(&output).contains("note: stdin is not read"), "{}", stderr(&output));
    }
    let output = sizeleak("run pipeline.toml").output().unwrap();
    assert!(!stderr(&output).contains("stdin"), "{}", stderr(&output));
}

#[test]
fn saved_streams_are_recognised_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("records.frames.zst");
    let save = format!("run pipeline.toml --quiet --set record-sizer.save={}", saved.display());
    stdout(&mut sizeleak(&format!("{save} --format ndjson")));
    let (saved, model) = (saved.display(), example("model.toml"));
    let run = |arguments: &str| sizeleak(&format!("run {arguments}")).output().unwrap();
    let continued = run(&format!("{saved} --model {model} --format ndjson"));
    assert!(continued.stdout == answers(), "{}", stderr(&continued));
    assert!(stderr(&continued).contains("records of record-sizer from"), "{}", stderr(&continued));
    let mut said = Transcript::of_folder(folder.path(), "[folder]");
    for arguments in
        [format!("{saved} {saved} --model {model}"), format!("{saved} {} --model {model}", example("test.pcap"))]
    {
        refused(&mut said, &mut sizeleak(&format!("run {arguments}")));
    }
    said.assert_shown("refused-saved-streams");
}

#[test]
fn kinds_that_do_not_exist_are_refused_or_said_to_be_absent() {
    let frames = stdout(&mut sizeleak("run pipeline.toml --quiet --format frames"));
    let show = |arguments: &str| feed(sizeleak(&format!("frames {arguments}")), frames.clone());
    let mut said = Transcript::default();
    for (kind, code) in [("identifications", 2), ("dance", 0), ("command", 0)] {
        let arguments = format!("--kind {kind}");
        let output = show(&arguments);
        assert!(output.status.code() == Some(code) && output.stdout.is_empty(), "{kind}");
        said.add(&sizeleak(&format!("frames {arguments}")), &output);
        assert!(code == 2 || show(&format!("{arguments} -q")).stderr.is_empty());
    }
    said.assert_shown("absent-kinds");
    assert!(show("--kind session,summary").stderr.is_empty());
}
