//! Addresses: what is accepted, and what is refused with a hint (P35).

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::PathBuf;

/// Longest IPC path the system takes (a `sockaddr_un` with its closing zero).
const IPC_PATH_BYTES: usize = 107;
/// Longest host name of the DNS.
const HOST_NAME_BYTES: usize = 253;

/// The host of a TCP address.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Host {
    /// A number.
    Ip(IpAddr),
    /// A name, resolved at each connection attempt.
    Name(String),
}

/// A checked address to connect to or to bind.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Endpoint {
    /// `tcp://host:port`.
    Tcp {
        /// The host.
        host: Host,
        /// The port; 0 only from [`Endpoint::loopback`].
        port: u16,
    },
    /// `ipc://path`.
    Ipc {
        /// Path of the socket file.
        path: PathBuf,
    },
}

/// Why an address is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EndpointError {
    /// Neither `tcp://` nor `ipc://`.
    #[error("{text:?}: not an address; write tcp://HOST:PORT or ipc://PATH")]
    Scheme {
        /// What was given.
        text: String,
    },
    /// `inproc://` never leaves its process.
    #[error("{text:?}: inproc reaches only its own process; use tcp:// or ipc://")]
    Inproc {
        /// What was given.
        text: String,
    },
    /// No port, or not a number up to 65535.
    #[error("{text:?}: needs a port from 1 to 65535, as in tcp://127.0.0.1:5557")]
    Port {
        /// What was given.
        text: String,
    },
    /// Port 0 means "any free port", which the other side cannot know.
    #[error("{text:?}: port 0 would take any free port, which nobody could find; name the port")]
    PortZero {
        /// What was given.
        text: String,
    },
    /// An IPv6 address without brackets.
    #[error("{text:?}: write an IPv6 address in brackets, as in tcp://[::1]:5557")]
    Brackets {
        /// What was given.
        text: String,
    },
    /// Not a host name or address.
    #[error("{text:?}: {host:?} is no host name or address")]
    Host {
        /// What was given.
        text: String,
        /// The part at fault.
        host: String,
    },
    /// A wildcard where an address to connect to is needed.
    #[error("{text:?}: cannot connect to a wildcard; give the host it is reachable under")]
    Wildcard {
        /// What was given.
        text: String,
    },
    /// An IPC path that cannot be used.
    #[error("{text:?}: {reason}")]
    Ipc {
        /// What was given.
        text: String,
        /// What is wrong, and what to do.
        reason: &'static str,
    },
    /// The port plus the rank is no port.
    #[error("{endpoint}: port plus rank {rank} is above 65535; choose a lower base port")]
    Offset {
        /// The base address.
        endpoint: Endpoint,
        /// The rank.
        rank: u32,
    },
    /// An IPC path has no port to offset.
    #[error("{endpoint}: an ipc address cannot serve rank {rank}; use tcp:// for several ranks")]
    IpcOffset {
        /// The base address.
        endpoint: Endpoint,
        /// The rank.
        rank: u32,
    },
}

impl Endpoint {
    /// Reads an address to connect to. A wildcard host (`*`, `0.0.0.0`, `[::]`) is replaced by
    /// `advertised`, the host the publisher is known to be reachable under.
    ///
    /// # Errors
    /// [`EndpointError`] with a hint; a wildcard without `advertised` is refused.
    pub fn parse(text: &str, advertised: Option<&str>) -> Result<Self, EndpointError> {
        let endpoint = Self::parse_bind(text)?;
        if !endpoint.is_wildcard() {
            return Ok(endpoint);
        }
        let Self::Tcp { port, .. } = endpoint else { return Ok(endpoint) };
        let host = advertised.ok_or_else(|| EndpointError::Wildcard { text: text.to_owned() })?;
        let named = Self::Tcp { host: parse_host(text, host, true)?, port };
        if named.is_wildcard() {
            return Err(EndpointError::Wildcard { text: text.to_owned() });
        }
        Ok(named)
    }

