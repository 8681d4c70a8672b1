//! Delegated credentials (RFC 9345).

use std::{ptr::NonNull, time::SystemTime};

use boring::{
    ec::{EcGroup, EcKey},
    hash::MessageDigest,
    nid::Nid,
    sign::Signer,
};
use rcgen::{CustomExtension, KeyUsagePurpose};

use super::*;

/// RFC 9345 section 4.2.
const DELEGATION_USAGE: [u64; 8] = [1, 3, 6, 1, 4, 1, 44363, 44];
const ECDSA_SECP256R1_SHA256: u16 = 0x0403;
const DAY: u64 = 24 * 60 * 60;
/// The notBefore of rcgen's certificates, 1 January 1975, in seconds since 1970.
const NOT_BEFORE: u64 = 157_766_400;

/// A server's credential, by what can be wrong with it.
struct Credential {
    delegation_usage: bool,
    key_usage: Option<KeyUsagePurpose>,
    /// Seconds from now to its end.
    ends_in: i64,
    algorithm: u16,
    tampered: bool,
}

const GOOD: Credential = Credential {
    delegation_usage: true,
    key_usage: Some(KeyUsagePurpose::DigitalSignature),
    ends_in: DAY as i64,
    algorithm: ECDSA_SECP256R1_SHA256,
    tampered: false,
};

fn p256() -> PKey<Private> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap();
    PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap()
}

impl Credential {
    /// The DelegatedCredential that `key`, of the certificate `leaf`, signs for `delegate`.
    fn sign(&self, leaf: &[u8], key: &PKey<Private>, delegate: &PKey<Private>) -> Vec<u8> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
        let valid_time = (now - NOT_BEFORE).checked_add_signed(self.ends_in).unwrap();
        let spki = delegate.public_key_to_der().unwrap();
        let mut credential = u32::try_from(valid_time).unwrap().to_be_bytes().to_vec();
        credential.extend_from_slice(&ECDSA_SECP256R1_SHA256.to_be_bytes());
        credential.extend_from_slice(&u32::try_from(spki.len()).unwrap().to_be_bytes()[1..]);
        credential.extend_from_slice(&spki);
        credential.extend_from_slice(&self.algorithm.to_be_bytes());

        let mut input = vec![0x20; 64];
        input.extend_from_slice(b"TLS, server delegated credentials\0");
        input.extend_from_slice(leaf);
        input.extend_from_slice(&credential);
        let mut signer = Signer::new(MessageDigest::sha256(), key).unwrap();
        let mut signature = signer.sign_oneshot_to_vec(&input).unwrap();
        if self.tampered {
            *signature.last_mut().unwrap() ^= 1;
        }
        credential.extend_from_slice(&u16::try_from(signature.len()).unwrap().to_be_bytes());
        credential.extend_from_slice(&signature);
        credential
    }

    /// A server that has nothing but this.
    fn server(&self) -> Ssl {
        let (certificate, key) = certificate(|params| {
            params.key_usages.extend(self.key_usage);
            if self.delegation_usage {
                let oid = &DELEGATION_USAGE;
                let null = vec![5, 0];
                params.custom_extensions.push(CustomExtension::from_oid_content(oid, null));
            }
        });
        let leaf = X509::from_pem(certificate.as_bytes()).unwrap().to_der().unwrap();
        let delegate = p256();
        let credential = self.sign(&leaf, &private_key(&key), &delegate);
        let mut context = SslContextBuilder::new(SslMethod::tls()).unwrap();
        add_credential(&mut context, &leaf, &credential, &delegate);
        Ssl::new(&context.build()).unwrap()
    }
}

/// Bytes as BoringSSL shares them.
struct Buffer(NonNull<ffi::CRYPTO_BUFFER>);

impl Buffer {
    fn new(bytes: &[u8]) -> Self {
        // SAFETY: the bytes live through the call, which copies them; null is no pool.
        let buffer =
            unsafe { ffi::CRYPTO_BUFFER_new(bytes.as_ptr(), bytes.len(), std::ptr::null_mut()) };
        Buffer(NonNull::new(buffer).unwrap())
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the reference is ours, and given back once.
        unsafe { ffi::CRYPTO_BUFFER_free(self.0.as_ptr()) }
    }
}

