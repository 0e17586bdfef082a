//! Which kinds of frame are written.

/// The kinds of frame that are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KindSelection {
    /// All of them: what a frame stream needs.
    All,
    /// All but `hello` and `summary`, which are about the stream and not about the traffic.
    Traffic,
    /// What a pipeline's last stage is there for: also without flows, sessions and notices.
    Results,
    /// These.
    Kinds(Vec<String>),
}

impl KindSelection {
    /// Whether frames of a kind are written.
    pub fn takes(&self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Traffic => !matches!(kind, "hello" | "summary"),
            Self::Results => !matches!(kind, "hello" | "summary" | "flow" | "session" | "notice"),
            Self::Kinds(kinds) => kinds.iter().any(|wanted| wanted == kind),
        }
    }

    /// The only kind that is written, if it is one.
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
    fn each_takes_its_kinds() {
        let kinds = ["hello", "flow", "record", "new_kind", "notice", "summary"];
        let taken = |selection: &KindSelection| kinds.map(|kind| u8::from(selection.takes(kind)));
        assert_eq!(taken(&KindSelection::All), [1, 1, 1, 1, 1, 1]);
        assert_eq!(taken(&KindSelection::Traffic), [0, 1, 1, 1, 1, 0]);
        assert_eq!(taken(&KindSelection::Results), [0, 0, 1, 1, 0, 0]);
        let asked = KindSelection::Kinds(vec!["summary".into()]);
        assert_eq!((taken(&asked), asked.only()), ([0, 0, 0, 0, 0, 1], Some("summary")));
    }
}
