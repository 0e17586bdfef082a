//! Whether the frames that a stage made can mean what they say: units, times, order, sums, sizes of batches.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{
    BATCH_BYTES, BATCH_ROWS, Command, Correction, Direction, Frame, Identification, Packets, Record, Segments,
};

/// The times in a stream's traffic, first and last.
pub(super) fn times(frames: &[Frame]) -> Option<(i64, i64)> {
    let mut times = frames.iter().flat_map(times_of);
    let first = times.next()?;
    Some(times.fold((first, first), |(least, most), time| (least.min(time), most.max(time))))
}

fn times_of(frame: &Frame) -> Vec<i64> {
    match frame {
        Frame::Packets(batch) => batch.iter().map(|packet| packet.time_ns).collect(),
        Frame::Segments(batch) => batch.iter().map(|segment| segment.time_ns).collect(),
        Frame::Session(session) => vec![session.time_ns],
        Frame::Record(record) => vec![record.start_ns, record.time_ns],
        Frame::Command(command) => vec![command.time_ns, command.end_ns],
        Frame::Correction(correction) => vec![correction.command.time_ns, correction.command.end_ns],
        Frame::Identification(identification) => {
            vec![identification.command.time_ns, identification.command.end_ns]
        }
        Frame::Notice(notice) => notice.time_ns.into_iter().collect(),
        Frame::Hello(_) | Frame::Flow(_) | Frame::Summary(_) | Frame::Unknown(_) => Vec::new(),
    }
}

/// Checks that every time in what was made is one of the traffic that was fed.
pub(super) fn are_of_the_traffic(made: &[Frame], input: &[Frame]) -> Result<(), String> {
    // A program at the head of the pipe is fed nothing that could be compared.
    let Some((first, last)) = times(input) else { return Ok(()) };
    for frame in made {
        if let Some(time) = times_of(frame).into_iter().find(|time| !(first..=last).contains(time)) {
            let kind = frame.kind();
            return Err(format!("a `{kind}` is at {time} ns, but the traffic is from {first} to {last} ns"));
        }
    }
    Ok(())
}

/// Checks the limits of batches.
pub(super) fn are_batches_in_limits(made: &[Frame]) -> Result<(), String> {
    for frame in made {
        let data: Vec<usize> = match frame {
            Frame::Packets(batch) => batch.iter().map(|packet| packet.data.len()).collect(),
            Frame::Segments(batch) => batch.iter().map(|segment| segment.payload.len()).collect(),
            _ => continue,
        };
        let before_last: usize = data.split_last().map_or(0, |(_, before)| before.iter().sum());
        if data.len() > BATCH_ROWS {
            return Err(format!("a batch has {} rows; {BATCH_ROWS} are the most", data.len()));
        }
        if before_last >= BATCH_BYTES {
            return Err(format!("a batch had {before_last} bytes of data before its last row: {BATCH_BYTES} fill it"));
        }
    }
    Ok(())
}

/// Checks every frame that was made by itself, with what came before it. `all` is the whole output, in which flows are announced.
pub(super) fn are_possible(made: &[Frame], all: &[Frame], stage: &str) -> Result<(), String> {
    let announced: BTreeSet<u64> =
        all.iter().filter_map(|frame| if let Frame::Flow(flow) = frame { Some(flow.flow) } else { None }).collect();
    let mut sequence = Sequence::default();
    for frame in made {
        let fault = match frame {
            Frame::Packets(batch) => is_packets(batch),
            Frame::Segments(batch) => is_segments(batch),
            Frame::Record(record) => is_record(record).and_then(|()| sequence.record(record)),
            Frame::Command(command) => is_command(command).and_then(|()| sequence.command(command)),
            Frame::Correction(correction) => is_correction(correction),
            Frame::Identification(found) => is_identification(found),
            Frame::Notice(notice) if notice.stage != stage => {
                Err(format!("it is told in the name of `{}`, not of `{stage}`", notice.stage))
            }
            Frame::Notice(notice) if !is_word(&notice.what) => {
                Err(format!("`what` is `{}`: make it lower case with underscores", notice.what))
            }
            _ => Ok(()),
        };
        let unknown_flow = || flows_of(frame).into_iter().find(|flow| !announced.contains(flow));
        let fault = fault.and_then(|()| {
            unknown_flow().map_or(Ok(()), |flow| Err(format!("no `flow` frame announces its flow {flow}")))
        });
        fault.map_err(|fault| format!("a `{}`: {fault}", frame.kind()))?;
    }
    Ok(())
}

