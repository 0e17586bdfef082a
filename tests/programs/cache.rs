//! Runs with the cache have the same output as runs without it, start at the first changed stage, and never use damaged
//! entries.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;
use support::programs;

use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout, write};
use tempfile::TempDir;

const MODES: [&str; 2] = ["threads", "processes"];

/// A pipeline with a capture and a model of its own, and a cache.
struct Experiment(TempDir);

impl Experiment {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (from, to) in [("test.pcap", "a.pcap"), ("model.toml", "model.toml")] {
            fs::copy(root().join(example(from)), folder.path().join(to)).unwrap();
        }
        let experiment = Self(folder);
        experiment.write_pipeline("");
        experiment
    }

    /// The seven stages, with these lines after `record-sizer`.
    fn write_pipeline(&self, after_records: &str) {
        let model = "model = \"model.toml\"\n";
        let text = format!(
            "[[stage]]\nrun = \"capture\"\nfiles = [\"a.pcap\"]\n[[stage]]\nrun = \"flow-filter\"\ngateway = \
             [\"{GATEWAY}\"]\n[[stage]]\nrun = \"record-sizer\"\n{after_records}\
             [[stage]]\nrun = \"command-segmenter\"\n\
             [[stage]]\nrun = \"epsilon-corrector\"\n{model}[[stage]]\nrun = \"decomposer\"\n{model}[[stage]]\nrun = \
             \"pruner\"\n{model}"
        );
        write(self.0.path(), "p.toml", text);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `sizeleak` with arguments, and this cache.
    fn command(&self, arguments: &str) -> Command {
        let mut command = sizeleak(arguments);
        command.env("SIZELEAK_CACHE_DIR", self.path("cache"));
        command
    }

    fn run(&self, more: &str) -> Command {
        self.command(&format!("run {} --format ndjson {more}", self.path("p.toml").display()))
    }

    /// Runs with the cache and without it; checks that the output is the same, and returns what came from the cache.
    fn reused(&self, more: &str) -> Option<String> {
        let plain = stdout(&mut self.run(&format!("--no-cache {more}")));
        let cached = self.run(&format!("--cache {more}")).output().unwrap();
        assert!(cached.status.success() && cached.stdout == plain, "{more}: {}", stderr(&cached));
        stderr(&cached).lines().find_map(|line| Some(line.split_once(" from the cache")?.0.replace("sizeleak: ", "")))
    }

    /// The names in the cache's folder of entries.
    fn entries(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.path("cache/entries")) else { return Vec::new() };
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    fn list(&self) -> serde_json::Value {
        serde_json::from_slice(&stdout(&mut self.command("cache list --json"))).unwrap()
    }
}

#[expect(clippy::unnecessary_wraps, reason = "as `reused` returns it")]
fn words(text: &str) -> Option<String> {
    Some(text.to_owned())
}

#[test]
fn run_starts_after_the_last_unchanged_stage() {
    for mode in MODES {
        let experiment = Experiment::new();
        let reused = |more: &str| experiment.reused(&format!("--mode {mode} {more}"));
        assert_eq!(reused(""), None);
        assert_eq!(experiment.entries().len(), 5, "of all stages but the two whose output is as large as the capture");
        assert_eq!(reused(""), words("identifications of pruner"));
        assert_eq!(reused("--set pruner.keep=0.9"), words("identifications of decomposer"));
        assert_eq!(reused("--set command-segmenter.gap=80ms"), words("records of record-sizer"));
        assert_eq!(reused("--set command-segmenter.gap=80ms"), words("identifications of pruner"));
        assert_eq!(reused("--set command-segmenter.hole-wait=3s"), words("identifications of pruner"), "the default");
        // A model of another content under the same name, and the same content under another name.
        let model = fs::read_to_string(experiment.path("model.toml")).unwrap();
        write(experiment.0.path(), "model.toml", format!("{model}\n# Changed.\n"));
        assert_eq!(reused(""), words("commands of command-segmenter"));
        write(experiment.0.path(), "other.toml", model);
        let other = ["epsilon-corrector", "decomposer", "pruner"]
            .map(|stage| format!("--set {stage}.model={}", experiment.path("other.toml").display()));
        assert_eq!(reused(&other.join(" ")), words("identifications of pruner"));
        write(experiment.0.path(), "model.toml", fs::read(experiment.path("other.toml")).unwrap());
        assert_eq!(reused("--set flow-filter.port=[443,8883]"), None);
        fs::rename(experiment.path("a.pcap"), experiment.path("b.pcap")).unwrap();
        let moved = format!("--input {}", experiment.path("b.pcap").display());
        assert_eq!(reused(&moved), words("identifications of pruner"), "a capture is known by its content");
        let mut capture = fs::read(experiment.path("b.pcap")).unwrap();
        let end = capture.len() - 1;
        capture[end] ^= 1;
        write(experiment.0.path(), "b.pcap", capture);
        assert_eq!(reused(&moved), None);
    }
}

