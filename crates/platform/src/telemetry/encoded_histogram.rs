//! Checks an encoded histogram before it is decoded: decoding believes the lengths and bounds that it declares.

use std::io::Read;

use flate2::read::ZlibDecoder;

/// The first bytes of `HdrHistogram`'s V2 encoding.
const PLAIN: u32 = 0x1c84_9313;

const COMPRESSED: u32 = 0x1c84_9314;

/// Bytes before the counts: the cookie, the length of the counts, a normalising offset and the significant digits (four
/// each), the lowest and the highest value and a ratio (eight each).
const HEADER_BYTES: usize = 40;

/// At most this many significant digits: a histogram of any range has at most [`MAX_COUNTS`] counts with them.
const MAX_DIGITS: u32 = 3;

/// Counts of a histogram from 1 to the largest value, with three significant digits: 1024 for each power of two.
const MAX_COUNTS: u64 = 65 * 1024;

const COUNT_BYTES: usize = 9;

const MAX_BYTES: usize = HEADER_BYTES + MAX_COUNTS as usize * COUNT_BYTES;

/// The plain encoding of a histogram that is safe to decode: what it declares is there, and is bounded.
pub(crate) fn checked(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    let plain = inflated(bytes)?;
    if word(&plain, 0) != Some(PLAIN) {
        return Err("it is not in the V2 encoding");
    }
    let (Some(length), Some(digits), Some(counts)) = (word(&plain, 4), word(&plain, 12), plain.get(HEADER_BYTES..))
    else {
        return Err("it ends within its header");
    };
    if digits > MAX_DIGITS {
        return Err("it has more than three significant digits");
    }
    if usize::try_from(length).ok() != Some(counts.len()) {
        return Err("the length it declares is not that of its counts");
    }
    check_counts(counts)?;
    Ok(plain)
}

fn inflated(bytes: &[u8]) -> Result<Vec<u8>, &'static str> {
    let mut plain = Vec::new();
    let read = match (word(bytes, 0), bytes.get(8..)) {
        // The length of the compressed bytes follows the cookie; they end by themselves.
        (Some(COMPRESSED), Some(rest)) => ZlibDecoder::new(rest).take(MAX_BYTES as u64 + 1).read_to_end(&mut plain),
        _ => bytes.take(MAX_BYTES as u64 + 1).read_to_end(&mut plain),
    };
    match read {
        Err(_) => Err("it cannot be decompressed"),
        Ok(length) if length > MAX_BYTES => Err("it has more counts than any histogram of three significant digits"),
        Ok(_) => Ok(plain),
    }
}

/// A number below 0 stands for so many counts of zero: there cannot be more of them than counts.
fn check_counts(mut counts: &[u8]) -> Result<(), &'static str> {
    let mut number = 0_u64;
    while !counts.is_empty() {
        let (encoded, rest) = split_number(counts).ok_or("its last count is cut")?;
        let is_zeros = encoded & 1 == 1;
        number = number.saturating_add(if is_zeros { (encoded >> 1).saturating_add(1) } else { 1 });
        if number > MAX_COUNTS {
            return Err("it has more counts than any histogram of three significant digits");
        }
        counts = rest;
    }
    Ok(())
}

/// The first number of some bytes (`ZigZag` LEB128 of at most nine bytes, the last one with eight bits), and the rest.
fn split_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (at, byte) in bytes.iter().take(COUNT_BYTES).enumerate() {
        let is_last = at + 1 == COUNT_BYTES || byte & 0x80 == 0;
        let bits = if at + 1 == COUNT_BYTES { *byte } else { byte & 0x7f };
        number |= u64::from(bits) << (7 * at);
        if is_last {
            return Some((number, bytes.get(at + 1..)?));
        }
    }
    None
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..)?.first_chunk().copied().map(u32::from_be_bytes)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;
    use crate::telemetry::Latency;

    fn encoded(length: u32, digits: u32, highest: u64, counts: &[u8]) -> Vec<u8> {
        let mut plain = [PLAIN, length, 0, digits].map(u32::to_be_bytes).concat();
        plain.extend([1, highest, 1.0_f64.to_bits()].map(u64::to_be_bytes).as_flattened());
        plain.extend(counts);
        plain
    }

    fn compressed(plain: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(plain).unwrap();
        let body = encoder.finish().unwrap();
        [&COMPRESSED.to_be_bytes()[..], &(body.len() as u32).to_be_bytes(), &body].concat()
    }

    fn fault(bytes: &[u8]) -> String {
        Latency::from_bytes(bytes).unwrap_err().to_string()
    }

    #[test]
    fn declared_counts_that_are_not_there_are_rejected() {
        let declared = encoded(i32::MAX.cast_unsigned(), 3, 1 << 40, b"\x02");
        assert!(fault(&declared).contains("the length it declares"));
        assert!(fault(&compressed(&declared)).contains("the length it declares"));
    }

    #[test]
    fn too_fine_or_too_long_histogram_is_rejected() {
        assert!(fault(&encoded(1, 5, u64::MAX, b"\x02")).contains("significant digits"));
        assert!(fault(&compressed(&vec![0; 1 << 30])).contains("more counts"));
        // The smallest number: negating it overflows.
        let zeros = [0xff; COUNT_BYTES];
        assert!(fault(&encoded(9, 3, 1 << 40, &zeros)).contains("more counts"));
        assert!(fault(&encoded(1, 3, 1 << 40, b"\x80")).contains("cut"));
    }

    #[test]
    fn any_range_with_three_digits_is_accepted() {
        for bytes in [encoded(1, 3, u64::MAX, b"\x02"), compressed(&encoded(2, 0, 2, b"\x02\x04"))] {
            assert!(!Latency::from_bytes(&bytes).unwrap().histogram().is_empty());
        }
    }

    proptest! {
        #[test]
        fn arbitrary_counts_and_bounds_never_panic(
            digits in 0..6_u32,
            highest: u64,
            counts in prop::collection::vec(any::<u8>(), 0..40),
        ) {
            let plain = encoded(counts.len() as u32, digits, highest, &counts);
            prop_assert_eq!(Latency::from_bytes(&plain).is_ok(), Latency::from_bytes(&compressed(&plain)).is_ok());
        }
    }
}
