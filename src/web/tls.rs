//! TLS from a certificate and a key in PEM files.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::config::{ConfigError, TlsFiles};

/// TLS 1.2 and 1.3 with this certificate.
///
/// # Errors
/// [`ConfigError`] if a file is missing or malformed, or if key and certificate do not belong together.
pub fn server_config(files: &TlsFiles) -> Result<ServerConfig, ConfigError> {
    let wrong = |path: &Path, why: &str| ConfigError::new(format!("{}: {why}", path.display()));
    let chain = CertificateDer::pem_file_iter(&files.certificate)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .ok()
        .filter(|chain| !chain.is_empty())
        .ok_or_else(|| wrong(&files.certificate, "must be a readable PEM file with a certificate chain"))?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|_| wrong(&files.key, "must be a readable PEM file with a private key"))?;
    ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|_| wrong(&files.certificate, "no usable TLS version"))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|_| wrong(&files.certificate, "does not belong to the private key"))
}
