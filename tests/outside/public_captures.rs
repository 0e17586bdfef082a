//! Every TLS record of public captures compared with tshark's: direction, content type, length.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use support::public;

use sizeleak_frame::{Direction, Protocol, Record};
use support::alignment::align;
use support::chain::{FlowFinder, Sized};
use support::tshark::{Seen, Tshark};

/// Captures of TLS on ports of other protocols: tshark must be given the ports, the sizer goes by content.
const TLS_PORTS: [(&str, &[&str]); 5] = [
    ("ndpi/KakaoTalk_talk.pcap", &["tcp.port==8080,tls"]),
    ("ndpi/anyconnect-vpn.pcap", &["tcp.port==5223,tls", "tcp.port==8009,tls"]),
    ("ndpi/anydesk.pcap", &["tcp.port==80,tls"]),
    ("ndpi/rdp.pcap", &["tcp.port==3389,tls"]),
    ("ndpi/tls_port_80.pcapng", &["tcp.port==80,tls"]),
];

/// A capture in which ours and tshark's records differ.
struct Known {
    /// Package and file name.
    capture: &'static str,
    /// At most this many of tshark's records are missing here.
    missing: usize,
    /// At most this many records here are missing from tshark's.
    extra: usize,
    /// Why.
    reason: &'static str,
}

const KNOWN: &[Known] = &[
    Known {
        capture: "ndpi/443-chrome.pcap",
        missing: 0,
        extra: 1,
        reason: "The capture is one segment from the middle of a connection; its last bytes are a whole record, \
                 which tshark takes for the rest of another.",
    },
    Known {
        capture: "ndpi/443-opvn.pcap",
        missing: 9,
        extra: 0,
        reason: "OpenVPN carries a TLS handshake in packets of its own, so that its connection is named and not sized.",
    },
    Known {
        capture: "ndpi/KakaoTalk_chat.pcap",
        missing: 0,
        extra: 11,
        reason: "A second SYN of the service has another sequence number; tshark then takes all it sends for \
                 retransmissions.",
    },
    Known {
        capture: "ndpi/capwap.pcap",
        missing: 223,
        extra: 0,
        reason: "DTLS is inside CAPWAP, whose own header comes before each record.",
    },
    Known {
        capture: "ndpi/dtls.pcap",
        missing: 1,
        extra: 0,
        reason: "The same datagram was captured twice; its record, with the same number, counts once.",
    },
    Known {
        capture: "ndpi/instagram.pcap",
        missing: 0,
        extra: 3,
        reason: "After a gap in a record tshark waits forever; the record boundary behind it is known from the length.",
    },
    Known {
        capture: "ndpi/ja3_lots_of_cipher_suites_2_anon.pcap",
        missing: 11,
        extra: 0,
        reason: "TLS is inside GTP, a tunnel of mobile networks that the filter does not read.",
    },
    Known {
        capture: "ndpi/netflix.pcap",
        missing: 0,
        extra: 75,
        reason: "After a gap in a record tshark gives up the direction; the sizer goes on.",
    },
    Known {
        capture: "ndpi/openvpn.pcap",
        missing: 0,
        extra: 18,
        reason: "OpenVPN carries a TLS handshake in packets of its own, which tshark shows as OpenVPN's alone.",
    },
    Known {
        capture: "ndpi/skype.pcap",
        missing: 0,
        extra: 10,
        reason: "On ports of its own Skype opens connections with empty records, from which tshark does not yet \
                 recognise TLS.",
    },
    Known {
        capture: "ndpi/skype_no_unknown.pcap",
        missing: 2,
        extra: 15,
        reason: "As skype.pcap; and two records that tshark sees begin in the middle of a connection that is not TLS.",
    },
    Known {
        capture: "ndpi/tls_invalid_reads.pcap",
        missing: 1,
        extra: 1,
        reason: "Made to break parsers: TLS inside GTP, and a record of 473 bytes behind one that claims more than there \
                 is, whose frame tshark does not list.",
    },
    Known {
        capture: "ndpi/wechat.pcap",
        missing: 0,
        extra: 48,
        reason: "The capture lacks whole records of a connection; tshark gives up both directions, the sizer goes on.",
    },
    Known {
        capture: "wireshark/retrans-tls.pcap",
        missing: 1,
        extra: 0,
        reason: "The one record begins in a keep-alive probe of one byte, in the middle of a connection, and nothing \
                 follows it.",
    },
    Known {
        capture: "wireshark/wireguard-ping-tcp-dsb.pcapng",
        missing: 1,
        extra: 0,
        reason: "TLS is inside WireGuard, which tshark decrypts with keys in the capture.",
    },
];

/// What identifies a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Shape {
    content_type: u8,
    length: u32,
}

/// The comparison of one capture.
#[derive(Debug, Default)]
struct Comparison {
    name: String,
    tls: Tally,
    dtls: Tally,
}

#[derive(Debug, Default)]
struct Tally {
    expected: usize,
    missing: Vec<String>,
    extra: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: &Self) {
        self.expected += other.expected;
        self.missing.extend_from_slice(&other.missing);
        self.extra.extend_from_slice(&other.extra);
    }

    fn differs(&self) -> bool {
        !self.missing.is_empty() || !self.extra.is_empty()
    }

    fn percent(&self, count: usize) -> f64 {
        100.0 * count as f64 / self.expected.max(1) as f64
    }
}

