//! An archive of two gateways as it is in the field: rotated files of two capture points, some of them odd.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use flate2::write::GzEncoder;
use serde_json::Value;
use sizeleak_simulator::Scenario;
use tempfile::TempDir;

use crate::home::Home;
use crate::programs::{example, root, sizeleak, stderr, stdout, write};
use crate::rotation::{capture, packets, tree};

/// The gateway of the point `attic`.
pub const OTHER_GATEWAY: &str = "fd00::20";

const OTHER_SCENARIO: &str = r#"
epoch = "2026-01-05T23:50:00Z"
[network]
gateway = "fd00::20"
service = "2001:db8::10"
[test]
commands = 120
"#;

/// Rotated files of two capture points, and where their results go.
pub struct Archive {
    folder: TempDir,
}

impl Archive {
    pub fn new() -> Self {
        let archive = Self { folder: tempfile::tempdir().unwrap() };
        fill(&archive.captures());
        archive
    }

    /// The folder that is read.
    pub fn captures(&self) -> PathBuf {
        self.folder.path().join("homes")
    }

    /// The folder of a capture point.
    pub fn point(&self, name: &str) -> PathBuf {
        let folder = self.captures().join(name);
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    /// A folder of results.
    pub fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Fills a folder with the rotated files of two capture points, `hall` and `attic`.
pub fn fill(homes: &Path) {
    let [hall, attic] = ["hall", "attic"].map(|point| homes.join(point));
    for (point, fill) in [(hall, fill_hall as fn(&Path)), (attic, fill_attic)] {
        fs::create_dir_all(&point).unwrap();
        fill(&point);
    }
}

/// The bundled home in six files: two overlap, two are compressed, and their names say nothing of their order.
fn fill_hall(hall: &Path) {
    let (header, packets) = packets(&fs::read(root().join(example("test.pcap"))).unwrap());
    let parts: Vec<&[Vec<u8>]> = packets.chunks(packets.len() / 5 + 1).collect();
    let part = |at: usize| capture(&header, parts[at]);
    write(hall, "home.pcap", part(4));
    write(hall, "home.pcap.1", part(3));
    let (even, odd): (Vec<_>, Vec<_>) = parts[2].iter().cloned().enumerate().partition(|(at, _)| at % 2 == 0);
    for (name, packets) in [("b", even), ("a", odd)] {
        let packets: Vec<_> = packets.into_iter().map(|(_, packet)| packet).collect();
        write(hall, name, capture(&header, &packets));
    }
    let mut zipped = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(&part(1)).unwrap();
    write(hall, "old.gz", zipped.finish().unwrap());
    write(hall, "oldest", zstd::encode_all(&*part(0), 1).unwrap());
    write(hall, "README.txt", "captures of the hall");
    write(hall, "rotated", "");
    symlink("nowhere", hall.join("lost")).unwrap();
    symlink("home.pcap.1", hall.join("latest")).unwrap();
}

/// A home with IPv6 around midnight, whose last file is cut.
fn fill_attic(attic: &Path) {
    let home = Home::new(&Scenario::from_toml(OTHER_SCENARIO).unwrap(), 7);
    let (header, packets) = packets(&fs::read(home.path("test.pcap")).unwrap());
    let (first, second) = packets.split_at(packets.len() / 2);
    write(attic, "1.cap", capture(&header, first));
    let whole = capture(&header, second);
    write(attic, "2.cap", &whole[..whole.len() - 5]);
    symlink("../hall/home.pcap.1", attic.join("again")).unwrap();
}

/// `sizeleak archive` of captures into a folder of results, by the bundled model.
pub fn archive(captures: &Path, out: &Path, gateways: &str) -> Command {
    let mut command = sizeleak("archive");
    command.arg(captures).arg("-o").arg(out).args(["--gateway", gateways, "--model", &example("model.toml")]);
    command
}

/// What a call of it says on stderr; it ends with this exit code.
#[track_caller]
pub fn said(command: &mut Command, code: i32) -> String {
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{command:?}: {}", stderr(&output));
    stderr(&output)
}

/// What `archive status` says of a folder of results.
pub fn status(out: &Path) -> Value {
    serde_json::from_slice(&stdout(sizeleak("archive status --format=json").arg(out))).unwrap()
}

/// The files of answers in a folder of results, with their content.
pub fn answers(out: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    tree(&out.join("identifications"))
}

/// Makes the descriptions in a folder of results later than they are: a file that had just changed when it was described
/// may change again unseen, so that its content is read again.
pub fn describe_later(out: &Path) {
    let later = SystemTime::now() + Duration::from_mins(1);
    let descriptions =
        tree(out).into_iter().filter(|(path, _)| path.extension().is_some_and(|ending| ending == "json"));
    for (path, _) in descriptions {
        File::options().write(true).open(out.join(path)).unwrap().set_modified(later).unwrap();
    }
}
