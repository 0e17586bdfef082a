//! Tests of `metrics`.

use std::net::Ipv4Addr;

use super::*;

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
