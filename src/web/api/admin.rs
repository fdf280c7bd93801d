//! For operators: find elicitations and revoke them. Never an outcome.

use actix_web::{HttpResponse, web};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ask::SubjectBody;
use super::view::ElicitationView;
use crate::domain::order::{Order, Why};
use crate::domain::time::NoMoment;
use crate::domain::{ClientId, Elicitation, Invalid, Kind, StateName, Subject};
use crate::flow::Gate;
use crate::flow::revoke::{Reason, Tally};
use crate::flow::search::Filter;
use crate::web::extract::caller::ApiOperator;
use crate::web::extract::id::Id;
use crate::web::extract::json::Json;
use crate::web::problem::Problem;

/// What to look for. What is absent does not matter.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SearchBody {
    /// Issued by this client.
    client: Option<String>,
    /// Made for this person.
    subject: Option<SubjectBody>,
    /// Asks for this.
    #[schema(value_type = Option<String>)]
    kind: Option<Kind>,
    /// For the operation of this name.
    operation: Option<String>,
    /// At this provider or payment processor.
    provider: Option<String>,
    /// Issued before this moment, RFC 3339.
    issued_before: Option<String>,
    /// In one of these states; if absent, all that have not ended.
    #[serde(default)]
    #[schema(value_type = Vec<String>)]
    states: Vec<StateName>,
    /// At most so many, 1 to 200: 50 if absent.
    limit: Option<usize>,
    /// The `next` of the page before.
    after: Option<String>,
}

/// What was found.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchView {
    elicitations: Vec<OperatorView>,
    /// Where the next page begins, if there may be one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// An elicitation as operators see it.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorView {
    client: String,
    #[schema(value_type = SubjectBody)]
    subject: Subject,
    /// What payment processors were asked to let the person pay, oldest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    orders: Vec<OrderView>,
    #[serde(flatten)]
    elicitation: ElicitationView,
}

impl OperatorView {
    pub(super) fn of(elicitation: &Elicitation, gate: &Gate) -> Self {
        let terms = elicitation.terms();
        Self {
            client: terms.client.to_string(),
            subject: terms.subject.clone(),
            orders: elicitation.orders().iter().map(OrderView::of).collect(),
            elicitation: ElicitationView::of(elicitation, gate),
        }
    }
}

/// An order at a payment processor.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OrderView {
    /// Our name for it, which the processor has too.
    name: String,
    begun_at: String,
    /// `opening`, `open`, `processing`, `closed`, `paid`, `refunding`, `refunded` or `held`.
    stage: &'static str,
    /// The processor's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The processor's name for the payment.
    #[serde(skip_serializing_if = "Option::is_none")]
    payment: Option<String>,
    /// Why the payment is no outcome: `late`, `mismatch` or `unclaimed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    why: Option<Why>,
}

impl OrderView {
    fn of(order: &Order) -> Self {
        let payment = order.payment();
        Self {
            name: order.name.clone(),
            begun_at: order.begun_at.to_string(),
            stage: order.stage.as_str(),
            id: order.id().map(str::to_owned),
            payment: payment.map(|(payment, _)| payment.to_owned()),
            why: payment.and_then(|(_, why)| why),
        }
    }
}

/// Finds elicitations.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/admin/elicitations/search", tag = "admin", request_body = SearchBody,
    responses((status = 200, description = "What was found", body = SearchView)),
    security(("operator" = [])))]
pub async fn search(
    gate: web::Data<Gate>,
    _operator: ApiOperator,
    body: Json<SearchBody>,
) -> Result<HttpResponse, Problem> {
    let body = body.value;
    let limit = checked_limit(body.limit)?;
    let after = body
        .after
        .map(|after| {
            after.parse().map_err(|_| Invalid::new("after", "must be the `next` of the page before"))
        })
        .transpose()?;
    let SearchBody { client, subject, kind, operation, provider, issued_before, states, .. } = body;
    let filter = Which { client, subject, kind, operation, provider, issued_before }.filter(states)?;
    let page = gate.search(&filter, after, limit).await?;
    Ok(HttpResponse::Ok().json(SearchView {
        elicitations: page.found.iter().map(|found| OperatorView::of(found, &gate)).collect(),
        next: page.next.map(|next| next.to_string()),
    }))
}

/// How many are wanted at once.
pub(super) fn checked_limit(limit: Option<usize>) -> Result<usize, Invalid> {
    let limit = limit.unwrap_or(50);
    if (1..=200).contains(&limit) { Ok(limit) } else { Err(Invalid::new("limit", "must be 1 to 200")) }
}

