//! Tokens that are bound to a key (`DPoP`, RFC 9449): a key of its own for each grant, and a proof for each request.

use aws_lc_rs::encoding::AsBigEndian as _;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use zeroize::Zeroizing;

/// The private key as a JWK (RFC 7517), as it is kept and released.
#[derive(Serialize, Deserialize)]
struct PrivateJwk {
    kty: String,
    crv: String,
    x: String,
    y: String,
    d: Zeroizing<String>,
}

/// A fresh key, as the text of a private JWK.
pub(super) fn fresh_key() -> Option<Zeroizing<String>> {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).ok()?;
    // An uncompressed point: a byte that says so, then both coordinates.
    let (_, point) = pair.public_key().as_ref().split_first()?;
    let (x, y) = point.split_at_checked(32)?;
    let private = pair.private_key().as_be_bytes().ok()?;
    let encoded = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let d = Zeroizing::new(encoded(private.as_ref()));
    let jwk = PrivateJwk { kty: "EC".to_owned(), crv: "P-256".to_owned(), x: encoded(x), y: encoded(y), d };
    serde_json::to_string(&jwk).ok().map(Zeroizing::new)
}

/// What a proof is for.
pub(super) struct Claim<'a> {
    pub url: &'a Url,
    /// What the server wants to see in it.
    pub nonce: &'a str,
    /// A name like no other.
    pub id: String,
    pub now: i64,
}

/// The proof for a POST (RFC 9449 §4.2); `None` if the key is none.
pub(super) fn proof(key: &str, claim: &Claim<'_>) -> Option<String> {
    let jwk: PrivateJwk = serde_json::from_str(key).ok()?;
    let decoded = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
    let point = [&[4][..], &decoded(&jwk.x)?, &decoded(&jwk.y)?].concat();
    let private = Zeroizing::new(decoded(&jwk.d)?);
    let signing = &ECDSA_P256_SHA256_FIXED_SIGNING;
    let pair = EcdsaKeyPair::from_private_key_and_public_key(signing, &private, &point).ok()?;
    let public = json!({"kty": jwk.kty, "crv": jwk.crv, "x": jwk.x, "y": jwk.y});
    let header = Header {
        typ: Some("dpop+jwt".to_owned()),
        jwk: Some(serde_json::from_value(public).ok()?),
        ..Header::new(Algorithm::ES256)
    };
    let mut url = claim.url.clone();
    url.set_query(None);
    let mut claims = json!({"jti": claim.id, "htm": "POST", "htu": url.as_str(), "iat": claim.now});
    if let Some(members) = claims.as_object_mut().filter(|_| !claim.nonce.is_empty()) {
        members.insert("nonce".to_owned(), claim.nonce.into());
    }
    encode(&header, &claims, &EncodingKey::from_ec_der(pair.to_pkcs8v1().ok()?.as_ref())).ok()
}
