//! Decode speed over at least 1 MiB of *different* payloads: a payload decoded again and again is
//! learned by the branch predictor and looks up to twice as fast as real traffic.
//!
//! Prints `name: value unit` lines; each is the median of nine rounds in which all shapes take
//! turns. `KVMIRROR_BENCH_DUMP=dir` also writes the payloads, each with its length before it as a
//! little-endian u32, so that other decoders can be run over the very same bytes.
#![allow(clippy::print_stdout, clippy::float_arithmetic, reason = "a benchmark reports figures")]

use kvmirror_core::event::{EventBatch, Placement};
use kvmirror_core::wire::{Decoder, Limits, SourceIdentity};
use std::hint::black_box;
use std::io::Write;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

const ROUNDS: usize = 9;
const CORPUS_BYTES: usize = 1 << 20;
const ROUND_TIME: Duration = Duration::from_millis(60);

/// splitmix64: the payloads are the same on every run.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform below 128,000, or log-uniform like text.
    fn token(&mut self, text_like: bool) -> u64 {
        let uniform = self.next() % 128_000;
        if text_like { uniform >> (self.next() % 17) } else { uniform }
    }
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    let bytes = number.to_be_bytes();
    match number {
        0..=0x7f => out.push(bytes[7]),
        0x80..=0xff => out.extend([0xcc, bytes[7]]),
        0x100..=0xffff => {
            out.push(0xcd);
            out.extend(&bytes[6..]);
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xce);
            out.extend(&bytes[4..]);
        }
        _ => {
            out.push(0xcf);
            out.extend(bytes);
        }
    }
}

fn put_array(out: &mut Vec<u8>, count: u64) {
    let bytes = count.to_be_bytes();
    if count < 16 {
        out.push(0x90 | bytes[7]);
    } else {
        out.push(0xdc);
        out.extend(&bytes[6..]);
    }
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let len = u8::try_from(text.len()).expect("short names");
    out.push(0xa0 | len);
    out.extend(text.as_bytes());
}

#[derive(Clone, Copy)]
struct Shape {
    name: &'static str,
    events: u64,
    blocks: u64,
    block_size: u64,
    map: bool,
    text_like: bool,
}

impl Shape {
    fn batch(&self, rng: &mut Rng) -> Vec<u8> {
        let mut out = vec![0x93, 0xcb];
        out.extend(1_700_000_000.25_f64.to_be_bytes());
        put_array(&mut out, self.events);
        for _ in 0..self.events {
            self.event(rng, &mut out);
        }
        out.push(0);
        out
    }

    fn event(&self, rng: &mut Rng, out: &mut Vec<u8>) {
        let key = |out: &mut Vec<u8>, name| {
            if self.map {
                put_text(out, name);
            }
        };
        out.push(if self.map { 0x88 } else { 0x97 });
        key(out, "type");
        put_text(out, "BlockStored");
        key(out, "block_hashes");
        put_array(out, self.blocks);
        for _ in 0..self.blocks {
            put_number(out, rng.next());
        }
        key(out, "parent_block_hash");
        put_number(out, rng.next());
        key(out, "token_ids");
        put_array(out, self.blocks * self.block_size);
        for _ in 0..self.blocks * self.block_size {
            let token = rng.token(self.text_like);
            put_number(out, token);
        }
        key(out, "block_size");
        put_number(out, self.block_size);
        key(out, "lora_id");
        out.push(0xc0);
        key(out, "medium");
        put_text(out, "GPU");
        if self.map {
            put_text(out, "lora_name");
            out.push(0xc0);
        }
    }

    fn corpus(&self) -> Vec<Vec<u8>> {
        let mut rng = Rng(self.events * 7_919 + self.blocks);
        let mut corpus = Vec::new();
        let mut bytes = 0;
        while bytes < CORPUS_BYTES {
            let payload = self.batch(&mut rng);
            bytes += payload.len();
            corpus.push(payload);
        }
        corpus
    }
}

