//! Any input, any output.

use super::super::event::{Opaque, OpaqueClear, TraceDomain, TraceEvent, What};
use super::super::input::{
    Answer, DoneLine, EventsLine, FlawName, InvalidRangeLine, LiveLine, Nothing, PublisherLine,
    RejectSourceLine, ResponseLine, RouterInput, SnapshotFailedLine, SnapshotLine, TargetFaultLine,
    TooNewLine, WatermarkLine,
};
use super::super::membership::{
    AdvertiseLine, ExpectLine, InputLine, UnexpectLine, WithdrawLine, WorkerLine,
};
use super::super::note::Note;
use super::super::number::{IdRef, U64};
use super::super::output::{Name, Output, ReplyLine};
use super::super::ranks::{
    MembershipLine, RankLine, ReadyLine, RecoverableLine, SinceLine, SourceLine, StatusLine,
};
use crate::event::Tier;
use crate::id::{BlockHash, EventId, LocalHash, Rank, RankKey, WorkerId};
use crate::router::{DiscardReason, Notice, Trust, TrustReason};
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU64;
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::*;

fn number() -> impl Strategy<Value = U64> {
    prop_oneof![0..5_u64, (1_u64 << 53) - 1..(1 << 53) + 2, Just(u64::MAX), any::<u64>()]
        .prop_map(U64)
}

fn id() -> impl Strategy<Value = IdRef> {
    prop_oneof![any::<u64>().prop_map(IdRef::Number), any::<String>().prop_map(IdRef::Label)]
}

fn digest() -> impl Strategy<Value = Option<NonZeroU64>> {
    any::<u64>().prop_map(NonZeroU64::new)
}

fn what() -> impl Strategy<Value = What> {
    let blocks = vec((any::<u64>(), any::<u64>()), 0..3);
    let clear = [OpaqueClear::Nothing, OpaqueClear::OneDomain, OpaqueClear::Everything].to_vec();
    prop_oneof![
        (of(any::<u64>()), blocks).prop_map(|(parent, blocks)| What::Store {
            parent: parent.map(BlockHash),
            blocks: blocks.into_iter().map(|(a, b)| (BlockHash(a), LocalHash(b))).collect(),
        }),
        vec(any::<u64>(), 0..3).prop_map(|blocks| What::Remove {
            blocks: blocks.into_iter().map(BlockHash).collect()
        }),
        Just(What::Clear),
        (any::<u64>(), digest(), prop::sample::select(clear), of(any::<String>())).prop_map(
            |(bytes, digest, clear, payload)| {
                What::Opaque(Opaque { bytes, digest, clear, payload })
            }
        ),
    ]
}

pub(super) fn event() -> impl Strategy<Value = TraceEvent> {
    let domain = [TraceDomain::Worker, TraceDomain::CacheOwner, TraceDomain::All].to_vec();
    let tier = of(prop::sample::select(Tier::ALL.to_vec()));
    let named = (of(any::<u64>()), of(any::<u32>()));
    let rest = (of(any::<u64>()), of(digest()), any::<bool>());
    (any::<u64>(), what(), tier, of(prop::sample::select(domain)), named, rest).prop_map(
        |(id, what, tier, domain, (worker, rank), (bytes, digest, damaged))| {
            let opaque = matches!(what, What::Opaque(_));
            TraceEvent {
                id: EventId(id),
                tier,
                domain: domain.filter(|d| *d != TraceDomain::All || what == What::Clear),
                worker: worker.map(WorkerId),
                rank: rank.map(Rank),
                bytes: bytes.filter(|_| !opaque),
                digest: if opaque { None } else { digest },
                damaged,
                what,
            }
        },
    )
}

fn events() -> impl Strategy<Value = Vec<TraceEvent>> {
    vec(event(), 0..4)
}

fn runs() -> impl Strategy<Value = Option<Vec<u32>>> {
    of(vec(any::<u32>(), 0..3))
}

fn status() -> impl Strategy<Value = StatusLine> {
    let facts = || (number(), any::<bool>(), of(number()), of(number()));
    prop_oneof![
        Just(StatusLine::Missing),
        vec(number(), 0..3).prop_map(|publishers| StatusLine::Ambiguous { publishers }),
        facts().prop_map(|(publisher, engine, first_id, boot)| StatusLine::LiveOnly(SourceLine {
            publisher,
            engine,
            first_id,
            boot
        })),
        (facts(), any::<String>()).prop_map(|((publisher, engine, first_id, boot), target)| {
            StatusLine::Recoverable(RecoverableLine { publisher, target, engine, first_id, boot })
        }),
    ]
}

