//! The cost of counting, enumerating and ranking the actions of a command, in the paper's home: twelve plugs and four
//! lamps, with seven actions of similar sizes.
#![allow(missing_docs, clippy::expect_used)]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sizeleak_decomposer::{Decomposer, Solver};
use sizeleak_frame::{Command, Correction, Direction, Frame, SharedList, WeightedEpsilon};
use sizeleak_model::Model;
use sizeleak_runtime::Stage;

const HOME: &str = "schema = 1\noverhead = 67\nk = 1\ntuples = [[100, 0, 1]]\n\
    [[action]]\nname = \"on\"\nsize = 28\n[[action]]\nname = \"off\"\nsize = 29\n\
    [[action]]\nname = \"toggle\"\nsize = 32\n\
    [[action]]\nname = \"timer\"\nsize = 34\n[[action]]\nname = \"dim\"\nsize = 36\n\
    [[action]]\nname = \"white\"\nsize = 35\n\
    [[action]]\nname = \"colour\"\nsize = 40\n\
    [[device]]\nname = \"plug\"\ncount = 12\nactions = [\"on\", \"off\", \"toggle\", \"timer\"]\n\
    [[device]]\nname = \"lamp\"\ncount = 4\n\
    actions = [\"on\", \"off\", \"toggle\", \"timer\", \"dim\", \"white\", \"colour\"]\n\
    [prior]\nnumbers = [0.26, 0.19, 0.15, 0.11, 0.08]\ndecay = 0.74\nconcentration = 150.0\n\
    shares = [0.22, 0.22, 0.22, 0.22, 0.04, 0.04, 0.04]\n\
    [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.0\nsurplus = 0.0\n\
    [learned]\nmethod = \"robust\"\ncommands = 192\nversion = \"0.1.0\"\nbasis = \"wire\"\n";

/// The largest sum of sixteen actions, in bytes.
const LARGEST: i64 = 16 * 40;

/// Sums of one to five actions.
const SMALL: std::ops::RangeInclusive<i64> = 28..=200;

fn model() -> Model {
    Model::from_toml(HOME).expect("the model is written above")
}

fn solver() -> Solver {
    let model = model();
    Solver::new(&model.actions, &model.limits().expect("it has an inventory")).expect("it can be solved for")
}

/// A solver with a complete table.
fn prepared() -> Solver {
    let mut solver = solver();
    let _count = solver.count(LARGEST);
    solver
}

fn table(criterion: &mut Criterion) {
    criterion.bench_function("table of all sums", |bencher| {
        bencher.iter_batched(solver, |mut solver| black_box(solver.count(LARGEST)), BatchSize::LargeInput);
    });
}

fn count(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("count");
    group.throughput(Throughput::Elements(SMALL.count() as u64));
    let mut solver = prepared();
    group.bench_function("sums of up to 5 actions", |bencher| {
        bencher.iter(|| {
            for sum in SMALL {
                let _count = black_box(solver.count(black_box(sum)));
            }
        });
    });
    group.finish();
}

fn enumerate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("enumerate");
    let mut solver = prepared();
    for (name, sums) in [("up to 5 actions", SMALL), ("10 actions", 300..=320)] {
        let solutions: u64 = sums.clone().filter_map(|sum| solver.count(sum).ok()).sum();
        group.throughput(Throughput::Elements(solutions));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for sum in sums.clone() {
                    let Ok(mut solutions) = solver.solutions(sum) else { continue };
                    while let Some(counts) = solutions.advance() {
                        black_box(counts);
                    }
                }
            });
        });
    }
    group.finish();
}

fn correction(sum: i64) -> Correction {
    let command = Command {
        time_ns: 1,
        end_ns: 1,
        flow: 1,
        size: 67 + sum.cast_unsigned(),
        plaintext: None,
        records: 1,
        replies: 0,
        reply_bytes: 0,
        direction: Direction::ToGateway,
        single_replies: SharedList::default(),
    };
    let epsilons = [(0, 0.9), (-1, 0.09), (1, 0.01)].map(|(epsilon, weight)| WeightedEpsilon { epsilon, weight });
    Correction::unshifted(command, epsilons.into())
}

/// The stage's time for commands of up to 5 actions: cached, and new.
fn query(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("query of up to 5 actions");
    group.throughput(Throughput::Elements(SMALL.count() as u64));
    let corrections = || SMALL.map(correction).collect::<Vec<_>>();
    let take = |decomposer: &mut Decomposer, corrections: Vec<Correction>, out: &mut Vec<Frame>| {
        for correction in corrections {
            let _taken = black_box(decomposer.process(correction, out));
            out.clear();
        }
    };
    let Ok(mut cached) = Decomposer::new(model(), 10_000) else { return };
    let mut out: Vec<Frame> = Vec::new();
    take(&mut cached, corrections(), &mut out);
    group.bench_function("cached", |bencher| {
        bencher.iter_batched(
            corrections,
            |corrections| take(&mut cached, corrections, &mut out),
            BatchSize::SmallInput,
        );
    });
    group.bench_function("new", |bencher| {
        let fresh = || Decomposer::new(model(), 10_000).map(|decomposer| (decomposer, corrections()));
        let fresh = || fresh().expect("it can be solved for");
        bencher.iter_batched(
            fresh,
            |(mut decomposer, corrections)| {
                take(&mut decomposer, corrections, &mut out);
                decomposer
            },
            BatchSize::SmallInput,
        );
    });
    group.finish();
}

/// The k most probable of about a thousand candidates: the cost must grow with k. New weights each time keep results
/// out of the cache.
fn rank(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("rank");
    let correction = correction(312);
    let mut weights = (0..).map(|times| 0.9 - f64::from(times) * 1e-12);
    for limit in [1, 10, 100, 1000] {
        let Ok(mut decomposer) = Decomposer::new(model(), limit) else { continue };
        let mut out: Vec<Frame> = Vec::new();
        group.throughput(Throughput::Elements(limit as u64));
        group.bench_function(BenchmarkId::from_parameter(limit), |bencher| {
            bencher.iter_batched(
                || {
                    let mut epsilons = correction.epsilons.to_vec();
                    for heaviest in epsilons.iter_mut().take(1) {
                        heaviest.weight = weights.next().unwrap_or(0.9);
                    }
                    Correction { epsilons: epsilons.into(), ..correction.clone() }
                },
                |correction| {
                    out.clear();
                    decomposer.process(correction, &mut out)
                },
                BatchSize::SmallInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, table, count, enumerate, query, rank);
criterion_main!(benches);
