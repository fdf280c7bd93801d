//! TLS from a certificate and a key in PEM files, which are read again when they change; and, on a listener for the API alone,
//! certificates of clients.

use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rustls::client::verify_server_cert_signed_by_trust_anchor;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::{ClientHello, ParsedCertificate, ResolvesServerCert, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore, ServerConfig};

use crate::config::{ConfigError, TlsFiles};
use crate::domain::Timestamp;
use crate::domain::binding::{length_prefixed, sha256};

/// The certificate that is shown to whoever connects: always the last that was read and found good.
#[derive(Debug)]
pub struct Certificates {
    files: TlsFiles,
    current: RwLock<(Arc<CertifiedKey>, [u8; 32])>,
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner).0))
    }
}

impl Certificates {
    /// Reads the files.
    ///
    /// # Errors
    /// [`ConfigError`] if one is missing or malformed, if key and certificate do not belong together, or if the certificate
    /// does not count at `now`.
    pub fn load(files: &TlsFiles, now: Timestamp) -> Result<Self, ConfigError> {
        let current = RwLock::new(read(files, now)?);
        Ok(Self { files: files.clone(), current })
    }

    /// Reads the files again. Whether they were others, and are shown from now on.
    ///
    /// # Errors
    /// As [`Certificates::load`]; then the last good ones stay.
    pub fn reload(&self, now: Timestamp) -> Result<bool, ConfigError> {
        let read = read(&self.files, now)?;
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let changed = current.1 != read.1;
        if changed {
            *current = read;
        }
        Ok(changed)
    }
}

/// TLS 1.2 and 1.3 with these certificates. With `client_ca`, a PEM file, only whoever has a certificate from there connects.
///
/// # Errors
/// [`ConfigError`].
pub fn server_config(
    certificates: Arc<Certificates>,
    client_ca: Option<&Path>,
) -> Result<ServerConfig, ConfigError> {
    let provider = Arc::new(default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|_| ConfigError::new("no usable TLS version"))?;
    let builder = match client_ca {
        None => builder.with_no_client_auth(),
        Some(file) => {
            let wrong = || wrong(file, "must be a readable PEM file with certificates of authorities");
            let mut roots = RootCertStore::empty();
            for certificate in chain(file).ok_or_else(wrong)? {
                roots.add(certificate).map_err(|_| wrong())?;
            }
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
            builder.with_client_cert_verifier(verifier.map_err(|_| wrong())?)
        }
    };
    Ok(builder.with_cert_resolver(certificates))
}

/// The certificates of a file; `None` if there is none, or no file.
fn chain(file: &Path) -> Option<Vec<CertificateDer<'static>>> {
    let chain = CertificateDer::pem_file_iter(file).and_then(Iterator::collect::<Result<Vec<_>, _>>).ok()?;
    (!chain.is_empty()).then_some(chain)
}

/// The certificate and the key, and a digest of both.
fn read(files: &TlsFiles, now: Timestamp) -> Result<(Arc<CertifiedKey>, [u8; 32]), ConfigError> {
    let TlsFiles { certificate, key } = files;
    let found = chain(certificate)
        .ok_or_else(|| wrong(certificate, "must be a readable PEM file with a certificate chain"))?;
    let secret = PrivateKeyDer::from_pem_file(key)
        .map_err(|_| wrong(key, "must be a readable PEM file with a private key"))?;
    let parts: Vec<&[u8]> = found.iter().map(AsRef::as_ref).chain([secret.secret_der()]).collect();
    let digest = sha256(&length_prefixed(&parts));
    counts_at(&found, now).map_err(|why| wrong(certificate, why))?;
    let certified = CertifiedKey::from_der(found, secret, &default_provider())
        .map_err(|_| wrong(certificate, "does not belong to the private key"))?;
    Ok((Arc::new(certified), digest))
}

/// Whether a certificate counts now. From whom it is does not matter here: those who connect look at that.
fn counts_at(chain: &[CertificateDer<'_>], now: Timestamp) -> Result<(), &'static str> {
    let malformed = "must be a readable PEM file with a certificate chain";
    let (first, others) = chain.split_first().ok_or(malformed)?;
    let parsed = ParsedCertificate::try_from(first).map_err(|_| malformed)?;
    let seconds = u64::try_from(now.seconds()).unwrap_or_default();
    let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
    let algorithms = default_provider().signature_verification_algorithms.all;
    // Time comes first; that nobody vouches for it here is no surprise.
    let checked =
        verify_server_cert_signed_by_trust_anchor(&parsed, &RootCertStore::empty(), others, now, algorithms);
    match checked {
        Err(rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        )) => Err("has expired; renew the certificate"),
        Err(rustls::Error::InvalidCertificate(
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. },
        )) => Err("does not count yet; look at the clock of this computer"),
        _ => Ok(()),
    }
}

fn wrong(path: &Path, why: &str) -> ConfigError {
    ConfigError::new(format!("{}: {why}", path.display()))
}
