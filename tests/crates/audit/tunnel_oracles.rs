//! What commands give away through a tunnel, against all commands and all that a background may send, one by one.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use sizeleak_audit::leakage::{Audit, Learned, with_inventory};
use sizeleak_audit::tunnel::{
    Background, BackgroundError, Burst, Conversation, ObservedFlows, TCP_HEADER, Tunnel, TunnelAudit, WINDOW_NS,
};
use sizeleak_inference::channel::{EpsilonKnowledge, Observer};
use sizeleak_inference::space::{CommandSpace, Premises, PriorName};
use sizeleak_model::{Inventory, Model};
use support::joint::{Joint, Secret};

const SMALL: &str = "[[device]]\nname = \"plug\"\ncount = 2\nactions = [\"on\", \"off\"]\n\n\
    [[device]]\nname = \"lamp\"\ncount = 1\nactions = [\"on\", \"dim\", \"colour\"]\n";

/// The packets of one conversation: the window, and their bytes.
const PACKETS: [(i64, u64); 5] = [(1, 40), (1, 100), (3, 40), (6, 1500), (6, 3000)];

/// Those of another one.
const OTHERS: [(i64, u64); 4] = [(0, 300), (2, 40), (6, 40), (7, 40)];

/// As many windows as they are in.
const WINDOWS: i64 = 8;

fn bundled() -> Model {
    Model::from_toml(include_str!("../../../examples/home/model.toml")).unwrap()
}

fn small() -> Model {
    with_inventory(bundled(), Inventory::from_toml(SMALL).unwrap()).unwrap().0
}

fn premises() -> Premises {
    Premises { prior: PriorName::Devices, decay: Some(0.7) }
}

fn tunnel(name: &str, model: &Model) -> Tunnel {
    Tunnel::new(name.parse().unwrap(), model)
}

fn device() -> IpAddr {
    IpAddr::from([192, 168, 1, 30])
}

fn observed(tunnel: &Tunnel) -> ObservedFlows {
    let mut observed = ObservedFlows::default();
    for (at, packets) in [(1, &PACKETS[..]), (2, &OTHERS[..])] {
        let service = SocketAddr::from(([198, 51, 100, at], 443));
        let conversation = Conversation { device: device(), service, transport_header: TCP_HEADER };
        for (window, bytes) in packets {
            let packets = tunnel.packets(*bytes, device(), TCP_HEADER);
            observed.add(conversation, window * WINDOW_NS + 7, packets).unwrap();
        }
    }
    observed
}

/// What each window of each conversation holds, as likely as any other.
fn draws(tunnel: &Tunnel) -> Vec<Burst> {
    let mut draws = Vec::new();
    for packets in [&PACKETS[..], &OTHERS[..]] {
        for window in 0..WINDOWS {
            let mut burst = Burst::default();
            for (_, bytes) in packets.iter().filter(|(at, _)| *at == window) {
                let sent = tunnel.packets(*bytes, device(), TCP_HEADER);
                burst = Burst { packets: burst.packets + sent.packets, bytes: burst.bytes + sent.bytes };
            }
            draws.push(burst);
        }
    }
    draws
}

/// V₀, V, I(A; T), Σ max C and the greatest posterior of a secret, from every command, size and draw.
fn by_definition(model: &Model, tunnel: &Tunnel, secret: Secret, flows: u32) -> [f64; 5] {
    let space = CommandSpace::new(model, &premises()).unwrap();
    let joint = Joint::new(&space, model, secret, Observer::Sizes, EpsilonKnowledge::Distribution).unwrap().unwrap();
    let draws = draws(tunnel);
    let share = 1.0 / draws.len() as f64;
    let mut seen: BTreeMap<(u32, Burst), f64> = BTreeMap::new();
    for (secret, output, probability) in &joint.entries {
        let mut bursts = vec![(tunnel.message(output.size), *probability)];
        for _ in 0..flows {
            let with = |(burst, probability): &(Burst, f64)| {
                let (burst, probability) = (*burst, probability * share);
                let both = move |draw: &Burst| Burst {
                    packets: burst.packets + draw.packets,
                    bytes: burst.bytes + draw.bytes,
                };
                draws.iter().map(move |draw| (both(draw), probability)).collect::<Vec<_>>()
            };
            bursts = bursts.iter().flat_map(with).collect();
        }
        for (burst, joint) in bursts {
            *seen.entry((*secret, burst)).or_default() += joint;
        }
    }
    let (mut of_secret, mut of_burst) = (BTreeMap::<u32, f64>::new(), BTreeMap::<Burst, f64>::new());
    for ((secret, burst), joint) in &seen {
        *of_secret.entry(*secret).or_default() += joint;
        *of_burst.entry(*burst).or_default() += joint;
    }
    let (mut best, mut likeliest) = (BTreeMap::<Burst, f64>::new(), BTreeMap::<Burst, f64>::new());
    let mut information = 0.0;
    for ((secret, burst), joint) in &seen {
        let likelihood = joint / of_secret[secret];
        let (best, likeliest) = (best.entry(*burst).or_default(), likeliest.entry(*burst).or_default());
        (*best, *likeliest) = (best.max(*joint), likeliest.max(likelihood));
        information += joint * (likelihood / of_burst[burst]).log2();
    }
    let guessing = of_secret.values().copied().fold(0.0, f64::max);
    let worst = best.iter().map(|(burst, joint)| joint / of_burst[burst]).fold(0.0, f64::max);
    [guessing, best.values().sum(), information, likeliest.values().sum(), worst]
}

