//! Sections: reading back, overlaps, and which one is chosen for a flow.

use std::net::IpAddr;

use proptest::prelude::*;
use sizeleak_model::{Assumption, Choice, FlowEnds, GatewaysSeen, Model, ModelSet, Scope, ServiceName, Uncovered};

use super::samples::model;

const HUE: &str = "192.0.2.7:443";
const OTHER: &str = "192.0.2.8:443";

fn scope(gateway: Option<&str>, services: &[&str]) -> Scope {
    Scope {
        gateway: gateway.map(|gateway| gateway.parse().unwrap()),
        services: services.iter().map(|service| service.parse().unwrap()).collect(),
        ..Scope::default()
    }
}

fn set(scopes: &[Scope]) -> ModelSet {
    ModelSet::new(scopes.iter().map(|scope| Model { scope: scope.clone(), ..model() }).collect()).unwrap()
}

fn choose(scopes: &[Scope], gateway: &str, service: &str, server_name: Option<&str>, seen: GatewaysSeen) -> Choice {
    let (gateway, service) = (gateway.parse().ok(), service.parse().ok());
    set(scopes).scopes().choose(FlowEnds { gateway, service, server_name, protocol: None, is_report: false }, seen)
}

#[test]
fn a_model_without_scope_covers_everything() {
    let any = [Scope::default()];
    for name in [None, Some("x.example")] {
        assert_eq!(choose(&any, "10.0.0.1", HUE, name, GatewaysSeen::Several), Choice::Covered(0));
    }
    assert_eq!(set(&any).scopes().choose(FlowEnds::default(), GatewaysSeen::One), Choice::Covered(0));
}

#[test]
fn a_server_name_decides_before_an_address_and_that_before_a_port() {
    let scopes = [scope(None, &["ws.hue.example", HUE]), scope(None, &["app.example", "192.0.2.9:8883"])];
    let service = |service, name| choose(&scopes, "10.0.0.1", service, name, GatewaysSeen::One);
    assert_eq!(service(OTHER, Some("WS.hue.example")), Choice::Covered(0));
    assert_eq!(service(HUE, Some("app.example")), Choice::Covered(1));
    assert_eq!(service(HUE, Some("cdn.example")), Choice::Covered(0), "the address");
    assert_eq!(service(OTHER, Some("cdn.example")), Choice::Uncovered(Uncovered::Service));
    assert_eq!(service(HUE, None), Choice::Covered(0));
    assert_eq!(service(OTHER, None), Choice::Assumed(0, Assumption::SameService));
    assert_eq!(service("192.0.2.1:8883", None), Choice::Assumed(1, Assumption::SameService));
    assert_eq!(service("192.0.2.1:80", None), Choice::Uncovered(Uncovered::Service));
}

#[test]
fn a_port_of_two_sections_tells_neither() {
    let scopes = [scope(None, &[HUE]), scope(None, &[OTHER])];
    let found = choose(&scopes, "10.0.0.1", "192.0.2.9:443", None, GatewaysSeen::One);
    assert_eq!(found, Choice::Uncovered(Uncovered::Ambiguous));
    let with_any = [scope(None, &[HUE]), scope(None, &[])];
    assert_eq!(choose(&with_any, "10.0.0.1", OTHER, None, GatewaysSeen::One), Choice::Covered(1));
}

#[test]
fn a_new_address_of_the_only_gateway_is_assumed_and_a_second_gateway_is_not_covered() {
    let one = [scope(Some("10.0.0.1"), &[HUE])];
    assert_eq!(choose(&one, "10.0.0.1", HUE, None, GatewaysSeen::Several), Choice::Covered(0));
    assert_eq!(choose(&one, "10.0.0.2", HUE, None, GatewaysSeen::One), Choice::Assumed(0, Assumption::SameGateway));
    let both = Choice::Assumed(0, Assumption::SameGatewayAndService);
    assert_eq!(choose(&one, "10.0.0.2", OTHER, None, GatewaysSeen::One), both);
    let uncovered = Choice::Uncovered(Uncovered::Gateway);
    assert_eq!(choose(&one, "10.0.0.2", HUE, None, GatewaysSeen::Several), uncovered);
    let two = [scope(Some("10.0.0.1"), &[]), scope(Some("10.0.0.2"), &[])];
    assert_eq!(choose(&two, "10.0.0.3", HUE, None, GatewaysSeen::One), uncovered);
    assert_eq!(choose(&two, "10.0.0.2", HUE, None, GatewaysSeen::Several), Choice::Covered(1));
    let other_service = choose(&one, "10.0.0.1", OTHER, Some("x.example"), GatewaysSeen::One);
    assert_eq!(other_service, Choice::Uncovered(Uncovered::Service));
}