/// Which are meant, as bodies say it.
struct Which {
    client: Option<String>,
    subject: Option<SubjectBody>,
    kind: Option<Kind>,
    operation: Option<String>,
    provider: Option<String>,
    issued_before: Option<String>,
}

impl Which {
    fn filter(self, states: Vec<StateName>) -> Result<Filter, Invalid> {
        let Self { client, subject, kind, operation, provider, issued_before } = self;
        let moment = |text: String| {
            text.parse().map_err(|error: NoMoment| Invalid::new("issuedBefore", error.to_string()))
        };
        Ok(Filter {
            client: client.map(ClientId::new),
            subject: subject.map(Subject::from),
            kind,
            operation,
            provider,
            issued_before: issued_before.map(moment).transpose()?,
            states,
        })
    }
}

/// Why one is revoked.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevokeBody {
    /// One line of up to 200 characters, for the audit trail.
    reason: String,
    /// Whether what was paid, and nobody has claimed, is to be paid back. What is paid is revoked only so.
    #[serde(default)]
    refund: bool,
}

/// Revokes one.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/admin/elicitations/{id}/revoke", tag = "admin", request_body = RevokeBody,
    params(("id" = String, Path)),
    responses(
        (status = 200, description = "Revoked, now or before", body = OperatorView),
        (status = 403, description = "`role_missing`", body = Problem),
        (status = 404, description = "`not_found`", body = Problem),
        (status = 409, description = "`ended`, or `refund_needed` if it is paid and `refund` is not set", body = Problem),
    ), security(("operator" = [])))]
pub async fn revoke(
    gate: web::Data<Gate>,
    operator: ApiOperator,
    id: Id,
    body: Json<RevokeBody>,
) -> Result<HttpResponse, Problem> {
    let RevokeBody { reason, refund } = body.value;
    let elicitation = gate.revoke(operator.0.revoker()?, id.0, &Reason::new(&reason)?, refund).await?;
    Ok(HttpResponse::Ok().json(OperatorView::of(&elicitation, &gate)))
}

/// Which are revoked, and why. At least one of `client`, `subject`, `kind` and `operation` must be named.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevokeMatchingBody {
    /// Issued by this client.
    client: Option<String>,
    /// Made for this person.
    subject: Option<SubjectBody>,
    /// Asks for this.
    #[schema(value_type = Option<String>)]
    kind: Option<Kind>,
    /// For the operation of this name.
    operation: Option<String>,
    /// At this provider or payment processor.
    provider: Option<String>,
    /// Issued before this moment, RFC 3339.
    issued_before: Option<String>,
    /// One line of up to 200 characters, for the audit trail.
    reason: String,
    /// Whether what was paid, and nobody has claimed, is to be paid back. What is paid is revoked only so.
    #[serde(default)]
    refund: bool,
}

/// How many were revoked.
#[derive(Serialize, ToSchema)]
pub struct RevokedView {
    revoked: u64,
    /// How many were left because they are paid.
    #[serde(skip_serializing_if = "Option::is_none")]
    paid: Option<u64>,
}

impl RevokedView {
    pub(super) const fn of(revoked: u64) -> Self {
        Self { revoked, paid: None }
    }
}

/// Revokes all that match and have not ended.
///
/// # Errors
/// [`Problem`].
#[utoipa::path(post, path = "/v1/admin/elicitations/revoke", tag = "admin", request_body = RevokeMatchingBody,
    responses(
        (status = 200, description = "How many were revoked", body = RevokedView),
        (status = 403, description = "`role_missing`", body = Problem),
        (status = 409, description = "`second_operator_needed`: more match than one operator may revoke alone", body = Problem),
    ),
    security(("operator" = [])))]
pub async fn revoke_matching(
    gate: web::Data<Gate>,
    operator: ApiOperator,
    body: Json<RevokeMatchingBody>,
) -> Result<HttpResponse, Problem> {
    let RevokeMatchingBody { client, subject, kind, operation, provider, issued_before, reason, refund } =
        body.value;
    let filter = Which { client, subject, kind, operation, provider, issued_before }.filter(Vec::new())?;
    if filter.is_open() {
        let problem =
            "or `subject`, `kind`, `provider`, `operation` or `issuedBefore` must say which to revoke";
        return Err(Invalid::new("client", problem).into());
    }
    let reason = Reason::new(&reason)?;
    let Tally { revoked, paid } =
        gate.revoke_matching(operator.0.revoker()?, &filter, &reason, refund).await?;
    Ok(HttpResponse::Ok().json(RevokedView { revoked, paid: (paid > 0).then_some(paid) }))
}
