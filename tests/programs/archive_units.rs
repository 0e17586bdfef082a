//! Units of archives: a file that is added is read alone, one in the past is taken into account, and whatever happens to
//! what is kept, the results are those of a call over all files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Instant, SystemTime};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha20Rng;
use support::archive_home::{archive, describe_later};
use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout, write};
use support::rotation::{capture, packets, tree};
use tempfile::TempDir;

/// The bundled home in files that follow each other.
struct Rotated {
    folder: TempDir,
    header: Vec<u8>,
    parts: Vec<Vec<Vec<u8>>>,
}

impl Rotated {
    /// In this many files, none of which is written.
    fn of(files: usize) -> Self {
        let (header, packets) = packets(&fs::read(root().join(example("test.pcap"))).unwrap());
        let parts = packets.chunks(packets.len().div_ceil(files)).map(<[Vec<u8>]>::to_vec).collect();
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("hall")).unwrap();
        Self { folder, header, parts }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn content(&self, part: usize) -> Vec<u8> {
        capture(&self.header, &self.parts[part])
    }

    /// Writes files, whose names go backwards.
    fn write(&self, parts: impl IntoIterator<Item = usize>) {
        for part in parts {
            write(&self.path("hall"), &format!("home.pcap.{}", 999 - part), self.content(part));
        }
    }

    fn archive(&self, out: &str) -> Command {
        archive(&self.path("hall"), &self.path(out), GATEWAY)
    }

    fn run(&self, out: &str) {
        stdout(&mut self.archive(out));
    }

    fn tree(&self, out: &str) -> Vec<(PathBuf, Vec<u8>)> {
        tree(&self.path(out))
    }

    /// Checks that results are those of a call with two jobs that has found all files at once.
    fn assert_as_fresh(&self, out: &str, when: &str) {
        _ = fs::remove_dir_all(self.path("fresh"));
        stdout(self.archive("fresh").args(["--jobs", "2"]));
        let (found, fresh) = (self.tree(out), self.tree("fresh"));
        let different = found.iter().zip(&fresh).find(|(found, fresh)| found != fresh).map(|(found, _)| &found.0);
        assert!(found == fresh, "{when}: {different:?}, {} files, {} at once", found.len(), fresh.len());
    }

    /// When the files that are kept between units were made, by name.
    fn made(&self, out: &str) -> BTreeMap<String, SystemTime> {
        let folder = self.path(out).join("records/hall");
        let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap());
        entries
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().modified().unwrap()))
            .collect()
    }

    /// The files of an archive with this ending, in order of time.
    fn kept(&self, out: &str, ending: &str) -> Vec<PathBuf> {
        let folder = self.path(out).join("records/hall");
        let names = self.made(out).into_keys().filter(|name| name.ends_with(ending));
        names.map(|name| folder.join(name)).collect()
    }
}