    /// Reads an address to bind. Wildcards are allowed here: who writes one means it.
    ///
    /// # Errors
    /// [`EndpointError`] with a hint.
    pub fn parse_bind(text: &str) -> Result<Self, EndpointError> {
        let owned = || text.to_owned();
        if let Some(path) = text.strip_prefix("ipc://") {
            return parse_ipc(text, path);
        }
        if text.starts_with("inproc://") {
            return Err(EndpointError::Inproc { text: owned() });
        }
        let address =
            text.strip_prefix("tcp://").ok_or_else(|| EndpointError::Scheme { text: owned() })?;
        let (host, port) =
            address.rsplit_once(':').ok_or_else(|| EndpointError::Port { text: owned() })?;
        if !port.bytes().all(|b| b.is_ascii_digit()) {
            return Err(EndpointError::Port { text: owned() });
        }
        let port: u16 = port.parse().map_err(|_| EndpointError::Port { text: owned() })?;
        let host = parse_host(text, host, false)?;
        if port == 0 {
            return Err(EndpointError::PortZero { text: owned() });
        }
        Ok(Self::Tcp { host, port })
    }

    /// `tcp://127.0.0.1:port`; port 0 asks a bind for any free port (tests and the demo, where the
    /// address bound is passed on in the process).
    pub const fn loopback(port: u16) -> Self {
        Self::Tcp { host: Host::Ip(IpAddr::V4(Ipv4Addr::LOCALHOST)), port }
    }

    /// Whether it stands for every interface of the machine.
    pub const fn is_wildcard(&self) -> bool {
        match self {
            Self::Tcp { host: Host::Ip(ip), .. } => ip.is_unspecified(),
            Self::Tcp { host: Host::Name(_), .. } | Self::Ipc { .. } => false,
        }
    }

    /// Whether only this machine can reach it.
    pub const fn is_local(&self) -> bool {
        match self {
            Self::Tcp { host: Host::Ip(ip), .. } => ip.is_loopback(),
            Self::Tcp { host: Host::Name(_), .. } => false,
            Self::Ipc { .. } => true,
        }
    }

    /// The address of data-parallel rank `rank` next to this one: port plus rank, as the engines
    /// do it. Whether `rank` is the global number or the one within a node is the caller's to say.
    ///
    /// # Errors
    /// When the port runs over, or an IPC path is asked for a rank above 0. Port 0 stays 0.
    pub fn with_port_offset(&self, rank: u32) -> Result<Self, EndpointError> {
        match self {
            Self::Ipc { .. } if rank == 0 => Ok(self.clone()),
            Self::Ipc { .. } => Err(EndpointError::IpcOffset { endpoint: self.clone(), rank }),
            Self::Tcp { port: 0, .. } => Ok(self.clone()),
            Self::Tcp { host, port } => {
                let port = u16::try_from(rank)
                    .ok()
                    .and_then(|rank| port.checked_add(rank))
                    .ok_or_else(|| EndpointError::Offset { endpoint: self.clone(), rank })?;
                Ok(Self::Tcp { host: host.clone(), port })
            }
        }
    }
}

fn parse_ipc(text: &str, path: &str) -> Result<Endpoint, EndpointError> {
    let refuse = |reason| Err(EndpointError::Ipc { text: text.to_owned(), reason });
    if path.is_empty() || path == "*" {
        return refuse("name the path of the socket, as in ipc:///run/engine.sock");
    }
    if path.starts_with('@') {
        return refuse("abstract ipc names are not supported; use a path");
    }
    if path.len() > IPC_PATH_BYTES || path.contains('\0') {
        return refuse("the path is longer than 107 bytes or holds a zero byte; use a shorter one");
    }
    Ok(Endpoint::Ipc { path: PathBuf::from(path) })
}

