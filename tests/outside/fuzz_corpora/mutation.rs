//! Seeded mutations of inputs, like a fuzzer's, the same in every run.

use rand::seq::IndexedRandom;
use rand::{Rng, RngExt};

/// Boundary values of lengths, counts and offsets.
const TELLING: [u32; 12] =
    [0, 1, 0x7f, 0x80, 0xff, 0x100, 0x7fff, 0x8000, 0xffff, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];

/// An input mutated one to five times. `others` are inputs that pieces may be taken from.
pub(crate) fn mutated(input: &[u8], others: &[Vec<u8>], random: &mut impl Rng) -> Vec<u8> {
    let mut bytes = input.to_vec();
    for _ in 0..random.random_range(1..=5) {
        mutate(&mut bytes, others, random);
    }
    bytes
}

fn mutate(bytes: &mut Vec<u8>, others: &[Vec<u8>], random: &mut impl Rng) {
    if bytes.is_empty() {
        bytes.push(random.random());
        return;
    }
    let at = random.random_range(0..bytes.len());
    let some = at..(at + random.random_range(1..=32)).min(bytes.len());
    match random.random_range(0..10) {
        0 | 1 => bytes[at] ^= 1 << random.random_range(0..8),
        2 => bytes[at] = random.random(),
        3 | 4 => number(&mut bytes[at..], random),
        5 => drop(bytes.drain(some)),
        6 => bytes.truncate(at),
        7 => {
            let again = bytes[some].to_vec();
            bytes.splice(at..at, again);
        }
        8 => bytes.splice(at..at, (0..random.random_range(1..16)).map(|_| random.random::<u8>())).for_each(drop),
        _ => {
            let Some(other) = others.choose(random).filter(|other| !other.is_empty()) else { return };
            let from = random.random_range(0..other.len());
            let piece = other[from..(from + random.random_range(1..=256)).min(other.len())].to_vec();
            bytes.splice(some, piece);
        }
    }
}

/// Writes a boundary value of one, two or four bytes, in either byte order.
fn number(bytes: &mut [u8], random: &mut impl Rng) {
    let width = [1, 2, 4][random.random_range(0..3)].min(bytes.len());
    let number = TELLING[random.random_range(0..TELLING.len())];
    if random.random_bool(0.5) {
        bytes[..width].copy_from_slice(&number.to_be_bytes()[4 - width..]);
    } else {
        bytes[..width].copy_from_slice(&number.to_le_bytes()[..width]);
    }
}