fn figures(learned: &Learned, secret: Secret) -> [f64; 5] {
    let measures = match secret {
        Secret::Command => &learned.command,
        Secret::Number => &learned.number,
        Secret::Kinds => learned.kinds.as_ref().unwrap(),
    };
    let first = [measures.guessing, measures.named, measures.information_bits];
    [first[0], first[1], first[2], measures.capacity, measures.worst_posterior]
}

fn audit(model: &Model, tunnel: &Tunnel, flows: u32) -> TunnelAudit {
    let background = Background::new(&observed(tunnel), flows).unwrap();
    TunnelAudit::new(model, &premises(), tunnel, Some(&background)).unwrap()
}

#[test]
fn figures_are_those_of_all_commands_and_all_draws() {
    let model = small();
    for name in ["wireguard", "esp-gcm", "esp-cbc", "multiple:256"] {
        let tunnel = tunnel(name, &model);
        for flows in 0..3 {
            let found = audit(&model, &tunnel, flows);
            for secret in [Secret::Command, Secret::Number, Secret::Kinds] {
                let wanted = by_definition(&model, &tunnel, secret, flows);
                let figures = figures(found.beside_background.as_ref().unwrap(), secret);
                let is_near = figures.iter().zip(wanted).all(|(one, other)| (one - other).abs() < 1e-12);
                assert!(is_near, "{name} {flows} {secret:?}: {figures:?} are not {wanted:?}");
            }
        }
    }
}

#[test]
fn a_tunnel_that_hides_nothing_gives_away_what_sizes_do() {
    for model in [small(), bundled()] {
        let premises = premises();
        let found = TunnelAudit::new(&model, &premises, &tunnel("none", &model), None).unwrap();
        assert_eq!(found.by_size, Audit::new(&model, &premises).unwrap().by_size);
        assert_eq!(found.through_tunnel, found.by_size);
    }
}

#[test]
fn no_background_changes_nothing_and_more_of_it_gives_away_no_more() {
    let model = bundled();
    for name in ["wireguard", "esp-gcm"] {
        let tunnel = tunnel(name, &model);
        let silent = audit(&model, &tunnel, 0);
        let named = |learned: &Learned| [learned.command.named, learned.number.named, learned.command.information_bits];
        let mut before = named(&silent.through_tunnel);
        assert!(before.iter().zip(named(&silent.by_size)).all(|(after, before)| *after < before), "{name}");
        let beside = named(silent.beside_background.as_ref().unwrap());
        assert!(beside.iter().zip(before).all(|(one, other)| (one - other).abs() < 1e-12), "{name}");
        for flows in 1..=5 {
            let after = named(audit(&model, &tunnel, flows).beside_background.as_ref().unwrap());
            assert!(after.iter().zip(before).all(|(after, before)| *after < before), "{name} {flows}");
            before = after;
        }
    }
}

#[test]
fn a_background_is_as_busy_as_its_capture() {
    let model = small();
    let tunnel = tunnel("wireguard", &model);
    let background = Background::new(&observed(&tunnel), 1).unwrap();
    let Background { flows, conversations, seconds, busy, .. } = background;
    assert_eq!((flows, conversations), (1, 2));
    // Three windows of one and four of the other, of eight each.
    assert!((busy - 7.0 / 16.0).abs() < 1e-12 && (seconds - 8.0 * 0.08).abs() < 1e-12, "{busy} {seconds}");
    assert_eq!(Background::new(&ObservedFlows::default(), 1), Err(BackgroundError::NoFlow));
}

#[test]
fn bursts_that_are_left_out_hide_nothing() {
    let model = small();
    let tunnel = tunnel("none", &model);
    let mut observed = observed(&tunnel);
    let service = SocketAddr::from(([198, 51, 100, 9], 443));
    let conversation = Conversation { device: device(), service, transport_header: TCP_HEADER };
    // As many different bursts as one flow may have are a part of these.
    for (window, bytes) in (0..9_000).zip(0_u64..) {
        let packets = tunnel.packets(bytes * bytes, device(), TCP_HEADER);
        observed.add(conversation, window * WINDOW_NS, packets).unwrap();
    }
    let background = Background::new(&observed, 1).unwrap();
    let found = TunnelAudit::new(&model, &premises(), &tunnel, Some(&background)).unwrap();
    let (alone, beside) = (&found.through_tunnel.command, found.beside_background.as_ref().unwrap());
    assert!(!beside.is_exact && beside.command.named <= alone.named + 1e-12);
    // At least the share that is left out is named as without background.
    assert!(beside.command.named >= found.left_out * alone.named, "{} {}", beside.command.named, found.left_out);
    // A conversation of three is busy all the time, and 4095 of its 9000 bursts are kept.
    let expected = (9_000.0 - 4_095.0) / 27_000.0;
    assert!((found.left_out - expected).abs() < 1e-3, "{} is not about {expected}", found.left_out);
}
