//! An event while it is being read.

use super::cursor::Fault;
use super::enums::{Locality, Ownership, Tag};
use crate::event::{EventKind, EventRecord, SkipReason, Span};

/// Fields of an event as far as they have been read. In a map the tag may come last, so nothing is
/// judged before the event ends.
#[derive(Debug)]
pub(crate) struct Draft {
    /// What the event says it is.
    pub(crate) tag: Option<Tag>,
    /// Whether a tag was there that is none of ours.
    pub(crate) unknown_tag: bool,
    /// The record; its kind, skip, placement, tier and domain are settled at the end.
    pub(crate) record: EventRecord,
    /// The medium's name; empty = none named.
    pub(crate) medium: Span,
    /// Whether the tag came as `event_type`: the store master's events need no tokens and write
    /// media in lower case.
    pub(crate) event_type: bool,
    /// A salt field, which wins over extra keys even when it is the empty string.
    pub(crate) explicit_salt: Option<Span>,
    pub(crate) locality: Locality,
    pub(crate) ownership: Ownership,
    pub(crate) has_hashes: bool,
    pub(crate) has_tokens: bool,
    pub(crate) has_block_size: bool,
}

impl Draft {
    pub(crate) const fn new() -> Self {
        Self {
            tag: None,
            unknown_tag: false,
            record: EventRecord::new(EventKind::Unreadable),
            medium: Span::EMPTY,
            event_type: false,
            explicit_salt: None,
            locality: Locality::Local,
            ownership: Ownership::Framework,
            has_hashes: false,
            has_tokens: false,
            has_block_size: false,
        }
    }

    /// Takes a tag; an unknown one does no harm beside a known one.
    #[inline]
    pub(crate) const fn take_tag(&mut self, tag: Option<Tag>) {
        match tag {
            Some(_) => self.tag = tag,
            None => self.unknown_tag = true,
        }
    }

    /// Why the event cannot be applied, given the fault that ended its reading.
    pub(crate) const fn reason(&self, fault: Fault) -> SkipReason {
        match fault {
            Fault::OverLimit => SkipReason::OverLimit,
            Fault::Framing | Fault::Malformed if self.tag.is_none() && self.unknown_tag => {
                SkipReason::UnknownEvent
            }
            Fault::Framing | Fault::Malformed => SkipReason::Malformed,
        }
    }

    /// The kind of the record that counts this event when it cannot be applied.
    pub(crate) const fn kind(&self) -> EventKind {
        match self.tag {
            Some(Tag::Stored) => EventKind::Stored,
            Some(Tag::Removed) => EventKind::Removed,
            Some(Tag::Cleared) => EventKind::Cleared,
            Some(Tag::Ignored) | None => EventKind::Unreadable,
        }
    }
}
