//! Every row of `http-api` §2 and §3 that does not depend on the spelling of a call.

use super::*;
use crate::transport::Endpoint;
use kvmirror_core::index::Duplicates;

fn registry() -> Registry {
    with_limits(RegistryLimits::default())
}

fn with_limits(limits: RegistryLimits) -> Registry {
    let mut next = 100;
    Registry::new(limits, move || {
        next += 1;
        next
    })
}

fn wish(instance: &str, rank: u32, port: u16) -> Registration {
    let endpoint = format!("tcp://127.0.0.1:{port}");
    let endpoint = Endpoint::parse(&endpoint, None).unwrap();
    let block_size = NonZeroU32::new(4).unwrap();
    let name = InstanceName::text(instance);
    Registration { rank: Rank(rank), ..Registration::new(name, endpoint, "m", block_size) }
}

fn in_tenant(tenant: &str, registration: Registration) -> Registration {
    Registration { tenant: tenant.to_owned(), ..registration }
}

fn leave(instance: &str, tenant: Option<&str>, rank: Option<u32>) -> Unregistration {
    Unregistration {
        instance: InstanceName::text(instance),
        tenant: tenant.map(str::to_owned),
        model: None,
        rank: rank.map(Rank),
    }
}

fn endpoint(text: &str) -> Endpoint {
    Endpoint::parse(text, None).unwrap()
}

#[test]
fn a_repeat_changes_nothing_and_keeps_the_publisher() {
    let mut registry = registry();
    let first = registry.register(wish("7", 0, 5557)).unwrap();
    assert!(first.new && matches!(first.opened, Some(DomainEvent::Opened(_, _))));
    let again = Registration { instance: InstanceName::integer(7), ..wish("7", 0, 5557) };
    let repeat = registry.register(again).unwrap();
    assert_eq!(repeat, Registered { new: false, opened: None, ..first });
    assert_eq!(registry.len(), 1);
}

#[test]
fn a_later_registration_gets_another_publisher() {
    let mut registry = registry();
    let first = registry.register(wish("7", 0, 5557)).unwrap();
    registry.unregister(&leave("7", None, None)).unwrap();
    let second = registry.register(wish("7", 0, 5557)).unwrap();
    assert_eq!(first.worker, second.worker);
    assert_ne!(first.publisher, second.publisher);
}

#[test]
fn other_facts_of_a_rank_are_a_conflict() {
    let base = wish("7", 0, 5557);
    let cases = [
        ("endpoint", wish("7", 0, 5558)),
        (
            "replay_endpoint",
            Registration { replay_endpoint: Some(endpoint("tcp://127.0.0.1:1")), ..base.clone() },
        ),
        ("type", Registration { kind: EngineKind::SgLang, ..base.clone() }),
        ("lora_name", Registration { lora: "a".into(), ..base.clone() }),
        ("duplicates", Registration { duplicates: Duplicates::Set, ..base.clone() }),
        ("topic", Registration { topic: "a".into(), ..base.clone() }),
        ("model_name", Registration { model: "n".into(), ..base.clone() }),
        ("block_size", Registration { block_size: NonZeroU32::MIN, ..base.clone() }),
        ("additional_salt", Registration { salt: "s".into(), ..base.clone() }),
        ("eagle", Registration { eagle: true, ..base.clone() }),
        ("image_token_id", Registration { image_token_id: Some(1), ..base.clone() }),
        ("video_token_id", Registration { video_token_id: Some(1), ..base.clone() }),
    ];
    for (expected, changed) in cases {
        let mut registry = registry();
        let first = registry.register(base.clone()).unwrap();
        let Err(RegistryError::RankConflict { field: named, .. }) = registry.register(changed)
        else {
            panic!("{expected} was not refused");
        };
        assert_eq!(named, expected);
        let repeat = registry.register(base.clone()).unwrap();
        assert_eq!((repeat.new, repeat.publisher), (false, first.publisher), "{expected}");
    }
}

