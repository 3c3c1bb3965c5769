//! Any bytes as an engine's payload: no panic, spans in range, and hashing again under the same salt
//! gives the same hashes.
#![no_main]

use kvmirror_core::event::{EventBatch, EventKind, EventView, Placement, Span};
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity, rehash};
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;

thread_local! {
    static STATE: RefCell<(Decoder, EventBatch)> =
        RefCell::new((Decoder::new(Limits::default()), EventBatch::default()));
}

fn inside(span: Span, len: usize) -> bool {
    span.start as usize + span.len as usize <= len
}

fn check(payload: &[u8], out: &EventBatch, identity: &SourceIdentity) {
    let view = EventView { payload, batch: out };
    let mut again = Vec::new();
    for record in &out.records {
        assert!(inside(record.hashes, out.hashes.len()));
        assert!(inside(record.locals, out.locals.len()));
        for span in [record.tokens, record.extra_keys, record.mm_infos, record.lora_id] {
            assert!(inside(span, payload.len()));
        }
        for span in [record.lora, record.salt, record.session] {
            assert!(inside(span, payload.len()));
            assert_eq!(span.is_empty(), view.text(span).is_none());
        }
        let positioned =
            record.kind == EventKind::Stored && record.placement == Placement::Positioned;
        assert_eq!(record.locals.len, if positioned { record.hashes.len } else { 0 });
        let salt = view.text(record.salt).unwrap_or_default();
        assert_eq!(rehash(view, record, identity, salt, &mut again), positioned);
        assert_eq!(again, view.locals(record));
    }
}

fuzz_target!(|payload: &[u8]| {
    let identities = [
        SourceIdentity::default(),
        SourceIdentity {
            default_lora: "sql-adapter".into(),
            image_token_id: Some(1),
            video_token_id: Some(2),
            ..SourceIdentity::default()
        },
    ];
    STATE.with_borrow_mut(|(decoder, out)| {
        for identity in &identities {
            if decoder.decode(payload, identity, out).is_ok() {
                check(payload, out, identity);
            }
        }
    });
});