fn shapes() -> Vec<Shape> {
    let mut shapes = Vec::new();
    for (map, text_like, names) in [
        (false, false, ["array_1x1", "array_16x1", "array_64x1", "array_1x64", "array_1x8x64"]),
        (false, true, ["text_1x1", "text_16x1", "text_64x1", "text_1x64", "text_1x8x64"]),
        (true, false, ["map_1x1", "map_16x1", "map_64x1", "map_1x64", "map_1x8x64"]),
    ] {
        let sizes = [(1, 1, 16), (16, 1, 16), (64, 1, 16), (1, 64, 16), (1, 8, 64)];
        for (name, (events, blocks, block_size)) in names.into_iter().zip(sizes) {
            shapes.push(Shape { name, events, blocks, block_size, map, text_like });
        }
    }
    shapes
}

struct Case {
    shape: Shape,
    corpus: Vec<Vec<u8>>,
    identity: SourceIdentity,
    seconds_a_batch: Vec<f64>,
}

fn check(case: &Case, decoder: &mut Decoder, out: &mut EventBatch) {
    let blocks = usize::try_from(case.shape.events * case.shape.blocks).expect("few blocks");
    for payload in &case.corpus {
        decoder.decode(payload, &case.identity, out).expect("own payloads decode");
        assert!(out.records.iter().all(|record| record.placement == Placement::Positioned));
        assert_eq!((out.hashes.len(), out.locals.len()), (blocks, blocks));
    }
}

fn round(case: &mut Case, decoder: &mut Decoder, out: &mut EventBatch) {
    let start = Instant::now();
    let mut batches = 0_usize;
    while start.elapsed() < ROUND_TIME {
        for payload in &case.corpus {
            let result = decoder.decode(black_box(payload), &case.identity, out);
            black_box((&result, &out.locals));
        }
        batches += case.corpus.len();
    }
    case.seconds_a_batch.push(start.elapsed().as_secs_f64() / batches as f64);
}

fn dump(directory: &str, case: &Case) -> std::io::Result<()> {
    let path = std::path::Path::new(directory).join(case.shape.name);
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    for payload in &case.corpus {
        let len = u32::try_from(payload.len()).map_err(std::io::Error::other)?;
        file.write_all(&len.to_le_bytes())?;
        file.write_all(payload)?;
    }
    file.flush()
}

fn main() {
    let mut decoder = Decoder::new(Limits::default());
    let mut out = EventBatch::default();
    let mut cases: Vec<Case> = shapes()
        .into_iter()
        .map(|shape| Case {
            shape,
            corpus: shape.corpus(),
            identity: SourceIdentity {
                block_size: NonZeroU32::new(u32::try_from(shape.block_size).expect("small")),
                eagle: Some(false),
                ..SourceIdentity::default()
            },
            seconds_a_batch: Vec::new(),
        })
        .collect();
    if let Ok(directory) = std::env::var("KVMIRROR_BENCH_DUMP") {
        for case in &cases {
            dump(&directory, case).expect("the dump directory is writable");
        }
    }
    for case in &cases {
        check(case, &mut decoder, &mut out);
    }
    for _ in 0..ROUNDS {
        for case in &mut cases {
            round(case, &mut decoder, &mut out);
        }
    }
    for case in &mut cases {
        report(case);
    }
}

fn report(case: &mut Case) {
    case.seconds_a_batch.sort_by(f64::total_cmp);
    let seconds = case.seconds_a_batch[ROUNDS / 2];
    let bytes = case.corpus.iter().map(Vec::len).sum::<usize>() as f64 / case.corpus.len() as f64;
    let name = case.shape.name;
    println!("decode.{name}.events: {:.0} events/s", case.shape.events as f64 / seconds);
    println!("decode.{name}.bytes: {:.1} MB/s", bytes / seconds / 1e6);
    println!("decode.{name}.time: {:.4} us/batch", seconds * 1e6);
}
