//! Captures of headers alone: the lengths of segments stand for records.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod damage;
mod found;
mod injected;
mod programs;

use std::time::Duration;

use found::{commands, data, found_in};
use injected::Traffic;

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

/// Each packet again, some time later, cut to these bytes or whole.
fn retransmitted(pcap: &[u8], snaplen: usize, again: usize, later: Duration) -> Vec<u8> {
    damage::repeat_cut_packets(&damage::cut_packets(pcap, snaplen), again, later)
}

#[test]
fn cut_retransmission_is_no_new_record() {
    let pcap = Traffic::bundled().to_pcap();
    for snaplen in [HEADERS, 96, 65_535] {
        let expected = data(&found_in("record-sizer", &damage::cut_packets(&pcap, snaplen), &[]));
        for again in [HEADERS, HEADERS + 2, 96] {
            for later in [Duration::from_micros(10), Duration::from_millis(300), Duration::from_secs(4)] {
                let repeated = retransmitted(&pcap, snaplen, again.min(snaplen), later);
                let found = data(&found_in("record-sizer", &repeated, &[]));
                assert_eq!(found.len(), expected.len(), "{snaplen} bytes, again {again} {later:?} later");
            }
        }
    }
}
