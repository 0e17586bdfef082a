//! The nearest labelled commands are those that scikit-learn finds, on random sizes.

use std::process::Command;

use serde::Deserialize;
use sizeleak_model::{EpsilonTuple, Neighbours};

/// Makes random tuples and queries, and answers them: the distances to the k nearest and, because scikit-learn breaks
/// ties arbitrarily, everything within the largest of them.
const ORACLE: &str = r#"
import json, random
import numpy as np
from sklearn.neighbors import NearestNeighbors

chance = random.Random(20260105)
cases = []
for case in range(48):
    span = chance.choice([20, 300, 5000, 2**31])
    tuples = [[chance.randrange(span), chance.randrange(-4, 5)] for _ in range(chance.randrange(1, 400))]
    sizes = np.array([[float(size)] for size, _ in tuples])
    k = chance.randrange(1, min(len(tuples), 120) + 1)
    algorithm = chance.choice(["brute", "kd_tree", "ball_tree"])
    # The Manhattan metric, since squares of large sizes leave what a float holds exactly.
    finder = NearestNeighbors(n_neighbors=k, algorithm=algorithm, metric="manhattan").fit(sizes)
    answers = []
    queries = [chance.randrange(-span // 4, span + span // 4 + 1) for _ in range(25)]
    all_distances, _ = finder.kneighbors([[float(size)] for size in queries])
    for size, distances in zip(queries, all_distances):
        farthest = float(distances.max())
        # All distances are whole; half a byte more keeps rounding inside the trees from losing what lies on the border.
        _, within = finder.radius_neighbors([[float(size)]], radius=farthest + 0.5)
        near = sorted(tuples[at] for at in within[0])
        answers.append({"size": size, "distances": sorted(int(d) for d in distances), "near": near})
    cases.append({"tuples": tuples, "k": k, "answers": answers})
print(json.dumps(cases))
"#;

#[derive(Deserialize)]
struct Case {
    tuples: Vec<(i64, i64)>,
    k: usize,
    answers: Vec<Answer>,
}

#[derive(Deserialize)]
struct Answer {
    size: i64,
    /// Distances to the k nearest, in order.
    distances: Vec<u64>,
    /// Size and ε of all tuples within the largest distance, in order.
    near: Vec<(i64, i64)>,
}

#[test]
#[ignore = "second tier: needs python3 with scikit-learn"]
fn nearest_neighbours_are_those_of_scikit_learn() {
    let output = Command::new("python3").args(["-c", ORACLE]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let cases: Vec<Case> = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(cases.len(), 48);
    for Case { tuples, k, answers } in cases {
        let neighbours =
            Neighbours::new(tuples.iter().map(|(size, epsilon)| EpsilonTuple::new(*size, *epsilon))).unwrap();
        for Answer { size, distances, near } in answers {
            let found = neighbours.nearest(size, k);
            let each = || found.iter().flat_map(|near| std::iter::repeat_n(near, near.times as usize));
            assert_eq!(each().map(|found| (found.size, found.epsilon)).collect::<Vec<_>>(), near, "at {size}, k = {k}");
            let mut found: Vec<u64> = each().map(|found| found.size.abs_diff(size)).collect();
            found.sort_unstable();
            found.truncate(k);
            assert_eq!(found, distances, "at {size}, k = {k}");
        }
    }
}
