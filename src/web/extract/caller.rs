//! Who calls the API. A handler names the caller that it needs in its signature; there is no other way in.

use std::collections::HashMap;
use std::future::{Ready, ready};
use std::sync::Arc;

use actix_web::dev::Payload;
use actix_web::http::header::AUTHORIZATION;
use actix_web::{FromRequest, HttpRequest, web};

use crate::api_key::{Holder, KeyDigest, is_well_formed};
use crate::flow::Client;
use crate::flow::console::Operator;
use crate::web::limits::Limits;
use crate::web::problem::Problem;

/// The API keys of everybody, by digest.
pub struct ApiKeys {
    clients: HashMap<KeyDigest, Arc<Client>>,
    operators: HashMap<KeyDigest, Operator>,
}

impl ApiKeys {
    /// All keys that are accepted.
    #[must_use]
    pub fn new(
        clients: impl IntoIterator<Item = (KeyDigest, Arc<Client>)>,
        operators: impl IntoIterator<Item = (KeyDigest, Operator)>,
    ) -> Self {
        Self { clients: clients.into_iter().collect(), operators: operators.into_iter().collect() }
    }

    /// The digest of an operator's key, if it is one.
    #[must_use]
    pub fn operator(&self, key: &str) -> Option<[u8; 32]> {
        holder(&self.operators, Holder::Operator, key).map(|_| KeyDigest::of_text(key).to_bytes())
    }
}

/// Whose key it is. The table is keyed by a digest of what was presented, so its timing tells nothing of a stored key; the
/// digest itself is then compared in constant time.
fn holder<T: Clone>(table: &HashMap<KeyDigest, T>, whose: Holder, key: &str) -> Option<T> {
    let digest = is_well_formed(whose, key).then(|| KeyDigest::of_text(key))?;
    let (stored, holder) = table.get_key_value(&digest)?;
    stored.matches(&digest).then(|| holder.clone())
}

/// An API client, by its key.
pub struct ApiClient(pub Arc<Client>);

/// An operator, by key.
pub struct ApiOperator(pub Operator);

impl FromRequest for ApiClient {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let found = caller(request, Holder::Client, |keys| &keys.clients);
        ready(found.and_then(|client| {
            limits(request)?.check_client(&client.id)?;
            Ok(Self(client))
        }))
    }
}

impl FromRequest for ApiOperator {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        ready(caller(request, Holder::Operator, |keys| &keys.operators).map(Self))
    }
}

/// Finds the holder of the presented key. Strangers count against the limit of their address.
fn caller<T: Clone>(
    request: &HttpRequest,
    whose: Holder,
    table: impl Fn(&ApiKeys) -> &HashMap<KeyDigest, T>,
) -> Result<T, Problem> {
    let keys = request.app_data::<web::Data<ApiKeys>>().ok_or_else(Problem::unauthorized)?;
    if let Some(known) = bearer(request).and_then(|key| holder(table(keys), whose, key)) {
        return Ok(known);
    }
    limits(request)?.check_address(request)?;
    Err(Problem::unauthorized())
}

fn limits(request: &HttpRequest) -> Result<&web::Data<Limits>, Problem> {
    request.app_data::<web::Data<Limits>>().ok_or_else(Problem::unauthorized)
}

fn bearer(request: &HttpRequest) -> Option<&str> {
    let mut values = request.headers().get_all(AUTHORIZATION);
    let value = values.next()?.to_str().ok()?;
    let (scheme, key) = value.split_once(' ')?;
    (values.next().is_none() && scheme.eq_ignore_ascii_case("bearer")).then(|| key.trim())
}
