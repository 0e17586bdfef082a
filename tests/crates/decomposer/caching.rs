//! Cached decompositions are the same as computed ones, to the last byte.

use proptest::prelude::*;
use sizeleak_decomposer::Decomposer;
use sizeleak_frame::{Correction, Frame};
use sizeleak_model::Model;
use sizeleak_platform::runtime::Stage;
use support::streams::stream_of;

use super::lists::{LEARNED, answered, correction};

const HOME: &str = "schema = 1\noverhead = 60\nk = 1\ntuples = [[100, 0, 1]]\n\
    [[action]]\nname = \"on\"\nsize = 7\n[[action]]\nname = \"off\"\nsize = 8\n[[action]]\nname = \"red\"\nsize = 12\n\
    [[device]]\nname = \"lamp\"\ncount = 6\nactions = [\"on\", \"off\", \"red\"]\n\
";

const PRIOR: &str = "[prior]\nnumbers = [0.5, 0.3]\ndecay = 0.5\nshares = [0.5, 0.3, 0.2]\nconcentration = 20.0\n";

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
        let model = Model::from_toml(&format!("{HOME}{LEARNED}{}", if has_prior { PRIOR } else { "" })).unwrap();
        let mut caching = Decomposer::new(model.clone(), limit).unwrap();
        let mut counted = 0;
        for (size, width, epsilons) in questions {
            let mut fresh = Decomposer::new(model.clone(), limit).unwrap();
            let correction = correction([size, size + width], values[epsilons]);
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
        let mut decomposer = Decomposer::new(Model::from_toml(&format!("{HOME}{LEARNED}")).unwrap(), 10).unwrap();
        let question = correction([size; 2], &[(0, 1.0)]);
        let questions = [question.clone(), question, correction([size; 2], &[(0, 1.0)])];
        let lists = questions.map(|question| answered(&mut decomposer, question).0.candidates);
        prop_assert!(lists.iter().all(|list| list.is_clone_of(&lists[0])));
    }
}
