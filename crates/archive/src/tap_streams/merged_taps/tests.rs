//! Odd taps, segment by segment.

use sizeleak_frame::{Direction, Flow, FrameWriter, Transport};

use super::*;
use crate::tap_streams::tap_plan::TapProfile;

const SECOND: i64 = 1_000_000_000;

/// A segment to the gateway at a time in seconds; its payload says which bytes of the stream it holds.
fn segment(seconds: f64, sequence: u32, length: u32) -> Segment<'static> {
    let payload: Vec<u8> = (sequence..sequence + length).map(|at| at as u8).collect();
    let (time_ns, direction, flags) = ((seconds * 1e9).round() as i64, Direction::ToGateway, Segment::ACK);
    let (payload, acknowledgement) = (&*payload.leak(), None);
    Segment { time_ns, flow: 1, direction, sequence, flags, length, payload, acknowledgement }
}

fn flow(flow: u64) -> Frame {
    let (gateway, service) = ("10.0.0.2".parse().unwrap(), "203.0.113.1:443".parse().unwrap());
    Flow::new(flow, gateway, service, Transport::Tcp).into()
}

fn frames(segments: &[Segment<'_>]) -> Vec<Frame> {
    let batches = segments.chunks(30).map(|segments| {
        let mut batch = Segments::new();
        for segment in segments {
            batch.push(*segment);
        }
        batch.into()
    });
    std::iter::once(flow(1)).chain(batches).collect()
}

fn stream(segments: &[Segment<'_>], summary: Option<Summary>) -> Vec<u8> {
    let (stage, version, upstream) = ("flow-filter".to_owned(), String::new(), vec!["capture".to_owned()]);
    let hello = Hello { schema: SCHEMA, stage, version, upstream };
    let mut writer = FrameWriter::new(Vec::new());
    writer.write(&hello.into()).unwrap();
    writer.write_all(&frames(segments)).unwrap();
    writer.write_all(&summary.map(Frame::from).into_iter().collect::<Vec<_>>()).unwrap();
    writer.into_output().unwrap()
}

fn plan(taps: &[&[Segment<'_>]]) -> TapPlan {
    let profiles = ["lan", "wan", "far"].iter().zip(taps).map(|(name, segments)| {
        let mut profile = TapProfile::new((*name).to_owned());
        for frame in frames(segments) {
            profile.add(&frame);
        }
        profile
    });
    TapPlan::of(profiles.collect())
}

/// All frames of the merged stream, and what became of the segments of each tap.
fn merged(taps: &[&[Segment<'_>]]) -> (Vec<Frame>, Vec<TapCounts>) {
    let row = StageSummary {
        stage: "flow-filter".to_owned(),
        frames_in: 10,
        counters: [("flows".to_owned(), 1)].into(),
        ..StageSummary::default()
    };
    let summary = Summary { stages: vec![row] };
    let streams: Vec<Vec<u8>> = taps.iter().map(|segments| stream(segments, Some(summary.clone()))).collect();
    let mut merged = MergedTaps::new(plan(taps), streams.iter().map(Vec::as_slice));
    let mut frames = Vec::new();
    while let Some(frame) = merged.next_frame().unwrap() {
        frames.push(frame);
    }
    (frames, merged.counts().to_vec())
}

/// Times in seconds, sequence numbers and lengths of the segments in a stream; each holds its bytes.
fn segments(frames: &[Frame]) -> Vec<(f64, u32, u32)> {
    let mut found = Vec::new();
    for frame in frames {
        let Frame::Segments(segments) = frame else { continue };
        for it in segments.iter() {
            assert!(it.payload.iter().zip(it.sequence..).all(|(byte, at)| *byte == at as u8), "{it:?}");
            found.push(((it.time_ns / 1_000_000) as f64 / 1000.0, it.sequence, it.length));
        }
    }
    found
}

#[test]
fn stream_is_whole_and_announces_each_flow_once() {
    let lan = [segment(1.0, 0, 50), segment(2.0, 50, 20), segment(4.0, 100, 20)];
    let wan = [segment(41.0, 0, 50), segment(43.0, 70, 30)];
    let (frames, _) = merged(&[&lan, &wan]);
    let kinds: Vec<&str> = frames.iter().map(Frame::kind).collect();
    assert_eq!(kinds, ["hello", "notice", "flow", "segments", "summary"]);
    let Some(Frame::Hello(hello)) = frames.first() else { panic!("{frames:?}") };
    assert_eq!((&*hello.stage, &*hello.upstream), ("taps", &["capture".to_owned(), "flow-filter".to_owned()][..]));
    let Some(Frame::Summary(summary)) = frames.last() else { panic!("{frames:?}") };
    let [filter, taps] = &*summary.stages else { panic!("{summary:?}") };
    assert_eq!((filter.frames_in, filter.counters["flows"]), (20, 2));
    assert_eq!((taps.frames_in, taps.frames_out, taps.bytes_in), (5, 4, 170));
    let counted = [("duplicate_bytes", 50), ("duplicate_segments", 1), ("filled_bytes", 30), ("filled_segments", 1)];
    assert_eq!(taps.counters, counted.map(|(name, count)| (name.to_owned(), count)).into());
}

#[test]
fn gap_is_filled_in_its_place_with_times_of_the_first_tap() {
    let lan = [segment(1.0, 0, 50), segment(2.0, 50, 20), segment(4.0, 100, 20)];
    let wan = [segment(41.0, 0, 50), segment(43.0, 70, 30)];
    let (frames, _) = merged(&[&lan, &wan]);
    assert_eq!(segments(&frames), [(1.0, 0, 50), (2.0, 50, 20), (3.0, 70, 30), (4.0, 100, 20)]);
    // The other one is the clock now, and the primary tap stays.
    let (frames, _) = merged(&[&wan, &lan]);
    assert_eq!(segments(&frames), [(41.0, 0, 50), (42.0, 50, 20), (43.0, 70, 30), (44.0, 100, 20)]);
}

#[test]
fn retransmissions_of_the_primary_tap_go_on_and_those_of_others_do_not() {
    let lan = [segment(1.0, 0, 50), segment(1.3, 0, 50), segment(2.0, 50, 50)];
    let wan = [segment(1.0, 0, 50), segment(1.6, 0, 50), segment(2.0, 50, 50), segment(9.0, 0, 50)];
    let (frames, counts) = merged(&[&lan, &wan]);
    assert_eq!(counts[0], TapCounts { duplicate_segments: 3, duplicate_bytes: 150, ..TapCounts::default() });
    let sent = [(1.0, 0, 50), (1.6, 0, 50), (2.0, 50, 50), (9.0, 0, 50)];
    assert_eq!(segments(&frames), sent, "the second tap saw more bytes");
}

#[test]
fn segments_of_another_length_fill_what_is_missing_of_them() {
    // The gateway's own capture has the segments before its network adapter cuts them.
    let mirror = [segment(1.0, 0, 100), segment(1.001, 100, 100), segment(1.003, 300, 100), segment(2.0, 400, 50)];
    let own = [segment(1.0, 0, 450), segment(2.0, 400, 50)];
    let (frames, counts) = merged(&[&mirror, &own[..1]]);
    assert_eq!(counts[1].primary_bytes, 450, "it captured more");
    assert_eq!(segments(&frames), [(1.0, 0, 450)]);
    let more = [&mirror[..], &[segment(3.0, 600, 300)]].concat();
    let (frames, counts) = merged(&[&more, &own]);
    assert_eq!((counts[1].filled_bytes, counts[1].duplicate_bytes), (100, 400));
    let expected =
        [(1.0, 0, 100), (1.0, 200, 100), (1.001, 100, 100), (1.003, 300, 100), (2.0, 400, 50), (3.0, 600, 300)];
    assert_eq!(segments(&frames), expected);
}

#[test]
fn third_tap_fills_what_both_others_miss() {
    let lan = [segment(1.0, 0, 50), segment(5.0, 200, 50)];
    let wan = [segment(11.0, 0, 50), segment(12.0, 50, 50)];
    let far = [segment(-8.0, 50, 50), segment(-7.0, 100, 100), segment(-5.0, 200, 50)];
    let (frames, counts) = merged(&[&lan, &wan, &far]);
    assert_eq!(segments(&frames), [(1.0, 0, 50), (2.0, 50, 50), (3.0, 100, 100), (5.0, 200, 50)]);
    assert_eq!([0, 1, 2].map(|tap| counts[tap].filled_bytes), [50, 0, 0], "the third one captured most");
    assert_eq!([0, 1, 2].map(|tap| counts[tap].duplicate_bytes), [50, 100, 0]);
}

#[test]
fn odd_time_of_a_packet_neither_holds_up_its_tap_nor_doubles_others() {
    let all: Vec<_> = (0..40).map(|at| segment(f64::from(at) / 10.0, at * 10, 10)).collect();
    let mut odd = all.clone();
    odd[20].time_ns += 3600 * SECOND;
    odd[30].time_ns -= 3600 * SECOND;
    let (frames, counts) = merged(&[&all, &odd]);
    assert_eq!((segments(&frames).len(), counts[1].duplicate_segments), (40, 40));
    let (frames, counts) = merged(&[&odd, &all]);
    assert_eq!((segments(&frames).len(), counts[1].duplicate_segments), (40, 40));
}

#[test]
fn stream_without_its_end_is_named() {
    let lan = [segment(1.0, 0, 50)];
    let streams = [stream(&lan, Some(Summary::default())), stream(&lan, None)];
    let mut merged = MergedTaps::new(plan(&[&lan, &lan]), streams.iter().map(Vec::as_slice));
    let fault = merged.next_frame().unwrap_err().to_string();
    assert!(fault.starts_with("tap `wan`: "), "{fault}");
    assert!(merged.next_frame().unwrap().is_none());
}

#[test]
fn heavy_traffic_shortens_the_window() {
    let all: Vec<_> = (0..3000).map(|at| segment(f64::from(at) / 1e5, at * 20_000, 20_000)).collect();
    let streams = [stream(&all, Some(Summary::default())), stream(&all, Some(Summary::default()))];
    let mut merged = MergedTaps::new(plan(&[&all, &all]), streams.iter().map(Vec::as_slice));
    let mut sent = 0;
    while let Some(frame) = merged.next_frame().unwrap() {
        assert!(merged.window_bytes <= WINDOW_BYTES);
        sent += if let Frame::Segments(segments) = frame { segments.len() } else { 0 };
    }
    assert_eq!(sent, 3000);
}
