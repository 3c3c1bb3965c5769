//! When each message is due, and under which number it goes out.

use super::Speed;
use crate::capture::{CaptureMessage, RankStream};
use std::time::Duration;
use tokio::time::Instant;

/// Longest delay that is kept exactly; a clock jump in a capture waits no longer than this.
const LONGEST_DELAY: Duration = Duration::from_secs(30 * 24 * 3_600);

/// First and last time of a whole capture, so that its ranks stay in step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timeline {
    first: Option<u64>,
    last: Option<u64>,
}

impl Timeline {
    pub(super) fn of(streams: &[RankStream]) -> Self {
        let times = || streams.iter().flat_map(|s| s.lives.iter().flatten()).filter_map(|m| m.t_ns);
        Self { first: times().min(), last: times().max() }
    }
}

/// Turns captured times into deadlines, from one start of the capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    speed: Speed,
    timeline: Timeline,
    start: Instant,
}

impl Pace {
    pub(super) const fn new(speed: Speed, timeline: Timeline, start: Instant) -> Self {
        Self { speed, timeline, start }
    }

    /// When `message` is due; `None` = at once.
    pub(super) fn due(&self, message: &CaptureMessage) -> Option<Instant> {
        self.at(message.t_ns)
    }

    /// When the capture is over, so that a repeated one keeps its ranks together.
    pub(super) fn end(&self) -> Option<Instant> {
        self.at(self.timeline.last)
    }

    fn at(&self, t_ns: Option<u64>) -> Option<Instant> {
        let factor = match self.speed {
            Speed::Paced(factor) => factor,
            Speed::Unpaced => return None,
        };
        let after = Duration::from_nanos(t_ns?.saturating_sub(self.timeline.first?));
        // Out of range (a tiny speed) is as good as the longest delay.
        let delay = Duration::try_from_secs_f64(after.as_secs_f64() / factor)
            .unwrap_or(LONGEST_DELAY)
            .min(LONGEST_DELAY);
        Some(self.start + delay)
    }
}

/// Numbers the messages of one life.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    base: u64,
    lost: u64,
}

impl Numbering {
    /// The numbers as captured.
    pub(super) const fn captured() -> Self {
        Self { base: 0, lost: 0 }
    }

    /// A life that begins at 0 with what was captured as `first`.
    pub(super) const fn from_zero(first: u64) -> Self {
        Self { base: first, lost: 0 }
    }

    /// The next message is lost before it is numbered.
    pub(super) const fn lose(&mut self) {
        self.lost += 1;
    }

    /// The number of what was captured as `seq`.
    pub(super) const fn number(&self, seq: u64) -> u64 {
        seq.saturating_sub(self.base).saturating_sub(self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn message(t_ns: Option<u64>) -> CaptureMessage {
        let (topic, payload) = (Bytes::new(), Bytes::new());
        CaptureMessage { line: 0, t_ns, topic, seq: 0, payload, rank: None }
    }

    #[test]
    fn deadlines_scale_with_the_speed_and_never_overflow() {
        let times = [5_000_000_000, 6_000_000_000, u64::MAX];
        let lives = vec![times.map(|t| message(Some(t))).to_vec()];
        let timeline = Timeline::of(&[RankStream { rank: 0, lives: lives.clone() }]);
        let start = Instant::now();
        let due = |speed, message: &CaptureMessage| {
            Pace::new(speed, timeline, start).due(message).map(|at| at - start)
        };
        assert_eq!(due(Speed::Paced(1.0), &lives[0][0]), Some(Duration::ZERO));
        assert_eq!(due(Speed::Paced(2.0), &lives[0][1]), Some(Duration::from_millis(500)));
        assert_eq!(due(Speed::Paced(1e-300), &lives[0][2]), Some(LONGEST_DELAY));
        assert_eq!(due(Speed::Unpaced, &lives[0][1]), None);
        assert_eq!(due(Speed::Paced(1.0), &message(None)), None);
    }

    #[test]
    fn lost_messages_leave_no_gap() {
        let mut numbering = Numbering::captured();
        assert_eq!(numbering.number(0), 0);
        numbering.lose();
        assert_eq!(numbering.number(2), 1);
        assert_eq!(Numbering::from_zero(40).number(41), 1);
    }
}