/// Each mode starts from the entries that the other one made.
#[test]
fn the_cache_is_the_same_in_both_modes() {
    let experiment = Experiment::new();
    assert_eq!(experiment.reused("--mode threads"), None);
    assert_eq!(experiment.reused("--mode processes"), words("identifications of pruner"));
    assert_eq!(
        experiment.reused("--mode processes --set decomposer.limit=7"),
        words("corrections of epsilon-corrector")
    );
    assert_eq!(experiment.reused("--mode threads --set decomposer.limit=7"), words("identifications of pruner"));
}

#[test]
fn unsafe_folder_is_not_used_and_a_new_one_is_private() {
    let experiment = Experiment::new();
    let usual = stdout(&mut experiment.run("--no-cache"));
    fs::create_dir(experiment.path("cache")).unwrap();
    fs::set_permissions(experiment.path("cache"), Permissions::from_mode(0o777)).unwrap();
    let output = experiment.run("--cache").output().unwrap();
    assert!(output.status.success() && output.stdout == usual);
    let said = stderr(&output);
    assert!(said.contains("the cache is not used: ") && said.contains("can be written by other users"), "{said}");
    assert!(experiment.entries().is_empty());
    for command in ["cache list", "cache clear"] {
        let refused = experiment.command(command).output().unwrap();
        assert_eq!(refused.status.code(), Some(1), "{command}: {}", stderr(&refused));
    }
    fs::remove_dir(experiment.path("cache")).unwrap();
    let open = format!("umask 000; exec {:?} run p.toml --cache --quiet", sizeleak("").get_program());
    let folders = [("SIZELEAK_CACHE_DIR", experiment.path("cache"))];
    let run = Command::new("sh").args(["-c", &open]).current_dir(experiment.0.path()).envs(folders).output().unwrap();
    assert!(run.status.success(), "{}", stderr(&run));
    let mut paths = vec![experiment.path("cache")];
    while let Some(path) = paths.pop() {
        let expected = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, expected, "{}", path.display());
        if path.is_dir() {
            paths.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
    }
}

#[test]
fn external_programs_are_always_run() {
    let experiment = Experiment::new();
    for mode in MODES {
        experiment.write_pipeline(&format!(
            "[[stage]]\nname = \"mine\"\ncommand = [\"sh\", \"-c\", 'echo {mode} >> ran; exec cat']\n"
        ));
        let before = experiment.reused(&format!("--mode {mode}"));
        assert_eq!(before, (mode == MODES[1]).then(|| "records of record-sizer".to_owned()));
        assert_eq!(experiment.reused(&format!("--mode {mode}")), words("records of record-sizer"));
        let ran = fs::read_to_string(experiment.path("ran")).unwrap();
        assert_eq!(ran.lines().filter(|line| *line == mode).count(), 4, "with the cache and without, twice");
    }
    assert_eq!(experiment.entries().len(), 1);
}

