//! Names on the wire and what they mean (`wire.md` §3, §3.7, §4).

use crate::event::{SpecKind, Tier};

/// What an event says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tag {
    Stored,
    Removed,
    Cleared,
    Ignored,
}

impl Tag {
    /// A tag as the engines write it.
    #[inline]
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"BlockStored" => Some(Self::Stored),
            b"BlockRemoved" => Some(Self::Removed),
            b"AllBlocksCleared" => Some(Self::Cleared),
            b"Ignored" => Some(Self::Ignored),
            _ => None,
        }
    }

    /// The value of an `event_type` key: the store master's names, or the engines'.
    pub(crate) fn parse_event_type(name: &[u8]) -> Option<Self> {
        match name {
            b"stored" => Some(Self::Stored),
            b"removed" => Some(Self::Removed),
            b"cleared" => Some(Self::Cleared),
            _ => Self::parse(name),
        }
    }
}

/// A known storage medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Medium {
    /// The tier it stands for.
    pub(crate) tier: Tier,
    /// Whether a cache owner may use this name.
    pub(crate) cache_owner: bool,
}

impl Medium {
    /// The medium of an event that names none.
    pub(crate) const DEVICE: Self = Self { tier: Tier::Device, cache_owner: false };

    /// A medium's name. Case counts, except that the store master's events (`event_type`) write the
    /// same names in lower case.
    #[inline]
    pub(crate) fn parse(name: &[u8], lower_case: bool) -> Option<Self> {
        let owned = |tier| Some(Self { tier, cache_owner: true });
        let other = |tier| Some(Self { tier, cache_owner: false });
        match name {
            b"" | b"GPU" | b"DEVICE" => Some(Self::DEVICE),
            b"CPU" | b"CPU_PINNED" => owned(Tier::Host),
            b"CPU_TIER1" => other(Tier::Host),
            b"DISK" | b"STORAGE" => owned(Tier::Disk),
            b"CPU_TIER2" | b"NVME" => other(Tier::Disk),
            b"EXTERNAL" | b"NETWORK" | b"REMOTE" | b"SHARED" => other(Tier::External),
            _ if lower_case => Self::parse_lower(name),
            _ => None,
        }
    }

    #[cold]
    fn parse_lower(name: &[u8]) -> Option<Self> {
        let mut upper = [0_u8; 16];
        let upper = upper.get_mut(..name.len())?;
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        Self::parse(upper, false)
    }
}

/// Whether an event's blocks are on the worker that sends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Locality {
    #[default]
    Local,
    RemoteOrUnknown,
}

impl Locality {
    pub(crate) fn parse(name: &[u8]) -> Self {
        if name == b"LOCAL" { Self::Local } else { Self::RemoteOrUnknown }
    }
}

/// Who decides over an event's blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Ownership {
    #[default]
    Framework,
    CacheOwner,
    Unknown,
}

impl Ownership {
    pub(crate) fn parse(name: &[u8]) -> Self {
        if name == b"kvcr" { Self::CacheOwner } else { Self::Unknown }
    }
}

/// The kind of a KV-cache group.
pub(crate) fn spec_kind(name: &[u8]) -> SpecKind {
    match name {
        b"full_attention" | b"mla_attention" | b"sink_full_attention" => SpecKind::MainAttention,
        b"sliding_window"
        | b"sliding_window_mla"
        | b"mamba"
        | b"chunked_local_attention"
        | b"encoder_only_attention"
        | b"cross_attention" => SpecKind::Other,
        _ => SpecKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media() {
        let tier = |name: &[u8]| Medium::parse(name, false).map(|medium| medium.tier);
        for name in [&b""[..], b"GPU", b"DEVICE"] {
            assert_eq!(tier(name), Some(Tier::Device));
        }
        for name in [&b"CPU"[..], b"CPU_PINNED", b"CPU_TIER1"] {
            assert_eq!(tier(name), Some(Tier::Host));
        }
        for name in [&b"CPU_TIER2"[..], b"DISK", b"NVME", b"STORAGE"] {
            assert_eq!(tier(name), Some(Tier::Disk));
        }
        for name in [&b"EXTERNAL"[..], b"NETWORK", b"REMOTE", b"SHARED"] {
            assert_eq!(tier(name), Some(Tier::External));
        }
        for name in [&b"FS"[..], b"OBJ", b"gpu", b"cpu"] {
            assert_eq!(tier(name), None);
        }
        assert_eq!(Medium::parse(b"cpu", true).map(|medium| medium.tier), Some(Tier::Host));
        assert_eq!(Medium::parse(b"a name longer than any", true), None);
    }

    #[test]
    fn names_are_case_sensitive() {
        assert_eq!(Locality::parse(b"local"), Locality::RemoteOrUnknown);
        assert_eq!(Locality::parse(b"LOCAL"), Locality::Local);
        assert_eq!(Ownership::parse(b""), Ownership::Unknown);
        assert_eq!(Ownership::parse(b"kvcr"), Ownership::CacheOwner);
        assert_eq!(Tag::parse(b"stored"), None);
        assert_eq!(Tag::parse_event_type(b"stored"), Some(Tag::Stored));
        assert_eq!(Tag::parse_event_type(b"BlockRemoved"), Some(Tag::Removed));
        assert_eq!(spec_kind(b"mamba"), SpecKind::Other);
        assert_eq!(spec_kind(b"LOCAL"), SpecKind::Unknown);
    }
}