/// The flows a frame must not speak of before they are announced.
fn flows_of(frame: &Frame) -> BTreeSet<u64> {
    match frame {
        Frame::Segments(batch) => batch.iter().map(|segment| segment.flow).collect(),
        Frame::Session(session) => [session.flow].into(),
        Frame::Record(record) => [record.flow].into(),
        Frame::Command(command) => [command.flow].into(),
        _ => BTreeSet::new(),
    }
}

/// A counter's or notice's word as the contract wants it.
pub(super) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn demand(holds: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(fault()) }
}

fn is_packets(batch: &Packets) -> Result<(), String> {
    let longer = batch.iter().find(|packet| packet.data.len() > packet.original_length as usize);
    demand(!batch.is_empty(), || "a batch without a row".into())?;
    longer.map_or(Ok(()), |packet| {
        Err(format!("`data` has {} bytes, more than `original_length`, {}", packet.data.len(), packet.original_length))
    })
}

fn is_segments(batch: &Segments) -> Result<(), String> {
    let longer = batch.iter().find(|segment| segment.payload.len() > segment.length as usize);
    demand(!batch.is_empty(), || "a batch without a row".into())?;
    longer.map_or(Ok(()), |segment| {
        Err(format!("`payload` has {} bytes, more than `length`, {}", segment.payload.len(), segment.length))
    })
}

fn is_range(plaintext: Option<[u64; 2]>) -> Result<(), String> {
    let Some([least, most]) = plaintext else { return Ok(()) };
    demand(least <= most, || format!("`plaintext` is [{least}, {most}]: the least comes first"))
}

fn is_record(record: &Record) -> Result<(), String> {
    let (start, end) = (record.start_ns, record.time_ns);
    demand(start <= end, || format!("it began at {start} ns, after its end at {end} ns"))?;
    is_range(record.plaintext)
}

fn is_command(command: &Command) -> Result<(), String> {
    let (begin, end) = (command.time_ns, command.end_ns);
    demand(begin <= end, || format!("it began at {begin} ns, after its end at {end} ns"))?;
    demand(command.records > 0, || "`records` is 0: at least one carries it".into())?;
    demand(command.size > 0, || "`size` is 0".into())?;
    demand(command.replies > 0 || command.reply_bytes == 0, || "`reply_bytes` without `replies`".into())?;
    is_range(command.plaintext)
}

fn is_correction(correction: &Correction) -> Result<(), String> {
    let weights = || correction.epsilons.iter().map(|epsilon| epsilon.weight);
    let sum: f64 = weights().sum();
    demand(weights().all(|weight| weight >= 0.0), || "a `weight` is below 0".into())?;
    demand((sum - 1.0).abs() < 1e-6, || format!("the weights sum to {sum}, not to 1"))?;
    is_command(&correction.command)
}

fn is_identification(found: &Identification) -> Result<(), String> {
    let (listed, count) = (found.candidates.len() as u64, found.candidate_count);
    demand(found.listed == listed, || format!("`listed` is {}, but {listed} are", found.listed))?;
    demand(count >= listed, || format!("`candidate_count` is {count}, less than the {listed} listed"))?;
    let probabilities = || found.candidates.iter().map(|candidate| candidate.probability);
    demand(probabilities().all(|p| (0.0..=1.0).contains(&p)), || "a `probability` is not from 0 to 1".into())?;
    demand(probabilities().is_sorted_by(|one, next| one >= next), || "the most probable comes first".into())?;
    let bounds = found.min_actions.zip(found.max_actions);
    demand(bounds.is_none_or(|(least, most)| least <= most), || "`min_actions` is more than `max_actions`".into())?;
    is_command(&found.command)
}