#[test]
fn damaged_entries_are_reported_and_rebuilt() {
    let experiment = Experiment::new();
    experiment.reused("");
    for entry in experiment.entries() {
        let stream = experiment.path("cache/entries").join(entry).join("stream.frames.zst");
        let mut bytes = fs::read(&stream).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        fs::write(&stream, bytes).unwrap();
    }
    let plain = stdout(&mut experiment.run("--no-cache"));
    let output = experiment.run("--cache").output().unwrap();
    assert!(output.stdout == plain);
    let reported =
        stderr(&output).lines().filter(|line| line.contains("in the cache are damaged and are rebuilt")).count();
    assert_eq!(reported, 5, "{}", stderr(&output));
    assert_eq!(experiment.reused(""), words("identifications of pruner"));
    // With `--quiet` this is not printed.
    assert_eq!(stderr(&experiment.run("--cache --quiet").output().unwrap()), "");
}

#[test]
fn unfinished_run_caches_nothing() {
    let leaves_nothing = |experiment: &Experiment, output: &Output, code: i32| {
        assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
        assert_eq!(experiment.entries(), Vec::<String>::new(), "{}", stderr(output));
    };
    for mode in MODES {
        let experiment = Experiment::new();
        let cached = |more: &str| experiment.run(&format!("--cache --mode {mode} {more}"));
        experiment.write_pipeline("[[stage]]\ncommand = [\"sh\", \"-c\", \"head -c 20000\"]\n");
        leaves_nothing(&experiment, &cached("").output().unwrap(), 3);
        experiment.write_pipeline("[[stage]]\ncommand = [\"sh\", \"-c\", \"cat > /dev/null; exit 7\"]\n");
        leaves_nothing(&experiment, &cached("").output().unwrap(), 1);
        experiment.write_pipeline("");
        let mut child = cached("").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        leaves_nothing(&experiment, &child.wait_with_output().unwrap(), 0);
        // It is stopped as soon as it records, with most of its input unread, because its output is not read.
        let many = vec![experiment.path("a.pcap").display().to_string(); 200].join(" ");
        let mut child =
            cached(&format!("--input {many}")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        while experiment.entries().len() < 5 {
            assert_eq!(child.try_wait().unwrap(), None, "it has ended by itself");
            std::thread::sleep(Duration::from_millis(1));
        }
        programs::interrupt(&child);
        leaves_nothing(&experiment, &child.wait_with_output().unwrap(), 130);
    }
}

#[test]
fn input_that_cannot_be_read_twice_is_not_cached() {
    let experiment = Experiment::new();
    let capture = fs::read(experiment.path("a.pcap")).unwrap();
    let output = programs::feed(experiment.run("--cache --input -"), capture);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("the cache is not used: stdin can be read once"), "{}", stderr(&output));
    assert!(output.stdout == stdout(&mut experiment.run("")));
    assert!(experiment.entries().is_empty());
}

