//! Compares what is found in a capture with what is found in the stripped one, flow by flow, in fixed memory.

use std::hash::{DefaultHasher, Hash, Hasher};

use sizeleak_frame::Frame;

/// Flows share so many digests by their numbers.
const DIGESTS: usize = 1 << 16;

/// What was found in flows, in short.
#[derive(Debug)]
pub(crate) struct FoundDigests {
    records: Vec<u64>,
    notices: Vec<u64>,
}

impl FoundDigests {
    pub(crate) fn new() -> Self {
        Self { records: vec![0; DIGESTS], notices: vec![0; DIGESTS] }
    }

    /// Adds what was found. What concerns no flow, such as counts of packets that are not IP, does not matter.
    pub(crate) fn add(&mut self, frames: &[Frame]) {
        for frame in frames {
            match frame {
                Frame::Flow(flow) => add(&mut self.records, flow.flow, frame),
                Frame::Session(session) => add(&mut self.records, session.flow, frame),
                Frame::Record(record) => add(&mut self.records, record.flow, frame),
                Frame::Notice(notice) => {
                    if let Some(flow) = notice.flow {
                        add(&mut self.notices, flow, frame);
                    }
                }
                _ => {}
            }
        }
    }

    /// In how many flows other records are found, and in how many others only the notices differ.
    pub(crate) fn differences(&self, other: &Self) -> (u64, u64) {
        let records = self.records.iter().zip(&other.records).map(|(one, other)| one != other);
        let notices = self.notices.iter().zip(&other.notices).map(|(one, other)| one != other);
        let (mut differing_records, mut differing_notices) = (0, 0);
        for (records, notices) in records.zip(notices) {
            differing_records += u64::from(records);
            differing_notices += u64::from(notices && !records);
        }
        (differing_records, differing_notices)
    }
}

fn add(digests: &mut [u64], flow: u64, frame: &Frame) {
    let Some(digest) = digests.get_mut((flow % DIGESTS as u64) as usize) else { return };
    let mut hasher = DefaultHasher::new();
    (*digest, format!("{frame:?}")).hash(&mut hasher);
    *digest = hasher.finish();
}
