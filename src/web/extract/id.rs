//! The elicitation id in a path. Every other spelling is no id and gives the same 404.

use std::future::{Ready, ready};

use actix_web::dev::Payload;
use actix_web::{FromRequest, HttpRequest};

use crate::domain::ElicitationId;
use crate::web::problem::Problem;

/// The `{id}` of the path.
pub struct Id(pub ElicitationId);

impl FromRequest for Id {
    type Error = Problem;
    type Future = Ready<Result<Self, Problem>>;

    fn from_request(request: &HttpRequest, _: &mut Payload) -> Self::Future {
        let id = request.match_info().get("id").and_then(|text| text.parse().ok());
        ready(id.map(Self).ok_or_else(Problem::not_found))
    }
}
