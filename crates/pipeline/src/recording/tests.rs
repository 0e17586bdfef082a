//! Tests of `recording`.

use std::fs;
use std::io::{Read, Seek};
use std::path::Path;

use proptest::prelude::*;
use sizeleak_frame::{FrameWriter, Hello, Notice, SCHEMA};

use super::*;

fn written(bytes: &[u8], compression: Compression, step: usize) -> File {
    let mut file = tempfile::tempfile().unwrap();
    let mut recording = Recording::new(file.try_clone().unwrap(), compression).unwrap();
    for part in bytes.chunks(step) {
        recording.write_all(part).unwrap();
        recording.flush().unwrap();
    }
    recording.finish().unwrap();
    file.rewind().unwrap();
    file
}

proptest! {
    #[test]
    fn written_bytes_read_back(
        mut bytes in prop::collection::vec(any::<u8>(), 1..3000),
        step in 1usize..700,
        name in prop::sample::select(&["a.zst", "a.gz", "a.frames"][..]),
    ) {
        // Input that looks compressed would be decompressed; frame streams never do.
        bytes[0] = 0x81;
        let file = written(&bytes, Compression::of_name(Path::new(name)), step);
        let mut read = Vec::new();
        decompressed(file).unwrap().read_to_end(&mut read).unwrap();
        prop_assert_eq!(read, bytes);
    }
}

fn begun_stream(stage: &str, upstream: &[&str]) -> SavedStream {
    let upstream = upstream.iter().map(|&stage| stage.to_owned()).collect();
    let hello = Hello { schema: SCHEMA, stage: stage.into(), version: "1".into(), upstream };
    let mut writer = FrameWriter::new(Vec::new());
    writer.write(&hello.into()).unwrap();
    let bytes = writer.into_output().unwrap();
    SavedStream::new("file".into(), None, Box::new(Cursor::new(bytes))).unwrap()
}

fn pipeline(text: &str) -> Pipeline {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    Pipeline::read(file.path()).unwrap()
}

#[test]
fn index_of_finds_the_stage_named_by_hello() {
    let standard = Pipeline::standard();
    assert_eq!(standard.index_of(&begun_stream("record-sizer", &["capture", "flow-filter"])).unwrap(), 2);
    assert_eq!(standard.index_of(&begun_stream("pruner", &[])).unwrap(), 6);
    let error = standard.index_of(&begun_stream("burst", &["record-sizer"])).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("`burst` made this stream, and it is not in this pipeline"), "{error}");
}

#[test]
fn index_of_distinguishes_stages_of_the_same_name_by_upstream() {
    let twice = pipeline(
        "[[stage]]\nrun = \"capture\"\n[[stage]]\nname = \"mine\"\ncommand = [\"cat\"]\n[[stage]]\nname = \
             \"mine\"\ncommand = [\"cat\"]\n",
    );
    assert_eq!(twice.index_of(&begun_stream("mine", &["capture"])).unwrap(), 1);
    assert_eq!(twice.index_of(&begun_stream("mine", &["capture", "mine"])).unwrap(), 2);
    assert_eq!(twice.index_of(&begun_stream("mine", &["mine", "mine", "mine"])).unwrap(), 2, "more than there are");
}

#[test]
fn next_stage_of_another_kind_is_an_error() {
    let odd = pipeline(
        "[[stage]]\nrun = \"capture\"\n[[stage]]\nname = \"record-sizer\"\ncommand = [\"cat\"]\n[[stage]]\nrun = \
             \"flow-filter\"\n",
    );
    let error = odd.index_of(&begun_stream("record-sizer", &["capture"])).unwrap_err().to_string();
    assert!(error.contains("kind `record`") && error.contains("works on `packets`"), "{error}");
}

#[test]
fn invalid_stream_is_an_error_that_names_the_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "hello").unwrap();
    let interrupt = Interrupt::new();
    let fault = |path: &Path| SavedStream::open(path, &interrupt).map(|_| ()).unwrap_err().to_string();
    assert!(fault(file.path()).contains("value 1 of the frame stream"), "{}", fault(file.path()));
    assert!(fault(Path::new("/no/such.frames")).contains("/no/such.frames: No such file"));
    assert!(fault(Path::new("/")).contains("is a folder"));
}

