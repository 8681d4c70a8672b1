//! A ClientHello as data from those that were sent.

use std::collections::BTreeSet;

use bytes::Bytes;
use mimus_net::tls::{
    ClientHello, TlsVersion,
    client_hello::{
        ApplicationProtocol, ApplicationSettings, CertificateCompression, EchGrease, Extension,
        ExtensionOrder, Group, HpkeAead, SessionTicket, TrustAnchor,
    },
};
use mimus_proto::fingerprint::{
    ClientHello as Sent, Content, Ech, ExtensionId, ExtensionId as Id, is_grease,
};

use super::Notes;

/// Extensions of which a profile says nothing, because they belong to one connection.
const PASSING: [Id; 4] = [Id::PRE_SHARED_KEY, Id::EARLY_DATA, Id::COOKIE, Id::PADDING];

/// Hellos, by what they are for.
#[derive(Debug, Default)]
pub(super) struct Hellos<'a> {
    /// To a host by name, offering all protocols and no session.
    fresh: Vec<&'a Sent>,
    /// The same with a session.
    resuming: Vec<&'a Sent>,
    /// Those that offer HTTP/1.1 alone.
    http1: Vec<&'a Sent>,
}

impl<'a> Hellos<'a> {
    pub(super) fn of(all: impl Iterator<Item = &'a Sent>) -> Self {
        let mut sorted = Hellos::default();
        // To an address there is no server_name, and with it an extension less.
        for hello in all.filter(|hello| hello.server_name().is_some()) {
            let http1 = matches!(hello.alpn(), [only] if only == "http/1.1");
            match hello.extension(Id::PRE_SHARED_KEY) {
                _ if http1 => sorted.http1.push(hello),
                Some(_) => sorted.resuming.push(hello),
                None => sorted.fresh.push(hello),
            }
        }
        sorted
    }

    /// How many there are: fresh ones, resuming ones, those of HTTP/1.1 alone.
    pub(super) fn counts(&self) -> (usize, usize, usize) {
        (self.fresh.len(), self.resuming.len(), self.http1.len())
    }

    /// What they say. What cannot be told is as in `near`. None: there is no hello to go by.
    pub(super) fn derive(&self, near: &ClientHello, notes: &mut Notes) -> Option<ClientHello> {
        let sample = [&self.fresh, &self.resuming, &self.http1];
        let sample = sample.into_iter().find(|hellos| !hellos.is_empty())?;
        let mut said = said_by(sample.first()?, notes);
        let varies = sample.iter().any(|hello| said_by(hello, &mut Notes::default()) != said);
        if varies {
            notes.add("tls: what the hellos list differs between connections; the first is taken");
        }
        said.extension_order = order(sample, near, notes);
        if let Some(alps) = &mut said.application_settings {
            let known = near.application_settings.iter().flat_map(|alps| &alps.protocols);
            let known: Vec<_> = known.collect();
            for protocol in &mut alps.protocols {
                let same = known.iter().find(|known| known.name == protocol.name);
                protocol.settings = same.map(|same| same.settings.clone()).unwrap_or_default();
            }
            notes.inherited("tls.application_settings: what is set, which is sent encrypted");
        }
        said.ech_grease = self.ech(sample, near, notes);
        said.http1_certificate_compression = match self.http1.first() {
            None => {
                notes.inherited("tls.http1_certificate_compression: no such hello came");
                near.http1_certificate_compression.clone()
            }
            Some(hello) => {
                Some(compression(hello, notes)).filter(|own| *own != said.certificate_compression)
            }
        };
        self.session(&mut said, near, notes);
        Some(said)
    }

    fn session(&self, said: &mut ClientHello, near: &ClientHello, notes: &mut Notes) {
        let ticket = |hello: &&Sent| hello.extension(Id::SESSION_TICKET).is_some();
        match self.resuming.first() {
            Some(hello) => {
                said.session_ticket = match (self.fresh.iter().any(ticket), ticket(hello)) {
                    (_, true) => SessionTicket::Always,
                    (true, false) => SessionTicket::WithoutPsk,
                    (false, false) => said.session_ticket,
                };
            }
            None => {
                notes.inherited("tls.resumption, and session_ticket in it: no session was offered");
                said.resumption = near.resumption;
                if said.session_ticket != SessionTicket::Never
                    && near.session_ticket != SessionTicket::Never
                {
                    said.session_ticket = near.session_ticket;
                }
            }
        }
    }

