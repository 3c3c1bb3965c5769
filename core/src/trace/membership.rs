//! The membership machine: its inputs as lines, its snapshots as outputs.

use super::bindings::Bindings;
use super::input::{Nothing, PublisherLine};
use super::machine::{Machine, Refusal};
use super::number::{U64, is_false, json_error};
use super::output::{Name, Output};
use super::ranks::{RankLine, source};
use super::targets::Targets;
use crate::id::{PublisherId, Rank, RankKey, WorkerId};
use crate::membership::{
    Advertisement, Coordinator, EndpointName, MembershipInput, Publishing, Update, Withdrawal,
    WorkerExpectation,
};
use crate::time::Timestamp;
use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// An input of the membership machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum InputLine {
    Expect(ExpectLine),
    ExpectWorker(WorkerLine),
    UnexpectWorker(UnexpectLine),
    Advertise(AdvertiseLine),
    Withdraw(WithdrawLine),
    Invalidate(PublisherLine),
    Lost(Nothing),
    Listed(Nothing),
    Ended(Nothing),
    Tick(Nothing),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectLine {
    pub(super) workers: Vec<WorkerLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkerLine {
    pub(super) worker: U64,
    pub(super) first_rank: u32,
    pub(super) ranks: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) publishes: Option<bool>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) recovery_expected: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) state_endpoint: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct UnexpectLine {
    pub(super) worker: U64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AdvertiseLine {
    pub(super) publisher: U64,
    pub(super) worker: U64,
    pub(super) rank: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) state_endpoint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<String>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) engine: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) first_id: Option<U64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) boot: Option<U64>,
}

/// Worker and rank are for people: a withdrawal goes by publisher and endpoint.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WithdrawLine {
    pub(super) publisher: U64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) worker: Option<U64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) rank: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) state_endpoint: Option<String>,
}

fn endpoint(name: Option<String>) -> Option<EndpointName> {
    name.map(|name| EndpointName::new(&name))
}

fn expectation(line: WorkerLine) -> WorkerExpectation {
    WorkerExpectation {
        worker: WorkerId(line.worker.0),
        first_rank: Rank(line.first_rank),
        ranks: line.ranks,
        publishing: match line.publishes {
            Some(true) => Publishing::Enabled,
            Some(false) => Publishing::Disabled,
            None => Publishing::Undeclared,
        },
        recovery_expected: line.recovery_expected,
        endpoint: endpoint(line.state_endpoint),
    }
}

impl InputLine {
    /// The input it means; `None` for one that only moves time.
    fn read(self, targets: &mut Targets) -> Option<MembershipInput> {
        Some(match self {
            Self::Expect(line) => {
                let workers = line.workers.into_iter().map(expectation).collect();
                MembershipInput::Expectations(workers)
            }
            Self::ExpectWorker(line) => MembershipInput::Expected(expectation(line)),
            Self::UnexpectWorker(line) => MembershipInput::Unexpected(WorkerId(line.worker.0)),
            Self::Advertise(line) => {
                let target = line.target.map(|name| targets.id(&name));
                MembershipInput::Advertisement(Advertisement {
                    rank: RankKey::new(line.worker.0, line.rank),
                    endpoint: endpoint(line.state_endpoint),
                    source: source(line.publisher, target, line.engine, line.first_id, line.boot),
                })
            }
            Self::Withdraw(line) => MembershipInput::Withdrawal(Withdrawal {
                publisher: PublisherId(line.publisher.0),
                endpoint: endpoint(line.state_endpoint),
            }),
            Self::Invalidate(line) => MembershipInput::Invalid(PublisherId(line.publisher.0)),
            Self::Lost(_) => MembershipInput::Lost,
            Self::Listed(_) => MembershipInput::Listed,
            Self::Ended(_) => MembershipInput::Ended,
            Self::Tick(_) => return None,
        })
    }
}

/// A coordinator whose consumers see every snapshot.
#[derive(Debug)]
pub(super) struct MembershipHost {
    coordinator: Coordinator,
    targets: Targets,
}

impl MembershipHost {
    pub(super) fn new(coordinator: Coordinator) -> Self {
        Self { coordinator, targets: Targets::default() }
    }

    fn handle(&mut self, input: MembershipInput, at: u64, out: &mut Vec<Output>) {
        match self.coordinator.handle(input, Timestamp(at)) {
            Update::Unchanged | Update::View => {}
            Update::Snapshot => out.push(self.snapshot()),
        }
    }

    fn snapshot(&self) -> Output {
        let view = self.coordinator.view();
        let membership = view.membership();
        let ranks = membership.ranks().map(|rank| {
            let ambiguity = view.ambiguity(rank.key);
            let publishers = ambiguity.as_ref().map_or(&[][..], |ambiguity| ambiguity.publishers());
            RankLine::of(rank, publishers, &self.targets)
        });
        Output::Snapshot {
            endpoint: Name::Borrowed(view.resolution().name()),
            ranks: ranks.collect(),
            suspect: membership.suspect(),
        }
    }
}

impl Machine for MembershipHost {
    fn deadline(&self) -> Option<u64> {
        self.coordinator.next_deadline().map(|deadline| deadline.0)
    }

    fn fire(&mut self, at: u64, out: &mut Vec<Output>) -> Result<(), Refusal> {
        self.handle(MembershipInput::Timeout, at, out);
        Ok(())
    }

    fn input(
        &mut self,
        text: &str,
        offset: usize,
        at: u64,
        _bindings: &Bindings,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let line: InputLine =
            serde_json::from_str(text).map_err(|error| json_error(&error, offset))?;
        if let Some(input) = line.read(&mut self.targets) {
            self.handle(input, at, out);
        }
        Ok(())
    }
}
