//! A flow that the model was not learned on, beside one that it was: it gets a notice and no answer of its own, and it
//! changes no byte of the other flow's answers.

use std::fs;
use std::path::Path;

use sizeleak_frame::{Flow, Frame, Identification, Notice, Session, what};
use sizeleak_model::{Basis, Model, Scope};
use support::programs::{GATEWAY, example, pipe, root, sizeleak, stderr, with, write};
use support::streams::{frames_of, stream_of};

/// The service of the bundled home.
const HUB: &str = "203.0.113.10:443";
const BYSTANDER: u64 = 7;

/// The bytes that the home's cipher suite adds to a record: AES-128-GCM of TLS 1.2.
const ADDED: i64 = 24;

/// The frames of `record-sizer` for the bundled home.
fn records() -> Vec<Frame> {
    let stages = vec![
        with("capture", &example("test.pcap")),
        with("flow-filter", &format!("--gateway {GATEWAY} --service 203.0.113.10")),
        with("record-sizer", ""),
    ];
    frames_of(&pipe(stages).pop().unwrap().stdout)
}

/// The ends of a bystander, its server name and its cipher suite.
struct Bystander {
    gateway: &'static str,
    service: &'static str,
    server_name: Option<&'static str>,
    has_suite: bool,
}

const OTHER_SERVICE: Bystander =
    Bystander { gateway: GATEWAY, service: "198.51.100.7:443", server_name: None, has_suite: false };

impl Bystander {
    /// The frames of a stream with a flow of this bystander beside each of the flows: the same records a millisecond
    /// later.
    fn beside(&self, frames: &[Frame]) -> Vec<Frame> {
        let mut both = Vec::new();
        for frame in frames {
            both.push(frame.clone());
            match frame {
                Frame::Flow(flow) => {
                    let (gateway, service) = (self.gateway.parse().unwrap(), self.service.parse().unwrap());
                    both.push(Flow { flow: BYSTANDER, gateway, service, ..Flow::clone(flow) }.into());
                    let cipher_suite = self.has_suite.then(|| "TLS_AES_128_GCM_SHA256".to_owned());
                    let server_name = self.server_name.map(str::to_owned);
                    let session = Session {
                        time_ns: 0,
                        flow: BYSTANDER,
                        server_name,
                        tls_version: None,
                        cipher_suite,
                        protocol: None,
                    };
                    both.push(session.into());
                }
                Frame::Record(record) => {
                    let mut record = record.clone();
                    (record.flow, record.time_ns) = (BYSTANDER, record.time_ns + 1_000_000);
                    record.start_ns += 1_000_000;
                    record.plaintext = self.has_suite.then(|| [u64::from(record.length).saturating_sub(17); 2]);
                    both.push(record.into());
                }
                _ => {}
            }
        }
        both
    }
}

/// The same stream as a capture that begins in the middle of the connection gives it.
fn mid_stream(frames: Vec<Frame>) -> Vec<Frame> {
    let unknown = |frame| match frame {
        Frame::Record(record) => Some(sizeleak_frame::Record { plaintext: None, ..record }.into()),
        Frame::Session(_) => None,
        other => Some(other),
    };
    frames.into_iter().filter_map(unknown).collect()
}

/// The model of the bundled home.
fn model(scope: Scope) -> Model {
    let model = Model::read(&root().join(example("model.toml"))).unwrap();
    Model { scope, ..model }
}

/// The model of the bundled home by sizes on the wire.
fn wire_model(scope: Scope) -> Model {
    let mut model = model(scope);
    let tuples = model
        .neighbours
        .tuples()
        .iter()
        .map(|tuple| sizeleak_model::EpsilonTuple { size: tuple.size + ADDED, ..*tuple });
    model.neighbours = sizeleak_model::Neighbours::new(tuples).unwrap();
    model.overhead += ADDED;
    model.single_replies = model.single_replies.map(|replies| replies.longer_by(ADDED));
    model.learned.basis = Basis::Wire;
    (model.noise, model.reply_bytes) = (None, None);
    model
}

fn scope(gateway: Option<&str>, services: &[&str]) -> Scope {
    let services = services.iter().map(|service| service.parse().unwrap()).collect();
    Scope { gateway: gateway.map(|gateway| gateway.parse().unwrap()), services, ..Scope::default() }
}

/// What a run said.
struct Answers {
    identifications: Vec<Identification>,
    notices: Vec<Notice>,
}

