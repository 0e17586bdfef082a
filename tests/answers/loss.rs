//! Payload that was not used is a figure: in the summary, on stderr, by connection, and in the exit code.

use std::fs;
use support::damage;

use support::injected::{Answers, run};
use support::programs::{example, root, write};

/// The bundled capture without a share of its packets.
fn damaged(share: f64) -> Vec<u8> {
    damage::drop_packets(&fs::read(root().join(example("test.pcap"))).unwrap(), share, 1)
}

fn answers(pcap: &[u8], more: &[&str]) -> Answers {
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "damaged.pcap", pcap);
    Answers::of(&run(&[&file], &[&["--kind", "notice,identification,summary"], more].concat()))
}

#[test]
fn loss_above_the_limit_has_its_own_exit_code_and_all_answers_are_written() {
    let pcap = damaged(0.2);
    let lossy = answers(&pcap, &[]);
    let (payload, lost) = ["payload_bytes", "lost_bytes"].map(|name| lossy.counter("record-sizer", name)).into();
    assert!(lost * 100 > payload * 10 && lost * 100 < payload * 40, "{lost} of {payload}");
    assert_eq!(lossy.code, Some(4), "{}", lossy.stderr);
    let percent = format!("{:.2} % of", lost as f64 * 100.0 / payload as f64);
    assert!(lossy.stderr.contains(&percent) && lossy.stderr.contains("`--max-loss`"), "{}", lossy.stderr);

    let allowed = answers(&pcap, &["--max-loss", "50%"]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
    assert_eq!(allowed.untunnelled(), lossy.untunnelled());
    assert!(allowed.stderr.contains("not used") && !allowed.stderr.contains("--max-loss"), "{}", allowed.stderr);
}

#[test]
fn loss_is_reported_for_each_connection_and_the_worst_for_the_run() {
    let lossy = answers(&damaged(0.05), &["--max-loss", "100"]);
    let lost: u64 = lossy
        .kind("notice")
        .iter()
        .filter(|notice| notice["what"] == "loss")
        .map(|notice| {
            assert!(
                notice["flow"].is_string() && notice["detail"].as_str().unwrap().contains(" % of the connection's ")
            );
            notice["bytes"].as_u64().unwrap()
        })
        .sum();
    assert!(lost > 0);
    assert_eq!(lost, lossy.counter("record-sizer", "lost_bytes"));
    let worst = lossy.counter("record-sizer", "worst_loss_millionths");
    let all = lost * 1_000_000 / lossy.counter("record-sizer", "payload_bytes");
    assert!(worst >= all && worst <= 1_000_000, "{worst} of {all}");
}

#[test]
fn whole_capture_loses_nothing_and_wrong_limits_are_usage_errors() {
    let whole = answers(&damaged(0.0), &["--max-loss", "0"]);
    assert_eq!((whole.code, whole.counter("record-sizer", "lost_bytes")), (Some(0), 0), "{}", whole.stderr);
    assert!(whole.counter("record-sizer", "payload_bytes") > 100_000);
    for wrong in ["-1", "101", "many"] {
        assert_eq!(answers(&damaged(0.0), &[&format!("--max-loss={wrong}")]).code, Some(2), "{wrong}");
    }
}
