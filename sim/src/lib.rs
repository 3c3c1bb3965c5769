//! Simulated engines for kvmirror: what the machines of `kvmirror-core` are tested against.
//!
//! | module | owns |
//! |---|---|
//! | [`engine`] | raw engines with lives and replay rings, and the truth of every life |

#![forbid(unsafe_code)]

pub mod engine;
