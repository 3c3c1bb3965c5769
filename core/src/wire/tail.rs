//! The positional tail of array events (`wire.md` §3.6).
//!
//! Producers append fields in one order: group, kind, sliding window, locality, ownership, with nil
//! where they have no value. Wherever the types of the elements present fit that order, position
//! decides, also for fewer than four of them: unlike TL-1, which would read the window of
//! `[nil, kind, window]` as the group. Only where they do not fit are they told by type (TL-2).

use super::cursor::{Fault, is_array};
use super::draft::Draft;
use super::enums::{Locality, Ownership, spec_kind};
use super::mm_infos;
use super::reader::Reader;
use crate::event::Span;

/// Elements that have a meaning.
const FIELDS: usize = 5;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Element {
    Nil,
    Number(u32),
    Text(Span),
    Objects(Span),
    Other,
}

impl Reader<'_, '_> {
    /// Reads `count` tail elements of a store or a remove.
    #[inline]
    pub(crate) fn tail(
        &mut self,
        count: usize,
        stored: bool,
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        let mut elements = [Element::Nil; FIELDS];
        for element in elements.iter_mut().take(count) {
            *element = self.element()?;
        }
        for _ in FIELDS..count {
            self.cursor.skip(self.limits.depth)?;
        }
        if elements == [Element::Nil; FIELDS] {
            return Ok(());
        }
        if self.by_position(elements, draft) {
            return Ok(());
        }
        self.by_type(&elements, stored, draft);
        Ok(())
    }

    #[inline]
    fn element(&mut self) -> Result<Element, Fault> {
        if self.cursor.nil()? {
            return Ok(Element::Nil);
        }
        let marker = self.cursor.peek()?;
        Ok(match marker {
            0xa0..=0xbf | 0xc4..=0xc6 | 0xd9..=0xdb => Element::Text(self.name()?),
            0x00..=0x7f | 0xcc..=0xcf | 0xd0..=0xd3 | 0xe0..=0xff => {
                let int = self.cursor.int()?;
                match u32::try_from(int.bits) {
                    Ok(number) if !int.negative => Element::Number(number),
                    Ok(_) | Err(_) => Element::Other,
                }
            }
            _ => {
                let span = self.raw()?;
                if is_array(marker) && mm_infos::valid(self.cursor.bytes, span) {
                    Element::Objects(span)
                } else {
                    Element::Other
                }
            }
        })
    }

    /// Takes the elements by position if all their types fit.
    fn by_position(&self, elements: [Element; FIELDS], draft: &mut Draft) -> bool {
        let [group, kind, window, locality, ownership] = elements;
        let (Some(group), Some(window)) = (number(group), number(window)) else {
            return false;
        };
        let (Some(kind), Some(locality), Some(ownership)) =
            (text(kind), text(locality), text(ownership))
        else {
            return false;
        };
        let payload = self.cursor.bytes;
        draft.record.group = group;
        draft.record.spec = kind.map(|span| spec_kind(span.of(payload)));
        draft.record.sliding_window = window;
        if let Some(span) = locality {
            draft.locality = Locality::parse(span.of(payload));
        }
        if let Some(span) = ownership {
            draft.ownership = Ownership::parse(span.of(payload));
        }
        true
    }

    /// Tells the elements by type: first number = group, second = window, last text = kind, objects
    /// of a store; everything else means nothing.
    #[cold]
    fn by_type(&self, elements: &[Element; FIELDS], stored: bool, draft: &mut Draft) {
        let record = &mut draft.record;
        for &element in elements {
            match element {
                Element::Number(number) if record.group.is_none() => record.group = Some(number),
                Element::Number(number) if record.sliding_window.is_none() => {
                    record.sliding_window = Some(number);
                }
                Element::Text(span) => record.spec = Some(spec_kind(span.of(self.cursor.bytes))),
                Element::Objects(span) if stored => record.mm_infos = span,
                Element::Nil | Element::Number(_) | Element::Objects(_) | Element::Other => {}
            }
        }
    }
}

/// The number an element may be, if it is one or nil.
fn number(element: Element) -> Option<Option<u32>> {
    match element {
        Element::Nil => Some(None),
        Element::Number(number) => Some(Some(number)),
        Element::Text(_) | Element::Objects(_) | Element::Other => None,
    }
}

/// The text an element may be, if it is one or nil.
fn text(element: Element) -> Option<Option<Span>> {
    match element {
        Element::Nil => Some(None),
        Element::Text(span) => Some(Some(span)),
        Element::Number(_) | Element::Objects(_) | Element::Other => None,
    }
}
