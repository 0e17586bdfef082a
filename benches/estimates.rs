//! What a look-up of ε costs, at sizes that were seen before and at new ones.
#![allow(missing_docs, clippy::expect_used)]

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sizeleak_epsilon_corrector::EpsilonEstimates;
use sizeleak_model::{EpsilonTuple, Neighbours, Smoothing};

/// This many look-ups are timed together.
const LOOK_UPS: u64 = 4096;

/// Labelled commands of sizes from 90 bytes on, a byte apart, with ε between −3 and 1.
fn neighbours(tuples: i64) -> Neighbours {
    let tuple = |at: i64| EpsilonTuple::new(90 + at, [0, 0, 0, -1, 0, 0, 1, 0, -3, 0][at.unsigned_abs() as usize % 10]);
    Neighbours::new((0..tuples).map(tuple)).expect("there is at least one")
}

/// Sizes spread over those of the labels, in no order.
fn sizes(tuples: i64) -> Vec<i64> {
    (0..LOOK_UPS.cast_signed()).map(|at| 90 + at * 7919 % tuples).collect()
}

fn look_up(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("look-up");
    group.throughput(Throughput::Elements(LOOK_UPS));
    for tuples in [307, 1_000_000] {
        let sizes = sizes(tuples);
        for (name, smoothing) in [("nearest", Smoothing::NEAREST), ("smoothed", Smoothing { k: 25, strength: 100.0 })] {
            let mut estimates = EpsilonEstimates::new(neighbours(tuples), smoothing);
            group.bench_function(BenchmarkId::new(name, tuples), |bencher| {
                bencher.iter(|| {
                    for size in &sizes {
                        black_box(estimates.over([*size; 2]));
                    }
                });
            });
        }
    }
    group.finish();
}

fn first_look_up(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("first look-up");
    for tuples in [307, 1_000_000] {
        let known = neighbours(tuples);
        group.bench_function(BenchmarkId::new("nearest", tuples), |bencher| {
            let mut sizes = sizes(tuples).into_iter().cycle();
            bencher.iter(|| black_box(known.estimate(sizes.next().unwrap_or_default(), 1)));
        });
    }
    group.finish();
}

fn learning(criterion: &mut Criterion) {
    let known = neighbours(307);
    criterion.bench_function("choosing neighbours and strength at 307", |bencher| {
        bencher.iter(|| black_box(Smoothing::choose(&known)));
    });
}

criterion_group!(benches, look_up, first_look_up, learning);
criterion_main!(benches);