impl Answers {
    /// The answers to a stream of records, of a run that succeeds.
    fn of(folder: &Path, frames: &[Frame], models: &[&Model]) -> Self {
        let stream = write(folder, "records.frames", stream_of(frames));
        let mut command = sizeleak("run --quiet --format frames --from");
        command.arg(stream);
        for (number, model) in models.iter().enumerate() {
            let file = folder.join(format!("{number}.toml"));
            fs::write(&file, model.to_toml()).unwrap();
            command.arg("--model").arg(file);
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let (mut identifications, mut notices) = (Vec::new(), Vec::new());
        for frame in frames_of(&output.stdout) {
            match frame {
                Frame::Identification(identification) => identifications.push(*identification),
                Frame::Notice(notice) => notices.push(*notice),
                _ => {}
            }
        }
        Self { identifications, notices }
    }

    /// The bytes of all answers but the bystander's.
    fn of_home(&self) -> Vec<u8> {
        let own = self.identifications.iter().filter(|answer| answer.command.flow != BYSTANDER);
        stream_of(&own.map(|answer| answer.clone().into()).collect::<Vec<Frame>>())
    }

    fn of_bystander(&self) -> impl Iterator<Item = &Identification> {
        self.identifications.iter().filter(|answer| answer.command.flow == BYSTANDER)
    }

    /// The details of the notices of this kind about the bystander.
    fn said(&self, what: &str) -> Vec<&str> {
        let about = self.notices.iter().filter(|notice| notice.flow == Some(BYSTANDER) && notice.what == what);
        about.filter_map(|notice| notice.detail.as_deref()).collect()
    }
}

/// Asserts that a bystander has no answers and one notice with these words, and that the home's answers are those without
/// it.
fn assert_harmless(home: &[Frame], bystander: &Bystander, model: &Model, words: &str) {
    let folder = tempfile::tempdir().unwrap();
    let alone = Answers::of(folder.path(), home, &[model]);
    assert!(
        alone.identifications.len() > 250 && alone.identifications.iter().all(|answer| !answer.candidates.is_empty())
    );
    let both = Answers::of(folder.path(), &bystander.beside(home), &[model]);
    assert!(both.of_home() == alone.of_home(), "the bystander changes other answers");
    assert!(both.of_bystander().count() > 250, "commands stay");
    assert!(both.of_bystander().all(|answer| answer.candidates.is_empty() && answer.candidate_count == 0));
    let said = both.said(what::UNCOVERED);
    assert!(said.len() == 1 && said[0].contains(words), "{:?}", both.said(what::UNCOVERED));
}

#[test]
fn a_session_with_a_known_suite_beside_a_model_of_wire_sizes() {
    let bystander = Bystander { has_suite: true, ..OTHER_SERVICE };
    assert_harmless(&mid_stream(records()), &bystander, &wire_model(Scope::default()), "learned on sizes on the wire");
}

#[test]
fn a_session_with_an_unknown_suite_of_another_service() {
    let bystander = Bystander { server_name: Some("other.example"), ..OTHER_SERVICE };
    let model = wire_model(scope(None, &["hub.example", HUB]));
    assert_harmless(&mid_stream(records()), &bystander, &model, "not learned on this service");
}

#[test]
fn a_second_gateway() {
    let bystander = Bystander { gateway: "192.168.1.99", service: HUB, ..OTHER_SERVICE };
    assert_harmless(&records(), &bystander, &model(scope(Some(GATEWAY), &[])), "learned on another gateway");
}

#[test]
fn a_service_that_the_model_was_not_learned_on() {
    let bystander = Bystander { server_name: Some("other.example"), has_suite: true, ..OTHER_SERVICE };
    let model = model(scope(Some(GATEWAY), &["hub.example"]));
    assert_harmless(&records(), &bystander, &model, "add that to `services`");
}

#[test]
fn a_second_app_has_a_section_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let home = records();
    let hub = model(scope(None, &["hub.example", HUB]));
    // The same commands, 17 bytes longer than in the hub's session.
    let mut app = model(scope(None, &["app.example"]));
    let tuples =
        app.neighbours.tuples().iter().map(|tuple| sizeleak_model::EpsilonTuple { size: tuple.size + 7, ..*tuple });
    app.neighbours = sizeleak_model::Neighbours::new(tuples).unwrap();
    app.overhead += 7;
    app.noise = None;
    let bystander = Bystander { server_name: Some("app.example"), has_suite: true, ..OTHER_SERVICE };
    let alone = Answers::of(folder.path(), &home, &[&hub]);
    let both = Answers::of(folder.path(), &bystander.beside(&home), &[&hub, &app]);
    assert!(both.of_home() == alone.of_home(), "the app changes other answers");
    let answered = both.of_bystander().filter(|answer| !answer.candidates.is_empty()).count();
    assert!(answered > 250 && both.said(what::UNCOVERED).is_empty(), "{answered}");
    let first =
        |answer: &Identification| (answer.command.time_ns, answer.candidates.first().map(|best| best.actions.clone()));
    let of_home: Vec<_> =
        both.identifications.iter().filter(|answer| answer.command.flow != BYSTANDER).map(first).collect();
    let same =
        both.of_bystander().map(first).filter(|(time_ns, best)| of_home.contains(&(time_ns - 1_000_000, best.clone())));
    assert!(same.count() > 240, "the same actions on both connections");
}

#[test]
fn sections_of_the_same_service_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let stream = write(folder.path(), "records.frames", stream_of(&records()));
    let mut command = sizeleak("run --model examples/home/model.toml --model examples/home/model.toml --from");
    let output = command.arg(stream).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("model.toml and examples/home/model.toml are both about gateway 192.168.1.20, hub.example"),
        "{said}"
    );
}
