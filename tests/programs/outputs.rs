//! No output replaces a file that the same run reads, and a run that fails leaves the earlier output as it was.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use support::programs;

use support::programs::{GATEWAY, example, program, root, stderr, write};
use tempfile::TempDir;

/// A folder with everything that an experiment reads, and links to some of it.
struct Experiment(TempDir);

impl Experiment {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (from, to) in [
            ("test.pcap", "a.pcap"),
            ("model.toml", "model.toml"),
            ("test.csv", "labels.csv"),
            ("inventory.toml", "inventory.toml"),
        ] {
            fs::copy(root().join(example(from)), folder.path().join(to)).unwrap();
        }
        let model = "model = \"model.toml\"\n";
        let text = format!(
            "[[stage]]\nrun = \"capture\"\nfiles = [\"a.pcap\"]\n[[stage]]\nrun = \"flow-filter\"\ngateway = \
             [\"{GATEWAY}\"]\n[[stage]]\nrun = \"record-sizer\"\n[[stage]]\nname = \"mine\"\ncommand = [\"sh\", \
             \"mine.sh\"]\n[[stage]]\nrun = \"command-segmenter\"\n[[stage]]\nrun = \
             \"epsilon-corrector\"\n{model}[[stage]]\nrun = \"decomposer\"\n{model}[[stage]]\nrun = \
             \"pruner\"\n{model}"
        );
        write(folder.path(), "p.toml", text);
        write(folder.path(), "mine.sh", "exec cat");
        write(folder.path(), "scenario.toml", "[test]\ncommands = 2\n");
        fs::create_dir(folder.path().join("folder")).unwrap();
        fs::copy(root().join(example("test.pcap")), folder.path().join("folder/b.pcap")).unwrap();
        symlink("a.pcap", folder.path().join("soft.pcap")).unwrap();
        fs::hard_link(folder.path().join("a.pcap"), folder.path().join("hard.pcap")).unwrap();
        let experiment = Self(folder);
        let saved = experiment.sizeleak(RUN, "--format frames --set record-sizer.save=saved.frames -o last.frames");
        assert!(saved.status.success(), "{}", stderr(&saved));
        experiment
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn command(&self, name: &str, arguments: &str) -> Command {
        let mut command = program(name);
        command.args(arguments.split_whitespace()).current_dir(self.0.path());
        command
    }

    fn sizeleak(&self, usual: &str, arguments: &str) -> Output {
        self.command("sizeleak", &format!("{usual} {arguments}")).output().unwrap()
    }

    /// All files and their contents.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.0.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    let content = fs::read(&path).unwrap();
                    files.insert(path, content);
                }
            }
        }
        files
    }
}

const RUN: &str = "run p.toml --quiet";
const LABELLED: &str = "a.pcap --labels labels.csv --gateway 192.168.1.20 --quiet";

