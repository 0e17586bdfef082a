//! Live capture on a veth pair, in a network namespace of the test.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stderr)]

use std::net::UdpSocket;
use std::process::Command;
use std::thread;

use crate::{LiveCapture, Options};
use clap::Parser;
use sizeleak_frame::{Frame, Packets};
use sizeleak_platform::runtime::confinement::{complete, leave_root};
use sizeleak_platform::runtime::{
    ChannelInput, Input, Interrupt, Outcome, Received, Runnable, Sandbox, SilentObserver, SourceNode, StageOptions,
    channel,
};
use sizeleak_platform::telemetry::log::LogFlags;

/// Set in the process that has a namespace of its own.
const INSIDE: &str = "SIZELEAK_TEST_NAMESPACE";

/// Runs a test in a namespace of its own.
fn in_namespace(test: &str, content: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return content();
    }
    let program = std::env::current_exe().unwrap();
    let output = Command::new("unshare")
        .arg("--net")
        .arg(program)
        .args(["--exact", &format!("live::tests::{test}"), "--include-ignored", "--nocapture"])
        .env(INSIDE, "1")
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "second tier: needs root, unshare and ip"]
fn packets_are_emitted_as_they_arrive_until_the_user_stops() {
    in_namespace("packets_are_emitted_as_they_arrive_until_the_user_stops", packets_in_namespace);
}

#[test]
#[ignore = "second tier: needs root, unshare and ip"]
fn a_capture_that_has_left_root_and_is_confined_goes_on() {
    in_namespace("a_capture_that_has_left_root_and_is_confined_goes_on", confined_in_namespace);
}

#[test]
#[ignore = "second tier: needs root, unshare and ip"]
fn a_vanished_interface_and_invalid_filters_are_errors() {
    in_namespace("a_vanished_interface_and_invalid_filters_are_errors", failures_in_namespace);
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {output:?}");
}

/// Two ends of a cable: packets sent on `near` arrive on `far`.
fn cable() -> UdpSocket {
    ip("link add near type veth peer name far");
    ip("address add 10.99.0.1/24 dev near");
    ip("link set near up");
    ip("link set far up");
    let socket = UdpSocket::bind("10.99.0.1:9999").unwrap();
    socket.set_broadcast(true).unwrap();
    socket.connect("10.99.0.255:9999").unwrap();
    socket
}

fn receive(input: &mut ChannelInput, packets: usize) -> Vec<Vec<u8>> {
    let (mut frames, mut rows) = (Vec::new(), Vec::new());
    while rows.len() < packets {
        assert!(matches!(input.receive(&mut frames, &mut || {}), Ok(Received::Frames { .. })));
        for batch in frames.drain(..).filter_map(|frame| Packets::try_from(frame).ok()) {
            rows.extend(batch.iter().map(|packet| {
                assert_eq!((packet.link_type, packet.original_length), (1, 14 + 20 + 8 + 100));
                assert!(packet.time_ns > 1_600_000_000_000_000_000);
                packet.data.to_vec()
            }));
        }
    }
    rows
}

fn packets_in_namespace() {
    let socket = cable();
    let capture = LiveCapture::open("far", Some(60), Some("udp port 9999")).unwrap();
    let (mut output, mut input) = channel(8);
    let interrupt = Interrupt::new();
    let stop = interrupt.clone();
    let node =
        thread::spawn(move || Box::new(SourceNode::new(capture)).run(None, &mut output, &stop, &mut SilentObserver));
    for number in 0..5_u8 {
        socket.send(&[number; 100]).unwrap();
        // Each one arrives before the next is sent.
        let rows = receive(&mut input, 1);
        // Some kernels keep two bytes fewer than asked for.
        assert!(matches!(rows[0].len(), 58..=60) && rows[0][42..].iter().all(|byte| *byte == number), "{rows:?}");
    }
    interrupt.set();
    let mut frames = Vec::new();
    while !matches!(input.receive(&mut frames, &mut || {}), Ok(Received::End)) {}
    assert_eq!(node.join().unwrap(), Outcome::Interrupted);
    let Some(Frame::Summary(summary)) = frames.last() else { panic!("{frames:?}") };
    let counters = &summary.stages[0].counters;
    assert_eq!((summary.stages[0].frames_in, counters["snaplen_cut"], counters["kernel_drops"]), (5, 5, 0));
}

fn confined_in_namespace() {
    let socket = cable();
    let options = Options { interface: Some("far".into()), bpf: Some("udp port 9999".into()), ..Options::default() };
    let capture = options.build().unwrap();
    let access = options.access();
    leave_root(&access, |_| ()).unwrap();
    complete(Some(Sandbox::limit_files(&access)), "capture", &LogFlags::DEFAULT);
    let status = std::fs::read_to_string("/proc/self/status");
    assert!(status.is_err() && std::fs::read("/etc/passwd").is_err(), "{status:?}");
    // Only root may use a port below 1024.
    assert!(UdpSocket::bind("10.99.0.1:99").is_err());
    let (mut output, mut input) = channel(8);
    let interrupt = Interrupt::new();
    let stop = interrupt.clone();
    let node = thread::spawn(move || capture.run(None, &mut output, &stop, &mut SilentObserver));
    socket.send(&[7; 100]).unwrap();
    assert_eq!(receive(&mut input, 1)[0][42..], [7; 100]);
    interrupt.set();
    let mut frames = Vec::new();
    while !matches!(input.receive(&mut frames, &mut || {}), Ok(Received::End)) {}
    assert_eq!(node.join().unwrap(), Outcome::Interrupted);
    let Some(Frame::Summary(summary)) = frames.last() else { panic!("{frames:?}") };
    assert_eq!((summary.stages[0].frames_in, summary.stages[0].counters["kernel_drops"]), (1, 0));
}

fn failures_in_namespace() {
    drop(cable());
    let error = |interface: &str, filter| LiveCapture::open(interface, None, filter).err().unwrap().to_string();
    assert!(error("nowhere", None).starts_with("nowhere: "));
    assert!(error("far", Some("udp prot 9")).starts_with("the filter `udp prot 9`: "));
    let capture = LiveCapture::open("far", None, None).unwrap();
    let (mut output, input) = channel(1_000);
    let node = thread::spawn(move || {
        Box::new(SourceNode::new(capture)).run(None, &mut output, &Interrupt::new(), &mut SilentObserver)
    });
    ip("link delete near");
    let outcome = node.join().unwrap();
    assert!(matches!(&outcome, Outcome::Failed(cause) if cause.starts_with("far: ")), "{outcome:?}");
    drop(input);
}

#[derive(Debug, Parser)]
struct Program {
    #[command(flatten)]
    options: Options,
}

#[test]
fn an_interface_and_files_exclude_each_other() {
    let parse = |line: &str| Program::try_parse_from(line.split(' ')).map(|program| program.options);
    assert!(parse("capture --interface far x.pcap").is_err());
    assert!(parse("capture --snaplen 60").is_err());
    let without = Options { snaplen: Some(60), files: vec!["x".into()], ..Options::default() };
    assert!(without.build().err().unwrap().to_string().contains("none is named"));
    let options = parse("capture --interface nowhere --snaplen 60 --bpf tcp").unwrap();
    assert!(options.build().err().unwrap().to_string().contains("nowhere"));
    let both = Options { files: vec!["x".into()], ..options };
    assert!(both.build().err().unwrap().to_string().contains("at once"));
}
