//! Cached decompositions are the same as computed ones, to the last byte.

use proptest::prelude::*;
use sizeleak_decomposer::Decomposer;
use sizeleak_frame::{Command, Correction, Frame, WeightedEpsilon};
use sizeleak_model::Model;
use sizeleak_platform::runtime::Stage;
use support::streams::stream_of;

const HOME: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
    [[action]]\nname = \"on\"\nsize = 7\n[[action]]\nname = \"off\"\nsize = 8\n[[action]]\nname = \"red\"\nsize = 12\n\
    [[device]]\nname = \"lamp\"\ncount = 6\nactions = [\"on\", \"off\", \"red\"]\n\
    [replies]\nfixed = 0.0\nper_action = 0.0\nmissing = 0.0\nsurplus = 0.0\n\
    [learned]\nmethod = \"robust\"\ncommands = 1\nversion = \"0.1.0\"\n\
    basis = \"plaintext\"\ncipher_suite = \"X\"\nrecord_overhead = [24, 24]\n";

const PRIOR: &str = "[prior]\nnumbers = [0.5, 0.3]\ndecay = 0.5\nshares = [0.5, 0.3, 0.2]\nconcentration = 20.0\n";

fn correction(size: u64, width: u64, epsilons: &[(i64, f64)]) -> Correction {
    let command = Command {
        time_ns: 1,
        end_ns: 2,
        flow: 3,
        size: size + width,
        plaintext: Some([size, size + width]),
        records: 1,
        ..Command::default()
    };
    let epsilons = epsilons.iter().map(|(epsilon, weight)| WeightedEpsilon { epsilon: *epsilon, weight: *weight });
    Correction::unshifted(command, epsilons.collect())
}

/// What a decomposer emits, as bytes of a stream.
fn emitted(decomposer: &mut Decomposer, correction: Correction) -> Vec<u8> {
    let mut out: Vec<Frame> = Vec::new();
    decomposer.process(correction, &mut out).unwrap();
    stream_of(&out)
}

proptest! {
    #[test]
    fn cached_and_computed_frames_and_counters_are_equal(
        questions in prop::collection::vec((60u64..130, 0u64..2, 0usize..3), 1..60),
        has_prior in any::<bool>(),
        limit in 1usize..30,
    ) {
        // NaN and slightly different weights are not taken from the cache.
        let values = [&[(0, 0.75), (-1, 0.25)][..], &[(0, 0.75), (-1, 0.250_000_1)], &[(0, f64::NAN), (1, 1.0)]];
        let model = Model::from_toml(&format!("{HOME}{}", if has_prior { PRIOR } else { "" })).unwrap();
        let mut caching = Decomposer::new(model.clone(), limit).unwrap();
        let mut counted = 0;
        for (size, width, epsilons) in questions {
            let mut fresh = Decomposer::new(model.clone(), limit).unwrap();
            let correction = correction(size, width, values[epsilons]);
            let computed = emitted(&mut fresh, correction.clone());
            prop_assert_eq!(&emitted(&mut caching, correction.clone()), &computed);
            prop_assert_eq!(&emitted(&mut caching, correction), &computed);
            counted += 2 * fresh.counters().iter().map(|(_, count)| count).sum::<u64>();
        }
        prop_assert_eq!(caching.counters().iter().map(|(_, count)| count).sum::<u64>(), counted);
    }

    /// The cache is found by equal values of ε, and by the same list of them.
    #[test]
    fn equal_and_identical_lists_of_epsilons_share_candidates(size in 60u64..130) {
        let mut decomposer = Decomposer::new(Model::from_toml(HOME).unwrap(), 10).unwrap();
        let question = correction(size, 0, &[(0, 1.0)]);
        let mut out: Vec<Frame> = Vec::new();
        decomposer.process(question.clone(), &mut out).unwrap();
        decomposer.process(question, &mut out).unwrap();
        decomposer.process(correction(size, 0, &[(0, 1.0)]), &mut out).unwrap();
        let lists: Vec<_> = out.iter().filter_map(|frame| match frame {
            Frame::Identification(identification) => Some(&identification.candidates),
            _ => None,
        }).collect();
        prop_assert!(lists.len() == 3 && lists.iter().all(|list| list.is_clone_of(lists[0])));
    }
}
