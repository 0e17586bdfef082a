//! Selects the kinds of frame to write.

/// The kinds of frame to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindSelection {
    /// All kinds, as a frame stream needs them.
    All,
    /// All but `hello` and `summary`, which describe the stream.
    Traffic,
    /// The results of the last stage: also without flows, sessions and notices.
    Results,
    /// These kinds.
    Kinds(Vec<String>),
}

impl KindSelection {
    /// Whether this kind is written.
    pub fn takes(&self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Traffic => !matches!(kind, "hello" | "summary"),
            Self::Results => !matches!(kind, "hello" | "summary" | "flow" | "session" | "notice"),
            Self::Kinds(kinds) => kinds.iter().any(|wanted| wanted == kind),
        }
    }

    /// The kind, if it is only one.
    pub fn only(&self) -> Option<&str> {
        match self {
            Self::Kinds(kinds) => kinds.first().filter(|_| kinds.len() == 1).map(String::as_str),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_selection_takes_its_kinds() {
        let kinds = ["hello", "flow", "record", "new_kind", "notice", "summary"];
        let taken = |selection: &KindSelection| kinds.map(|kind| u8::from(selection.takes(kind)));
        assert_eq!(taken(&KindSelection::All), [1, 1, 1, 1, 1, 1]);
        assert_eq!(taken(&KindSelection::Traffic), [0, 1, 1, 1, 1, 0]);
        assert_eq!(taken(&KindSelection::Results), [0, 0, 1, 1, 0, 0]);
        let asked = KindSelection::Kinds(vec!["summary".into()]);
        assert_eq!((taken(&asked), asked.only()), ([0, 0, 0, 0, 0, 1], Some("summary")));
    }
}
