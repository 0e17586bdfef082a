//! Tests of `metrics`.

use std::net::Ipv4Addr;

use super::*;
use crate::telemetry::Tally;

fn server() -> MetricsServer {
    let telemetry = Telemetry::new();
    telemetry.meter("capture");
    MetricsServer::start((Ipv4Addr::LOCALHOST, 0).into(), telemetry).unwrap()
}

fn asked_for(server: &MetricsServer, request: &str, host: &str) -> String {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(format!("{request} HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn ask(server: &MetricsServer, request: &str) -> String {
    asked_for(server, request, "localhost")
}

#[test]
fn only_get_and_head_of_the_metrics_succeed() {
    let server = server();
    for request in ["GET /metrics", "GET /metrics?x=1"] {
        let answer = ask(&server, request);
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("# EOF\n"), "{answer}");
    }
    let head = ask(&server, "HEAD /metrics");
    assert!(head.starts_with("HTTP/1.1 200 ") && head.ends_with("\r\n\r\n"), "{head}");
    for (request, status) in [("GET /", "404"), ("POST /metrics", "405")] {
        let answer = ask(&server, request);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
    }
}

#[test]
fn page_of_another_host_gets_no_metrics() {
    let server = server();
    for host in ["evil.example", &format!("evil.example:{}", server.address.port())] {
        let answer = asked_for(&server, "GET /metrics", host);
        assert!(answer.starts_with("HTTP/1.1 403 ") && !answer.contains("sizeleak_"), "{answer}");
    }
    assert!(asked_for(&server, "GET /metrics", &server.address.to_string()).starts_with("HTTP/1.1 200 "));
}

#[test]
fn silent_clients_delay_neither_others_nor_the_end() {
    let server = server();
    let silent = (0..5 * MAX_CONNECTIONS).map(|number| {
        let mut stream = TcpStream::connect(server.address).unwrap();
        if number % 2 == 0 {
            stream.write_all(b"GET /met").unwrap();
        }
        stream
    });
    let mut silent: Vec<TcpStream> = silent.collect();
    assert!(ask(&server, "GET /metrics").ends_with("# EOF\n"));
    // The oldest ones are closed, not the youngest.
    let mut rest = Vec::new();
    let _reset_or_end = silent[1].read_to_end(&mut rest);
    assert!(rest.is_empty());
    let youngest = silent.last_mut().unwrap();
    youngest.write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    youngest.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("# EOF\n"), "{answer}");
    drop(server);
    drop(silent);
}

#[test]
fn endless_request_is_refused_and_its_connection_closed() {
    let server = server();
    let mut stream = TcpStream::connect(server.address).unwrap();
    let endless = format!("GET /metrics HTTP/1.1\r\nHost: {}", "x".repeat(10 * MAX_REQUEST_BYTES));
    // The server may close the connection before it has read everything.
    let _written = stream.write_all(endless.as_bytes());
    let mut answer = Vec::new();
    let _reset_or_end = stream.read_to_end(&mut answer);
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431 "));
    assert!(ask(&server, "GET /metrics").ends_with("# EOF\n"));
}

#[test]
fn address_is_free_again_after_the_end() {
    let server = server();
    let address = server.address;
    drop(server);
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn occupied_port_is_an_error() {
    let server = server();
    assert!(MetricsServer::start(server.address, Telemetry::new()).is_err());
}

const BOUND: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 9464);

fn parsed(request: &str) -> Option<RequestVerdict> {
    parse_request(request.as_bytes(), BOUND)
}

fn with_host(host: &str) -> Option<RequestVerdict> {
    parsed(&format!("GET /metrics HTTP/1.1\r\nAccept: */*\r\nhost: {host}\r\n\r\n"))
}

#[test]
fn only_names_and_addresses_of_this_machine_are_hosts() {
    for host in [
        "localhost",
        "LocalHost:9464",
        "localhost.",
        "127.0.0.1",
        "127.0.0.1:1",
        "127.8.8.8:80",
        "[::1]",
        "[::1]:9464",
        " localhost ",
    ] {
        assert_eq!(with_host(host), Some(RequestVerdict::Metrics), "{host}");
    }
    for host in [
        "evil.example",
        "evil.example:9464",
        "localhost.evil.example",
        "192.168.1.20:9464",
        "0.0.0.0",
        "localhost:",
        "localhost:x",
        "",
        "x@localhost",
        "127.0.0.1.evil.example",
        "[::ffff:10.0.0.1]",
        "a:b:c",
    ] {
        assert_eq!(with_host(host), Some(RequestVerdict::ForeignHost), "{host}");
    }
}

