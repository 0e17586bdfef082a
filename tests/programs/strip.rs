//! A stripped capture gives the results of the original, byte for byte, and holds no content.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Output;
use support::damage;
use support::injected;
use support::tool;

use flate2::Compression;
use flate2::write::GzEncoder;
use support::injected::Traffic;
use support::programs::{GATEWAY, example, root, sizeleak, stderr, stdout, write};
use support::tshark::{Seen, Tshark};
use tempfile::TempDir;

const SAME: &str = "the same records are found in it";

/// Ethernet and an IPv4 header.
const IP_HEADERS: usize = 34;

fn strip(capture: &Path, output: &Path, more: &[&str]) -> Output {
    sizeleak("strip").arg(capture).args(["--gateway", GATEWAY]).args(more).arg("-o").arg(output).output().unwrap()
}

/// The stripped capture, of which the program says that it gives the same records.
fn stripped(folder: &TempDir, capture: &Path, name: &str, more: &[&str]) -> PathBuf {
    let output = folder.path().join(name);
    let ran = strip(capture, &output, more);
    assert_eq!(ran.status.code(), Some(0), "{}", stderr(&ran));
    assert!(stderr(&ran).contains(SAME), "{}", stderr(&ran));
    output
}

fn bundled() -> PathBuf {
    root().join(example("test.pcap"))
}

/// What is found without a model: first the records, then the rest.
fn found(capture: &Path) -> Vec<u8> {
    let kinds = ["record", "flow,session,command,notice"].map(|kinds| {
        let mut run = sizeleak("run");
        // Elsewhere there is no pipeline.toml with a model.
        run.current_dir(root().join("examples/home"));
        run.arg(capture).args(["--gateway", GATEWAY, "--format", "ndjson", "--max-loss", "100"]);
        let found = stdout(run.args(["--kind", kinds]));
        assert!(!found.is_empty(), "{kinds}");
        found
    });
    kinds.concat()
}

#[test]
fn results_of_impaired_captures_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let pcap = Traffic::bundled().to_pcap();
    let from_the_middle = Traffic(Traffic::bundled().0.split_off(1000)).to_pcap();
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&pcap).unwrap();
    for (what, impaired) in [
        ("loss", damage::drop_packets(&pcap, 0.05, 1)),
        ("delay", damage::delay_packets(&pcap, 0.05, 2)),
        ("repetition", damage::repeat_packets(&pcap, 0.1, 3)),
        ("snaplen", damage::cut_packets(&pcap, 70)),
        ("headers alone", damage::cut_packets(&pcap, 54)),
        ("middle", from_the_middle),
        ("gzip", gzip.finish().unwrap()),
    ] {
        let capture = write(folder.path(), "impaired.pcap", impaired);
        let output = stripped(&folder, &capture, "stripped.pcap", &[]);
        assert!(found(&output) == found(&capture), "{what}");
    }
}

#[test]
#[ignore = "second tier: needs tshark"]
fn tshark_finds_the_same_records_and_right_checksums() {
    let folder = tempfile::tempdir().unwrap();
    let output = stripped(&folder, &bundled(), "stripped.pcap", &[]);
    let tshark = Tshark::new(folder.path());
    // Nothing is left of other devices' records.
    let gateways = |capture: &Path| -> Vec<Seen> {
        let ends = |seen: &Seen| [seen.source.ip().to_string(), seen.destination.ip().to_string()];
        tshark.records(capture, &[]).into_iter().filter(|seen| ends(seen).contains(&GATEWAY.to_owned())).collect()
    };
    let records = gateways(&bundled());
    assert!(records.len() > 600 && gateways(&output) == records);
    let mut wrong = std::process::Command::new("tshark");
    wrong.args(["-o", "tcp.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-r"]).arg(&output);
    wrong.args(["-Y", "tcp.checksum.status == 0 or udp.checksum.status == 0"]);
    assert_eq!(String::from_utf8(tool::output(&mut wrong).unwrap()).unwrap(), "");
}

#[test]
fn frames_of_other_devices_keep_their_headers_alone_or_are_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let mut traffic = Traffic::bundled();
    let secret = b"what the neighbour says";
    traffic.insert_behind(9, [injected::udp([192, 168, 1, 7], [192, 168, 1, 8], [4000, 4001], secret)]);
    let capture = write(folder.path(), "home.pcap", traffic.to_pcap());
    let has =
        |output: &Path, part: &[u8]| std::fs::read(output).unwrap().windows(part.len()).any(|window| window == part);
    let headers = traffic.0[10].1[14..IP_HEADERS].to_vec();
    assert!(has(&capture, secret));
    let zeroed = stripped(&folder, &capture, "zeroed.pcap", &[]);
    assert_eq!((has(&zeroed, secret), has(&zeroed, &headers)), (false, true));
    let dropped = stripped(&folder, &capture, "dropped.pcap", &["--drop-others"]);
    assert_eq!((has(&dropped, secret), has(&dropped, &headers)), (false, false));
}

#[test]
fn contradicting_packets_are_said_to_change_what_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let mut traffic = Traffic::bundled();
    let (place, sequence, ports) = traffic.gateway_data()[50];
    let forged = [&[23, 3, 3, 0, 90][..], &[7; 90]].concat();
    let forged = injected::tcp(injected::HOME, injected::SERVICE, ports, sequence, injected::Syn::Clear, &forged);
    traffic.insert_behind(place, [forged]);
    let capture = write(folder.path(), "forged.pcap", traffic.to_pcap());
    let output = folder.path().join("stripped.pcap");
    let said = stderr(&strip(&capture, &output, &[]));
    let is_same = found(&output) == found(&capture);
    assert_eq!(said.contains(SAME) && !said.contains("differ"), is_same, "{said}");
}
