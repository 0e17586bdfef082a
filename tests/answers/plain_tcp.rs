//! Connections without TLS: bursts of their segments stand for records where that is asked for.

use support::damage;
use support::found::{commands, found_in, sizes, without_tls};
use support::injected::Traffic;

const PLAIN: [&str; 2] = ["--set", "record-sizer.plain-tcp=true"];

#[test]
fn without_the_option_the_notice_names_it() {
    let found = found_in("command-segmenter", &without_tls().to_pcap(), &[]);
    assert_eq!((found.code, commands(&found).len()), (Some(0), 0), "{}", found.stderr);
    let notices = found.notices("not_tls");
    assert!(!notices.is_empty() && notices.iter().all(|notice| notice.contains("`plain-tcp`")), "{notices:?}");
    assert!(found.stderr.contains("carry no TLS record"), "{}", found.stderr);
    assert!(found.stderr.contains("TCP port 443") && found.stderr.contains("plain-tcp=true"), "{}", found.stderr);
}

#[test]
fn bursts_are_the_messages_that_tls_would_carry() {
    let tls = found_in("command-segmenter", &Traffic::bundled().to_pcap(), &[]);
    let plain = found_in("command-segmenter", &without_tls().to_pcap(), &PLAIN);
    assert_eq!(plain.code, Some(0), "{}", plain.stderr);
    assert!(
        plain.notices("not_tls").iter().all(|notice| notice.contains("each burst of segments stands for a record"))
    );
    // Each record of a command has a header of 5 bytes.
    let with_headers = |command: &serde_json::Value| {
        (
            command["time_ns"].as_i64().unwrap(),
            command["size"].as_u64().unwrap() + 5 * command["records"].as_u64().unwrap(),
        )
    };
    let expected: Vec<_> = tls.kind("command").iter().map(with_headers).collect();
    let found = commands(&plain);
    let same = expected.iter().filter(|command| found.contains(command)).count();
    println!("{same} of {} commands, {} found", expected.len(), found.len());
    assert!(same * 100 >= expected.len() * 97);
}

#[test]
fn connections_with_tls_are_sized_as_without_the_option() {
    let pcap = Traffic::bundled().to_pcap();
    let (usual, plain) = (found_in("command-segmenter", &pcap, &[]), found_in("command-segmenter", &pcap, &PLAIN));
    assert_eq!(commands(&plain), commands(&usual));
    assert_eq!(plain.notices("not_tls"), usual.notices("not_tls"));
}

#[test]
fn burst_ends_where_the_other_side_sends() {
    let pcap = without_tls().to_pcap();
    let long = [&PLAIN[..], &["--set", "record-sizer.burst-gap=1h"]].concat();
    let found = found_in("record-sizer", &pcap, &long);
    let (mut last, mut count) = (std::collections::BTreeMap::new(), 0);
    for record in found.kind("record") {
        let before = last.insert(record["flow"].as_str().unwrap().to_owned(), record["direction"].clone());
        assert_ne!(before.as_ref(), Some(&record["direction"]), "the sides take turns: {record}");
        count += 1;
    }
    assert!(count > 100, "{count}");
}

#[test]
fn snaplen_changes_no_burst() {
    let pcap = without_tls().to_pcap();
    let whole = found_in("command-segmenter", &pcap, &PLAIN);
    let cut = found_in("command-segmenter", &damage::cut_packets(&pcap, 96), &PLAIN);
    assert_eq!(sizes(&cut), sizes(&whole));
}