fn stream(stage: &str, texts: &[&str], counted: Option<u64>) -> Vec<u8> {
    let hello = Hello { schema: SCHEMA, stage: stage.into(), version: String::new(), upstream: Vec::new() };
    let notice = |text: &&str| Notice {
        time_ns: None,
        stage: stage.to_owned().into(),
        flow: None,
        what: (*text).to_owned().into(),
        bytes: None,
        detail: None,
    };
    let counters = |count: u64| [("lost".to_owned(), count), ("worst_loss".to_owned(), count)].into();
    let row = |count| StageSummary { stage: stage.into(), counters: counters(count), ..StageSummary::default() };
    let summary = counted.map(|count| Frame::Summary(Summary { stages: vec![row(count)] }));
    let frames: Vec<Frame> =
        std::iter::once(hello.into()).chain(texts.iter().map(|text| notice(text).into())).chain(summary).collect();
    let mut writer = FrameWriter::new(Vec::new());
    writer.write_all(&frames).unwrap();
    writer.into_output().unwrap()
}

fn joined(streams: Vec<Vec<u8>>) -> io::Result<Vec<u8>> {
    let folder = tempfile::tempdir().unwrap();
    let files = (1..).zip(streams).map(|(number, bytes): (u32, Vec<u8>)| {
        let file = folder.path().join(format!("{number}.frames"));
        fs::write(&file, bytes).unwrap();
        file
    });
    let mut bytes = Vec::new();
    JoinedStreams::new(&files.collect::<Vec<_>>(), &Interrupt::new()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[test]
fn joined_streams_are_one_with_all_frames_and_the_counts_of_all() {
    let streams =
        vec![stream("mine", &["a", "b"], Some(3)), stream("mine", &[], Some(9)), stream("mine", &["c"], Some(2))];
    let bytes = joined(streams).unwrap();
    let mut reader = FrameReader::new(&*bytes);
    let mut frames = Vec::new();
    while let Some(frame) = reader.next_frame().unwrap() {
        frames.push(frame);
    }
    let kinds: Vec<&str> = frames.iter().map(Frame::kind).collect();
    assert_eq!(kinds, ["hello", "notice", "notice", "notice", "summary"]);
    let Some(Frame::Summary(summary)) = frames.pop() else { panic!("{frames:?}") };
    assert_eq!(summary.stages.len(), 1);
    assert_eq!((summary.stages[0].counters["lost"], summary.stages[0].counters["worst_loss"]), (14, 9));
}

#[test]
fn a_stream_of_another_stage_or_without_its_end_is_named() {
    let fault = |streams| joined(streams).unwrap_err().to_string();
    let other = fault(vec![stream("mine", &[], Some(1)), stream("other", &[], Some(1))]);
    assert!(other.contains("/2.frames: `other` made it"), "{other}");
    let cut = fault(vec![stream("mine", &["a"], None), stream("mine", &[], Some(1))]);
    assert!(cut.contains("/1.frames was cut"), "{cut}");
}

#[test]
fn only_frame_files_are_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("capture.pcap"), [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0]).unwrap();
    fs::write(path("empty.zst"), []).unwrap();
    let fault = |name: &str| PendingSave::begin("mine", &path(name)).map(|_| ()).unwrap_err();
    assert!(fault("capture.pcap").contains("holds no frames"), "{}", fault("capture.pcap"));
    assert!(fault("").contains("holds no frames"), "a folder");
    assert!(
        fault("no/folder.zst").ends_with("no/folder.zst cannot be written: there is no such folder"),
        "{}",
        fault("no/folder.zst")
    );
    assert!(
        PendingSave::begin("mine", &path("empty.zst")).is_ok() && PendingSave::begin("mine", &path("new.zst")).is_ok()
    );
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "nothing is left");
}

#[test]
fn incomplete_stream_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let (save, recorder) = PendingSave::begin("mine", &folder.path().join("a.frames")).unwrap();
    drop(recorder);
    assert_eq!(save.keep(), Ok(None));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
