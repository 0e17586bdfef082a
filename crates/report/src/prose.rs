//! Sentences with code in them.

/// A part of a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'a> {
    Words(&'a str),
    Code(&'a str),
}

/// The parts of a sentence: what stands between two backticks is code. A last one without a partner is none.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = Piece<'_>> {
    let pairs = text.matches('`').count() / 2;
    text.splitn(2 * pairs + 1, '`')
        .enumerate()
        .map(|(at, part)| if at % 2 == 1 { Piece::Code(part) } else { Piece::Words(part) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_between_two_backticks_is_code() {
        use Piece::{Code, Words};
        let all = |text| pieces(text).collect::<Vec<_>>();
        assert_eq!(
            all("write `-o x`, then `y`"),
            [Words("write "), Code("-o x"), Words(", then "), Code("y"), Words("")]
        );
        assert_eq!((all("a ` b"), all("")), (vec![Words("a ` b")], vec![Words("")]));
    }
}