/// What of the frames before the next one decides whether it can follow them.
#[derive(Default)]
struct Sequence {
    command: Option<i64>,
    records: BTreeMap<(u64, Direction), i64>,
}

impl Sequence {
    fn command(&mut self, command: &Command) -> Result<(), String> {
        let before = self.command.replace(command.time_ns);
        demand(before.is_none_or(|before| before <= command.time_ns), || {
            format!("it began at {} ns, before the one before it: they come in the order they began", command.time_ns)
        })
    }

    fn record(&mut self, record: &Record) -> Result<(), String> {
        let before = self.records.insert((record.flow, record.direction), record.time_ns);
        demand(before.is_none_or(|before| before <= record.time_ns), || {
            format!("`time_ns` goes back to {} in its direction of its flow", record.time_ns)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::recorded::{Kind, Recorded};
    use super::*;

    fn command(time_ns: i64) -> Command {
        Command {
            time_ns,
            end_ns: time_ns + 5,
            flow: 7,
            size: 100,
            plaintext: Some([70, 80]),
            records: 1,
            replies: 1,
            reply_bytes: 60,
        }
    }

    #[test]
    fn what_the_seven_stages_make_is_possible() {
        for kind in [Kind::Packets, Kind::Segments, Kind::Record, Kind::Command, Kind::Correction, Kind::Identification]
        {
            let recorded = Recorded::made(kind).unwrap();
            let frames: Vec<Frame> =
                recorded.frames.iter().filter(|frame| frame.kind() == kind.name()).cloned().collect();
            assert!(!frames.is_empty());
            assert_eq!(are_possible(&frames, &recorded.frames, "mine"), Ok(()));
            assert_eq!(are_batches_in_limits(&frames), Ok(()));
            assert_eq!(are_of_the_traffic(&frames, &recorded.frames), Ok(()));
        }
    }

    #[test]
    fn what_cannot_be_is_told() {
        let cases: [(Vec<Command>, &str); 6] = [
            (vec![Command { end_ns: 9, ..command(10) }], "after its end"),
            (vec![command(20), command(10)], "in the order they began"),
            (vec![Command { plaintext: Some([9, 8]), ..command(1) }], "the least comes first"),
            (vec![Command { records: 0, ..command(1) }], "`records` is 0"),
            (vec![Command { replies: 0, ..command(1) }], "without `replies`"),
            (vec![Command { flow: 8, ..command(1) }], "announces its flow 8"),
        ];
        let flow = sizeleak_frame::Flow {
            flow: 7,
            gateway: [10, 0, 0, 1].into(),
            service: ([10, 0, 0, 2], 443).into(),
            transport: sizeleak_frame::Transport::Tcp,
        };
        for (commands, words) in cases {
            let made: Vec<Frame> = commands.into_iter().map(Frame::from).collect();
            let fault = are_possible(&made, &[flow.clone().into()], "mine").unwrap_err();
            assert!(fault.contains(words), "{fault}");
        }
        let seconds: Frame = command(1_767_600_000).into();
        let fault = are_of_the_traffic(&[seconds], &[command(1_767_600_000_000_000_000).into()]).unwrap_err();
        assert!(fault.contains("1767600000 ns"), "{fault}");
    }

    #[test]
    fn batches_have_limits() {
        let mut batch = Packets::new();
        let packet = |data| sizeleak_frame::Packet {
            time_ns: 1,
            link_type: 1,
            original_length: 70_000,
            data,
            capture: 0,
            number: 1,
        };
        (0..=BATCH_ROWS).for_each(|_| batch.push(packet(&[1])));
        assert!(are_batches_in_limits(&[batch.into()]).unwrap_err().contains("257 rows"));
        let (mut full, data) = (Packets::new(), vec![0; BATCH_BYTES]);
        full.push(packet(&data));
        assert_eq!(are_batches_in_limits(&[full.clone().into()]), Ok(()));
        full.push(packet(&[1]));
        assert!(are_batches_in_limits(&[full.into()]).is_err());
    }
}