#[test]
fn no_output_of_any_command_replaces_an_input() {
    let experiment = Experiment::new();
    let before = experiment.files();
    let (learn, evaluate, compare) = (
        format!("learn {LABELLED} --inventory inventory.toml"),
        format!("evaluate --model model.toml {LABELLED}"),
        format!("evaluate standard p.toml --model model.toml {LABELLED}"),
    );
    for (usual, arguments) in [
        (RUN, "-o a.pcap"),
        (RUN, "-o soft.pcap"),
        (RUN, "-o hard.pcap"),
        (RUN, "-o folder/../a.pcap"),
        (RUN, "-o model.toml"),
        (RUN, "-o p.toml"),
        (RUN, "-o mine.sh"),
        (RUN, "--mode processes -o a.pcap"),
        (RUN, "folder --set capture.recursive=true -o folder/b.pcap"),
        (RUN, "folder --set capture.recursive=true -o folder/new"),
        (RUN, "--latency-log a.pcap"),
        (RUN, "--set record-sizer.save=model.toml"),
        (RUN, "--from saved.frames -o saved.frames"),
        (RUN, "--from saved.frames --latency-log saved.frames"),
        (RUN, "-o out --latency-log out"),
        (RUN, "-o out --set record-sizer.save=out"),
        (RUN, "--set decomposer.save=folder/../out --set record-sizer.save=out"),
        (&learn, "-o a.pcap"),
        (&learn, "-o labels.csv"),
        (&learn, "-o inventory.toml"),
        (&learn, "-o m.toml --suggest labels.csv"),
        (&learn, "-o m.toml --suggest m.toml"),
        (&learn, "p.toml -o p.toml"),
        (&evaluate, "--details labels.csv"),
        (&evaluate, "--details model.toml"),
        (&evaluate, "--details soft.pcap"),
        (&compare, "-o a.pcap"),
        (&compare, "-o p.toml"),
        ("plot", "last.frames -o last.frames"),
    ] {
        let output = experiment.sizeleak(usual, arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{usual} {arguments}: {said}");
        assert!(output.stdout.is_empty() && said.lines().count() == 1, "{usual} {arguments}: {said}");
        let is_said = ["this run reads: name ", "are the same file: name two", "does not know what to write into"];
        assert!(is_said.iter().any(|words| said.contains(words)), "{said}");
        assert!(experiment.files() == before, "{usual} {arguments} changed a file");
    }
    fs::rename(experiment.path("scenario.toml"), experiment.path("inventory.toml")).unwrap();
    let simulated = experiment.sizeleak("simulate", "--scenario inventory.toml -o .");
    assert_eq!(simulated.status.code(), Some(2), "{}", stderr(&simulated));
}

#[test]
fn redirected_stdin_and_stdout_are_files_too() {
    let experiment = Experiment::new();
    let before = experiment.files();
    let fails = |mut command: Command, arguments: &str| {
        let output = command.args(arguments.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments}: {}", stderr(&output));
        assert!(experiment.files() == before, "{arguments} changed a file");
    };
    let with = |name: &str, stdin: Option<&str>, stdout: Option<&str>| {
        let mut command = experiment.command(name, "");
        let append = |name| File::options().append(true).open(experiment.path(name)).unwrap();
        command.stdin(stdin.map_or(Stdio::null(), |name| File::open(experiment.path(name)).unwrap().into()));
        command.stdout(stdout.map_or(Stdio::null(), |name| append(name).into()));
        command
    };
    fails(with("sizeleak", Some("a.pcap"), None), "run p.toml - -o a.pcap");
    fails(with("sizeleak", Some("saved.frames"), None), "run p.toml --from - -o saved.frames");
    fails(with("sizeleak", None, Some("a.pcap")), "run p.toml");
    fails(with("sizeleak", None, Some("last.frames")), "run p.toml -o last.frames --latency-log /dev/stdout");
    fails(with("sizeleak", None, Some("last.frames")), "frames last.frames");
    fails(with("capture", None, Some("a.pcap")), "a.pcap");
    fails(with("capture", None, None), "a.pcap --latency-log soft.pcap");
    fails(with("pruner", Some("last.frames"), None), "--model model.toml --latency-log model.toml");
    fails(with("pruner", Some("last.frames"), None), "--model model.toml --latency-log last.frames");
}

#[test]
fn failing_run_leaves_the_earlier_output_and_its_own_beside_it() {
    let experiment = Experiment::new();
    let capture = fs::read(experiment.path("a.pcap")).unwrap();
    let earlier = "--format csv -o out.csv";
    assert!(experiment.sizeleak(RUN, earlier).status.success());
    let whole = fs::read_to_string(experiment.path("out.csv")).unwrap();
    write(experiment.0.path(), "a.pcap", &capture[..100_000]);
    for mode in ["threads", "processes"] {
        let failed = experiment.sizeleak("run p.toml", &format!("{earlier} --mode {mode}"));
        assert_eq!(failed.status.code(), Some(1));
        assert!(
            stderr(&failed).contains("the output until the failure is in out.csv.partial\n"),
            "{}",
            stderr(&failed)
        );
        assert_eq!(fs::read_to_string(experiment.path("out.csv")).unwrap(), whole);
        let part = fs::read_to_string(experiment.path("out.csv.partial")).unwrap();
        assert!(part.lines().count() == 62 && whole.starts_with(part.lines().next().unwrap()), "{part}");
        fs::remove_file(experiment.path("out.csv.partial")).unwrap();
    }
    // What is found wrong before the run begins leaves nothing.
    let before = experiment.files();
    let failed = experiment.sizeleak(RUN, "missing.pcap --format csv -o out.csv");
    assert_eq!((failed.status.code(), experiment.files() == before), (Some(1), true), "{}", stderr(&failed));
    // Everything before the damage is whole: a picture is replaced although the exit code says what happened.
    let cut = fs::read(experiment.path("last.frames")).unwrap();
    write(experiment.0.path(), "last.frames", &cut[..cut.len() / 2]);
    let plotted = experiment.sizeleak("plot", "last.frames -o picture.svg");
    assert_eq!(plotted.status.code(), Some(3));
    assert!(fs::read_to_string(experiment.path("picture.svg")).unwrap().trim_end().ends_with("</svg>"));
}

#[test]
fn full_disk_leaves_the_earlier_output() {
    let experiment = Experiment::new();
    write(experiment.0.path(), "out.ndjson", "earlier");
    // Without room for the file: the limit is on the size of any file, as a full disk is on all of them.
    let limited = format!(
        "ulimit -f 8; trap '' XFSZ; exec {} {RUN} --format ndjson -o out.ndjson",
        program("sizeleak").get_program().display()
    );
    let output = Command::new("sh").args(["-c", &limited]).current_dir(experiment.0.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("File too large"), "{}", stderr(&output));
    assert_eq!(fs::read_to_string(experiment.path("out.ndjson")).unwrap(), "earlier");
}

#[test]
fn stopped_run_keeps_what_it_has_read() {
    let experiment = Experiment::new();
    let mut run = experiment.command("sizeleak", &format!("{RUN} - --format ndjson -o out.ndjson"));
    let mut child = run.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(&fs::read(experiment.path("a.pcap")).unwrap()).unwrap();
    let is_begun = |name: &str| {
        let size = fs::metadata(experiment.path(name)).map_or(0, |metadata| metadata.len());
        assert_eq!(size, 0, "it appears when it is whole");
        fs::read_dir(experiment.0.path()).unwrap().any(|entry| {
            let entry = entry.unwrap();
            entry.file_name().to_str().unwrap().starts_with(".out.ndjson.") && entry.metadata().unwrap().len() > 0
        })
    };
    while !is_begun("out.ndjson") {
        assert_eq!(child.try_wait().unwrap(), None, "it has ended by itself");
        thread::sleep(std::time::Duration::from_millis(5));
    }
    programs::interrupt(&child);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    drop(stdin);
    assert!(fs::read_to_string(experiment.path("out.ndjson")).unwrap().lines().count() > 4);
}

#[test]
fn stdout_pipes_and_devices_are_written_directly() {
    let experiment = Experiment::new();
    let rows = |output: &Output| String::from_utf8(output.stdout.clone()).unwrap();
    let usual = rows(&experiment.sizeleak(RUN, "--format csv"));
    for name in ["-", "/dev/stdout", "/dev/fd/1"] {
        let direct = experiment.sizeleak(RUN, &format!("--format csv -o {name}"));
        assert!(direct.status.success() && rows(&direct) == usual, "{name}: {}", stderr(&direct));
    }
    let redirected = File::create(experiment.path("out.csv")).unwrap();
    let mut command = experiment.command("sizeleak", &format!("{RUN} --format csv -o /dev/stdout"));
    let mut beginning = redirected.try_clone().unwrap();
    beginning.write_all(b"# a heading\n").unwrap();
    assert!(command.stdout(redirected).status().unwrap().success());
    assert_eq!(fs::read_to_string(experiment.path("out.csv")).unwrap(), format!("# a heading\n{usual}"));
    assert!(Command::new("mkfifo").arg(experiment.path("fifo")).status().unwrap().success());
    let fifo = experiment.path("fifo");
    let reader = thread::spawn(move || fs::read_to_string(fifo).unwrap());
    assert!(experiment.sizeleak(RUN, "--format csv -o fifo").status.success());
    assert_eq!(reader.join().unwrap(), usual);
    assert!(experiment.sizeleak(RUN, "-o /dev/null --latency-log /dev/null").status.success());
    assert!(!Path::new("/dev/null").is_file());
}