/// `bare` allows an IPv6 address without brackets (a host of its own, not beside a port).
fn parse_host(text: &str, host: &str, bare: bool) -> Result<Host, EndpointError> {
    let bad = || EndpointError::Host { text: text.to_owned(), host: host.to_owned() };
    if host == "*" {
        return Ok(Host::Ip(IpAddr::V4(Ipv4Addr::UNSPECIFIED)));
    }
    if let Some(inner) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().map(|ip| Host::Ip(ip.into())).map_err(|_| bad());
    }
    if let Ok(ip) = host.parse::<IpAddr>() {
        return match ip {
            IpAddr::V6(_) if !bare => Err(EndpointError::Brackets { text: text.to_owned() }),
            IpAddr::V4(_) | IpAddr::V6(_) => Ok(Host::Ip(ip)),
        };
    }
    let named = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if host.is_empty() || host.len() > HOST_NAME_BYTES || !host.bytes().all(named) {
        return Err(bad());
    }
    // All digits and dots but no address: a typo like 127.0.0.1.1, not a name.
    if host.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return Err(bad());
    }
    Ok(Host::Name(host.to_owned()))
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ip(ip) => ip.fmt(f),
            Self::Name(name) => name.fmt(f),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp { host: Host::Ip(IpAddr::V6(ip)), port } => write!(f, "tcp://[{ip}]:{port}"),
            Self::Tcp { host, port } => write!(f, "tcp://{host}:{port}"),
            Self::Ipc { path } => write!(f, "ipc://{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connect(text: &str) -> Result<String, EndpointError> {
        Endpoint::parse(text, None).map(|e| e.to_string())
    }

    #[test]
    fn good_addresses_come_back_as_written() {
        for text in [
            "tcp://127.0.0.1:5557",
            "tcp://[2001:db8::1]:5557",
            "tcp://[::1]:1",
            "tcp://engine-0.pool.svc:65535",
            "ipc:///run/engine.sock",
            "ipc://relative.sock",
        ] {
            assert_eq!(connect(text).as_deref(), Ok(text));
        }
    }

    #[test]
    fn wildcards_need_an_advertised_host_to_connect() {
        for text in ["tcp://*:5557", "tcp://0.0.0.0:5557", "tcp://[::]:5557"] {
            assert_eq!(connect(text), Err(EndpointError::Wildcard { text: text.to_owned() }));
            let named = Endpoint::parse(text, Some("10.1.2.3")).unwrap();
            assert_eq!(named.to_string(), "tcp://10.1.2.3:5557");
            let v6 = Endpoint::parse(text, Some("2001:db8::7")).unwrap();
            assert_eq!(v6.to_string(), "tcp://[2001:db8::7]:5557");
            assert!(Endpoint::parse(text, Some("*")).is_err());
            assert!(Endpoint::parse_bind(text).unwrap().is_wildcard());
        }
        let kept = Endpoint::parse("tcp://10.0.0.9:1", Some("other")).unwrap();
        assert_eq!(kept.to_string(), "tcp://10.0.0.9:1");
    }

    #[test]
    fn bad_addresses_are_refused_by_kind() {
        let kind = |text: &str| connect(text).unwrap_err();
        assert!(matches!(kind("127.0.0.1:5557"), EndpointError::Scheme { .. }));
        assert!(matches!(kind("TCP://127.0.0.1:5557"), EndpointError::Scheme { .. }));
        assert!(matches!(kind("inproc://x"), EndpointError::Inproc { .. }));
        assert!(matches!(kind("tcp://*:0"), EndpointError::PortZero { .. }));
        assert!(matches!(kind("tcp://host"), EndpointError::Port { .. }));
        assert!(matches!(kind("tcp://host:"), EndpointError::Port { .. }));
        assert!(matches!(kind("tcp://host:+1"), EndpointError::Port { .. }));
        assert!(matches!(kind("tcp://host:65536"), EndpointError::Port { .. }));
        assert!(matches!(kind("tcp://::1:5557"), EndpointError::Brackets { .. }));
        assert!(matches!(kind("tcp://:5557"), EndpointError::Host { .. }));
        assert!(matches!(kind("tcp://a b:5557"), EndpointError::Host { .. }));
        assert!(matches!(kind("tcp://127.0.0.1.1:5557"), EndpointError::Host { .. }));
        assert!(matches!(kind("tcp://[nope]:5557"), EndpointError::Host { .. }));
        assert!(matches!(kind("ipc://"), EndpointError::Ipc { .. }));
        assert!(matches!(kind("ipc://@x"), EndpointError::Ipc { .. }));
        assert!(matches!(kind(&format!("ipc:///{}", "x".repeat(200))), EndpointError::Ipc { .. }));
    }

    #[test]
    fn ranks_offset_the_port() {
        let base = Endpoint::parse("tcp://h:5557", None).unwrap();
        assert_eq!(base.with_port_offset(11).unwrap().to_string(), "tcp://h:5568");
        assert!(base.with_port_offset(60_000).is_err());
        assert!(base.with_port_offset(u32::MAX).is_err());
        let ipc = Endpoint::parse("ipc:///x", None).unwrap();
        assert_eq!(ipc.with_port_offset(0).as_ref(), Ok(&ipc));
        assert!(matches!(ipc.with_port_offset(1), Err(EndpointError::IpcOffset { .. })));
    }
}
