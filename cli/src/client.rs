//! From the flags to the client that all transfers of the run share.

use std::{
    fs, io,
    path::Path,
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use http::StatusCode;
use mimus::{
    Blocking, ClientBuilder, DecodeLimits, Proxies, Proxy, SocketOptions, Timeouts, TlsConfig,
    auth::Credentials,
    blocking,
    cookie::Jar,
    redirect,
    retry::{Class, Ending, RetryPolicy},
    tls::{Roots, TlsVersion},
};

use crate::{
    exit::{Exit, Failure},
    fields::FieldFlags,
    flags::{
        AuthFlags, ConnectionFlags, Flags, MaxVersion, PolicyFlags, TlsFlags,
        grpc::GrpcFlags,
        values::{Interface, UserFlag},
    },
    payload::read_input,
    profile, warnings,
};

/// Makes the client. `jar` is where cookies are kept, if they are.
///
/// # Errors
/// When a flag's value, or a file it names, cannot be used.
pub(crate) fn build(
    flags: &Flags,
    fields: &FieldFlags,
    jar: Option<Arc<Jar>>,
) -> Result<blocking::Client, Failure> {
    if !flags.terminal.silent {
        warnings::install();
    }
    let mut builder = blocking::Client::builder()
        .timeouts(timeouts(&flags.policy))
        .redirect(redirects(&flags.policy).with_referer(refers_on(flags)))
        .proxies(proxies(&flags.connection)?)
        .version(flags.connection.version())
        .proxy_tunnel(flags.connection.proxytunnel)
        .socket_options(socket_options(&flags.connection)?)
        .tls(tls(&flags.tls)?)
        .early_data(flags.tls.early_data)
        .coalesce(flags.connection.coalesce)
        .decode(decodes(flags).then(DecodeLimits::default))
        .body_limit(flags.output.max_filesize)
        .expect_continue(flags.request.expect100_timeout)
        .auth(credentials(&flags.auth)?);
    builder = looks(builder, &flags.connection, &flags.tls)?;
    for name in fields.removed() {
        builder = builder.no_default_header(name);
    }
    match flags.request.user_agent.as_deref() {
        None => {}
        Some("") => builder = builder.no_default_header("User-Agent"),
        Some(name) => builder = builder.user_agent(name),
    }
    if let Some(jar) = jar {
        builder = builder.cookie_store(jar);
    }
    if let Some(path) = &flags.auth.netrc_file {
        builder = builder.netrc_file(path);
    } else if flags.auth.netrc {
        builder = builder.netrc(true);
    }
    if let Some(path) = &flags.connection.unix_socket {
        builder = builder.unix_socket(path);
    }
    for rule in &flags.connection.resolve {
        builder = builder.resolve(&rule.host, Some(rule.port), rule.addrs.iter().copied());
    }
    builder.build().map_err(|e| unbuilt(&flags.connection, &e))
}

/// What a connection looks like from outside.
fn looks(
    mut builder: ClientBuilder<Blocking>,
    flags: &ConnectionFlags,
    tls: &TlsFlags,
) -> Result<ClientBuilder<Blocking>, Failure> {
    if let Some(name) = &flags.look_like {
        builder = builder.profile(profile::named(name)?);
    }
    if let Some(text) = &flags.ja3 {
        builder = builder.ja3(text);
    }
    if let Some(text) = &flags.akamai {
        builder = builder.akamai(text);
    }
    if let Some(ech) = &tls.ech {
        builder = builder.ech(ech.clone());
    }
    Ok(builder)
}

/// A client that cannot be: what is wrong is in a file that was named, unless it is in a text that was given.
fn unbuilt(flags: &ConnectionFlags, error: &mimus::Error) -> Failure {
    let given = flags.ja3.is_some() || flags.akamai.is_some();
    Failure::new(if given { Exit::Usage } else { Exit::Read }, format!("{error:#}"))
}

/// A browser asks for compressed bodies, so what looks like one has to take them.
fn decodes(flags: &Flags) -> bool {
    flags.request.compressed || flags.connection.look_like.is_some()
}

/// The client of `mimus grpc`.
///
/// # Errors
/// As [`build`].
pub(crate) fn for_grpc(flags: &GrpcFlags) -> Result<blocking::Client, Failure> {
    let mut builder = blocking::Client::builder()
        .proxies(proxies(&flags.connection)?)
        .version(flags.connection.version())
        .proxy_tunnel(flags.connection.proxytunnel)
        .socket_options(socket_options(&flags.connection)?)
        .coalesce(flags.connection.coalesce)
        .tls(tls(&flags.tls)?);
    builder = looks(builder, &flags.connection, &flags.tls)?;
    if let Some(path) = &flags.connection.unix_socket {
        builder = builder.unix_socket(path);
    }
    for rule in &flags.connection.resolve {
        builder = builder.resolve(&rule.host, Some(rule.port), rule.addrs.iter().copied());
    }
    builder.build().map_err(|e| unbuilt(&flags.connection, &e))
}

fn timeouts(flags: &PolicyFlags) -> Timeouts {
    let mut timeouts = Timeouts::default();
    if let Some(limit) = flags.connect_timeout {
        timeouts.resolve = Some(limit);
        timeouts.connect = Some(limit);
        timeouts.tls = Some(limit);
    }
    timeouts.head = flags.head_timeout.or(timeouts.head);
    timeouts.idle = flags.idle_timeout.or(timeouts.idle);
    timeouts.total = flags.max_time;
    timeouts
}

fn redirects(flags: &PolicyFlags) -> redirect::Policy {
    match flags.location {
        true => redirect::Policy::limited(flags.max_redirs),
        false => redirect::Policy::none(),
    }
}

/// `-e ';auto'`.
fn refers_on(flags: &Flags) -> bool {
    flags.request.referer.as_deref().is_some_and(|text| text.ends_with(AUTO))
}

pub(crate) const AUTO: &str = ";auto";

/// The statuses that pass, as curl has them.
const PASSING: [StatusCode; 6] = [
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::TOO_MANY_REQUESTS,
    StatusCode::INTERNAL_SERVER_ERROR,
    StatusCode::BAD_GATEWAY,
    StatusCode::SERVICE_UNAVAILABLE,
    StatusCode::GATEWAY_TIMEOUT,
];

/// The longest wait between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// The retries of one transfer that begins now.
pub(crate) fn retries(flags: &Flags) -> Option<RetryPolicy> {
    let most = flags.policy.retry.filter(|&n| n > 0)?;
    let last_begin = flags.policy.retry_max_time.map(|time| Instant::now() + time);
    let all = flags.policy.retry_all_errors;
    let statuses_fail = flags.output.fail || flags.output.fail_with_body;
    let policy = match flags.policy.retry_delay {
        Some(delay) => RetryPolicy::default().fixed_delay(delay),
        None => RetryPolicy::default().backoff(Duration::from_secs(1), LONGEST_WAIT),
    };
    let policy = policy
        .max_retries(most)
        .statuses(PASSING)
        .on_timeout(true)
        .max_retry_after(LONGEST_WAIT)
        .classifier(move |attempted| {
            if last_begin.is_some_and(|last| Instant::now() > last) {
                return Class::Final;
            }
            match attempted.ending {
                Ending::Failed(_) if all => Class::Retry,
                Ending::Status(status) if all && PASSING.contains(&status) => Class::Retry,
                Ending::Status(status) if all && statuses_fail && status.as_u16() >= 400 => {
                    Class::Retry
                }
                _ => Class::Default,
            }
        });
    Some(policy)
}

fn proxies(flags: &ConnectionFlags) -> Result<Proxies, Failure> {
    let mut proxies = match flags.proxy.as_deref() {
        Some("") => Proxies::none(),
        Some(url) => {
            let mut proxy = Proxy::parse(url)
                .map_err(|e| Failure::new(Exit::Url, format!("the proxy cannot be used: {e}")))?;
            if let Some(user) = &flags.proxy_user {
                proxy.auth = Some(name_and_password(user, "the proxy")?);
            }
            Proxies::all(proxy)
        }
        None => Proxies::try_from_env()
            .map_err(|e| Failure::new(Exit::Url, format!("the proxy cannot be used: {e}")))?,
    };
    if let Some(hosts) = &flags.noproxy {
        proxies = proxies.no_proxy(hosts);
    }
    Ok(proxies)
}

fn socket_options(flags: &ConnectionFlags) -> Result<SocketOptions, Failure> {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
    let mut options = SocketOptions::default();
    // Binding to the unspecified address of a family is what keeps to that family.
    if flags.ipv4 {
        options.bind = Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
    } else if flags.ipv6 {
        options.bind = Some(IpAddr::V6(Ipv6Addr::UNSPECIFIED));
    }
    match &flags.interface {
        Some(Interface::Addr(addr)) => {
            if options.bind.is_some_and(|family| family.is_ipv4() != addr.is_ipv4()) {
                let what = format!("--interface {addr} is of the other address family");
                return Err(Failure::new(Exit::Usage, what));
            }
            options.bind = Some(*addr);
        }
        Some(Interface::Name(name)) => options.interface = Some(name.clone()),
        None => {}
    }
    Ok(options)
}

fn tls(flags: &TlsFlags) -> Result<TlsConfig, Failure> {
    let read = |path: &Path, exit| {
        fs::read(path)
            .map_err(|e| Failure::new(exit, format!("{} cannot be read: {e}", path.display())))
    };
    let mut builder =
        TlsConfig::builder().key_log_from_env().danger_accept_any_certificate(flags.insecure);
    let mut exit = Exit::Usage;
    if let Some(path) = &flags.cert {
        exit = Exit::ClientCertificate;
        let chain = read(path, exit)?;
        let key = flags.key.as_deref().map(|key| read(key, exit)).transpose()?;
        builder = builder.identity(&chain, key.as_deref().unwrap_or(&chain));
    }
    if let Some(path) = &flags.cacert {
        // Of two files that may be wrong this is the one that is read first.
        exit = if flags.cert.is_some() { exit } else { Exit::TrustFile };
        builder = builder.roots(Roots::None).add_ca(&read(path, Exit::TrustFile)?);
    }
    if flags.tls12 {
        builder = builder.min_version(TlsVersion::Tls12);
    }
    if flags.tls13 {
        builder = builder.min_version(TlsVersion::Tls13);
    }
    builder = match flags.tls_max {
        Some(MaxVersion::Tls12) => builder.max_version(TlsVersion::Tls12),
        Some(MaxVersion::Tls13) => builder.max_version(TlsVersion::Tls13),
        None => builder,
    };
    builder.build().map_err(|e| Failure::new(exit, format!("TLS cannot be set up: {e}")))
}

fn credentials(flags: &AuthFlags) -> Result<Option<Credentials>, Failure> {
    if let Some(token) = &flags.bearer {
        return Ok(Some(Credentials::bearer(token.clone())));
    }
    let Some(user) = &flags.user else { return Ok(None) };
    let (name, password) = name_and_password(user, "the server")?;
    Ok(Some(match flags.digest {
        true => Credentials::digest(name, password),
        false => Credentials::basic(name, password),
    }))
}

fn name_and_password(flag: &UserFlag, whose: &str) -> Result<(String, String), Failure> {
    if let Some(password) = &flag.password {
        return Ok((flag.user.clone(), password.clone()));
    }
    let prompt = format!("Password of {} for {whose}: ", flag.user);
    match rpassword::prompt_password(prompt) {
        Ok(password) => Ok((flag.user.clone(), password)),
        Err(e) => Err(Failure::read("the password", &e)),
    }
}

/// The jar, when a flag wants cookies kept, with what the files of -b hold.
pub(crate) fn jar(flags: &AuthFlags) -> Result<Option<Arc<Jar>>, Failure> {
    let files: Vec<&String> = flags.cookie.iter().filter(|text| !text.contains('=')).collect();
    if files.is_empty() && flags.cookie_jar.is_none() {
        return Ok(None);
    }
    let jar = Jar::new();
    for name in files.into_iter().filter(|name| !name.is_empty()) {
        let text = match name.as_str() {
            "-" => read_input(Path::new("-"))?,
            name => match fs::read(name) {
                Ok(text) => text,
                // A first run has no jar yet.
                Err(e) if e.kind() == io::ErrorKind::NotFound => continue,
                Err(e) => return Err(Failure::read(name, &e)),
            },
        };
        jar.add_netscape(&String::from_utf8_lossy(&text), SystemTime::now())
            .map_err(|e| Failure::new(Exit::Read, format!("{name} cannot be used: {e}")))?;
    }
    Ok(Some(Arc::new(jar)))
}