#[test]
fn concurrent_runs_share_the_cache() {
    let experiment = Experiment::new();
    let plain = stdout(&mut experiment.run(""));
    for _ in 0..2 {
        let children: Vec<_> = (0..4)
            .map(|_| experiment.run("--cache").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
            .collect();
        let outputs = children.into_iter().map(|child| std::thread::spawn(move || child.wait_with_output().unwrap()));
        for output in outputs.collect::<Vec<_>>() {
            let output = output.join().unwrap();
            assert!(output.status.success() && output.stdout == plain, "{}", stderr(&output));
            assert!(
                !stderr(&output).contains("damaged") && !stderr(&output).contains("not kept"),
                "{}",
                stderr(&output)
            );
        }
        assert_eq!(experiment.entries().len(), 5);
    }
}

#[test]
fn save_works_on_cached_runs() {
    for mode in MODES {
        let experiment = Experiment::new();
        experiment.reused(&format!("--mode {mode}"));
        experiment.write_pipeline("save = \"records.frames.zst\"\n");
        assert_eq!(experiment.reused(&format!("--mode {mode}")), words("records of record-sizer"));
        let from = format!("--mode {mode} --from {}", experiment.path("records.frames.zst").display());
        let plain = stdout(&mut experiment.run("--no-cache"));
        assert!(stdout(&mut experiment.run(&from)) == plain, "{mode}");
        // Segments are not in the cache: to save them, the capture is read.
        let segments = format!("--mode {mode} --set flow-filter.save={}", experiment.path("s.frames").display());
        assert_eq!(experiment.reused(&segments), None);
        assert!(experiment.path("s.frames").is_file());
    }
}

#[test]
fn the_cache_is_listed_bounded_and_cleared() {
    let experiment = Experiment::new();
    experiment.reused("");
    let list = experiment.list();
    let list = list.as_array().unwrap();
    assert_eq!(list.len(), 5);
    let capture = experiment.path("a.pcap").canonicalize().unwrap();
    for entry in list {
        assert_eq!(entry["captures"][0]["bytes"], capture.metadata().unwrap().len());
        assert!(Path::new(entry["captures"][0]["path"].as_str().unwrap()).ends_with("a.pcap"));
    }
    let table = String::from_utf8(stdout(&mut experiment.command("cache list"))).unwrap();
    assert!(table.starts_with("made (UTC)") && table.lines().count() == 6, "{table}");
    assert!(table.lines().skip(1).all(|line| line.ends_with("a.pcap")) && table.contains("  record-sizer "), "{table}");
    let path = String::from_utf8(stdout(&mut experiment.command("cache path"))).unwrap();
    assert_eq!(Path::new(path.trim_end()), experiment.path("cache"));
    let young = experiment.command("cache clear --older-than 1d").output().unwrap();
    assert!(stderr(&young).contains("0 entries removed"), "{}", stderr(&young));
    // There is room for some of the smallest entries.
    let sizes: Vec<u64> = list.iter().map(|entry| entry["bytes"].as_u64().unwrap()).collect();
    let room = sizes.iter().max().unwrap();
    experiment.reused(&format!("--cache-size {room}B --set pruner.keep=0.9"));
    let left = experiment.list().as_array().unwrap().iter().map(|entry| entry["bytes"].as_u64().unwrap()).sum::<u64>();
    assert!(left <= *room && left > 0, "{left} of {room}");
    let cleared = experiment.command("cache clear").output().unwrap();
    assert!(cleared.status.success() && experiment.entries().is_empty(), "{}", stderr(&cleared));
    let tiny = experiment.run("--cache --cache-size 1kB").output().unwrap();
    assert!(tiny.status.success() && stderr(&tiny).contains("are not cached"), "{}", stderr(&tiny));
    assert!(experiment.list().as_array().unwrap().iter().all(|entry| entry["bytes"].as_u64().unwrap() <= 1000));
}

#[test]
fn pipeline_file_and_environment_configure_the_cache() {
    let experiment = Experiment::new();
    let text = fs::read_to_string(experiment.path("p.toml")).unwrap();
    write(experiment.0.path(), "p.toml", format!("cache = true\n{text}"));
    stdout(&mut experiment.run("--no-cache"));
    assert!(experiment.entries().is_empty());
    stdout(&mut experiment.run(""));
    assert_eq!(experiment.entries().len(), 5);
    let named = experiment.path("named");
    stdout(&mut experiment.run(&format!("--cache-dir {}", named.display())));
    assert_eq!(fs::read_dir(named.join("entries")).unwrap().count(), 5, "over the environment");
    let mut usual = experiment.run("");
    stdout(usual.env_remove("SIZELEAK_CACHE_DIR").env("XDG_CACHE_HOME", experiment.path("xdg")));
    assert_eq!(fs::read_dir(experiment.path("xdg/sizeleak/entries")).unwrap().count(), 5);
    // A folder that cannot be used: the run continues, and reports it.
    let mut file = fs::File::create(experiment.path("file")).unwrap();
    file.write_all(b"no folder").unwrap();
    let output = experiment.run(&format!("--cache-dir {}", experiment.path("file").display())).output().unwrap();
    assert!(output.status.success() && stderr(&output).contains("the cache is not used: "), "{}", stderr(&output));
    let conflict = experiment.run("--cache --from x.frames").output().unwrap();
    assert_eq!(conflict.status.code(), Some(2));
}
