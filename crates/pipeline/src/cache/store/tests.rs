//! Tests of `store`.

use std::io::{Read, Write};
use std::os::unix::fs::chown;
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
    store.prepare().unwrap();
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

/// The description names the right key, but the stream was made for another one.
#[test]
fn swapped_stream_is_rebuilt_whatever_its_description_says() {
    let folder = tempfile::tempdir().unwrap();
    let store = CacheStore::new(folder.path().to_owned(), 1 << 20);
    keep(&store, "mine", b"my content", 0);
    let other = keep(&store, "another's", b"another content", 0);
    let (mine, others) = (store.folder_of(entry("mine").key), store.folder_of(other.key));
    let description = fs::read_to_string(others.join(DESCRIPTION)).unwrap();
    let forged = description.replace(other.key.to_hex().as_str(), entry("mine").key.to_hex().as_str());
    fs::write(mine.join(DESCRIPTION), forged).unwrap();
    fs::copy(others.join(STREAM), mine.join(STREAM)).unwrap();
    assert!(matches!(store.look_up(entry("mine").key), Ok(CacheLookup::Damaged(_))));
    assert!(matches!(store.look_up(entry("mine").key), Ok(CacheLookup::Missing)));
    assert!(found(&store, "another's").is_some());
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn only_the_user_can_read_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("c");
    fs::create_dir_all(root.join("entries")).unwrap();
    fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
    let store = CacheStore::new(root.clone(), 1 << 20);
    let kept = keep(&store, "a", b"content", 0);
    store.digests().write().unwrap();
    let entry = store.folder_of(kept.key);
    assert_eq!([&root, &store.entries(), &entry].map(|path| mode(path)), [0o700; 3]);
    let files = [entry.join(STREAM), entry.join(DESCRIPTION), root.join("digests.json")];
    assert_eq!(files.each_ref().map(|path| mode(path)), [0o600; 3]);
}

#[test]
fn folder_that_others_can_write_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("c");
    let store = CacheStore::new(root.clone(), 1 << 20);
    keep(&store, "a", b"content", 0);
    for path in [&root, &store.entries()] {
        for mode in [0o770, 0o707, 0o1777] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
            let error = store.prepare().unwrap_err().to_string();
            assert!(error.contains("can be written by other users") && error.contains("chmod 700 "), "{error}");
        }
        fs::set_permissions(path, Permissions::from_mode(0o700)).unwrap();
    }
    fs::set_permissions(&root, Permissions::from_mode(0o777)).unwrap();
    assert!(store.list().is_err() && store.clear(None).is_err(), "nor is it listed");
    // Only root can make a folder another user's.
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(&root, Permissions::from_mode(0o700)).unwrap();
        chown(&root, Some(12_345), None).unwrap();
        let error = store.prepare().unwrap_err().to_string();
        assert!(error.contains("belongs to another user"), "{error}");
    }
}

#[test]
fn leftovers_of_killed_runs_are_removed_and_those_of_live_runs_never() {
    let folder = tempfile::tempdir().unwrap();
    let store = CacheStore::new(folder.path().to_owned(), 1 << 20);
    keep(&store, "a", b"content", 0);
    let aged = |path: &Path, minutes: u64| {
        File::open(path).unwrap().set_modified(SystemTime::now() - Duration::from_mins(minutes)).unwrap();
    };
    let (live, recording) = store.draft().unwrap();
    aged(live.folder.path(), 60 * 48);
    // A killed run leaves a draft whose lock is gone.
    let (killed, _) = store.draft().unwrap();
    let left = killed.folder.path().with_extension("left");
    fs::create_dir(&left).unwrap();
    fs::copy(killed.folder.path().join(STREAM), left.join(STREAM)).unwrap();
    drop(killed);
    let (trash, new_trash) = (store.entries().join(".old-1"), store.entries().join(".old-2"));
    let (digests, new_digests) = (folder.path().join(".digests.json.1-1"), folder.path().join(".digests.json.2-1"));
    for path in [&trash, &new_trash] {
        fs::create_dir(path).unwrap();
    }
    for path in [&digests, &new_digests] {
        fs::write(path, "[").unwrap();
    }
    store.prepare().unwrap();
    assert!(left.is_dir(), "it may not be locked yet");
    aged(&left, 2);
    for path in [&trash, &digests] {
        aged(path, 60 * 25);
    }
    store.prepare().unwrap();
    let is_there = [live.folder.path(), &left, &trash, &new_trash, &digests, &new_digests].map(Path::exists);
    assert_eq!(is_there, [true, false, false, true, false, true]);
    // Also between the end of the stream and that of the run.
    let finished = recording.finish().unwrap();
    store.tidy().unwrap();
    store.keep(live, &CacheEntry { bytes: finished.bytes, digest: finished.digest, ..entry("b") }).unwrap();
    assert_eq!(found(&store, "b").as_deref(), Some(&b""[..]));
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
