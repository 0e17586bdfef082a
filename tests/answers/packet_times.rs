//! Captures whose times were lost or rewritten: their order alone carries.

use std::path::PathBuf;
use std::time::Duration;
use support::found;
use support::injected;

use support::found::{found, found_in, sizes};
use support::injected::Traffic;
use support::programs::write;
use tempfile::TempDir;

const GIVEN: [&str; 2] = ["--set", "capture.order=given"];
const UNTIMED: [&str; 4] = ["--set", "capture.order=untimed", "--set", "command-segmenter.algorithm=gap"];

/// The bundled capture cut into files where nothing was sent for two seconds, the times of each changed.
fn events(change: impl Fn(usize, Duration, Duration) -> Duration) -> (TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let traffic = Traffic::bundled().0;
    let events: Vec<_> = traffic.chunk_by(|one, next| next.0 < one.0 + Duration::from_secs(2)).collect();
    assert!(events.len() > 50, "{}", events.len());
    let files = events.iter().enumerate().map(|(at, packets)| {
        let start = packets[0].0;
        let dated = packets.iter().map(|(time, frame)| (change(at, start, *time), frame.clone()));
        write(folder.path(), &format!("event-{at:04}.pcap"), Traffic(dated.collect()).to_pcap())
    });
    let files = files.collect();
    (folder, files)
}

fn found_in_all(files: &[PathBuf], more: &[&str]) -> injected::Answers {
    found("command-segmenter", &files.iter().map(PathBuf::as_path).collect::<Vec<_>>(), more)
}

#[test]
fn one_file_an_event_that_begins_at_zero_gives_the_commands_of_the_whole_capture() {
    let whole = sizes(&found_in("command-segmenter", &Traffic::bundled().to_pcap(), &[]));
    let (_folder, files) = events(|_, start, time| time.saturating_sub(start));
    let given = found_in_all(&files, &GIVEN);
    assert_eq!(given.code, Some(0), "{}", given.stderr);
    assert_eq!(sizes(&given), whole);
    let notices = given.notices("clock");
    assert!(notices.iter().any(|notice| notice.contains("which go back, are not used")), "{notices:?}");
    assert_eq!(given.counter("command-segmenter", "odd_times"), 0);
}

#[test]
fn captures_that_begin_at_one_time_are_reported_where_they_would_be_mixed() {
    let (_folder, files) = events(|_, start, time| time.saturating_sub(start));
    let mixed = found_in_all(&files, &[]);
    let notices = mixed.notices("clock");
    assert!(notices.iter().any(|notice| notice.contains("--order given")), "{notices:?}");
    let (_folder, true_files) = events(|_, _, time| time);
    let notices = found_in_all(&true_files, &[]).notices("clock");
    assert!(!notices.iter().any(|notice| notice.contains("--order given")), "{notices:?}");
}

#[test]
fn files_at_their_true_times_keep_them_in_the_order_given() {
    let (_folder, files) = events(|_, _, time| time);
    let (given, merged) = (found_in_all(&files, &GIVEN), found_in_all(&files, &[]));
    assert_eq!(found::commands(&given), found::commands(&merged));
    assert_eq!(given.notices("clock"), [""; 0]);
}

/// As a publisher has rewritten them: a millisecond between packets.
#[test]
fn packets_a_millisecond_apart_give_each_event_its_command() {
    let (_folder, files) = events(|_, start, time| time.saturating_sub(start));
    let expected = sizes(&found_in_all(&files, &GIVEN)).len();
    let folder = tempfile::tempdir().unwrap();
    let rewritten = files.iter().enumerate().map(|(at, file)| {
        let mut packets = read(file);
        packets.iter_mut().zip(0..).for_each(|((time, _), number)| *time = Duration::from_millis(number));
        write(folder.path(), &format!("{at:04}.pcap"), Traffic(packets).to_pcap())
    });
    let rewritten: Vec<PathBuf> = rewritten.collect();
    let found = sizes(&found_in_all(&rewritten, &GIVEN)).len();
    println!("{found} of {expected}");
    assert!(found * 10 >= expected * 9);
}

fn read(file: &PathBuf) -> Vec<(Duration, Vec<u8>)> {
    Traffic::of(&std::fs::read(file).unwrap()).0
}

#[test]
fn records_come_in_order_whatever_their_times_are() {
    let whole = found::data(&found_in("record-sizer", &Traffic::bundled().to_pcap(), &[]));
    let all_equal = |_: usize, _: Duration| Duration::from_secs(1_700_000_000);
    let all_zero = |_: usize, _: Duration| Duration::ZERO;
    let wild =
        |at: usize, time: Duration| if at % 7 == 3 { time.saturating_sub(Duration::from_hours(9_000)) } else { time };
    let changes: [&dyn Fn(usize, Duration) -> Duration; 3] = [&all_equal, &all_zero, &wild];
    for (name, change) in ["equal", "zero", "wild"].into_iter().zip(changes) {
        let mut traffic = Traffic::bundled();
        traffic.0.iter_mut().enumerate().for_each(|(at, (time, _))| *time = change(at, *time));
        let records = found::data(&found_in("record-sizer", &traffic.to_pcap(), &GIVEN));
        assert_eq!(records.len(), whole.len(), "{name}");
        assert!(records == whole, "{name}");
    }
}

/// Whether the first list is in the second one, in this order, but for so many.
fn missing(expected: &[u64], found: &[u64]) -> usize {
    let mut rest = found.iter();
    expected
        .iter()
        .filter(|size| !rest.clone().any(|other| other == *size) || !rest.any(|other| other == *size))
        .count()
}

#[test]
fn times_that_stand_still_give_all_commands_where_no_time_is_used() {
    let whole = sizes(&found_in("command-segmenter", &Traffic::bundled().to_pcap(), &[]));
    let mut traffic = Traffic::bundled();
    traffic.0.iter_mut().for_each(|(time, _)| *time = Duration::ZERO);
    let given = found_in("command-segmenter", &traffic.to_pcap(), &GIVEN);
    assert!(
        given.notices("clock").iter().any(|notice| notice.contains("--order untimed")),
        "{:?}",
        given.notices("clock")
    );
    let untimed = found_in("command-segmenter", &traffic.to_pcap(), &UNTIMED);
    assert!(untimed.notices("clock").iter().any(|notice| notice.contains("no time of the")));
    let found = sizes(&untimed);
    let missing = missing(&whole, &found);
    println!("{missing} of {} commands are missing among {}", whole.len(), found.len());
    assert!(missing * 20 <= whole.len());
}
