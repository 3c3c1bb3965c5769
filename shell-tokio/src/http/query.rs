//! Bodies of `/query` and `/query_by_hash` (`http-api` §4, §5 and §9).

use super::fields::{Fields, SALT, Spelling, contradiction, wrong_type};
use super::problem::{Problem, Reason};
use super::registration::tenant;
use crate::backend::{Prompt, Query};
use crate::registry::DEFAULT_TENANT;
use kvmirror_core::id::{BlockHash, LocalHash, SequenceHash};
use kvmirror_core::router::Trust;

/// Reads a query by tokens.
pub(crate) fn by_tokens(
    body: &[u8],
    default_min_trust: Trust,
) -> Result<(Spelling, Query), Problem> {
    let fields = Fields::parse(body)?;
    let prompt = Prompt::Tokens {
        ids: fields.tokens("token_ids")?.ok_or_else(|| Problem::missing("token_ids"))?,
        lora: fields.text("lora_name")?.unwrap_or_default(),
        salt: fields.text("cache_salt")?.unwrap_or_default(),
    };
    query(&fields, default_min_trust, prompt)
}

/// Reads a query by hashes.
pub(crate) fn by_hashes(
    body: &[u8],
    default_min_trust: Trust,
) -> Result<(Spelling, Query), Problem> {
    let fields = Fields::parse(body)?;
    for name in ["cache_salt", "lora_name"] {
        if fields.non_empty(name)?.is_some() {
            return Err(Problem::new(
                Reason::Unsupported,
                format!("{name} cannot be mixed into hashes that are already made"),
                "hash the tokens with it and leave it out here, or use /query",
            )
            .field(name));
        }
    }
    let prompt = hash_prompt(&fields)?;
    query(&fields, default_min_trust, prompt)
}

/// What the hashes of a query mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meaning {
    Local,
    Sequence,
    Engine,
}

fn hash_prompt(fields: &Fields<'_>) -> Result<Prompt, Problem> {
    let local = fields.hashes("block_hashes")?;
    let sequence = fields.aliased(&["seq_hashes", "block_hash"], Fields::hashes)?;
    let (hashes, named) = match (local, sequence) {
        (Some(_), Some(_)) => {
            let rolling =
                if fields.raw("seq_hashes").is_some() { "seq_hashes" } else { "block_hash" };
            return Err(contradiction("block_hashes", rolling));
        }
        (Some(hashes), None) => (hashes, Meaning::Local),
        (None, Some(hashes)) => (hashes, Meaning::Sequence),
        (None, None) => {
            return Err(Problem::new(
                Reason::Missing,
                "block_hashes or seq_hashes is missing",
                "send local hashes as block_hashes or rolling ones as seq_hashes",
            )
            .field("block_hashes"));
        }
    };
    let prompt = match overridden(fields)?.unwrap_or(named) {
        Meaning::Local => Prompt::Local(hashes.into_iter().map(LocalHash).collect()),
        Meaning::Sequence => Prompt::Sequence(hashes.into_iter().map(SequenceHash).collect()),
        Meaning::Engine => {
            if fields.instance()?.is_none() {
                return Err(Problem::new(
                    Reason::Missing,
                    "instance_id is missing: an engine's own hashes mean nothing elsewhere",
                    "send the instance_id whose events the hashes are from",
                )
                .field("instance_id"));
            }
            Prompt::Engine(hashes.into_iter().map(BlockHash).collect())
        }
    };
    Ok(prompt)
}

fn overridden(fields: &Fields<'_>) -> Result<Option<Meaning>, Problem> {
    let Some(text) = fields.text("hashes")? else { return Ok(None) };
    match text.as_str() {
        "local" => Ok(Some(Meaning::Local)),
        "sequence" => Ok(Some(Meaning::Sequence)),
        "engine" => Ok(Some(Meaning::Engine)),
        _ => Err(Problem::new(
            Reason::InvalidValue,
            "hashes names no known kind",
            "send local, sequence or engine, or leave hashes out",
        )
        .field("hashes")),
    }
}

fn query(
    fields: &Fields<'_>,
    default_min_trust: Trust,
    prompt: Prompt,
) -> Result<(Spelling, Query), Problem> {
    if !matches!(fields.raw("lora_id"), None | Some("-1")) {
        return Err(Problem::new(
            Reason::Unsupported,
            "lora_id other than -1 is not supported",
            "name the adapter by lora_name",
        )
        .field("lora_id"));
    }
    let query = Query {
        model: fields.model()?,
        tenant: tenant(fields)?.unwrap_or_else(|| DEFAULT_TENANT.to_owned()),
        block_size: fields.block_size()?,
        salt: fields.aliased(SALT, Fields::non_empty)?,
        instance: fields.instance()?,
        min_trust: min_trust(fields)?.unwrap_or(default_min_trust),
        prompt,
    };
    Ok((fields.spelling(), query))
}

fn min_trust(fields: &Fields<'_>) -> Result<Option<Trust>, Problem> {
    const NAME: &str = "min_trust";
    if fields.raw(NAME).is_some_and(|raw| !raw.starts_with('"')) {
        return Err(wrong_type(NAME, "a string"));
    }
    let Some(text) = fields.text(NAME)? else { return Ok(None) };
    Trust::parse_minimum(&text).map(Some).ok_or_else(|| {
        Problem::new(
            Reason::InvalidValue,
            "min_trust names no level that may answer",
            "send exact, catching_up, partial or suspect",
        )
        .field(NAME)
    })
}
