//! Several saved streams of one stage, read one after another as one stream: those of runs that continue each other.

use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead, Cursor, Read};

use sizeleak_frame::{Frame, FrameReader, FrameWriter, ReadError, StageSummary, Summary};

pub(crate) struct UnopenedStream {
    pub(crate) name: String,
    pub(crate) open: Box<dyn FnOnce() -> io::Result<Box<dyn Read + Send>> + Send>,
}

/// The joined stream: the `hello` of the first one, all other frames, and a `summary` of all.
pub(crate) struct JoinedStreams {
    /// The name and the bytes of the one that is read.
    present: Option<(String, FrameReader<Box<dyn Read + Send>>)>,
    waiting: VecDeque<UnopenedStream>,
    /// The stage that made all of them, once the first has said so.
    stage: Option<String>,
    summary: Summary,
    /// Whether the summary of the present stream was read.
    is_whole: bool,
    /// Whether the summary of all was returned.
    has_ended: bool,
    /// The flows that have been announced, where streams need not be whole, and may announce a flow again.
    flows: Option<BTreeSet<u64>>,
    bytes: Cursor<Vec<u8>>,
}

impl JoinedStreams {
    pub(crate) fn new(streams: impl IntoIterator<Item = UnopenedStream>) -> Self {
        Self {
            present: None,
            waiting: streams.into_iter().collect(),
            stage: None,
            summary: Summary::default(),
            is_whole: false,
            has_ended: false,
            flows: None,
            bytes: Cursor::default(),
        }
    }

    /// These streams, which need not be whole, and may announce the same flows.
    pub(crate) fn of_parts(streams: impl IntoIterator<Item = UnopenedStream>) -> Self {
        Self { flows: Some(BTreeSet::new()), ..Self::new(streams) }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn next_frame(&mut self) -> io::Result<Option<Frame>> {
        loop {
            if self.present.is_none() {
                let Some(UnopenedStream { name, open }) = self.waiting.pop_front() else {
                    let has_ended = std::mem::replace(&mut self.has_ended, true);
                    return Ok((!has_ended).then(|| Frame::Summary(std::mem::take(&mut self.summary))));
                };
                let input = open().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
                (self.present, self.is_whole) = (Some((name, FrameReader::new(input))), false);
            }
            let Some((name, reader)) = &mut self.present else { continue };
            let fault =
                |why: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, format!("{name}: {why}"));
            match reader.next_frame() {
                Ok(Some(Frame::Hello(hello))) => match &self.stage {
                    None => {
                        self.stage = Some(hello.stage.clone());
                        return Ok(Some(Frame::Hello(hello)));
                    }
                    Some(stage) if self.flows.is_none() && *stage != hello.stage => {
                        return Err(fault(&format!("`{}` made it, and `{stage}` the stream before it", hello.stage)));
                    }
                    Some(_) => {}
                },
                Ok(Some(Frame::Summary(summary))) => {
                    add(&mut self.summary, summary);
                    self.is_whole = true;
                }
                Ok(Some(Frame::Flow(flow)))
                    if self.flows.as_mut().is_some_and(|announced| !announced.insert(flow.flow)) => {}
                Ok(Some(frame)) => return Ok(Some(frame)),
                Ok(None) if self.is_whole || self.flows.is_some() => self.present = None,
                Ok(None) => return Err(cut(name, &"it ends without a `summary`")),
                Err(error) if error.is_cut() && self.flows.is_some() => self.present = None,
                Err(error) if error.is_cut() => return Err(cut(name, &error)),
                Err(ReadError::Io { source, .. }) => {
                    return Err(io::Error::new(source.kind(), format!("{name}: {source}")));
                }
                Err(error) => return Err(fault(&error)),
            }
        }
    }

    /// The next frame as bytes; none at the end.
    fn next_bytes(&mut self) -> io::Result<Vec<u8>> {
        let Some(frame) = self.next_frame()? else { return Ok(Vec::new()) };
        if let Some((_, reader)) = &self.present {
            return Ok(reader.last_value().to_vec());
        }
        let mut writer = FrameWriter::new(Vec::new());
        Ok(writer.write(&frame).and_then(|()| writer.into_output())?)
    }
}

impl Read for JoinedStreams {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.bytes.fill_buf()?.is_empty() {
            self.bytes = Cursor::new(self.next_bytes()?);
        }
        self.bytes.read(buffer)
    }
}

fn cut(name: &str, why: &dyn std::fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, format!("{name} was cut: {why}"))
}

/// Adds what stages did in another run. Latencies are those of the last run.
pub(crate) fn add(summary: &mut Summary, other: Summary) {
    let before = std::mem::replace(summary, other);
    // A run that only ended flows had no source.
    let missing = before.stages.len().saturating_sub(summary.stages.len());
    for (index, stage) in before.stages.into_iter().enumerate() {
        match summary.stages.iter_mut().find(|other| other.stage == stage.stage) {
            Some(other) => add_stage(other, &stage),
            None => summary.stages.insert(index.min(missing), stage),
        }
    }
}

fn add_stage(stage: &mut StageSummary, other: &StageSummary) {
    stage.frames_in = stage.frames_in.saturating_add(other.frames_in);
    stage.frames_out = stage.frames_out.saturating_add(other.frames_out);
    stage.bytes_in = stage.bytes_in.saturating_add(other.bytes_in);
    for (name, count) in &other.counters {
        let sum = stage.counters.entry(name.clone()).or_default();
        *sum = if name.starts_with("worst_") { *count.max(sum) } else { sum.saturating_add(*count) };
    }
}

#[cfg(test)]
mod tests {

    use sizeleak_frame::{Hello, Notice, SCHEMA};

    use super::*;

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
        let unopened = |(number, bytes): (u32, Vec<u8>)| UnopenedStream {
            name: format!("{number}.frames"),
            open: Box::new(|| Ok(Box::new(Cursor::new(bytes)))),
        };
        let mut bytes = Vec::new();
        JoinedStreams::new((1..).zip(streams).map(unopened)).read_to_end(&mut bytes)?;
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
        assert!(other.starts_with("2.frames: `other` made it"), "{other}");
        let cut = fault(vec![stream("mine", &["a"], None), stream("mine", &[], Some(1))]);
        assert!(cut.starts_with("1.frames was cut"), "{cut}");
    }
}
