//! Time as the machines see it: whole microseconds since an origin of the caller's.

/// A point in time. The shell truncates its clock to whole microseconds before it feeds one in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub u64);

/// A span of whole microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Micros(pub u64);

impl Timestamp {
    /// The caller's origin.
    pub const ZERO: Self = Self(0);

    /// The time `span` after this one; saturates at the end of time.
    #[must_use]
    pub const fn after(self, span: Micros) -> Self {
        Self(self.0.saturating_add(span.0))
    }

    /// How long after `earlier` this time is; zero when it is not after it.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Micros {
        Micros(self.0.saturating_sub(earlier.0))
    }
}

impl Micros {
    /// A span of whole milliseconds; saturates.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000))
    }

    /// A span of whole seconds; saturates.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// The span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000
    }

    /// This span doubled `times` times; saturates.
    #[must_use]
    pub const fn doubled(self, times: u32) -> Self {
        if times >= 64 {
            return if self.0 == 0 { self } else { Self(u64::MAX) };
        }
        Self(self.0.saturating_mul(1 << times))
    }
}
