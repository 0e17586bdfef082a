//! Tests of `store`.

use std::io::{Read, Write};
use std::time::Duration;

use super::*;

fn entry(name: &str) -> CacheEntry {
    CacheEntry {
        key: blake3::hash(name.as_bytes()),
        stage: "record-sizer".into(),
        kind: "record".into(),
        version: "0".into(),
        made: Timestamp::UNIX_EPOCH,
        bytes: 0,
        digest: blake3::hash(b""),
        captures: Vec::new(),
    }
}

/// Stores an entry with this content, last used `minutes` ago.
fn keep(store: &CacheStore, name: &str, content: &[u8], minutes: u64) -> CacheEntry {
    let (draft, mut recording) = store.draft().unwrap();
    recording.write_all(content).unwrap();
    let finished = recording.finish().unwrap();
    let entry = CacheEntry { bytes: finished.bytes, digest: finished.digest, ..entry(name) };
    store.keep(draft, &entry).unwrap();
    let time = SystemTime::now() - Duration::from_mins(minutes);
    File::open(store.folder_of(entry.key).join(STREAM)).unwrap().set_modified(time).unwrap();
    entry
}

fn found(store: &CacheStore, name: &str) -> Option<Vec<u8>> {
    match store.look_up(entry(name).key).unwrap() {
        CacheLookup::Found(_, file) => {
            let mut content = Vec::new();
            zstd::Decoder::new(file).unwrap().read_to_end(&mut content).unwrap();
            Some(content)
        }
        _ => None,
    }
}

fn names(store: &CacheStore) -> usize {
    fs::read_dir(store.entries()).unwrap().count()
}

#[test]
fn stored_entry_is_found_and_the_first_of_two_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = CacheStore::new(folder.path().join("c"), 1 << 20);
    assert!(matches!(store.look_up(entry("a").key), Ok(CacheLookup::Missing)));
    assert!(store.list().unwrap().is_empty(), "no folder at all");
    keep(&store, "a", b"first", 0);
    keep(&store, "a", b"second, of a run at the same time", 0);
    assert_eq!(found(&store, "a").as_deref(), Some(&b"first"[..]));
    assert_eq!(names(&store), 1, "no draft is left");
    drop(store.draft().unwrap());
    assert_eq!(names(&store), 1);
}

#[test]
fn damaged_entries_are_reported_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let store = CacheStore::new(folder.path().to_owned(), 1 << 20);
    let folder_of = |name: &str| store.folder_of(entry(name).key);
    let change = |name: &str| {
        let mut bytes = fs::read(folder_of(name).join(STREAM)).unwrap();
        bytes[7] ^= 1;
        fs::write(folder_of(name).join(STREAM), bytes)
    };
    let cut = |name: &str| File::options().write(true).open(folder_of(name).join(STREAM)).unwrap().set_len(5);
    for name in ["a byte", "its end", "its stream", "its description", "no description"] {
        keep(&store, name, b"some content", 0);
        let damaged = match name {
            "a byte" => change(name),
            "its end" => cut(name),
            "its stream" => fs::remove_file(folder_of(name).join(STREAM)),
            "its description" => fs::write(folder_of(name).join(DESCRIPTION), "{}"),
            _ => fs::remove_file(folder_of(name).join(DESCRIPTION)),
        };
        damaged.unwrap();
        assert!(matches!(store.look_up(entry(name).key), Ok(CacheLookup::Damaged(_))), "{name}");
        assert!(matches!(store.look_up(entry(name).key), Ok(CacheLookup::Missing)), "{name}");
    }
    keep(&store, "another's", b"some content", 0);
    fs::rename(folder_of("another's"), folder_of("mine")).unwrap();
    assert!(matches!(store.look_up(entry("mine").key), Ok(CacheLookup::Damaged(_))));
    assert_eq!(names(&store), 0);
}

#[test]
fn least_recently_used_entries_are_removed_first() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let store = CacheStore::new(root.clone(), 1 << 20);
    let size = keep(&store, "old", b"0123456789", 30).bytes;
    keep(&store, "older", b"0123456789", 40);
    keep(&store, "new", b"0123456789", 10);
    store.tidy().unwrap();
    assert_eq!(store.list().unwrap().len(), 3, "there is room");
    // A look-up counts as a use.
    assert!(found(&store, "older").is_some());
    CacheStore::new(root.clone(), 2 * size).tidy().unwrap();
    let left: Vec<Hash> = store.list().unwrap().iter().map(|stored| stored.entry.key).collect();
    assert_eq!(left, [entry("older").key, entry("new").key]);
    CacheStore::new(root, size - 1).tidy().unwrap();
    assert_eq!(names(&store), 0);
}

#[test]
fn clear_removes_old_entries_or_all() {
    let folder = tempfile::tempdir().unwrap();
    let store = CacheStore::new(folder.path().to_owned(), 1 << 20);
    keep(&store, "old", b"a", 30);
    keep(&store, "new", b"b", 10);
    let before = Timestamp::now() - SignedDuration::from_mins(20);
    assert_eq!(store.clear(Some(before)).unwrap().len(), 1);
    assert!(found(&store, "new").is_some() && found(&store, "old").is_none());
    fs::create_dir(store.entries().join(".new-left")).unwrap();
    assert_eq!(store.clear(None).unwrap().len(), 1);
    assert_eq!(names(&store), 0);
}