    /// The sets that lengths and AEADs are drawn from. A part of what is known is taken for the whole.
    fn ech(&self, sample: &[&Sent], near: &ClientHello, notes: &mut Notes) -> Option<EchGrease> {
        let fresh: Vec<Ech> = sample.iter().filter_map(|hello| ech_of(hello)).collect();
        let first = fresh.first()?;
        let resuming: Vec<Ech> = self.resuming.iter().filter_map(|hello| ech_of(hello)).collect();
        let near = near.ech_grease.clone().unwrap_or_default();
        // What is not listed is BoringSSL's choice.
        let usual = |list: &[u16]| match list {
            [] => vec![144, 176, 208, 240],
            list => list.to_vec(),
        };
        let lengths: BTreeSet<u16> = fresh.iter().map(|ech| ech.payload_len).collect();
        let whole = usual(&near.payload_lengths);
        let known = lengths.iter().all(|length| whole.contains(length));
        if known && lengths.len() < whole.len() {
            notes.inherited(&format!(
                "tls.ech_grease.payload_lengths: of {whole:?} {lengths:?} came"
            ));
        }
        let payload_lengths = match known {
            true => near.payload_lengths.clone(),
            false => lengths.into_iter().collect(),
        };
        let of_sessions: BTreeSet<u16> = resuming.iter().map(|ech| ech.payload_len).collect();
        let whole = match &near.payload_lengths_with_psk[..] {
            [] => usual(&payload_lengths),
            list => list.to_vec(),
        };
        let known = of_sessions.iter().all(|length| whole.contains(length));
        if !known {
            let tickets = self.resuming.iter().flat_map(|hello| tickets_of(hello));
            let tickets: BTreeSet<u16> = tickets.collect();
            notes.add(&format!(
                "tls.ech_grease.payload_lengths_with_psk: seen with tickets of {tickets:?} bytes, which it \
                 may follow"
            ));
        }
        let payload_lengths_with_psk = match known {
            true => near.payload_lengths_with_psk.clone(),
            false => of_sessions.into_iter().collect(),
        };
        let aeads: BTreeSet<u16> = fresh.iter().chain(&resuming).map(|ech| ech.aead).collect();
        let whole: Vec<u16> = match &near.aeads[..] {
            // BoringSSL's: the one or the other, by the machine.
            [] => vec![1, 3],
            list => list.iter().map(|aead| aead.0).collect(),
        };
        let known = aeads.iter().all(|aead| whole.contains(aead));
        let one = near.aeads.is_empty() && aeads.len() == 1;
        let aeads = match known && (one || !near.aeads.is_empty()) {
            true => near.aeads,
            false => aeads.into_iter().map(HpkeAead).collect(),
        };
        if first.kdf != 1 {
            notes.lost(&format!("tls.ech_grease: the KDF {:#06x}", first.kdf));
        }
        Some(EchGrease { payload_lengths, payload_lengths_with_psk, aeads })
    }
}

fn ech_of(hello: &Sent) -> Option<Ech> {
    match hello.extension(Id::ENCRYPTED_CLIENT_HELLO)?.content {
        Content::Ech(ech) => Some(ech),
        _ => None,
    }
}

/// Bytes of each ticket that is offered.
fn tickets_of(hello: &Sent) -> Vec<u16> {
    match hello.extension(Id::PRE_SHARED_KEY).map(|it| &it.content) {
        Some(Content::PreSharedKey(offer)) => offer.identities.clone(),
        _ => Vec::new(),
    }
}

