"""Writes one corpus file per distinct captured payload and per scenario: python3 fuzz/seed_corpus.py (from the root)."""

import hashlib
import json
import pathlib

root = pathlib.Path(__file__).resolve().parent
target = root / "corpus" / "wire_decode"
target.mkdir(parents=True, exist_ok=True)
with open(root.parent / "tests/data/wire/wire-variants.jsonl") as lines:
    for line in lines:
        payload = bytes.fromhex(json.loads(line)["hex"])
        (target / hashlib.sha256(payload).hexdigest()[:16]).write_bytes(payload)

target = root / "corpus" / "trace"
target.mkdir(parents=True, exist_ok=True)
for scenario in (root.parent / "tests/scenarios").rglob("*.jsonl"):
    text = scenario.read_bytes()
    (target / hashlib.sha256(text).hexdigest()[:16]).write_bytes(text)
