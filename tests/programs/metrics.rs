//! Metrics are served during a run, only to this machine, and no client delays its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};
use support::programs;

use support::programs::{GATEWAY, example, pipe, root, seven, sizeleak, stderr, wait_for, with};

/// The longest wait.
const PATIENCE: Duration = Duration::from_mins(1);

/// A program that waits for more on its stdin and serves metrics.
struct Served {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: BufReader<std::process::ChildStderr>,
    address: String,
}

impl Served {
    fn start(command: &mut Command) -> Self {
        let piped = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = piped.spawn().unwrap();
        let (stdin, mut messages) = (child.stdin.take(), BufReader::new(child.stderr.take().unwrap()));
        let mut said = String::new();
        messages.read_line(&mut said).unwrap();
        let address = said.trim_end().split_once(": metrics at http://").and_then(|(_, url)| url.split_once('/'));
        let Some((address, "metrics")) = address else { panic!("{said}") };
        Self { child, stdin, messages, address: address.to_owned() }
    }

    fn send(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(bytes).and_then(|()| stdin.flush()).unwrap();
    }

    fn metrics(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
        assert!(head.contains("Content-Type: application/openmetrics-text"), "{head}");
        body.to_owned()
    }

    /// Waits until all of these lines are among the metrics.
    fn wait_for(&self, lines: &[&str]) -> String {
        wait_for(|| {
            let metrics = self.metrics();
            let are_there = lines.iter().all(|wanted| metrics.lines().any(|line| line == *wanted));
            if are_there { Ok(metrics) } else { Err(format!("not all of {lines:?} in\n{metrics}")) }
        })
    }

    /// Closes its stdin and waits for its end; returns its remaining messages.
    fn end(mut self) -> String {
        drop(self.stdin.take());
        let mut said = String::new();
        self.messages.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().unwrap().success(), "{said}");
        assert!(TcpStream::connect(&self.address).is_err(), "nothing is served after the end");
        said
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended already.
        let _gone = self.child.kill();
        let _status = self.child.wait();
    }
}

fn run(mode: &str) -> Command {
    let model = example("model.toml");
    sizeleak(&format!("run pipeline.toml - --gateway {GATEWAY} --model {model} --mode {mode} --metrics 127.0.0.1:0"))
}

fn capture() -> Vec<u8> {
    std::fs::read(root().join(example("test.pcap"))).unwrap()
}

/// The numbers of the whole capture, when all of it was read and the run has not ended.
#[test]
fn metrics_grow_during_the_run() {
    let mut served = Served::start(&mut run("threads"));
    let before = served.metrics();
    assert!(before.contains("sizeleak_frames_in_total{stage=\"pruner\"} 0\n"), "{before}");
    let capture = capture();
    let (beginning, rest) = capture.split_at(capture.len() / 2);
    served.send(beginning);
    let read = format!("sizeleak_input_read_bytes_total {}", beginning.len());
    let half = served.wait_for(&[&read]);
    assert!(!half.contains("input_size"), "the size of a pipe's input is unknown: {half}");
    served.send(rest);
    let whole = served.wait_for(&[
        &format!("sizeleak_input_read_bytes_total {}", capture.len()),
        "sizeleak_frames_in_total{stage=\"capture\"} 3480",
        "sizeleak_frames_in_total{stage=\"flow-filter\"} 3480",
        "sizeleak_frames_in_total{stage=\"record-sizer\"} 3342",
        "sizeleak_service_seconds_count{stage=\"record-sizer\"} 3342",
        "sizeleak_service_seconds_bucket{le=\"+Inf\",stage=\"record-sizer\"} 3342",
        "sizeleak_output_frames_total{kind=\"session\"} 4",
        "sizeleak_notices_total{stage=\"epsilon-corrector\",what=\"assumed\"} 1",
    ]);
    assert!(whole.ends_with("# EOF\n"), "{whole}");
    assert!(served.end().contains("identification 307"));
}

/// How Prometheus itself parses them.
#[test]
#[ignore = "second tier: needs python3 with prometheus-client"]
fn prometheus_client_parses_the_metrics() {
    let mut served = Served::start(&mut run("threads"));
    served.send(&capture());
    let metrics = served.wait_for(&["sizeleak_frames_in_total{stage=\"record-sizer\"} 3342"]);
    served.end();
    let script = "import sys\n\
                  from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
                  for family in parse(sys.stdin.read()):\n    print(family.name, family.type, len(family.samples))";
    let mut python = Command::new("python3");
    python.args(["-c", script]);
    let output = programs::feed(python, metrics.into_bytes());
    let families = String::from_utf8(output.stdout.clone()).unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    for family in [
        "sizeleak_build info 1",
        "sizeleak_frames_in counter 7",
        "sizeleak_traffic_in_bytes counter 7",
        "sizeleak_service_seconds histogram 196",
        "sizeleak_queue_seconds histogram 196",
    ] {
        assert!(families.lines().any(|line| line == family), "no {family} in\n{families}");
    }
}

#[test]
fn runner_counts_the_output_of_stages_in_processes() {
    let mut served = Served::start(&mut run("processes"));
    served.send(&capture());
    let metrics = served.wait_for(&["sizeleak_output_frames_total{kind=\"session\"} 4"]);
    assert!(!metrics.contains("stage=\"capture\""), "{metrics}");
    assert!(served.end().contains("identification 307"));
}

/// A page of another host whose name resolves to this machine.
#[test]
fn requests_to_other_hosts_get_no_metrics() {
    let mut served = Served::start(&mut run("threads"));
    served.send(&capture());
    let ask = |host: &str| {
        let mut stream = TcpStream::connect(&served.address).unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    for host in ["rebound.example", "rebound.example:9464", "192.168.1.20"] {
        let answer = ask(host);
        assert!(answer.starts_with("HTTP/1.1 403 ") && !answer.contains("sizeleak_frames"), "{host}: {answer}");
    }
    for host in ["localhost:9464", &served.address] {
        assert!(ask(host).starts_with("HTTP/1.1 200 "), "{host}");
    }
    served.end();
}

#[test]
fn silent_client_does_not_delay_the_end() {
    let mut served = Served::start(&mut run("threads"));
    let mut silent = TcpStream::connect(&served.address).unwrap();
    silent.write_all(b"GET /metr").unwrap();
    served.send(&capture());
    let started = Instant::now();
    served.end();
    assert!(started.elapsed() < PATIENCE);
    drop(silent);
}

#[test]
fn program_of_a_pipe_serves_its_own_metrics() {
    let segments = pipe(seven(&example("test.pcap")).into_iter().take(2).collect()).remove(1).stdout;
    let mut served = Served::start(&mut with("record-sizer", "--metrics localhost:0"));
    served.send(&segments);
    let metrics = served.wait_for(&[
        &format!("sizeleak_input_read_bytes_total {}", segments.len()),
        "sizeleak_frames_in_total{stage=\"record-sizer\"} 3342",
        "sizeleak_frames_out_total{stage=\"record-sizer\"} 1978",
    ]);
    assert!(!metrics.contains("stage=\"capture\""), "{metrics}");
    served.end();
}
