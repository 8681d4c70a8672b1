//! How servers are reached, and who is asked to be let in.

use std::fs;

use mimus_testkit::{Origin, Port};

use crate::rig::{echoed, mimus, mimus_in};

fn origin() -> Origin {
    Origin::start().unwrap()
}

#[test]
fn certificates_are_trusted_by_file_or_not_at_all() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("ca.pem"), origin.ca_pem()).unwrap();
    let url = origin.https_url("/get");
    let facts = ["-o", "/dev/null", "-w", "%{http_code} %{ssl_verify_result}", &url];
    let run = mimus_in(dir.path(), &[&["--cacert", "ca.pem"], &facts[..]].concat()).ok();
    assert_eq!(run.text(), "200 0");
    mimus(&["-k", &url]).ok();
    let run = mimus(&[&["-s"], &facts[..]].concat());
    assert_eq!((run.code, run.text()), (Some(60), "000 1"));
    let identity = origin.client_identity();
    fs::write(dir.path().join("cert.pem"), &identity.cert_pem).unwrap();
    fs::write(dir.path().join("key.pem"), &identity.key_pem).unwrap();
    let strict = origin.url(Port::TlsClientCert, "/get").unwrap();
    let with = ["-k", "-E", "cert.pem", "--key", "key.pem", &strict];
    mimus_in(dir.path(), &with).ok();
    assert_ne!(mimus(&["-k", &strict]).code, Some(0));
    mimus_in(dir.path(), &["-E", "ca.pem", &strict]).failed(58);
}

#[test]
fn versions_of_tls_are_bounded() {
    let origin = origin();
    let (old, new) = (origin.url(Port::Tls12, "/").unwrap(), origin.url(Port::Tls13, "/").unwrap());
    mimus(&["-k", "--tlsv1.2", &old]).ok();
    mimus(&["-k", "--tlsv1.3", &old]).failed(35);
    mimus(&["-k", "--tls-max", "1.2", &new]).failed(35);
    mimus(&["-k", "--tls-max", "1.3", &new]).ok();
}

#[test]
fn proxies_are_gone_through() {
    let origin = origin();
    let (http, https) = (origin.http_url("/get"), origin.https_url("/get"));
    let at = |port| origin.addr(port).unwrap().to_string();
    mimus(&["-x", &at(Port::Proxy), &http]).ok();
    mimus(&["-x", &at(Port::Proxy), "-p", &http]).ok();
    mimus(&["-k", "-x", &at(Port::Proxy), &https]).ok();
    assert_eq!(origin.accepted(Port::Proxy), 3);
    mimus(&["-x", &at(Port::ProxyAuth), "-U", "user:secret", &http]).ok();
    mimus(&["-x", &format!("user:secret@{}", at(Port::ProxyAuth)), "-k", &https]).ok();
    for scheme in ["socks4", "socks4a", "socks5", "socks5h"] {
        mimus(&["-x", &format!("{scheme}://{}", at(Port::Socks)), &http]).ok();
    }
    mimus(&["-x", &format!("socks5h://{}", at(Port::SocksAuth)), "-U", "user:secret", &http]).ok();
    mimus(&["-x", &format!("socks5h://{}", at(Port::SocksAuth)), "-U", "user:no", &http])
        .failed(97);
}

#[test]
fn names_and_sockets_can_be_set_by_hand() {
    let origin = origin();
    let port = origin.addr(Port::Http).unwrap().port();
    let url = format!("http://named.test:{port}/get");
    let run = mimus(&["--resolve", &format!("named.test:{port}:127.0.0.1"), &url]).ok();
    assert_eq!(echoed(&run.json(), "host"), [format!("named.test:{port}")]);
    let socket = origin.unix_path().to_str().unwrap();
    let run = mimus(&["--unix-socket", socket, "http://socket.test/get"]).ok();
    assert_eq!(echoed(&run.json(), "host"), ["socket.test"]);
    mimus(&["--interface", "127.0.0.1", &origin.http_url("/get")]).ok();
    mimus(&["-4", &format!("http://localhost:{port}/get")]).ok();
    mimus(&["-6", &origin.http_url("/get")]).failed(6);
}

#[test]
fn redirects_are_followed_on_request() {
    let origin = origin();
    let url = origin.http_url("/redirect/3");
    let facts = ["-o", "/dev/null", "-w", "%{http_code} %{num_redirects} %{redirect_url}", &url];
    let run = mimus(&facts).ok();
    assert_eq!(run.text(), format!("302 0 {}", origin.http_url("/redirect/2")));
    let run = mimus(&[&["-L"], &facts[..]].concat()).ok();
    assert_eq!(run.text(), "200 3 ");
    origin.reset();
    mimus(&["-L", "-e", "http://r/;auto", &origin.http_url("/redirect/1")]).ok();
    let referers: Vec<_> = origin.requests().iter().map(|r| r.header("referer")).collect();
    assert_eq!(referers[0].as_deref(), Some("http://r/"));
    assert_eq!(referers[1].as_deref(), Some(origin.http_url("/redirect/1").as_str()));
}

#[test]
fn credentials_open_doors() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("netrc"), "machine 127.0.0.1 login joe password s3cret\n").unwrap();
    let basic = origin.http_url("/basic-auth/joe/s3cret");
    let digest = origin.http_url("/digest-auth/auth/joe/s3cret");
    mimus(&["-f", "-u", "joe:s3cret", &basic]).ok();
    mimus(&["-f", "-u", "joe:s3cret", "--digest", &digest]).ok();
    mimus(&["-f", "--bearer", "t0ken", &origin.http_url("/bearer")]).ok();
    mimus(&["-f", "--oauth2-bearer", "t0ken", &origin.http_url("/bearer")]).ok();
    mimus_in(dir.path(), &["-f", "--netrc-file", "netrc", &basic]).ok();
    mimus(&["-f", &basic.replace("//", "//joe:s3cret@")]).ok();
    mimus(&["-f", "-u", "joe:wrong", &basic]).failed(22);
    mimus(&["-f", "-u", "joe:wrong", "--digest", &digest]).failed(22);
    mimus(&["--netrc-file", "/nonexistent/netrc", &basic]).failed(26);
}

#[test]
fn cookies_live_in_a_jar_between_runs() {
    let origin = origin();
    let dir = tempfile::tempdir().unwrap();
    let set = origin.http_url("/cookies/set?k=v");
    let show = origin.http_url("/cookies");
    mimus_in(dir.path(), &["-c", "jar", &set, "-o", "/dev/null"]).ok();
    let jar = fs::read_to_string(dir.path().join("jar")).unwrap();
    assert!(jar.contains("\tk\tv"), "{jar}");
    let run = mimus_in(dir.path(), &["-b", "jar", &show]).ok();
    assert!(run.text().contains("\"v\""), "{run:?}");
    let run = mimus(&["-b", "a=1; b=2", "-b", "c=3", &origin.http_url("/get")]).ok();
    assert_eq!(echoed(&run.json(), "cookie"), ["a=1; b=2; c=3"]);
    let run = mimus(&["-b", "", "-L", &set]).ok();
    assert!(run.text().contains("\"v\""), "{run:?}");
    let run = mimus(&["-L", &set]).ok();
    assert!(!run.text().contains("\"v\""), "no jar was asked for: {run:?}");
}
