//! Whether the frames of a stage are meaningful: units, times, order, sums, sizes of batches.

use std::collections::{BTreeMap, BTreeSet};

use sizeleak_frame::{BATCH_BYTES, BATCH_ROWS, Command, Correction, Direction, Frame, Identification, Record};

#[cfg(test)]
mod tests;

fn times(frames: &[Frame]) -> Option<(i64, i64)> {
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
        Frame::Deviation(deviation) => vec![deviation.time_ns],
        Frame::Notice(notice) => notice.time_ns.into_iter().collect(),
        Frame::Hello(_) | Frame::Flow(_) | Frame::Summary(_) | Frame::Unknown(_) => Vec::new(),
    }
}

pub(crate) fn are_times_of_input(made: &[Frame], input: &[Frame]) -> Result<(), String> {
    // The input of a first stage holds no frames to compare with.
    let Some((first, last)) = times(input) else { return Ok(()) };
    for frame in made {
        if let Some(time) = times_of(frame).into_iter().find(|time| !(first..=last).contains(time)) {
            let kind = frame.kind();
            return Err(format!("a `{kind}` is at {time} ns, but the input is from {first} to {last} ns"));
        }
    }
    Ok(())
}

pub(crate) fn are_batches_within_limits(made: &[Frame]) -> Result<(), String> {
    for rows in made.iter().filter_map(rows_of) {
        let before_last: usize = rows.split_last().map_or(0, |(_, before)| before.iter().map(|(data, _)| data).sum());
        if rows.len() > BATCH_ROWS {
            return Err(format!("a batch has {} rows; {BATCH_ROWS} is the limit", rows.len()));
        }
        if before_last >= BATCH_BYTES {
            return Err(format!(
                "a batch had {before_last} bytes of data before its last row: {BATCH_BYTES} is the limit"
            ));
        }
    }
    Ok(())
}

/// Checks every frame of `made` by itself and against the frames before it. `all` is the whole output, which announces
/// the flows.
pub(crate) fn are_meaningful(made: &[Frame], all: &[Frame], stage: &str) -> Result<(), String> {
    let announced: BTreeSet<u64> =
        all.iter().filter_map(|frame| if let Frame::Flow(flow) = frame { Some(flow.flow) } else { None }).collect();
    let mut sequence = FrameOrder::default();
    for frame in made {
        let fault = match frame {
            Frame::Packets(_) => is_batch(frame, ["data", "original_length"]),
            Frame::Segments(_) => is_batch(frame, ["payload", "length"]),
            Frame::Record(record) => is_record(record).and_then(|()| sequence.record(record)),
            Frame::Command(command) => is_command(command).and_then(|()| sequence.command(command)),
            Frame::Correction(correction) => is_correction(correction),
            Frame::Identification(found) => is_identification(found),
            Frame::Notice(notice) if notice.stage != stage => {
                Err(format!("its `stage` is `{}`, not `{stage}`", notice.stage))
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

fn flows_of(frame: &Frame) -> BTreeSet<u64> {
    match frame {
        Frame::Segments(batch) => batch.iter().map(|segment| segment.flow).collect(),
        Frame::Session(session) => [session.flow].into(),
        Frame::Record(record) => [record.flow].into(),
        Frame::Command(command) => [command.flow].into(),
        _ => BTreeSet::new(),
    }
}

/// Whether a name has the form that the contract requires of counters and notices.
pub(crate) fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn demand(holds: bool, fault: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(fault()) }
}

/// The bytes of each row of a batch, captured and on the wire; `None` of other frames.
fn rows_of(frame: &Frame) -> Option<Vec<(usize, u32)>> {
    match frame {
        Frame::Packets(batch) => Some(batch.iter().map(|row| (row.data.len(), row.original_length)).collect()),
        Frame::Segments(batch) => Some(batch.iter().map(|row| (row.payload.len(), row.length)).collect()),
        _ => None,
    }
}

/// Checks the rows of a batch; `data` and `length` are what the contract calls their bytes, captured and on the wire.
fn is_batch(frame: &Frame, [data, length]: [&str; 2]) -> Result<(), String> {
    let rows = rows_of(frame).unwrap_or_default();
    demand(!rows.is_empty(), || "a batch without a row".into())?;
    let longer = rows.iter().find(|(captured, on_wire)| *captured > *on_wire as usize);
    longer.map_or(Ok(()), |(captured, on_wire)| {
        Err(format!("`{data}` has {captured} bytes, more than `{length}`, {on_wire}"))
    })
}

fn is_range(plaintext: Option<[u64; 2]>) -> Result<(), String> {
    let Some([least, most]) = plaintext else { return Ok(()) };
    demand(least <= most, || format!("`plaintext` is [{least}, {most}]: the minimum comes first"))
}

fn is_record(record: &Record) -> Result<(), String> {
    let (start, end) = (record.start_ns, record.time_ns);
    demand(start <= end, || format!("it starts at {start} ns, after its end at {end} ns"))?;
    is_range(record.plaintext)
}

fn is_command(command: &Command) -> Result<(), String> {
    let (begin, end) = (command.time_ns, command.end_ns);
    demand(begin <= end, || format!("it starts at {begin} ns, after its end at {end} ns"))?;
    demand(command.records > 0, || "`records` is 0: it takes at least one".into())?;
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
    demand(found.listed == listed, || format!("`listed` is {}, but {listed} candidates are listed", found.listed))?;
    demand(count >= listed, || format!("`candidate_count` is {count}, less than the {listed} listed"))?;
    let probabilities = || found.candidates.iter().map(|candidate| candidate.probability);
    demand(probabilities().all(|p| (0.0..=1.0).contains(&p)), || "a `probability` is not from 0 to 1".into())?;
    demand(probabilities().is_sorted_by(|one, next| one >= next), || {
        "candidates are not sorted by probability".into()
    })?;
    let bounds = found.min_actions.zip(found.max_actions);
    demand(bounds.is_none_or(|(least, most)| least <= most), || "`min_actions` is more than `max_actions`".into())?;
    is_command(&found.command)
}

#[derive(Default)]
struct FrameOrder {
    command: Option<i64>,
    records: BTreeMap<(u64, Direction), i64>,
}

impl FrameOrder {
    fn command(&mut self, command: &Command) -> Result<(), String> {
        let before = self.command.replace(command.time_ns);
        demand(before.is_none_or(|before| before <= command.time_ns), || {
            format!("it starts at {} ns, before its predecessor: commands are ordered by their start", command.time_ns)
        })
    }

    fn record(&mut self, record: &Record) -> Result<(), String> {
        let before = self.records.insert((record.flow, record.direction), record.time_ns);
        demand(before.is_none_or(|before| before <= record.time_ns), || {
            format!("`time_ns` goes back to {} within a direction of its flow", record.time_ns)
        })
    }
}