fn add_credential(
    context: &mut SslContextBuilder,
    leaf: &[u8],
    credential: &[u8],
    delegate: &PKey<Private>,
) {
    let (leaf, credential) = (Buffer::new(leaf), Buffer::new(credential));
    let chain = [leaf.0.as_ptr()];
    // SAFETY: the call makes a new object, which is ours.
    let made = NonNull::new(unsafe { ffi::SSL_CREDENTIAL_new_delegated() }).unwrap().as_ptr();
    // SAFETY: here and below, all objects live through the call, which takes references of its own.
    let set = unsafe { ffi::SSL_CREDENTIAL_set1_cert_chain(made, chain.as_ptr(), chain.len()) };
    assert_eq!(set, 1);
    // SAFETY: as above.
    let set = unsafe { ffi::SSL_CREDENTIAL_set1_delegated_credential(made, credential.0.as_ptr()) };
    assert_eq!(set, 1);
    // SAFETY: as above.
    let set = unsafe { ffi::SSL_CREDENTIAL_set1_private_key(made, delegate.as_ptr()) };
    assert_eq!(set, 1);
    // SAFETY: as above.
    let added = unsafe { ffi::SSL_CTX_add1_credential(context.as_ptr(), made) };
    assert_eq!(added, 1);
    // SAFETY: our reference, given back once.
    unsafe { ffi::SSL_CREDENTIAL_free(made) }
}

fn client() -> Ssl {
    let mut ssl = Ssl::new(&client_context().0.build()).unwrap();
    set_delegated_credentials(&mut ssl, &[ECDSA_SECP256R1_SHA256, 0x0503]).unwrap();
    ssl
}

#[test]
fn a_credential_stands_in_for_the_certificates_key() {
    if !patched("a_credential_stands_in_for_the_certificates_key") {
        return;
    }
    // The server does not have the certificate's key, so nothing else could have signed.
    Pair::new(client(), GOOD.server()).handshake().unwrap();
    let longest = Credential { ends_in: 7 * DAY as i64 - 60, ..GOOD };
    Pair::new(client(), longest.server()).handshake().unwrap();
}

#[test]
fn credentials_that_are_not_valid_end_the_handshake() {
    if !patched("credentials_that_are_not_valid_end_the_handshake") {
        return;
    }
    let cases = [
        ("no DelegationUsage", Credential { delegation_usage: false, ..GOOD }),
        ("no KeyUsage", Credential { key_usage: None, ..GOOD }),
        ("expired", Credential { ends_in: -60, ..GOOD }),
        ("valid for too long", Credential { ends_in: 7 * DAY as i64 + 3600, ..GOOD }),
        ("signed by another algorithm", Credential { algorithm: 0x0503, ..GOOD }),
        ("a signature of other bytes", Credential { tampered: true, ..GOOD }),
    ];
    for (what, credential) in cases {
        let mut pair = Pair::new(client(), credential.server());
        let error = pair.handshake().unwrap_err();
        assert_eq!(error.code(), ErrorCode::SSL, "{what}: {error}");
        // RFC 9345 section 4.1.3: illegal_parameter.
        assert_eq!(pair.alert(), Some(47), "{what}: {error}");
    }
}

#[test]
fn who_does_not_offer_gets_no_credential() {
    if !patched("who_does_not_offer_gets_no_credential") {
        return;
    }
    let mut client = client();
    set_delegated_credentials(&mut client, &[]).unwrap();
    let (near, far) = ends();
    let mut client = SslStream::new(client, near).unwrap();
    assert_eq!(client.connect().unwrap_err().code(), ErrorCode::WANT_READ);
    // It has no other credential that it could show.
    let mut server = SslStream::new(GOOD.server(), far).unwrap();
    assert_eq!(server.accept().unwrap_err().code(), ErrorCode::SSL);
}
