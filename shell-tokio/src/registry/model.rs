//! The registry against a list: any order of registering and leaving.

use super::*;
use crate::transport::Endpoint;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Step {
    Join(Box<Registration>),
    Leave(Unregistration),
}

fn any_step() -> impl Strategy<Value = Step> {
    let names = prop::sample::select(vec!["7", "8", "a", "007"]);
    let texts = prop::sample::select(vec!["x", "y"]);
    (names, texts.clone(), texts, 0u32..3, 1u32..3, any::<bool>(), 0u32..5).prop_map(
        |(name, tenant, model, rank, size, all, kind)| {
            let instance = InstanceName::text(name);
            if kind < 3 {
                let endpoint = Endpoint::parse("tcp://h:1", None).unwrap();
                let size = NonZeroU32::new(size).unwrap();
                let registration = Registration::new(instance, endpoint, model, size);
                let tenant = tenant.to_owned();
                let registration = Registration { rank: Rank(rank), tenant, ..registration };
                return Step::Join(Box::new(registration));
            }
            Step::Leave(Unregistration {
                instance,
                tenant: (kind == 3).then(|| tenant.to_owned()),
                model: None,
                rank: (!all).then_some(Rank(rank)),
            })
        },
    )
}

/// What should be registered, in any order.
#[derive(Default)]
struct Model {
    ranks: Vec<Registration>,
    open: BTreeMap<DomainId, DomainKey>,
}

impl Model {
    fn follow(&mut self, event: Option<&DomainEvent>) {
        match event {
            Some(DomainEvent::Opened(id, key)) => {
                assert_eq!(self.open.insert(*id, (**key).clone()), None, "opened twice");
            }
            Some(DomainEvent::Closed(id)) => {
                assert!(self.open.remove(id).is_some(), "closed but not open");
            }
            None => {}
        }
    }

    fn join(&mut self, registry: &mut Registry, wish: Registration) {
        let same_instance =
            |r: &&Registration| r.instance == wish.instance && r.tenant == wish.tenant;
        let domain = self.ranks.iter().find(same_instance).map(Registration::domain);
        let expected = if domain.is_some_and(|domain| domain != wish.domain()) {
            None
        } else {
            Some(!self.ranks.contains(&wish))
        };
        let outcome = registry.register(wish.clone());
        assert_eq!(outcome.as_ref().ok().map(|registered| registered.new), expected);
        if let Ok(registered) = outcome {
            self.follow(registered.opened.as_ref());
            if registered.new {
                self.ranks.push(wish);
            }
        }
    }

    fn leave(&mut self, registry: &mut Registry, wish: &Unregistration) {
        let named: BTreeSet<String> = self
            .ranks
            .iter()
            .filter(|r| r.instance == wish.instance)
            .map(|r| r.tenant.clone())
            .collect();
        let tenant = wish
            .tenant
            .clone()
            .or_else(|| if named.len() == 1 { named.first().cloned() } else { None });
        let goes = |r: &Registration| {
            r.instance == wish.instance
                && Some(&r.tenant) == tenant.as_ref()
                && wish.rank.is_none_or(|rank| rank == r.rank)
        };
        let expected = self.ranks.iter().filter(|r| goes(r)).count();
        match registry.unregister(wish) {
            Ok(done) => {
                assert_eq!(done.removed.len(), expected);
                assert!(done.removed.iter().all(|facts| goes(&facts.registration)));
                self.follow(done.closed.as_ref());
                self.ranks.retain(|r| !goes(r));
            }
            Err(_) => assert_eq!(expected, 0),
        }
    }

    fn check(&self, registry: &Registry) {
        let mut ranks: Vec<_> = registry.ranks().map(|facts| facts.registration.clone()).collect();
        assert_eq!(registry.len() as usize, self.ranks.len());
        assert_eq!(ranks.len(), self.ranks.len());
        ranks.retain(|registration| !self.ranks.contains(registration));
        assert_eq!(ranks, []);
        let held: BTreeSet<DomainKey> = self.ranks.iter().map(Registration::domain).collect();
        let open: BTreeSet<DomainKey> = self.open.values().cloned().collect();
        assert_eq!((held.len(), &held), (self.open.len(), &open));
        for (id, key) in &self.open {
            assert_eq!(registry.domain(*id), Some(key));
            let inside = self.ranks.iter().filter(|r| r.domain() == *key).count();
            assert_eq!(registry.in_domain(*id).count(), inside);
            assert!(registry.in_domain(*id).all(|facts| facts.domain == *id));
            let matching =
                registry.matching(&key.model, &key.tenant, Some(key.block_size), Some(&key.salt));
            assert_eq!(matching.collect::<Vec<_>>(), [*id]);
        }
        let publishers: BTreeSet<_> = registry.ranks().map(|facts| facts.publisher).collect();
        assert_eq!(publishers.len(), self.ranks.len());
    }
}

proptest! {
    #[test]
    fn domains_and_ranks_follow_the_registrations(
        steps in prop::collection::vec(any_step(), 0..60)
    ) {
        let mut next = 0;
        let mut registry = Registry::new(RegistryLimits::default(), move || {
            next += 1;
            next
        });
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Join(wish) => model.join(&mut registry, *wish),
                Step::Leave(wish) => model.leave(&mut registry, &wish),
            }
            model.check(&registry);
        }
    }
}