fn ranks() -> impl Strategy<Value = Vec<RankLine>> {
    let rank = (number(), any::<u32>(), number(), status());
    vec(
        rank.prop_map(|(worker, rank, generation, status)| RankLine {
            worker,
            rank,
            generation,
            status,
        }),
        0..3,
    )
}

pub(super) fn membership() -> impl Strategy<Value = MembershipLine> {
    let ready = of(vec((number(), number()), 0..2));
    let since = of((number(), vec((number(), any::<u32>()), 0..3)));
    (ranks(), ready, any::<bool>(), of(number()), since).prop_map(
        |(ranks, ready, suspect, id, since)| MembershipLine {
            ranks,
            ready: ready.map(|list| {
                let entry = |(publisher, generation)| ReadyLine { publisher, generation };
                list.into_iter().map(entry).collect()
            }),
            suspect,
            id,
            since: since.map(|(predecessor, changed)| SinceLine { predecessor, changed }),
        },
    )
}

fn answer() -> impl Strategy<Value = Answer> {
    let text = any::<String>;
    prop_oneof![
        (events(), runs(), of(number()), any::<bool>()).prop_map(
            |(events, runs, last, complete)| {
                Answer::Events(EventsLine { events, runs, last, complete })
            }
        ),
        (events(), runs(), number())
            .prop_map(|(events, runs, last)| Answer::Snapshot(SnapshotLine { events, runs, last })),
        (number(), text()).prop_map(|(last, message)| {
            Answer::SnapshotFailed(SnapshotFailedLine { last, message })
        }),
        (of(number()), of(number()), of(number()))
            .prop_map(|(start, end, newest)| { Answer::TooNew(TooNewLine { start, end, newest }) }),
        (of(number()), of(number()))
            .prop_map(|(start, end)| Answer::InvalidRange(InvalidRangeLine { start, end })),
        text().prop_map(Answer::Error),
        text().prop_map(Answer::Failed),
        text().prop_map(Answer::Unreadable),
    ]
}

pub(super) fn router_input() -> impl Strategy<Value = RouterInput> {
    let publisher = || number().prop_map(|publisher| PublisherLine { publisher });
    let flaw = of(prop::sample::select([FlawName::Capacity, FlawName::Orphan].to_vec()));
    prop_oneof![
        membership().prop_map(RouterInput::Membership),
        Just(RouterInput::MembershipEnded(Nothing {})),
        (number(), of(number()), any::<bool>(), events(), runs()).prop_map(
            |(publisher, seq, foreign, events, runs)| RouterInput::Live(LiveLine {
                publisher,
                seq,
                foreign,
                events,
                runs
            })
        ),
        (number(), of(number()), of(number())).prop_map(|(publisher, last, boot)| {
            RouterInput::Watermark(WatermarkLine { publisher, last, boot })
        }),
        (id(), of(number()), any::<bool>(), answer()).prop_map(|(query, boot, foreign, answer)| {
            RouterInput::Response(ResponseLine { query, boot, foreign, answer })
        }),
        (id(), of(any::<String>()), flaw).prop_map(|(op, error, flaw)| {
            let ok = error.is_none().then_some(true);
            RouterInput::Done(DoneLine { op, ok, flaw: flaw.filter(|_| error.is_none()), error })
        }),
        publisher().prop_map(RouterInput::TransportLost),
        publisher().prop_map(RouterInput::TransportBack),
        (number(), any::<u32>(), number(), any::<bool>()).prop_map(
            |(worker, rank, epoch, barrier_failed)| RouterInput::TargetFault(TargetFaultLine {
                worker,
                rank,
                epoch,
                barrier_failed
            })
        ),
        (number(), any::<u32>(), number()).prop_map(|(worker, rank, epoch)| {
            RouterInput::RejectSource(RejectSourceLine { worker, rank, epoch })
        }),
        Just(RouterInput::Tick(Nothing {})),
        Just(RouterInput::Shutdown(Nothing {})),
    ]
}