/// What one hello says for itself; what takes several to tell, and the order, are not in it.
fn said_by(hello: &Sent, notes: &mut Notes) -> ClientHello {
    let has = |id: ExtensionId| hello.extension(id).is_some();
    let grease = hello.cipher_suites.iter().copied().any(is_grease);
    let listed = hello.signature_algorithms().iter().copied().any(is_grease);
    let (min_version, max_version) = versions(hello, notes);
    let shares: Vec<u16> = hello.key_shares().iter().map(|share| share.group).collect();
    ClientHello {
        min_version,
        max_version,
        grease,
        cipher_suites: codes(&hello.cipher_suites),
        groups: codes(hello.groups()),
        key_shares: codes::<Group>(&shares),
        signature_algorithms: codes(hello.signature_algorithms()),
        signature_algorithms_grease: (grease && !listed).then_some(false),
        alpn: hello.alpn().iter().map(text).collect(),
        application_settings: settings(hello),
        certificate_compression: compression(hello, notes),
        signed_certificate_timestamps: has(Id::SIGNED_CERTIFICATE_TIMESTAMP),
        ocsp_stapling: has(Id::STATUS_REQUEST),
        session_ticket: match has(Id::SESSION_TICKET) {
            true => SessionTicket::Always,
            false => SessionTicket::Never,
        },
        trust_anchors: anchors(hello, notes),
        record_size_limit: match hello.extension(Id::RECORD_SIZE_LIMIT).map(|it| &it.content) {
            Some(&Content::RecordSizeLimit(limit)) => Some(limit),
            _ => None,
        },
        delegated_credentials: match hello.extension(Id::DELEGATED_CREDENTIAL).map(|it| &it.content)
        {
            Some(Content::Numbers(list)) => codes(list),
            _ => Vec::new(),
        },
        ..ClientHello::default()
    }
}

fn codes<T: From<u16>>(list: &[u16]) -> Vec<T> {
    list.iter().copied().filter(|code| !is_grease(*code)).map(T::from).collect()
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn versions(hello: &Sent, notes: &mut Notes) -> (TlsVersion, TlsVersion) {
    let offered = hello.versions();
    if offered.is_empty() {
        return (TlsVersion::Tls12, TlsVersion::Tls12);
    }
    if offered.iter().any(|version| [0x0301, 0x0302].contains(version)) {
        notes.lost("tls.min_version: TLS 1.0 or 1.1 is offered");
    }
    let min = if offered.contains(&0x0303) { TlsVersion::Tls12 } else { TlsVersion::Tls13 };
    let max = if offered.contains(&0x0304) { TlsVersion::Tls13 } else { TlsVersion::Tls12 };
    (min, max)
}

fn settings(hello: &Sent) -> Option<ApplicationSettings> {
    [Id::APPLICATION_SETTINGS, Id::APPLICATION_SETTINGS_OLD].into_iter().find_map(|id| {
        let Content::Protocols(names) = &hello.extension(id)?.content else { return None };
        let protocols = names
            .iter()
            .map(|name| ApplicationProtocol { name: text(name), settings: Default::default() });
        let protocols = protocols.collect();
        Some(ApplicationSettings { code_point: Extension(id.0), protocols })
    })
}

fn compression(hello: &Sent, notes: &mut Notes) -> Vec<CertificateCompression> {
    use CertificateCompression::{Brotli, Zlib, Zstd};
    let known = |code: &u16| {
        let found = [Zlib, Brotli, Zstd].into_iter().find(|algorithm| algorithm.code() == *code);
        if found.is_none() {
            notes.lost(&format!("tls.certificate_compression: the algorithm {code}"));
        }
        found
    };
    hello.certificate_compression().iter().filter_map(known).collect()
}

fn anchors(hello: &Sent, notes: &mut Notes) -> Option<Vec<TrustAnchor>> {
    let Content::TrustAnchors(list) = &hello.extension(Id::TRUST_ANCHORS)?.content else {
        return None;
    };
    let anchor = |bytes: &Bytes| {
        let anchor = TrustAnchor::from_bytes(bytes).ok();
        if anchor.is_none() {
            notes.lost("tls.trust_anchors: one that is no object identifier");
        }
        anchor
    };
    Some(list.iter().filter_map(anchor).collect())
}

/// The extensions' order: drawn anew when two hellos differ, and fixed when all are alike.
fn order(sample: &[&Sent], near: &ClientHello, notes: &mut Notes) -> ExtensionOrder {
    let of = |hello: &&Sent| -> Vec<Extension> {
        let ids = hello.extensions.iter().map(|extension| extension.id);
        let ids = ids.filter(|id| !is_grease(id.0) && !PASSING.contains(id));
        ids.map(|id| Extension(id.0)).collect()
    };
    let orders: BTreeSet<Vec<Extension>> = sample.iter().map(of).collect();
    let first = orders.iter().next().cloned().unwrap_or_default();
    match (orders.len(), sample.len()) {
        (1, 1) if near.extension_order == ExtensionOrder::Permuted => {
            notes.inherited("tls.extension_order: one hello does not tell whether it is permuted");
            ExtensionOrder::Permuted
        }
        (1, _) => ExtensionOrder::Fixed(first),
        _ => ExtensionOrder::Permuted,
    }
}
