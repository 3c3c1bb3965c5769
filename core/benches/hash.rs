//! Hash speed: token blocks to local hashes, local hashes to a sequence.
//!
//! Prints `name: value unit` lines, medians of nine rounds.
#![allow(clippy::print_stdout, clippy::float_arithmetic, reason = "a benchmark reports figures")]

use kvmirror_core::hash::{identity_seed, local_hashes, sequence_hashes};
use std::hint::black_box;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const ROUND_TIME: Duration = Duration::from_millis(50);
const PROMPT_TOKENS: u32 = 65_536;

fn main() {
    let tokens: Vec<u32> =
        (0..PROMPT_TOKENS).map(|i| i.wrapping_mul(2_654_435_761) % 128_000).collect();
    let seed = identity_seed("adapter", "tenant");
    let mut locals = Vec::new();
    let mut sequence = Vec::new();
    for block_size in [16_u32, 32, 64] {
        let blocks = f64::from(PROMPT_TOKENS / block_size);
        let per_second = rate(|| {
            local_hashes(black_box(&tokens), block_size, false, seed, &mut locals);
            black_box(&locals);
        });
        println!("hash.local_{block_size}: {:.1} M blocks/s", per_second * blocks / 1e6);
        let per_second = rate(|| {
            sequence_hashes(black_box(&locals), &mut sequence);
            black_box(&sequence);
        });
        println!("hash.sequence_{block_size}: {:.1} M blocks/s", per_second * blocks / 1e6);
    }
}

/// Calls per second, the median of the rounds.
fn rate(mut call: impl FnMut()) -> f64 {
    call();
    let mut rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            let mut calls = 0_u32;
            while started.elapsed() < ROUND_TIME {
                call();
                calls += 1;
            }
            f64::from(calls) / started.elapsed().as_secs_f64()
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    rounds[ROUNDS / 2]
}
