//! The cost of counting, enumerating and ranking the actions of a command, in the paper's home: twelve plugs and four
//! lamps, with seven actions of similar sizes. And of choosing candidates by the replies, in a home of forty devices with
//! twelve actions, where there are too many to list.
#![allow(missing_docs, clippy::expect_used)]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use sizeleak_decomposer::Decomposer;
use sizeleak_frame::{Command, Correction, Frame, SharedList, SingleReply, WeightedEpsilon};
use sizeleak_inference::search::{HeaviestWays, WayCounts, WayWeights};
use sizeleak_model::Model;
use sizeleak_platform::runtime::Stage;

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

fn counts() -> WayCounts {
    let model = model();
    WayCounts::new(&model.actions, &model.limits().expect("it has an inventory")).expect("it can be counted")
}

fn table(criterion: &mut Criterion) {
    criterion.bench_function("counts of all sums", |bencher| {
        bencher.iter_batched(counts, |mut counts| black_box(counts.count(LARGEST)), BatchSize::LargeInput);
    });
}

fn count(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("count");
    group.throughput(Throughput::Elements(SMALL.count() as u64));
    let mut counts = counts();
    let _count = counts.count(LARGEST);
    group.bench_function("sums of up to 5 actions", |bencher| {
        bencher.iter(|| {
            for sum in SMALL {
                let _count = black_box(counts.count(black_box(sum)));
            }
        });
    });
    group.finish();
}

fn enumerate(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("enumerate");
    let (model, mut counts) = (model(), counts());
    let limits = model.limits().expect("it has an inventory");
    let mut weights = WayWeights::flat(&model.actions, &limits).expect("the table is small");
    weights.prepare(LARGEST as usize);
    for (name, sums) in [("up to 5 actions", SMALL), ("10 actions", 300..=320)] {
        let ways: u64 = sums.clone().filter_map(|sum| counts.count(sum).ok()).sum();
        group.throughput(Throughput::Elements(ways));
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for sum in sums.clone() {
                    let count = counts.count(sum).unwrap_or(0);
                    black_box(HeaviestWays::find(&weights, &[(sum, 1.0)], count, count as usize));
                }
            });
        });
    }
    group.finish();
}

fn correction(sum: i64) -> Correction {
    let command =
        Command { time_ns: 1, end_ns: 1, flow: 1, size: 67 + sum.cast_unsigned(), records: 1, ..Command::default() };
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

/// Each device with its number, and the actions it has, by their index.
const DEVICES: [(u32, std::ops::Range<usize>); 3] = [(20, 0..4), (12, 0..8), (8, 8..12)];

/// The name, size and reply class of each action.
const ACTIONS: [(&str, i64, usize); 12] = [
    ("on", 28, 0),
    ("off", 29, 0),
    ("toggle", 32, 0),
    ("timer", 34, 1),
    ("dim", 36, 2),
    ("white", 35, 2),
    ("colour", 40, 2),
    ("scene", 41, 3),
    ("open", 30, 4),
    ("close", 31, 4),
    ("stop", 33, 4),
    ("tilt", 37, 5),
];

/// The size of the replies of each class.
const REPLIES: [u32; 6] = [29, 36, 39, 44, 31, 38];

fn forty_devices() -> Model {
    let action = |(name, size, _): &(&str, i64, usize)| format!("[[action]]\nname = \"{name}\"\nsize = {size}\n");
    let actions = ACTIONS.iter().map(action).collect::<Vec<_>>().concat();
    let device = |(count, actions): &(u32, std::ops::Range<usize>)| {
        let names: Vec<&str> = ACTIONS[actions.clone()].iter().map(|(name, ..)| *name).collect();
        format!("[[device]]\nname = \"kind-{count}\"\ncount = {count}\nactions = {names:?}\n")
    };
    let devices = DEVICES.iter().map(device).collect::<Vec<_>>().concat();
    let rows: Vec<Vec<u32>> =
        ACTIONS.iter().map(|(.., class)| (0..6).map(|own| u32::from(own == *class)).collect()).collect();
    let class =
        |size: &u32| format!("[[single_replies.class]]\nmissing = 0.01\nunseen = 0.0\nsizes = [[{size}, 100]]\n");
    let classes = REPLIES.iter().map(class).collect::<Vec<_>>().concat();
    let shares = "[0.18, 0.18, 0.18, 0.16, 0.05, 0.05, 0.05, 0.03, 0.03, 0.03, 0.03, 0.03]";
    Model::from_toml(&format!(
        "schema = 1\noverhead = 67\nk = 1\ntuples = [[100, 0, 1]]\n{actions}{devices}\
         [prior]\nnumbers = [0.26, 0.19, 0.15, 0.11, 0.08]\ndecay = 0.8\nconcentration = 150.0\nshares = {shares}\n\
         [replies]\nfixed = 0.0\nper_action = 1.0\nmissing = 0.01\nsurplus = 0.0\n\
         [single_replies]\nmerged = 0.02\nshared = 0\nforeign = 0.005\nforeign_sizes = []\n\
         per_command = [0, 0, 0, 0, 0, 0]\nper_action = {rows:?}\n{classes}\
         [learned]\nmethod = \"robust\"\ncommands = 222\nversion = \"0.1.0\"\nbasis = \"wire\"\n"
    ))
    .expect("the model is written above")
}

/// Commands of 1 to 16 actions with the replies to them.
fn commands_with_replies() -> Vec<Correction> {
    let mut state = 1_u64;
    let mut below = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    let devices: Vec<usize> = (0..3).flat_map(|kind| (0..DEVICES[kind].0).map(move |_| kind)).collect();
    let mut command = |number: usize| {
        let mut rest = devices.clone();
        let mut actions = Vec::new();
        for _ in 0..number {
            let of_device = &DEVICES[rest.swap_remove(below(rest.len()))].1;
            actions.push(ACTIONS[of_device.start + below(of_device.len())]);
        }
        let mut correction = correction(actions.iter().map(|(_, size, _)| size).sum());
        let replies: SharedList<SingleReply> = actions
            .iter()
            .filter(|_| below(100) > 0)
            .map(|(.., class)| SingleReply { after_ns: 1, length: REPLIES[*class] })
            .collect();
        correction.command.replies = replies.len() as u32;
        correction.command.single_replies = replies;
        correction
    };
    (0..160).map(|at| command(at % 16 + 1)).collect()
}

/// The stage's time for new commands of 1 to 16 actions in the home of forty devices.
fn choose_by_replies(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("choose by replies");
    let corrections = commands_with_replies();
    group.throughput(Throughput::Elements(corrections.len() as u64));
    let Ok(mut decomposer) = Decomposer::new(forty_devices(), 10_000) else { return };
    let mut weights = (0..).map(|times| 0.9 - f64::from(times) * 1e-12);
    let mut out: Vec<Frame> = Vec::new();
    group.sample_size(10);
    group.bench_function("forty devices", |bencher| {
        bencher.iter_batched(
            || {
                let weight = weights.next().unwrap_or(0.9);
                let new = |correction: &Correction| {
                    let heaviest = [WeightedEpsilon { epsilon: 0, weight }];
                    let epsilons = heaviest.into_iter().chain(correction.epsilons.iter().skip(1).copied()).collect();
                    Correction { epsilons, ..correction.clone() }
                };
                corrections.iter().map(new).collect::<Vec<_>>()
            },
            |corrections| {
                for correction in corrections {
                    let _taken = black_box(decomposer.process(correction, &mut out));
                    out.clear();
                }
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

criterion_group!(benches, table, count, enumerate, query, rank, choose_by_replies);
criterion_main!(benches);
