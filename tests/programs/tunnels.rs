//! What is inside a stranger's tunnel never meets the gateway's flows; a gateway inside a tunnel is still found.

use support::injected::{Answers, HOME, SERVICE, Syn, Traffic, answers, gre, honest, tagged, tcp, vxlan};
use support::programs::{GATEWAY, sizeleak, stderr, write};

/// The ends of a tunnel that has nothing to do with the gateway.
const STRANGERS: [[u8; 4]; 2] = [[198, 51, 100, 1], [198, 51, 100, 2]];

/// The bundled traffic with frames that `forge` makes of each 40th segment with data, right behind it.
fn attacked(forge: impl Fn(u32, [u16; 2]) -> Vec<Vec<u8>>) -> Traffic {
    let mut traffic = Traffic::bundled();
    for (at, sequence, ports) in traffic.gateway_data().into_iter().step_by(40).rev() {
        traffic.insert_behind(at, forge(sequence, ports));
    }
    traffic
}

/// A new connection on the gateway's ports, with data.
fn forged(ports: [u16; 2]) -> Vec<Vec<u8>> {
    let record = [&[23, 3, 3, 1, 0][..], &[7; 256]].concat();
    let segment = |sequence, syn, payload: &[u8]| tcp(HOME, SERVICE, ports, sequence, syn, payload);
    vec![segment(0x7000_0000, Syn::Set, &[]), segment(0x7000_0001, Syn::Clear, &record)]
}

fn assert_untouched(answers: &Answers) {
    assert!(answers.untunnelled() == honest().untunnelled(), "{} answers", answers.untunnelled().len());
}

#[test]
fn a_strangers_tunnel_changes_no_answer() {
    let in_vxlan = attacked(|_, ports| forged(ports).iter().map(|frame| vxlan(STRANGERS, 7, frame)).collect());
    let in_gre = attacked(|_, ports| forged(ports).iter().map(|frame| gre(STRANGERS, frame)).collect());
    let at_the_gateway =
        attacked(|_, ports| forged(ports).iter().map(|frame| vxlan([STRANGERS[0], HOME], 7, frame)).collect());
    for traffic in [in_vxlan, in_gre, at_the_gateway] {
        let answers = answers(&traffic, &[]);
        assert_untouched(&answers);
        let notices = answers.notices("encapsulated");
        assert!(notices.len() == 1 && notices[0].contains("--tunnel"), "{notices:?}");
        let flows = answers.kind("flow");
        let in_tunnels: Vec<_> = flows.iter().filter_map(|flow| flow["encapsulation"].as_str()).collect();
        assert!(in_tunnels.iter().all(|text| text.contains("198.51.100.1")), "{in_tunnels:?}");
        assert!(!in_tunnels.is_empty());
    }
}

#[test]
fn a_tunnel_that_is_not_named_stays_closed() {
    let traffic = attacked(|_, ports| forged(ports).iter().map(|frame| vxlan(STRANGERS, 7, frame)).collect());
    for named in ["none", "198.51.100.9", "gre 198.51.100.1-198.51.100.2"] {
        let answers = answers(&traffic, &["--set", &format!("flow-filter.tunnel=[\"{named}\"]")]);
        assert_untouched(&answers);
        assert!(answers.counter("flow-filter", "closed_tunnels") > 0, "{named}");
        assert!(answers.kind("flow").iter().all(|flow| flow["encapsulation"].is_null()));
    }
}

/// A mirror port sends everything through one tunnel: the gateway is found, with the answers of the bare capture.
#[test]
fn a_capture_inside_a_tunnel_has_the_same_answers_without_an_option() {
    let size = |answer: &serde_json::Value| (answer["time_ns"].clone(), answer["size"].clone());
    let sizes = |answers: &Answers| answers.kind("identification").iter().map(size).collect::<Vec<_>>();
    let mut traffic = Traffic::bundled();
    traffic.0.iter_mut().for_each(|(_, frame)| *frame = vxlan(STRANGERS, 7, frame));
    let inside = answers(&traffic, &[]);
    assert_eq!(sizes(&inside), sizes(honest()));
    assert!(inside.kind("flow").iter().all(|flow| flow["encapsulation"] == "vxlan 7 198.51.100.1-198.51.100.2"));
    assert_eq!(inside.notices("encapsulated"), [""; 0]);
}

/// Where the two directions, or parts of one connection, come by different ways, naming the tunnel joins them.
#[test]
fn traffic_in_a_named_tunnel_is_as_if_it_came_without() {
    let mut traffic = Traffic::bundled();
    for (at, (_, frame)) in traffic.0.iter_mut().enumerate() {
        let ends = if at % 2 == 0 { STRANGERS } else { [STRANGERS[1], [198, 51, 100, 3]] };
        if at % 3 != 0 {
            *frame = vxlan(ends, (at % 2) as u8, frame);
        }
    }
    let joined = answers(&traffic, &["--set", "flow-filter.tunnel=[\"198.51.100.0/24\"]"]);
    assert_untouched(&joined);
    assert!(joined.kind("flow").iter().all(|flow| flow["encapsulation"].is_null()));
}

/// A mirror port may see a packet with a tag, without, or with one for each direction.
#[test]
fn vlan_tags_do_not_separate_flows() {
    let mut traffic = Traffic::bundled();
    for (_, frame) in &mut traffic.0 {
        let is_from_gateway = frame.get(26..30) == Some(&HOME[..]);
        *frame = if is_from_gateway { tagged(10, frame) } else { tagged(20, frame) };
    }
    assert_untouched(&answers(&traffic, &[]));
}

#[test]
fn a_run_that_sizes_nothing_says_what_it_did_not_read() {
    let mut traffic = Traffic::bundled();
    for (_, frame) in &mut traffic.0 {
        // SCTP in the place of TCP.
        frame[23] = if frame[23] == 6 { 132 } else { frame[23] };
    }
    let folder = tempfile::tempdir().unwrap();
    let file = write(folder.path(), "sctp.pcap", traffic.to_pcap());
    let command = format!("run {} --gateway {GATEWAY} --kind record", file.display());
    let said = stderr(&sizeleak(&command).output().unwrap());
    assert!(said.contains("packets of IP protocol 132 between 192.168.1.20 and"), "{said}");
}
