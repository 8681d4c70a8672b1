//! Looking like a browser, seen from outside.

use std::sync::{Arc, Mutex, PoisonError};

use mimus::{
    TlsConfig, Version,
    fingerprint::{Answer, Asked, Listener, Seen, Transport},
};

use crate::setup::{Demo, Result, ensure};

/// Of Debian's Chromium 156.0.8078.79 and Firefox 153.7.0esr, as ja4plus reads what they sent.
const CHROMIUM: &str = "t13d1517h2_8daaf6152771_cb7bf5808d99";
const FIREFOX: &str = "t13d1617h2_86a278354501_3cbfd9057e0d";

pub async fn chromium(demo: &Demo) -> Result {
    looks_like(demo, "chrome-156", CHROMIUM).await
}

pub async fn firefox(demo: &Demo) -> Result {
    looks_like(demo, "firefox-153", FIREFOX).await
}

/// Connects to a listener as that browser, and compares what it saw.
async fn looks_like(demo: &Demo, profile: &str, theirs: &str) -> Result {
    let listener = Listener::bind("127.0.0.1:0", &["localhost"])?;
    let trust = TlsConfig::builder().add_ca(listener.authority_pem()).build()?;
    let client = match demo.builder().tls(trust).profile(profile).build() {
        Ok(client) => client,
        Err(error) if lacks_patch(&error) => {
            return Ok(
                "not sent: this build's BoringSSL lacks Mimus's patch (CONTRIBUTING.md)".into()
            );
        }
        Err(error) => return Err(error.into()),
    };
    let found = Arc::new(Mutex::new(None));
    let keep = found.clone();
    let serving = listener.serve(move |seen: &Seen, _: &Asked<'_>| {
        let ja4 = seen.hello.as_ref().map(|hello| hello.ja4(Transport::Tcp).hash);
        *keep.lock().unwrap_or_else(PoisonError::into_inner) = ja4;
        Answer::new("text/plain", "seen")
    })?;
    let url = format!("https://localhost:{}/", serving.local_addr().port());
    let response = client.get(url).send().await?;
    ensure!(response.version() == Version::HTTP_2, "{:?}", response.version());
    response.bytes().await?;
    let found = found.lock().unwrap_or_else(PoisonError::into_inner).take();
    let ours = found.ok_or("the listener saw no ClientHello")?;
    ensure!(ours == theirs, "{ours} instead of {theirs}");
    Ok(format!("JA4 {ours}, the browser's {theirs}"))
}

/// The chain of errors says what the build lacks.
fn lacks_patch(error: &mimus::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("lacks Mimus's patch") {
            return true;
        }
        cause = error.source();
    }
    false
}
