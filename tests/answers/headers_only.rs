//! Captures of headers alone: the lengths of segments stand for records.

use std::time::Duration;
use support::damage;

use support::found::{commands, data, found_in};
use support::injected::Traffic;

/// Ethernet, IPv4 and TCP without options.
const HEADERS: usize = 54;

fn is_about_segments(notices: &[String]) -> bool {
    !notices.is_empty() && notices.iter().all(|notice| notice.contains("the lengths of segments stand for records"))
}

#[test]
fn headers_alone_give_the_commands_that_whole_packets_give() {
    let pcap = Traffic::bundled().to_pcap();
    let (whole, cut) = (found_in("command-segmenter", &pcap, &[]), damage::cut_packets(&pcap, HEADERS));
    let headers = found_in("command-segmenter", &cut, &[]);
    assert_eq!(headers.code, Some(0), "{}", headers.stderr);
    assert!(is_about_segments(&headers.notices("assumed")), "{:?}", headers.notices("assumed"));
    assert_eq!(headers.notices("not_tls"), [""; 0]);
    let (expected, found) = (commands(&whole), commands(&headers));
    let same = expected.iter().filter(|command| found.contains(command)).count();
    println!("{same} of {} commands, {} found", expected.len(), found.len());
    assert!(same * 100 >= expected.len() * 97 && found.len() * 100 <= expected.len() * 103);
}

#[test]
fn snaplen_that_leaves_the_record_header_changes_nothing() {
    let pcap = Traffic::bundled().to_pcap();
    let whole = found_in("record-sizer", &pcap, &[]);
    for snaplen in [HEADERS + 5, 96] {
        let cut = found_in("record-sizer", &damage::cut_packets(&pcap, snaplen), &[]);
        assert_eq!(cut.notices("assumed"), [""; 0]);
        assert_eq!(data(&cut).len(), data(&whole).len(), "{snaplen}");
    }
    let beheaded = found_in("record-sizer", &damage::cut_packets(&pcap, HEADERS + 4), &[]);
    assert!(is_about_segments(&beheaded.notices("assumed")));
}

/// The records of data where each packet comes again so much later, cut to `again` bytes.
fn data_with_retransmissions(cut: &[u8], again: usize, later: Duration) -> usize {
    data(&found_in("record-sizer", &damage::repeat_cut_packets(cut, again, later), &[])).len()
}

#[test]
fn cut_retransmission_is_no_new_record() {
    let pcap = Traffic::bundled().to_pcap();
    for snaplen in [HEADERS, 96, 65_535] {
        let cut = damage::cut_packets(&pcap, snaplen);
        let expected = data(&found_in("record-sizer", &cut, &[])).len();
        for again in [HEADERS, HEADERS + 2, 96] {
            for later in [Duration::from_micros(10), Duration::from_millis(300)] {
                let found = data_with_retransmissions(&cut, again.min(snaplen), later);
                assert_eq!(found, expected, "{snaplen} bytes, again {again} {later:?} later");
            }
        }
        // Data that was acknowledged long ago is not retransmitted: with other headers it is another connection's.
        let late = data_with_retransmissions(&cut, HEADERS + 2, Duration::from_secs(4));
        assert_eq!(late, expected, "{snaplen} bytes, late");
    }
}
