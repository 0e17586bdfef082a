//! The golden harness: digests of what the programs write, so that a change of the code that is meant to change no output
//! can prove it.
//!
//! `cargo test --test golden` compares with `digests.txt`. After a change that is meant to change output, rewrite
//! that file: `cargo test --test golden -- --ignored write_digests`. To compare with another build, also on captures of
//! full size (about 2 GB of disk) and on saved frame streams (`*.frames.zst`) of your own:
//!
//! ```sh
//! GOLDEN_OLD=../old/target/release GOLDEN_NEW=target/release GOLDEN_MEGABYTES=500 GOLDEN_STREAMS=FOLDER \
//!     cargo test --test golden -- --ignored --nocapture old_and_new_programs_agree
//! ```
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

#[path = "../../benches/archive/conversation.rs"]
mod conversation;
mod inputs;
#[path = "../processors/mod.rs"]
mod processors;
#[path = "../programs/mod.rs"]
mod programs;
mod runs;
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    clippy::expect_used,
    reason = "it is a library of its own, for a fuzzer"
)]
#[path = "../../fuzz/src/lib.rs"]
mod targets;
#[path = "../tool/mod.rs"]
mod tool;
#[path = "../../benches/archive/traffic.rs"]
mod traffic;
#[path = "../../benches/archive/wire.rs"]
mod wire;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use inputs::Inputs;
use runs::Digest;

/// How large the generated captures of the committed digests are.
const BYTES: u64 = 4_000_000;

fn digests_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/digests.txt")
}

/// The programs that were built for this test.
fn own_programs() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_sizeleak")).parent().unwrap()
}

fn text(digests: &[Digest]) -> String {
    let lines: Vec<String> = digests.iter().map(|Digest { name, digest }| format!("{digest}  {name}\n")).collect();
    lines.concat()
}

#[test]
fn output_is_what_it_was() {
    if !tool::are_here("golden", &["taskset"]) {
        return;
    }
    let inputs = Inputs::write(BYTES, None);
    let (expected, now) = (fs::read_to_string(digests_file()).unwrap(), text(&runs::all(own_programs(), &inputs)));
    let changed: Vec<&str> = now.lines().filter(|line| !expected.lines().any(|other| other == *line)).collect();
    assert!(changed.is_empty(), "output has changed:\n{}", changed.join("\n"));
    assert_eq!(now, expected);
}

#[test]
#[ignore = "writes the committed digests"]
fn write_digests() {
    let digests = runs::all(own_programs(), &Inputs::write(BYTES, None));
    fs::write(digests_file(), text(&digests)).unwrap();
}

/// The programs of two folders side by side, on the same inputs.
#[test]
#[ignore = "needs GOLDEN_OLD: the folder of another build's programs"]
fn old_and_new_programs_agree() {
    let old = PathBuf::from(env::var_os("GOLDEN_OLD").expect("GOLDEN_OLD names the folder of the other programs"));
    let new = env::var_os("GOLDEN_NEW").map_or_else(|| own_programs().to_owned(), PathBuf::from);
    let bytes = env::var("GOLDEN_MEGABYTES").map_or(BYTES, |text| text.parse::<u64>().unwrap() * 1_000_000);
    let inputs = Inputs::write(bytes, env::var_os("GOLDEN_STREAMS").map(PathBuf::from).as_deref());
    let (old, new) = (runs::all(&old, &inputs), runs::all(&new, &inputs));
    print!("{}", text(&new));
    assert_eq!(text(&old), text(&new));
}
