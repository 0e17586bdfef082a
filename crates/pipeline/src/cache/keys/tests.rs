//! Tests of `keys`.

use std::fs;

use super::*;

/// Files have the digest of their name: two names mean two contents.
fn keys(settings: &[&str]) -> Result<Vec<CacheableOutput>, String> {
    let mut pipeline = Pipeline::standard();
    for setting in [&["capture.files=a.pcap", "flow-filter.gateway=10.0.0.1"][..], settings].concat() {
        pipeline.set_text(setting).unwrap();
    }
    for stage in ["epsilon-corrector", "decomposer", "pruner"] {
        if pipeline.option(stage, "model").is_none() {
            pipeline.set(stage, "model", "m.toml").unwrap();
        }
    }
    CacheKeys::of(&pipeline, blake3::hash(b"program"), by_name).map(|keys| keys.outputs)
}

#[expect(clippy::unnecessary_wraps, reason = "in place of a function that reads files")]
fn by_name(path: &Path) -> io::Result<(Hash, u64)> {
    Ok((blake3::hash(path.as_os_str().as_encoded_bytes()), 1))
}

/// The stages whose keys do not change with these settings.
fn same(settings: &[&str]) -> Vec<&'static str> {
    let (default, other) = (keys(&[]).unwrap(), keys(settings).unwrap());
    default.iter().zip(&other).filter(|(default, other)| default == other).map(|(default, _)| default.stage).collect()
}

const ALL: [&str; 5] = ["record-sizer", "command-segmenter", "epsilon-corrector", "decomposer", "pruner"];

#[test]
fn explicit_default_does_not_change_any_key() {
    assert_eq!(same(&[]), ALL);
    for default in [
        "command-segmenter.look-ahead=3m",
        "command-segmenter.look-ahead=180s",
        "decomposer.limit=10000",
        "capture.recursive=false",
    ] {
        assert_eq!(same(&[default]), ALL, "{default}");
    }
    assert_eq!(same(&["decomposer.limit=10000", "command-segmenter.hole-wait=3s"]), ALL, "in any order");
}

#[test]
fn changed_option_changes_its_own_and_later_keys_only() {
    for (changed, until) in [
        ("capture.files=b.pcap", 0),
        ("capture.files=[\"a.pcap\", \"b.pcap\"]", 0),
        ("flow-filter.gateway=10.0.0.2", 0),
        ("flow-filter.port=443", 0),
        ("command-segmenter.gap=80ms", 1),
        ("command-segmenter.model=m.toml", 1),
        ("epsilon-corrector.model=other.toml", 2),
        ("decomposer.limit=7", 3),
        ("pruner.mode=paper", 4),
    ] {
        assert_eq!(same(&[changed]), ALL[..until], "{changed}");
    }
    let order = |files| keys(&[files]).unwrap()[0].key;
    assert_ne!(
        order("capture.files=[\"a\", \"b\"]"),
        order("capture.files=[\"b\", \"a\"]"),
        "captures are merged in order"
    );
    let other = CacheKeys::of(&Pipeline::standard(), blake3::hash(b"other"), by_name);
    assert!(other.is_err(), "without files stdin is read");
}

#[test]
fn program_digest_changes_every_key() {
    let mut pipeline = Pipeline::standard();
    pipeline.set_text("capture.files=a.pcap").unwrap();
    let key = |program: &[u8]| CacheKeys::of(&pipeline, blake3::hash(program), by_name).unwrap().outputs[0].key;
    assert_ne!(key(b"one"), key(b"two"));
}

#[test]
fn input_that_cannot_be_read_twice_has_no_key() {
    assert!(keys(&["capture.files=-"]).unwrap_err().contains("stdin"));
    assert!(keys(&["capture.interface=eth1"]).unwrap_err().contains("interface"));
    let lost =
        |path: &Path| if path == Path::new("a.pcap") { by_name(path) } else { Err(io::ErrorKind::NotFound.into()) };
    let mut pipeline = Pipeline::standard();
    pipeline.set_text("capture.files=a.pcap").unwrap();
    pipeline.use_model(Path::new("gone.toml")).unwrap();
    let keys = CacheKeys::of(&pipeline, blake3::hash(b"program"), lost).unwrap();
    assert_eq!(keys.outputs.len(), 1, "the records do not depend on a model");
}

#[test]
fn folders_are_read_in_path_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("b")).unwrap();
    for name in ["c.pcap", "b/x.pcap", "a.pcap"] {
        fs::write(path(name), name).unwrap();
    }
    assert_eq!(content_below(folder.path()).files, ["a.pcap", "b/x.pcap", "c.pcap"].map(path));
}