pub(super) fn membership_input() -> impl Strategy<Value = InputLine> {
    let text = || of(any::<String>());
    let worker = || {
        let facts = (of(any::<bool>()), any::<bool>(), text());
        (number(), any::<u32>(), any::<u32>(), facts).prop_map(
            |(worker, first_rank, ranks, (publishes, recovery_expected, state_endpoint))| {
                WorkerLine {
                    worker,
                    first_rank,
                    ranks,
                    publishes,
                    recovery_expected,
                    state_endpoint,
                }
            },
        )
    };
    let facts = (any::<bool>(), of(number()), of(number()));
    prop_oneof![
        vec(worker(), 0..3).prop_map(|workers| InputLine::Expect(ExpectLine { workers })),
        worker().prop_map(InputLine::ExpectWorker),
        number().prop_map(|worker| InputLine::UnexpectWorker(UnexpectLine { worker })),
        (number(), number(), any::<u32>(), text(), text(), facts).prop_map(
            |(publisher, worker, rank, state_endpoint, target, (engine, first_id, boot))| {
                InputLine::Advertise(AdvertiseLine {
                    publisher,
                    worker,
                    rank,
                    state_endpoint,
                    target,
                    engine,
                    first_id,
                    boot,
                })
            }
        ),
        (number(), of(number()), of(any::<u32>()), text()).prop_map(
            |(publisher, worker, rank, state_endpoint)| InputLine::Withdraw(WithdrawLine {
                publisher,
                worker,
                rank,
                state_endpoint
            })
        ),
        number().prop_map(|publisher| InputLine::Invalidate(PublisherLine { publisher })),
        Just(InputLine::Lost(Nothing {})),
        Just(InputLine::Listed(Nothing {})),
        Just(InputLine::Ended(Nothing {})),
        Just(InputLine::Tick(Nothing {})),
    ]
}

fn note() -> impl Strategy<Value = Note> {
    let rank = RankKey::new(1, 2);
    prop_oneof![
        any::<u64>().prop_map(move |id| Notice::Skipped {
            rank,
            first: id.into(),
            last: id.into()
        }),
        any::<u64>().prop_map(|messages| Notice::Discarded {
            publisher: messages.into(),
            reason: DiscardReason::Foreign,
            messages
        }),
        Just(Notice::NewLife { rank, cursor: None }),
        of(Just(TrustReason::Gap)).prop_map(move |reason| Notice::Trust {
            rank,
            from: Trust::Exact,
            to: Trust::CatchingUp,
            reason
        }),
    ]
    .prop_map(|notice| Note::of(&notice))
}

pub(super) fn output() -> impl Strategy<Value = Output> {
    let name = || any::<String>().prop_map(Name::Owned);
    let place = || (number(), any::<u32>(), number());
    let ids = || vec(number(), 0..3);
    prop_oneof![
        (place(), name(), name(), of(id())).prop_map(
            |((worker, rank, epoch), reason, domain, op)| Output::Reset {
                worker,
                rank,
                epoch,
                reason,
                domain,
                op
            }
        ),
        (place(), ids(), events(), of(id())).prop_map(
            |((worker, rank, epoch), ids, events, op)| {
                Output::Admit { worker, rank, epoch, ids, events, op }
            }
        ),
        (place(), ids(), events(), number(), name(), of(id())).prop_map(
            |((worker, rank, epoch), ids, events, last, domain, op)| Output::Replace {
                worker,
                rank,
                epoch,
                ids,
                events,
                last,
                domain,
                op
            }
        ),
        (place(), any::<String>(), of(number()), of(number()), id()).prop_map(
            |((worker, rank, publisher), target, start, end, query)| Output::Query {
                worker,
                rank,
                publisher,
                target,
                start,
                end,
                query
            }
        ),
        id().prop_map(|query| Output::Cancel { query }),
        (number(), any::<u32>(), name()).prop_map(|(worker, rank, disposition)| {
            Output::Reply(ReplyLine::Fault { worker, rank, disposition })
        }),
        (number(), any::<bool>()).prop_map(|(publisher, fenced)| {
            Output::Reply(ReplyLine::TransportLost { publisher, fenced })
        }),
        note().prop_map(Output::Note),
        (name(), ranks(), any::<bool>()).prop_map(|(endpoint, ranks, suspect)| {
            Output::Snapshot { endpoint, ranks, suspect }
        }),
    ]
}
