//! Kinds: labelled commands whose parts the labels do not separate, alone and beside sums of actions.

use sizeleak_model::Model;

use super::lists::{decompose, detail};

/// Three kinds, and what else is in the model.
fn decomposer(additive: &str) -> sizeleak_decomposer::Decomposer {
    let text = format!(
        "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n{additive}\n[kinds]\nspread = 0.5\nother = 0.01\n\
         [[kinds.kind]]\nactions = [[\"lock\", 1]]\nseen = [[213, 0, 0, 30]]\n\
         [[kinds.kind]]\nactions = [[\"unlock\", 1]]\nseen = [[213, 0, 0, 10]]\n\
         [[kinds.kind]]\nactions = [[\"open\", 1], [\"lock\", 1]]\nseen = [[300, 0, 0, 10]]\n\
         [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
         [learned]\nmethod = \"robust\"\ncommands = 100\nversion = \"0\"\nbasis = \"plaintext\"\n\
         cipher_suite = \"X\"\nrecord_overhead = [24, 24]\n"
    );
    sizeleak_decomposer::Decomposer::new(Model::from_toml(&text).unwrap(), 10).unwrap()
}

fn candidates(additive: &str, size: u64, epsilon: i64) -> Vec<(String, f64)> {
    let (found, _) = decompose(&mut decomposer(additive), [size; 2], &[(epsilon, 1.0)]);
    found.candidates.iter().map(|one| (format!("{:?}", one.actions), one.probability)).collect()
}

#[test]
fn kinds_of_one_size_share_the_probability_by_how_often_they_were_labelled() {
    let found = candidates("", 213, 0);
    assert_eq!((found[0].0.as_str(), found[1].0.as_str()), (r#"{"lock": 1}"#, r#"{"unlock": 1}"#));
    let sum: f64 = found.iter().map(|(_, probability)| probability).sum();
    assert!((found[0].1 / found[1].1 - 31.0 / 11.0).abs() < 1e-9 && (0.99..1.0).contains(&sum), "{found:?}");
    assert_eq!(candidates("", 301, 0)[0].0, r#"{"lock": 1, "open": 1}"#);
}

#[test]
fn a_size_that_no_kind_has_is_not_answered() {
    let (found, notices) = decompose(&mut decomposer(""), [426; 2], &[(0, 1.0)]);
    assert!(found.candidates.is_empty() && detail(&notices).contains("426"), "{notices:?}");
}

#[test]
fn sums_and_kinds_compete() {
    // Half of the sums are of four actions.
    let four = "[[action]]\nname = \"on\"\nsize = 40\n[prior]\nnumbers = [0.1, 0.1, 0.1, 0.5]\ndecay = 0.5\n\
                shares = [1.0]\nconcentration = 1e9\n";
    let found = candidates(four, 213, -7);
    let probability = |text: &str| found.iter().find(|one| one.0.contains(text)).unwrap().1;
    assert!(probability("on\": 4") > 0.2 && probability("{\"lock\": 1}") > 0.2, "{found:?}");
}