#[test]
fn every_other_request_has_its_refusal() {
    let long = format!("GET /metrics HTTP/1.1\r\nA: {}", "x".repeat(MAX_REQUEST_BYTES));
    let many = format!("GET /metrics HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(MAX_HEADERS + 1));
    for (request, verdict) in [
        ("GET /metrics HTTP/1.0\r\n\r\n", RequestVerdict::Metrics),
        ("HEAD /metrics?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::MetricsHead),
        ("GET http://localhost/metrics HTTP/1.1\r\nHost: x\r\n\r\n", RequestVerdict::Metrics),
        ("GET http://evil.example/metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::ForeignHost),
        ("GET http://localhost HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::NotFound),
        ("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::NotFound),
        ("GET /metrics/ HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::NotFound),
        ("POST /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", RequestVerdict::MethodNotAllowed),
        ("GET /metrics HTTP/1.1\r\n\r\n", RequestVerdict::Malformed),
        ("GET /metrics HTTP/1.1\r\nHost: localhost\r\nHost: x\r\n\r\n", RequestVerdict::Malformed),
        ("\u{16}\u{3}\u{1}\u{2}\0\u{1}", RequestVerdict::Malformed),
        (&long, RequestVerdict::TooLarge),
        (&many, RequestVerdict::TooLarge),
    ] {
        assert_eq!(parsed(request), Some(verdict), "{request:?}");
    }
}

#[test]
fn every_beginning_of_a_request_is_incomplete() {
    let request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Prometheus/3\r\n\r\n";
    for end in 0..request.len() {
        assert_eq!(parsed(&request[..end]), None, "{end}");
    }
}

#[test]
fn text_holds_every_figure() {
    let telemetry = Telemetry::new();
    let meter = telemetry.meter("my \"stage\"\n");
    meter.figures().counts = FrameCounts { frames_in: 3, frames_out: 2, bytes_in: 100 };
    meter.figures().service.record_each(Duration::from_micros(3), 2);
    meter.figures().service.record_each(Duration::from_secs(11), 1);
    telemetry.progress().add(7);
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let before = text(&telemetry);
    assert!(!before.contains("input_size"), "{before}");
    telemetry.progress().expect(70);
    let mut output = Tally::default();
    output.add("command", 5);
    telemetry.set_output(&output);
    let after = lines(&text(&telemetry));
    for line in [
        "sizeleak_build_info{version=\"0.1.0\"} 1",
        "# TYPE sizeleak_frames_in counter",
        "sizeleak_frames_in_total{stage=\"my \\\"stage\\\"\\n\"} 3",
        "sizeleak_traffic_in_bytes_total{stage=\"my \\\"stage\\\"\\n\"} 100",
        "sizeleak_input_read_bytes_total 7",
        "sizeleak_input_size_bytes 70",
        "sizeleak_service_seconds_bucket{le=\"0.0000025\",stage=\"my \\\"stage\\\"\\n\"} 0",
        "sizeleak_service_seconds_bucket{le=\"0.000005\",stage=\"my \\\"stage\\\"\\n\"} 2",
        "sizeleak_service_seconds_bucket{le=\"10.0\",stage=\"my \\\"stage\\\"\\n\"} 2",
        "sizeleak_service_seconds_bucket{le=\"+Inf\",stage=\"my \\\"stage\\\"\\n\"} 3",
        "sizeleak_service_seconds_count{stage=\"my \\\"stage\\\"\\n\"} 3",
        "sizeleak_service_seconds_sum{stage=\"my \\\"stage\\\"\\n\"} 11.000006",
        "sizeleak_output_frames_total{kind=\"command\"} 5",
        "# EOF",
    ] {
        assert!(after.iter().any(|shown| shown == line), "no {line}\n{}", after.join("\n"));
    }
}
