//! Trust as clients write it.

pub use kvmirror_core::router::{Trust, TrustReason};

/// Reads a `min_trust` value (`http-api` §9): one of the levels that may answer, by its exact name.
pub fn parse_minimum(name: &str) -> Option<Trust> {
    Trust::ALL.into_iter().find(|level| level.answers() && level.name() == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_answering_levels_are_minima() {
        for (name, expected) in [
            ("exact", Some(Trust::Exact)),
            ("catching_up", Some(Trust::CatchingUp)),
            ("partial", Some(Trust::Partial)),
            ("suspect", Some(Trust::Suspect)),
            ("fenced", None),
            ("ambiguous", None),
            ("missing", None),
            ("EXACT", None),
            ("", None),
        ] {
            assert_eq!(parse_minimum(name), expected, "{name}");
        }
    }
}
