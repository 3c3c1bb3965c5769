//! The naive target of one rank: it applies what it is told, and remembers where it came from.

use std::collections::BTreeSet;

use kvmirror_core::id::{Epoch, EventId};
use kvmirror_core::router::{Clears, Run, Scope};

use crate::history::{Event, Part, State, Way};
use crate::profile::Profile;

/// Where in which history a target stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) source: usize,
    pub(crate) life: usize,
    pub(crate) id: u64,
}

/// What tells the lives of a source apart in its answers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Proof {
    /// An engine's, message by message.
    Digests,
    /// An agent's, once they are known.
    Boots,
    Nothing,
}

#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) content: State,
    /// Whose events made the content, since it was last empty.
    pub(crate) origins: BTreeSet<usize>,
    /// The epoch they came under.
    pub(crate) epoch: Option<Epoch>,
    pub(crate) at: Option<Position>,
    /// A life went on where another one ended, by exactly the next id: the stream cannot show it.
    pub(crate) seam: bool,
    /// It lacks something, and has said so.
    pub(crate) flawed: bool,
    /// It refused something since it was last emptied.
    pub(crate) refused: bool,
    /// Highest id handed over since the last barrier, however it came.
    pub(crate) last: Option<u64>,
    /// Likewise, of those that came live.
    pub(crate) last_live: Option<u64>,
    /// An answer has counted since, and may have moved the cursor (W-V1).
    pub(crate) answered: bool,
    /// Ids reported as skipped since the last barrier.
    pub(crate) skipped: Vec<(EventId, EventId)>,
    /// Lives of which the machine has heard the boot id since the last reset.
    pub(crate) heard: BTreeSet<(usize, usize)>,
}

impl Target {
    /// A target in which an earlier router has left something.
    pub(crate) fn new() -> Self {
        Self {
            content: State { worker: 1 << 7, owner: 1 << 7 },
            origins: BTreeSet::new(),
            epoch: None,
            at: None,
            seam: false,
            flawed: false,
            refused: false,
            last: None,
            last_live: None,
            answered: false,
            skipped: Vec::new(),
            heard: BTreeSet::new(),
        }
    }

    /// S2 for an admit that has just been asked for; `Err` says how it is broken.
    pub(crate) fn take_ids(&mut self, runs: &[Run<Part>], profile: Profile) -> Result<(), String> {
        for run in runs {
            if run.payload.0.len() != run.len.get() as usize {
                return Err(format!("a run of {} holds {:?}", run.len, run.payload));
            }
            for (event, id) in run.payload.0.iter().zip(run.first.0..) {
                if event.id != id {
                    return Err(format!("{event:?} under the id {id}"));
                }
                self.take_id(event, profile)?;
            }
        }
        Ok(())
    }

    fn take_id(&mut self, event: &Event, profile: Profile) -> Result<(), String> {
        let before = match (profile, event.way) {
            (Profile::Hardened, _) => self.last,
            // W-V1: an answer's events are handed over as they are, and the cursor believes it.
            (Profile::Reference, Way::Live) => self.last_live,
            (Profile::Reference, Way::Answer) | (Profile::Subset, _) => None,
        };
        self.last = self.last.max(Some(event.id));
        let answered = match event.way {
            Way::Live => std::mem::replace(&mut self.answered, false),
            Way::Answer => self.answered,
        };
        if event.way == Way::Live {
            self.last_live = Some(event.id);
        }
        let Some(before) = before else { return Ok(()) };
        if event.id <= before {
            return Err(format!("S2: {} after {before}", event.id));
        }
        if profile == Profile::Reference && answered {
            return Ok(());
        }
        let told = |id| self.skipped.iter().any(|(first, last)| (first.0..=last.0).contains(&id));
        match (before + 1..event.id).find(|id| !told(*id)) {
            Some(id) => Err(format!("S2: {id} skipped unsaid, before {}", event.id)),
            None => Ok(()),
        }
    }

    /// Applies one event. `proof`: what tells the lives of its source apart.
    pub(crate) fn apply(&mut self, event: Event, proof: Proof) {
        if let Some(at) = self.at
            && at.source == event.source
            && at.life != event.life
            && at.id + 1 == event.id
        {
            let unproved = match proof {
                Proof::Digests => false,
                Proof::Boots => !self.heard.contains(&(at.source, at.life)),
                Proof::Nothing => true,
            };
            self.seam |= event.way == Way::Live || unproved;
        }
        if event.clears() == Clears::Everything {
            self.seam = false;
            self.flawed = false;
        }
        if event.damaged {
            self.flawed = true;
        } else {
            event.change.apply(&mut self.content);
        }
        self.origins.insert(event.source);
        self.at = Some(Position { source: event.source, life: event.life, id: event.id });
    }

    /// The life of `source` whose boot id has been heard.
    pub(crate) fn heard_of(&self, source: usize) -> Option<usize> {
        self.heard.iter().find(|(of, _)| *of == source).map(|(_, life)| *life)
    }

    /// Empties it, as far as `scope` says.
    pub(crate) fn reset(&mut self, scope: Scope) {
        let owner = match scope {
            Scope::Worker => self.content.owner,
            Scope::All => 0,
        };
        if owner == 0 {
            self.origins.clear();
        }
        self.content = State { worker: 0, owner };
        self.epoch = None;
        self.at = None;
        self.seam = false;
        self.flawed = false;
        self.refused = false;
        self.heard.clear();
        self.barrier(None);
    }

    /// Ids begin anew behind `last`.
    pub(crate) fn barrier(&mut self, last: Option<u64>) {
        self.last = last;
        self.last_live = None;
        self.skipped.clear();
    }
}
