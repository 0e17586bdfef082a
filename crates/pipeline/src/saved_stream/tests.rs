//! Tests of `saved_stream`.

use sizeleak_frame::{FrameWriter, SCHEMA};

use super::*;

fn stream(stage: &str, upstream: &[&str]) -> SavedStream {
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
    assert_eq!(standard.index_of(&stream("record-sizer", &["capture", "flow-filter"])).unwrap(), 2);
    assert_eq!(standard.index_of(&stream("pruner", &[])).unwrap(), 6);
    let error = standard.index_of(&stream("burst", &["record-sizer"])).unwrap_err();
    assert_eq!(error.exit_code(), 2);
    assert!(error.to_string().contains("`burst` made this stream, and it is not in this pipeline"), "{error}");
}

#[test]
fn index_of_distinguishes_stages_of_the_same_name_by_upstream() {
    let twice = pipeline(
        "[[stage]]\nrun = \"capture\"\n[[stage]]\nname = \"mine\"\ncommand = [\"cat\"]\n[[stage]]\nname = \
             \"mine\"\ncommand = [\"cat\"]\n",
    );
    assert_eq!(twice.index_of(&stream("mine", &["capture"])).unwrap(), 1);
    assert_eq!(twice.index_of(&stream("mine", &["capture", "mine"])).unwrap(), 2);
    assert_eq!(twice.index_of(&stream("mine", &["mine", "mine", "mine"])).unwrap(), 2, "more than there are");
}

#[test]
fn next_stage_of_another_kind_is_an_error() {
    let odd = pipeline(
        "[[stage]]\nrun = \"capture\"\n[[stage]]\nname = \"record-sizer\"\ncommand = [\"cat\"]\n[[stage]]\nrun = \
             \"flow-filter\"\n",
    );
    let error = odd.index_of(&stream("record-sizer", &["capture"])).unwrap_err().to_string();
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