#[test]
#[ignore = "second tier: needs tshark, and apt-get with the network once"]
fn record_lengths_are_those_of_tshark() {
    let captures = public::captures();
    let tshark = Tshark::new(&public::cache().join("tshark"));
    let compared = on_two_threads(&captures, |(name, path)| compare(name, path, &tshark));
    let with_tls = compared.iter().filter(|one| one.tls.expected > 0).count();

    let (mut tls, mut dtls) = (Tally::default(), Tally::default());
    for one in &compared {
        tls.add(&one.tls);
        dtls.add(&one.dtls);
        show(one);
    }
    for (what, total) in [("TLS", &tls), ("DTLS", &dtls)] {
        println!(
            "{with_tls} captures, {} {what} records, {} missing ({:.3} %), {} extra ({:.3} %)",
            total.expected,
            total.missing.len(),
            total.percent(total.missing.len()),
            total.extra.len(),
            total.percent(total.extra.len()),
        );
    }
    let unknown: Vec<&str> = compared.iter().filter(|one| !is_as_known(one)).map(|one| one.name.as_str()).collect();
    assert!(unknown.is_empty(), "these differ for no known reason: {unknown:?}");
    assert!(with_tls >= 60, "{with_tls} captures with TLS");
    assert!(tls.expected > 20_000, "{} records", tls.expected);
    assert!(tls.percent(tls.missing.len()) <= 0.5);
    assert!(tls.percent(tls.extra.len()) <= 1.0);
}

fn shape(seen: &Seen) -> Shape {
    Shape { content_type: seen.content_type, length: seen.length }
}

fn show(one: &Comparison) {
    for (what, tally) in [("TLS", &one.tls), ("DTLS", &one.dtls)] {
        if !tally.differs() {
            continue;
        }
        let (missing, extra) = (tally.missing.len(), tally.extra.len());
        println!("{}: {} {what} records, {missing} missing, {extra} extra", one.name, tally.expected);
        let some = |list: &[String], sign: char| list.iter().take(6).for_each(|entry| println!("    {sign} {entry}"));
        some(&tally.missing, '-');
        some(&tally.extra, '+');
        if let Some(known) = KNOWN.iter().find(|known| known.capture == one.name) {
            println!("    {}", known.reason);
        }
    }
}

fn is_as_known(one: &Comparison) -> bool {
    let (most_missing, most_extra) =
        KNOWN.iter().find(|known| known.capture == one.name).map_or((0, 0), |known| (known.missing, known.extra));
    one.tls.missing.len() + one.dtls.missing.len() <= most_missing
        && one.tls.extra.len() + one.dtls.extra.len() <= most_extra
}

fn compare(name: &str, path: &Path, tshark: &Tshark) -> Comparison {
    let sized = Sized::of(path, None);
    let mut flow_finder = FlowFinder::new(&sized);
    let mut comparison = Comparison { name: name.to_owned(), ..Comparison::default() };

    // By flow and direction; records in no flow of ours are all missing.
    let mut theirs: BTreeMap<(u64, Direction), Vec<Seen>> = BTreeMap::new();
    let tls_ports = TLS_PORTS.iter().find(|(capture, _)| *capture == name).map_or(&[][..], |(_, ports)| ports);
    for seen in tshark.records(path, tls_ports) {
        let tally = if seen.is_dtls { &mut comparison.dtls } else { &mut comparison.tls };
        tally.expected += 1;
        match flow_finder.find(seen.source, seen.destination, seen.time_ns, seen.sequence) {
            Some(place) => theirs.entry(place).or_default().push(seen),
            None => tally.missing.push(format!("in no flow: {seen:?}")),
        }
    }
    // Where no header was captured, the lengths of segments stand for records, of which tshark knows nothing.
    let is_by_segments =
        |flow: u64| sized.notices.iter().any(|notice| notice.what == "assumed" && notice.flow == Some(flow));
    let mut ours = sized.by_direction();
    for place in theirs.keys() {
        ours.entry(*place).or_default();
    }
    for (place, found) in ours {
        let expected = theirs.remove(&place).unwrap_or_default();
        let tally = if sized.is_udp(place.0) { &mut comparison.dtls } else { &mut comparison.tls };
        let theirs: Vec<Shape> = expected.iter().map(shape).collect();
        // Other protocols are not tshark's TLS or DTLS.
        let is_tls = |record: &&&Record| matches!(record.protocol, Protocol::Tls | Protocol::Dtls | Protocol::Dtls13);
        let ours: Vec<Shape> = found
            .iter()
            .filter(is_tls)
            .map(|record| Shape { content_type: record.content_type.into(), length: record.length })
            .collect();
        let aligned = align(&theirs, &ours);
        let flow = sized
            .flows
            .get(&place.0)
            .map_or_else(String::new, |flow| format!("{} {} {}", flow.gateway, place.1.word(), flow.service));
        let describe = |missed: &Shape| {
            let frames: Vec<u64> =
                expected.iter().filter(|seen| shape(seen) == *missed).map(|seen| seen.frame).take(3).collect();
            format!(
                "{flow}: type {} of {} bytes, like frames {frames:?}, of {} there",
                missed.content_type,
                missed.length,
                expected.len()
            )
        };
        tally.missing.extend(aligned.missing.iter().map(describe));
        if !is_by_segments(place.0) {
            tally.extra.extend(aligned.extra.iter().map(describe));
        }
    }
    comparison
}

/// The results for all items, in order.
fn on_two_threads<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((index, item)) = {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    items.get(index).map(|item| (index, item))
                } {
                    let result = work(item);
                    done.lock().unwrap().insert(index, result);
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}