#[test]
fn an_instance_has_one_domain_within_its_tenant() {
    let sibling = wish("7", 1, 5558);
    for (expected, changed) in [
        ("model_name", Registration { model: "n".into(), ..sibling.clone() }),
        ("block_size", Registration { block_size: NonZeroU32::MIN, ..sibling.clone() }),
        ("additional_salt", Registration { salt: "s".into(), ..sibling.clone() }),
        ("eagle", Registration { eagle: true, ..sibling.clone() }),
        ("image_token_id", Registration { image_token_id: Some(1), ..sibling.clone() }),
        ("video_token_id", Registration { video_token_id: Some(1), ..sibling.clone() }),
    ] {
        let mut registry = registry();
        registry.register(wish("7", 0, 5557)).unwrap();
        let Err(RegistryError::DomainConflict { field: named, .. }) = registry.register(changed)
        else {
            panic!("{expected} was not refused");
        };
        assert_eq!(named, expected);
        assert_eq!(registry.len(), 1);
        // Facts that are a rank's own may differ between ranks.
        let own = Registration {
            duplicates: Duplicates::Set,
            kind: EngineKind::SgLang,
            lora: "a".into(),
            ..sibling.clone()
        };
        assert!(registry.register(own).unwrap().new);
    }
}

#[test]
fn what_others_refuse_and_we_allow() {
    let mut registry = registry();
    registry.register(wish("a", 0, 5557)).unwrap();
    // An address in use, by another instance and by another rank.
    assert!(registry.register(wish("b", 0, 5557)).unwrap().new);
    assert!(registry.register(wish("a", 1, 5557)).unwrap().new);
    // A second block size for one model and tenant.
    let other_size = Registration { block_size: NonZeroU32::MIN, ..wish("c", 0, 5559) };
    assert!(registry.register(other_size).unwrap().new);
    // One name in two tenants, even under another model.
    let other_tenant = Registration { model: "n".into(), ..in_tenant("t", wish("a", 0, 5560)) };
    assert!(registry.register(other_tenant).unwrap().new);
}

#[test]
fn two_ranks_of_one_instance_are_followed_at_their_own_endpoints() {
    let mut registry = registry();
    let a = registry.register(wish("w1", 0, 5557)).unwrap();
    let b = registry.register(wish("w1", 1, 5558)).unwrap();
    assert_eq!(a.worker, b.worker);
    let places: Vec<_> = registry
        .ranks_of(a.worker)
        .map(|facts| (facts.registration.rank.0, facts.registration.endpoint.to_string()))
        .collect();
    assert_eq!(
        places,
        [(0, "tcp://127.0.0.1:5557".to_owned()), (1, "tcp://127.0.0.1:5558".to_owned())]
    );
}

#[test]
fn workers_get_their_own_number_when_it_is_free() {
    let mut registry = registry();
    let number = |r: Result<Registered, RegistryError>| r.unwrap().worker.0;
    assert_eq!(number(registry.register(wish("7", 0, 1))), 7);
    assert_eq!(number(registry.register(wish("18446744073709551615", 0, 1))), u64::MAX);
    assert_eq!(number(registry.register(wish("007", 0, 1))), FIRST_ASSIGNED_WORKER);
    assert_eq!(
        number(registry.register(in_tenant("t", wish("7", 0, 1)))),
        FIRST_ASSIGNED_WORKER + 1
    );
    let taken = (FIRST_ASSIGNED_WORKER + 2).to_string();
    assert_eq!(number(registry.register(wish(&taken, 0, 1))), FIRST_ASSIGNED_WORKER + 2);
    assert_eq!(number(registry.register(wish("x", 0, 1))), FIRST_ASSIGNED_WORKER + 3);
}