fn flip(file: &Path) {
    let mut bytes = fs::read(file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(file, bytes).unwrap();
}

#[test]
fn a_damaged_capture_that_was_renamed_is_named_as_it_is_now() {
    let home = Rotated::of(3);
    home.write(0..3);
    let content = home.content(1);
    write(&home.path("hall"), "home.pcap.998", &content[..content.len() - 5]);
    let records = |out: &str| -> Vec<Vec<u8>> {
        assert_eq!(home.archive(out).output().unwrap().status.code(), Some(1));
        home.kept(out, ".zst").iter().map(|file| fs::read(file).unwrap()).collect()
    };
    let before = records("out");
    for number in 997..1000 {
        fs::rename(home.path(&format!("hall/home.pcap.{number}")), home.path(&format!("hall/{number}"))).unwrap();
    }
    describe_later(&home.path("out"));
    let made = home.made("out");
    let after = records("out");
    assert!(after == records("fresh") && after != before);
    let again =
        home.made("out").into_iter().filter(|(name, time)| name.contains(".zst") && made.get(name) != Some(time));
    assert_eq!(again.count(), 1, "only its unit is made again");
}

#[test]
fn a_new_file_is_read_alone() {
    let home = Rotated::of(6);
    home.write(0..5);
    home.run("out");
    describe_later(&home.path("out"));
    let before = home.made("out");
    assert_eq!(before.len(), 5 * 3 + 2, "{before:?}");
    home.write([5]);
    let plan = String::from_utf8(stdout(home.archive("out").arg("--dry-run"))).unwrap();
    assert!(plan.contains(&format!("In all: read 1 file ({:.2} kB)\n", home.content(5).len() as f64 / 1e3)), "{plan}");
    home.run("out");
    let after = home.made("out");
    let changed = before.iter().filter(|(name, made)| after.get(*name) != Some(made)).map(|(name, _)| name);
    assert!(changed.clone().all(|name| name.starts_with("end-")) && changed.count() == 2, "{after:?}");
    assert_eq!(after.len(), 6 * 3 + 2);
    home.assert_as_fresh("out", "one more");
}

#[test]
fn a_late_file_of_the_past_is_taken_into_account() {
    let home = Rotated::of(5);
    for late in [0, 2, 4] {
        home.write((0..5).filter(|part| *part != late));
        home.run("out");
        let before = home.made("out");
        home.write([late]);
        home.run("out");
        let after = home.made("out");
        let kept = before.keys().filter(|name| after.get(*name) == before.get(*name)).count();
        assert_eq!(kept, 3 * late, "what is before {late} is kept");
        home.assert_as_fresh("out", &format!("{late} is late"));
        fs::remove_dir_all(home.path("out")).unwrap();
        fs::remove_dir_all(home.path("hall")).unwrap();
        fs::create_dir(home.path("hall")).unwrap();
    }
}

#[test]
fn a_late_file_that_overlaps_others_is_merged_with_them() {
    let home = Rotated::of(5);
    home.write([0, 1, 3, 4]);
    home.run("out");
    // The second half of one file, and the first one of the next.
    let middle = [&home.parts[2][..], &home.parts[3][..home.parts[3].len() / 2]].concat();
    let second = capture(&home.header, &home.parts[3][home.parts[3].len() / 2..]);
    write(&home.path("hall"), "late", capture(&home.header, &middle));
    home.run("out");
    home.assert_as_fresh("out", "its packets are there twice");
    assert_eq!(home.kept("out", ".state").len(), 4, "two files are one unit");
    write(&home.path("hall"), "home.pcap.996", second);
    stdout(home.archive("out").arg("--forget"));
    home.assert_as_fresh("out", "its packets are there once");
    assert_eq!(home.kept("out", ".state").len(), 5);
}

/// The answers of `sizeleak run`.
fn answers(command: &mut Command) -> String {
    let output = command.args(["--model", &example("model.toml"), "--kind", "identification"]);
    let output = output.args(["--format", "ndjson", "--quiet"]).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_damaged_file_in_the_middle_costs_only_what_is_damaged() {
    let home = Rotated::of(5);
    home.write([0, 1, 3, 4]);
    let whole = home.content(2);
    write(&home.path("hall"), "home.pcap.997", &whole[..whole.len() - 5]);
    let output = home.archive("out").output().unwrap();
    assert!(output.status.code() == Some(1) && stderr(&output).contains("is cut at byte"), "{}", stderr(&output));
    let captures: Vec<PathBuf> = (0..5).map(|part| home.path(&format!("hall/home.pcap.{}", 999 - part))).collect();
    let expected = answers(sizeleak("run").args(&captures).args(["--gateway", GATEWAY]));
    let records = home.kept("out", ".frames.zst");
    assert_eq!(records.len(), 6);
    let found = answers(sizeleak("run").args(records));
    assert!(found == expected && found.lines().count() > 300, "{} answers", found.lines().count());
    let before = home.made("out");
    write(&home.path("hall"), "home.pcap.997", whole);
    home.run("out");
    home.assert_as_fresh("out", "it is complete");
    let after = home.made("out");
    assert_eq!(before.keys().filter(|name| after.get(*name) == before.get(*name)).count(), 6);
}

#[test]
fn units_done_before_a_call_was_killed_are_not_read_again() {
    let home = Rotated::of(40);
    home.write(0..40);
    let start = Instant::now();
    home.run("fresh");
    let took = start.elapsed();
    let mut random = ChaCha20Rng::seed_from_u64(5);
    let mut kept = 0;
    for _ in 0..5 {
        let mut child = home.archive("out").stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(took.mul_f64(random.random_range(0.1..0.9)));
        child.kill().unwrap();
        child.wait().unwrap();
        let before = home.made("out");
        let described = home.kept("out", ".json");
        let described: Vec<&str> = described.iter().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
        kept = kept.max(described.len());
        let mut child = home.archive("out").stderr(Stdio::null()).spawn().unwrap();
        thread::sleep(took.mul_f64(0.3));
        child.kill().unwrap();
        child.wait().unwrap();
        let after = home.made("out");
        assert!(described.iter().all(|name| after.get(*name) == before.get(*name)), "{before:?} {after:?}");
        if random.random_bool(0.5) {
            home.run("out");
            assert!(home.tree("out") == home.tree("fresh"));
            fs::remove_dir_all(home.path("out")).unwrap();
        }
    }
    assert!(kept > 5, "units that were complete when a call was killed: {kept}");
}

#[test]
fn damaged_and_missing_files_of_units_are_rebuilt() {
    let home = Rotated::of(6);
    home.write(0..5);
    home.run("out");
    let states = home.kept("out", ".state");
    fs::remove_file(&states[1]).unwrap();
    home.run("out");
    home.assert_as_fresh("out", "a state is gone");
    // Only the next unit needs it, and the one before it is needed to make it again.
    flip(&states[4]);
    flip(&states[3]);
    home.write([5]);
    home.run("out");
    home.assert_as_fresh("out", "states are damaged");
    let records = &home.kept("out", ".frames.zst")[2];
    flip(records);
    let refused = home.archive("out").args(["--set", "pruner.keep=1"]).output().unwrap();
    assert!(
        refused.status.code() == Some(1) && stderr(&refused).contains(records.to_str().unwrap()),
        "{}",
        stderr(&refused)
    );
    fs::remove_file(records).unwrap();
    stdout(home.archive("out").args(["--set", "pruner.keep=1"]));
    home.run("out");
    home.assert_as_fresh("out", "records are damaged");
    flip(&home.kept("out", ".json")[2]);
    home.run("out");
    home.assert_as_fresh("out", "a description is damaged");
}

#[test]
fn there_may_be_more_units_than_open_files() {
    let home = Rotated::of(200);
    let files = home.parts.len();
    home.write(0..files);
    let limited = |plain: &Command| {
        let mut command = Command::new("sh");
        command.args(["-c", "ulimit -n 64; exec \"$@\"", "sh"]).arg(plain.get_program()).args(plain.get_args());
        command.current_dir(root());
        command
    };
    stdout(&mut limited(&home.archive("out")));
    let records = home.kept("out", ".frames.zst");
    assert!(files > 150 && records.len() == files + 1, "{} of {files}", records.len());
    let mut joined = sizeleak("run");
    let found = answers(&mut limited(joined.args(records)));
    let expected = answers(sizeleak("run").arg(example("test.pcap")).args(["--gateway", GATEWAY]));
    assert!(found == expected && found.lines().count() == 307, "{}", found.lines().count());
}
