//! What the loop tells the log, with stable fields.

use crate::replay::ReplayEnd;
use crate::transport::DownReason;
use kvmirror_core::router::Notice;

/// Why a source is down, for people.
pub(super) fn down(reason: &DownReason) -> String {
    match reason {
        DownReason::Unreachable(error) => error.to_string(),
        DownReason::Closed => "the publisher closed the connection".to_owned(),
        DownReason::Broken(what) => format!("the connection broke: {what}"),
        DownReason::Silence(span) => format!("silent for {span:?}; connecting anew"),
        DownReason::Overflow(messages) => {
            format!("{messages} messages dropped: the follower was too slow")
        }
    }
}

/// Why a replay brought nothing, for people; `None` when it brought something or said that there is
/// nothing.
pub(super) fn mute(end: &ReplayEnd) -> Option<String> {
    match end {
        ReplayEnd::EndMarker | ReplayEnd::LimitMessages | ReplayEnd::LimitBytes => None,
        ReplayEnd::Idle | ReplayEnd::Total => {
            Some("the replay socket does not answer; is it one?".to_owned())
        }
        ReplayEnd::Malformed(error) => Some(format!("the replay socket answers wrongly: {error}")),
        ReplayEnd::Failed(error) => Some(format!("the replay socket cannot be asked: {error}")),
    }
}

/// What a store with another block size than registered means.
pub(super) const BLOCK_SIZE: &str =
    "the engine's block size is not the registered one: its blocks can never match tokens";

/// What the machine noticed.
pub(super) fn notice(notice: &Notice) {
    match notice {
        Notice::Trust { rank, from, to, reason } => tracing::info!(
            %rank,
            from = from.name(),
            to = to.name(),
            reason = reason.map(|reason| reason.name()),
            "trust changed"
        ),
        Notice::NewLife { rank, cursor } => {
            tracing::info!(%rank, cursor = cursor.map(|cursor| cursor.0), "new life");
        }
        Notice::Gap { rank, expected, got } => tracing::info!(%rank, %expected, %got, "gap"),
        Notice::Skipped { rank, first, last } => {
            tracing::warn!(%rank, %first, %last, "messages skipped for good");
        }
        Notice::Recovered { rank, end } => tracing::info!(%rank, end = end.name(), "recovered"),
        Notice::Reset { rank, cause } => tracing::info!(%rank, cause = cause.name(), "reset"),
        Notice::QueryFailed { rank, attempt, failure } => {
            tracing::debug!(%rank, attempt, ?failure, "an attempt to recover failed");
        }
        Notice::Refused { rank } => tracing::warn!(%rank, "the index refused a command"),
        Notice::TransportGap { rank, expected, got } => {
            tracing::info!(%rank, expected, got, "transport messages missing");
        }
        Notice::InitialRecoveryComplete { .. } | Notice::Discarded { .. } | _ => {
            tracing::debug!(?notice);
        }
    }
}