#[test]
fn one_rank_or_all_of_them() {
    let mut registry = registry();
    for rank in [2, 0, 1] {
        registry.register(wish("7", rank, 5557)).unwrap();
    }
    let one = registry.unregister(&leave("7", Some("default"), Some(1))).unwrap();
    assert_eq!(one.removed.iter().map(|f| f.registration.rank.0).collect::<Vec<_>>(), [1]);
    assert_eq!(one.closed, None);
    let rest = registry.unregister(&leave("7", Some("default"), None)).unwrap();
    assert_eq!(rest.removed.iter().map(|f| f.registration.rank.0).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(rest.closed, Some(DomainEvent::Closed(DomainId(0))));
    assert!(registry.is_empty() && registry.worker(&InstanceName::text("7"), "default").is_none());
}

#[test]
fn unknown_things_are_not_found_and_nothing_changes() {
    let mut registry = registry();
    registry.register(wish("7", 0, 5557)).unwrap();
    for (case, text) in [
        (leave("8", None, None), "instance 8 not found"),
        (leave("7", None, Some(5)), "instance 7 dp_rank 5 not found"),
        (leave("7", Some("t"), None), "instance 7 not found"),
        (leave("007", None, None), "instance 007 not found"),
        (
            Unregistration { model: Some("n".into()), ..leave("7", None, Some(0)) },
            "instance 7 dp_rank 0 not found",
        ),
    ] {
        let error = registry.unregister(&case).unwrap_err();
        assert!(matches!(error, RegistryError::NotFound { .. }));
        assert_eq!(error.to_string(), text);
    }
    assert_eq!(registry.len(), 1);
    let right = Unregistration { model: Some("m".into()), ..leave("7", None, Some(0)) };
    assert!(registry.unregister(&right).is_ok());
    assert!(registry.unregister(&right).is_err(), "twice is not found");
}

#[test]
fn without_a_tenant_there_must_be_only_one() {
    let mut registry = registry();
    registry.register(in_tenant("a", wish("7", 0, 1))).unwrap();
    registry.register(in_tenant("b", wish("7", 0, 2))).unwrap();
    let error = registry.unregister(&leave("7", None, Some(0))).unwrap_err();
    assert!(matches!(error, RegistryError::SeveralTenants { tenants: 2, .. }));
    registry.unregister(&leave("7", Some("a"), None)).unwrap();
    let done = registry.unregister(&leave("7", None, Some(0))).unwrap();
    assert_eq!(done.removed[0].registration.tenant, "b");
}

#[test]
fn domains_open_and_close_with_their_registrations() {
    let mut registry = registry();
    let a = registry.register(wish("a", 0, 1)).unwrap();
    let b = registry.register(wish("b", 0, 1)).unwrap();
    let other = Registration { salt: "s".into(), ..wish("c", 0, 1) };
    let c = registry.register(other.clone()).unwrap();
    assert_eq!((a.domain, b.domain, c.domain), (DomainId(0), DomainId(0), DomainId(1)));
    assert!(b.opened.is_none());
    match c.opened {
        Some(DomainEvent::Opened(id, key)) => assert_eq!((id, &*key), (c.domain, &other.domain())),
        ref other => panic!("{other:?}"),
    }
    assert_eq!(registry.unregister(&leave("a", None, None)).unwrap().closed, None);
    let closed = registry.unregister(&leave("b", None, None)).unwrap().closed;
    assert_eq!(closed, Some(DomainEvent::Closed(DomainId(0))));
    assert!(registry.domain(DomainId(0)).is_none());
    // Numbers stay dense: the free one is used again.
    let reused = Registration { model: "n".into(), ..wish("d", 0, 1) };
    assert_eq!(registry.register(reused).unwrap().domain, DomainId(0));
}

#[test]
fn queries_select_domains_by_what_they_give() {
    let mut registry = registry();
    let size = NonZeroU32::new(8).unwrap();
    registry.register(wish("a", 0, 1)).unwrap();
    registry.register(Registration { block_size: size, ..wish("b", 0, 1) }).unwrap();
    registry.register(Registration { salt: "s".into(), ..wish("c", 0, 1) }).unwrap();
    registry.register(in_tenant("t", wish("a", 0, 1))).unwrap();
    let matching = |model: &str, tenant: &str, size: Option<u32>, salt: Option<&str>| {
        registry
            .matching(model, tenant, size.and_then(NonZeroU32::new), salt)
            .map(|id| id.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(matching("m", "default", None, None), [0, 1, 2]);
    assert_eq!(matching("m", "default", Some(4), None), [0, 2]);
    assert_eq!(matching("m", "default", Some(4), Some("s")), [2]);
    assert!(matching("m", "default", Some(5), None).is_empty());
    assert_eq!(matching("m", "t", None, None), [3]);
    assert!(matching("n", "t", None, None).is_empty());
    assert!(registry.is_known("m", "t") && !registry.is_known("m", "u"));
    let names: Vec<_> = registry
        .in_domain(DomainId(0))
        .map(|facts| facts.registration.instance.as_str().to_owned())
        .collect();
    assert_eq!(names, ["a"]);
}

#[test]
fn texts_and_counts_are_limited() {
    let mut registry = with_limits(RegistryLimits { registrations: 2, name_bytes: 8 });
    let long = "x".repeat(9);
    for (field, registration) in [
        ("instance_id", wish("", 0, 1)),
        ("instance_id", wish(&long, 0, 1)),
        ("model_name", Registration { model: String::new(), ..wish("a", 0, 1) }),
        ("model_name", Registration { model: long.clone(), ..wish("a", 0, 1) }),
        ("tenant_id", in_tenant("", wish("a", 0, 1))),
        ("tenant_id", in_tenant(&long, wish("a", 0, 1))),
        ("additional_salt", Registration { salt: long.clone(), ..wish("a", 0, 1) }),
        ("lora_name", Registration { lora: long.clone(), ..wish("a", 0, 1) }),
        ("topic", Registration { topic: long.clone(), ..wish("a", 0, 1) }),
    ] {
        let Err(RegistryError::Invalid { field: named, .. }) = registry.register(registration)
        else {
            panic!("{field} was not refused");
        };
        assert_eq!(named, field);
    }
    registry.register(wish("a", 0, 1)).unwrap();
    registry.register(wish("a", 1, 1)).unwrap();
    assert_eq!(registry.register(wish("b", 0, 1)), Err(RegistryError::Full { limit: 2 }));
    assert!(!registry.register(wish("a", 1, 1)).unwrap().new, "a repeat needs no room");
    assert_eq!(registry.worker(&InstanceName::text("b"), "default"), None);
}

#[test]
fn a_broken_generator_is_an_error_and_leaves_nothing_behind() {
    let mut registry = Registry::new(RegistryLimits::default(), || 5);
    registry.register(wish("a", 0, 1)).unwrap();
    assert_eq!(registry.register(wish("b", 0, 1)), Err(RegistryError::NoPublisherId));
    assert_eq!(registry.len(), 1);
    assert_eq!(registry.in_domain(DomainId(0)).count(), 1);
}

#[test]
fn workers_are_filtered_exactly() {
    let mut registry = registry();
    registry.register(wish("2", 0, 1)).unwrap();
    registry.register(wish("1", 0, 1)).unwrap();
    registry.register(in_tenant("t", wish("3", 0, 1))).unwrap();
    let list = |model: Option<&str>, tenant: Option<&str>| {
        let filter =
            WorkerFilter { model: model.map(str::to_owned), tenant: tenant.map(str::to_owned) };
        registry.workers(&filter).map(|worker| worker.0).collect::<Vec<_>>()
    };
    assert_eq!(list(None, None), [1, 2, 3]);
    assert_eq!(list(Some("m"), Some("default")), [1, 2]);
    assert_eq!(list(None, Some("t")), [3]);
    assert!(list(Some("M"), None).is_empty());
}

#[test]
fn kinds_are_read_in_any_case() {
    for (text, kind) in [
        ("vLLM", Some(ParsedKind::Engine(EngineKind::Vllm))),
        ("VLLM", Some(ParsedKind::Engine(EngineKind::Vllm))),
        ("sglang", Some(ParsedKind::Engine(EngineKind::SgLang))),
        ("MOONCAKE", Some(ParsedKind::SharedStore)),
        ("", None),
        ("trt", None),
    ] {
        assert_eq!(EngineKind::parse(text), kind, "{text}");
    }
}
