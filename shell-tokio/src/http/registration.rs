//! Bodies of `/register` and `/unregister` (`http-api` §2 and §3).

use super::HttpOptions;
use super::fields::{Fields, SALT, Spelling, TENANT};
use super::problem::{Problem, Reason};
use crate::registry::{
    DEFAULT_TENANT, EngineKind, InstanceName, ParsedKind, Registration, Unregistration,
    parse_duplicates,
};
use crate::transport::Endpoint;
use kvmirror_core::id::Rank;
use kvmirror_core::index::Duplicates;

/// Longest endpoint text, in bytes.
const MAX_ENDPOINT_BYTES: usize = 512;

/// Reads a registration. Texts are checked for length by the registry, which also serves the
/// configuration.
pub(crate) fn registration(
    body: &[u8],
    options: &HttpOptions,
) -> Result<(Spelling, Registration), Problem> {
    let fields = Fields::parse(body)?;
    let instance = required_instance(&fields)?;
    let endpoint =
        endpoint(&fields, "endpoint", options)?.ok_or_else(|| Problem::missing("endpoint"))?;
    let replay_endpoint = endpoint_unless_empty(&fields, options)?;
    let model = fields.model()?;
    let block_size = fields.block_size()?.ok_or_else(|| Problem::missing("block_size"))?;
    let defaults = Registration::new(instance, endpoint, model, block_size);
    let registration = Registration {
        rank: Rank(fields.number("dp_rank", 0)?.unwrap_or_default()),
        replay_endpoint,
        tenant: tenant(&fields)?.unwrap_or_else(|| DEFAULT_TENANT.to_owned()),
        salt: fields.aliased(SALT, Fields::non_empty)?.unwrap_or_default(),
        kind: kind(&fields)?,
        lora: fields.text("lora_name")?.unwrap_or_default(),
        duplicates: duplicates(&fields)?,
        eagle: fields.flag("eagle")?.unwrap_or_default(),
        image_token_id: fields.number("image_token_id", 0)?,
        video_token_id: fields.number("video_token_id", 0)?,
        ..defaults
    };
    Ok((fields.spelling(), registration))
}

/// Reads an unregistration. Without a tenant, M means `default` and D the only one.
pub(crate) fn unregistration(body: &[u8]) -> Result<(Spelling, Unregistration), Problem> {
    let fields = Fields::parse(body)?;
    let spelling = fields.spelling();
    let tenant = match (tenant(&fields)?, spelling) {
        (Some(tenant), Spelling::D | Spelling::M) => Some(tenant),
        (None, Spelling::M) => Some(DEFAULT_TENANT.to_owned()),
        (None, Spelling::D) => None,
    };
    let wish = Unregistration {
        instance: required_instance(&fields)?,
        tenant,
        model: fields.aliased(super::fields::MODEL, Fields::text)?,
        rank: fields.number("dp_rank", 0)?.map(Rank),
    };
    Ok((spelling, wish))
}

/// The tenant, `""` being absent.
pub(crate) fn tenant(fields: &Fields<'_>) -> Result<Option<String>, Problem> {
    fields.aliased(TENANT, Fields::non_empty)
}

fn required_instance(fields: &Fields<'_>) -> Result<InstanceName, Problem> {
    fields.instance()?.ok_or_else(|| Problem::missing("instance_id"))
}

fn endpoint(
    fields: &Fields<'_>,
    name: &'static str,
    options: &HttpOptions,
) -> Result<Option<Endpoint>, Problem> {
    let Some(text) = fields.text(name)? else { return Ok(None) };
    let refuse = |problem: &str, fix: &'static str| {
        Problem::new(Reason::InvalidValue, format!("{name} {problem}"), fix).field(name)
    };
    // Before anything repeats the text in an error.
    if text.len() > MAX_ENDPOINT_BYTES {
        return Err(refuse("is longer than 512 bytes", "send tcp://host:port"));
    }
    let endpoint = Endpoint::parse(&text, None).map_err(|error| Problem::endpoint(name, &error))?;
    if matches!(endpoint, Endpoint::Ipc { .. }) {
        let fix = "send tcp://host:port, or put the source into the configuration";
        return Err(refuse("cannot be an ipc address over HTTP", fix));
    }
    if !options.allows(&endpoint) {
        let fix = "use a host of allowed_hosts, or add it there";
        return Err(refuse("names a host that is not allowed", fix));
    }
    Ok(Some(endpoint))
}

fn endpoint_unless_empty(
    fields: &Fields<'_>,
    options: &HttpOptions,
) -> Result<Option<Endpoint>, Problem> {
    const NAME: &str = "replay_endpoint";
    if fields.non_empty(NAME)?.is_none() {
        return Ok(None);
    }
    endpoint(fields, NAME, options)
}

fn kind(fields: &Fields<'_>) -> Result<EngineKind, Problem> {
    let Some(text) = fields.text("type")? else { return Ok(EngineKind::default()) };
    match EngineKind::parse(&text) {
        Some(ParsedKind::Engine(kind)) => Ok(kind),
        Some(ParsedKind::SharedStore) => Err(Problem::new(
            Reason::Unsupported,
            "shared stores (type Mooncake) are not supported",
            "register the engines themselves",
        )
        .field("type")),
        None => Err(Problem::new(
            Reason::InvalidValue,
            "type names no known engine",
            "send vLLM or SGLang, or leave type out",
        )
        .field("type")),
    }
}

fn duplicates(fields: &Fields<'_>) -> Result<Duplicates, Problem> {
    let Some(text) = fields.text("duplicates")? else { return Ok(Duplicates::default()) };
    parse_duplicates(&text).ok_or_else(|| {
        Problem::new(
            Reason::InvalidValue,
            "duplicates names no known policy",
            "send counted or set, or leave duplicates out",
        )
        .field("duplicates")
    })
}