#[test]
fn a_section_of_the_own_gateway_comes_before_one_of_any() {
    let scopes = [scope(None, &[HUE]), scope(Some("10.0.0.1"), &[HUE])];
    assert_eq!(choose(&scopes, "10.0.0.1", HUE, None, GatewaysSeen::One), Choice::Covered(1));
    assert_eq!(choose(&scopes, "10.0.0.2", HUE, None, GatewaysSeen::One), Choice::Covered(0));
}

#[test]
fn a_flow_with_unknown_ends_is_assumed_to_be_the_only_section_s() {
    let unknown = |scopes: &[Scope]| set(scopes).scopes().choose(FlowEnds::default(), GatewaysSeen::One);
    let one = [scope(Some("10.0.0.1"), &[HUE])];
    assert_eq!(unknown(&one), Choice::Assumed(0, Assumption::UnknownEnds));
    let two = [scope(Some("10.0.0.1"), &[HUE]), scope(Some("10.0.0.1"), &[OTHER])];
    assert_eq!(unknown(&two), Choice::Uncovered(Uncovered::Ambiguous));
}

#[test]
fn sections_about_the_same_service_are_an_error_that_names_both() {
    let twice = vec![Model { scope: scope(None, &[HUE, "a.example"]), ..model() }; 2];
    let error = ModelSet::new(twice.clone()).unwrap_err().to_string();
    assert!(error.contains("sections 1 and 2 are both about any gateway, 192.0.2.7:443, a.example"), "{error}");
    let folder = std::env::temp_dir().join(format!("sizeleak-model-set-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let files = ["one.toml", "two.toml"].map(|name| folder.join(name));
    for (file, model) in files.iter().zip(&twice) {
        std::fs::write(file, model.to_toml()).unwrap();
    }
    let error = ModelSet::read(&files).unwrap_err().to_string();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(error.contains("one.toml and ") && error.contains("two.toml are both about"), "{error}");
}

#[test]
fn errors_name_the_section() {
    let text = set(&[scope(None, &[HUE]), scope(None, &[OTHER])]).to_toml();
    let wrong = text.rsplit_once("size = 41").map(|(before, after)| format!("{before}size = 0{after}")).unwrap();
    let error = ModelSet::from_toml(&wrong).unwrap_err().to_string();
    assert!(error.starts_with("section 2 (any gateway, 192.0.2.8:443): "), "{error}");
    let error = ModelSet::from_toml(&text.replacen("\noverhead", "\noverheat", 1)).unwrap_err().to_string();
    assert!(error.contains("line 5: unknown field `overheat`"), "{error}");
    let error = Model::from_toml(&text).unwrap_err().to_string();
    assert!(error.contains("has 2 sections"), "{error}");
    let of_section = text.replacen("[[model]]\n", "[[model]]\nschema = 2\n", 1);
    assert!(ModelSet::from_toml(&of_section).unwrap_err().to_string().contains("section 1 "));
    assert!(ModelSet::from_toml("schema = 2\nmodel = []").unwrap_err().to_string().contains("1 to 256"));
    let gateway = text.replacen("[model.scope]", "[model.scope]\ngateway = \"here\"", 1);
    assert!(ModelSet::from_toml(&gateway).unwrap_err().to_string().contains("line "));
}

#[test]
fn only_what_is_new_raises_the_schema() {
    assert!(set(&[Scope::default()]).to_toml().contains("\nschema = 1\n"));
    let scoped = set(&[scope(Some("10.0.0.1"), &[HUE])]).to_toml();
    assert!(scoped.contains("\nschema = 2\n") && scoped.contains("[scope]\ngateway = \"10.0.0.1\"\n"), "{scoped}");
    assert!(!scoped.contains("[[model]]"));
}

prop_compose! {
    fn any_scope(number: usize)(
        gateway in prop::option::of(any::<[u8; 4]>()),
        names in prop::collection::btree_set("[a-z0-9_-]{1,9}(\\.[a-z]{1,5}){0,2}", 0..3),
        addresses in prop::collection::btree_set(any::<([u8; 4], u16)>(), 0..3),
    ) -> Scope {
        let names = names.into_iter().map(|name| ServiceName::Server(format!("s{number}-{name}")));
        let addresses = addresses.into_iter().map(|(ip, port)| ServiceName::Address((ip, port).into()));
        let services = names.chain(addresses).collect();
        Scope { gateway: gateway.map(IpAddr::from), services, ..Scope::default() }
    }
}

proptest! {
    #[test]
    fn any_sections_read_back_from_toml(scopes in (any_scope(0), any_scope(1), any_scope(2)), sections in 1usize..4) {
        let scopes: Vec<Scope> = <[Scope; 3]>::from(scopes).into_iter().take(sections).collect();
        let models = scopes.into_iter().map(|scope| Model { scope, ..model() }).collect();
        let Ok(set) = ModelSet::new(models) else { return Ok(()) };
        let text = set.to_toml();
        prop_assert_eq!(ModelSet::from_toml(&text), Ok(set), "{}", text);
    }
}
