//! Addresses of sources (P35 of the field reports).

use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use thiserror::Error;

/// Longest accepted endpoint text, in bytes.
pub const MAX_ENDPOINT_BYTES: usize = 512;

/// Which transports an endpoint may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transports {
    /// `tcp://host:port` only: what a registration over HTTP may ask for.
    TcpOnly,
    /// Also `ipc://path`: what an operator may write into the configuration.
    TcpAndIpc,
}

/// A checked address that can be connected to.
///
/// Nothing is rewritten: no rank is added to a port (each rank is registered with its own
/// endpoint), and a wildcard host is refused because a registration says from nowhere else which
/// host was meant.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Endpoint {
    text: String,
    place: Place,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    Tcp { host: String, port: u16 },
    Ipc { path: String },
}

/// Why an endpoint was refused, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{problem}")]
pub struct EndpointError {
    /// What is wrong.
    pub problem: &'static str,
    /// What to do.
    pub fix: &'static str,
}

const SHAPE: &str = "write tcp://host:port, an IPv6 address in brackets";

impl Endpoint {
    /// Checks `text`.
    ///
    /// # Errors
    /// [`EndpointError`] for another transport than `transports` allows, a missing, wildcard or
    /// unspecified host, a bad port or port 0, and text longer than [`MAX_ENDPOINT_BYTES`].
    pub fn parse(text: &str, transports: Transports) -> Result<Self, EndpointError> {
        if text.len() > MAX_ENDPOINT_BYTES {
            return Err(refuse("the endpoint is longer than 512 bytes", SHAPE));
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(refuse("the endpoint contains white space or control characters", SHAPE));
        }
        if let Some(rest) = text.strip_prefix("tcp://") {
            let (host, port) = tcp(rest)?;
            return Ok(Self { text: text.to_owned(), place: Place::Tcp { host, port } });
        }
        match (text.strip_prefix("ipc://"), transports) {
            (Some(""), Transports::TcpAndIpc) => {
                Err(refuse("the endpoint has no path", "write ipc:///path/to/socket"))
            }
            (Some(path), Transports::TcpAndIpc) => {
                Ok(Self { text: text.to_owned(), place: Place::Ipc { path: path.to_owned() } })
            }
            (Some(_), Transports::TcpOnly) => Err(refuse(
                "only tcp:// endpoints can be registered over HTTP",
                "write tcp://host:port, or put the source into the configuration file",
            )),
            (None, Transports::TcpOnly | Transports::TcpAndIpc) => {
                Err(refuse("the endpoint names no known transport", SHAPE))
            }
        }
    }

    /// The endpoint as it was written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Host (IPv6 without brackets) and port of a TCP endpoint.
    pub fn tcp(&self) -> Option<(&str, u16)> {
        match &self.place {
            Place::Tcp { host, port } => Some((host, *port)),
            Place::Ipc { .. } => None,
        }
    }

    /// The path of an IPC endpoint.
    pub fn ipc(&self) -> Option<&str> {
        match &self.place {
            Place::Tcp { .. } => None,
            Place::Ipc { path } => Some(path),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

const fn refuse(problem: &'static str, fix: &'static str) -> EndpointError {
    EndpointError { problem, fix }
}

fn tcp(rest: &str) -> Result<(String, u16), EndpointError> {
    let (host, port) = match rest.strip_prefix('[') {
        Some(bracketed) => {
            let (address, port) = bracketed
                .split_once("]:")
                .ok_or_else(|| refuse("the endpoint has no port after the IPv6 address", SHAPE))?;
            if address.parse::<Ipv6Addr>().is_err() {
                return Err(refuse("the text in brackets is not an IPv6 address", SHAPE));
            }
            (address, port)
        }
        None => rest.rsplit_once(':').ok_or_else(|| refuse("the endpoint has no port", SHAPE))?,
    };
    check_host(host, rest.starts_with('['))?;
    if port.is_empty() || !port.bytes().all(|b| b.is_ascii_digit()) {
        return Err(refuse("the port is not a number", SHAPE));
    }
    match port.parse::<u16>() {
        Ok(0) => Err(refuse(
            "port 0 cannot be connected to",
            "give the port the engine really listens on; 0 lets it choose one at random",
        )),
        Ok(port) => Ok((host.to_owned(), port)),
        Err(_) => Err(refuse("the port is above 65535", SHAPE)),
    }
}

fn check_host(host: &str, bracketed: bool) -> Result<(), EndpointError> {
    const NAME_IT: &str = "give the host the engine can be reached at, not the one it binds to";
    if host.is_empty() {
        return Err(refuse("the endpoint has no host", SHAPE));
    }
    if host == "*" {
        return Err(refuse("the host * cannot be connected to", NAME_IT));
    }
    if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_unspecified()) {
        return Err(refuse("an unspecified address cannot be connected to", NAME_IT));
    }
    if !bracketed && !host.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        return Err(refuse("the host is neither a name nor an address", SHAPE));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_endpoints() {
        for (text, host, port) in [
            ("tcp://127.0.0.1:5557", "127.0.0.1", 5557),
            ("tcp://engine-a.pod_1.svc:1", "engine-a.pod_1.svc", 1),
            ("tcp://[2001:db8::1]:5557", "2001:db8::1", 5557),
            ("tcp://localhost:65535", "localhost", 65535),
        ] {
            let endpoint = Endpoint::parse(text, Transports::TcpOnly).unwrap();
            assert_eq!(endpoint.tcp(), Some((host, port)));
            assert_eq!(endpoint.as_str(), text);
        }
        let ipc = Endpoint::parse("ipc:///run/engine.sock", Transports::TcpAndIpc).unwrap();
        assert_eq!(ipc.ipc(), Some("/run/engine.sock"));
    }

    #[test]
    fn refused_endpoints_say_why() {
        for (text, word) in [
            ("", "transport"),
            ("127.0.0.1:5557", "transport"),
            ("http://h:1", "transport"),
            ("inproc://x", "transport"),
            ("ipc:///run/engine.sock", "over HTTP"),
            ("tcp://h", "no port"),
            ("tcp://h:", "not a number"),
            ("tcp://h:+1", "not a number"),
            ("tcp://h:65536", "65535"),
            ("tcp://h:0", "port 0"),
            ("tcp://*:5557", "*"),
            ("tcp://*:0", "*"),
            ("tcp://0.0.0.0:5557", "unspecified"),
            ("tcp://[::]:5557", "unspecified"),
            ("tcp://:5557", "no host"),
            ("tcp://2001:db8::1:5557", "neither"),
            ("tcp://[2001:db8::1]", "no port"),
            ("tcp://[nonsense]:1", "IPv6"),
            ("tcp://h h:1", "white space"),
            ("tcp://user@h:1", "neither"),
        ] {
            let error = Endpoint::parse(text, Transports::TcpOnly).unwrap_err();
            assert!(error.problem.contains(word), "{text}: {error:?}");
            assert!(!error.fix.is_empty());
        }
        let long = format!("tcp://{}:1", "h".repeat(600));
        assert!(Endpoint::parse(&long, Transports::TcpOnly).is_err());
    }
}
