//! What is known of each provider: where it is, what it wants to hear, what it answers, and what that must come to. The
//! answers are as each writes them, with more in them than is needed.

use serde_json::json;

use super::Row;

/// An OAuth app. Its tokens last until they are revoked, and answers may come as a form.
pub(super) fn github() -> Row {
    Row {
        preset: "github",
        authorization: "https://github.com/login/oauth/authorize",
        token: "https://github.com/login/oauth/access_token",
        scopes: &["repo", "gist"],
        asks: &[("scope", "repo gist")],
        answer: json!("access_token=gho_1&scope=repo%2Cgist&token_type=bearer"),
        gives: json!({"accessToken": "gho_1", "tokenType": "Bearer", "scopes": ["repo", "gist"]}),
        ends: Some([
            "DELETE https://api.github.com/applications/sidegate/token",
            "Basic sidegate:s%2F1",
            r#"{"access_token":"gho_1"}"#,
        ]),
        ..Row::default()
    }
}

/// A GitHub App with expiring tokens, whose rights are not scopes.
pub(super) fn github_app() -> Row {
    Row {
        scopes: &[],
        asks: &[],
        answer: json!({
            "access_token": "ghu_1", "expires_in": 28800, "refresh_token": "ghr_1",
            "refresh_token_expires_in": 15_897_600, "scope": "", "token_type": "bearer",
        }),
        gives: json!({
            "accessToken": "ghu_1", "tokenType": "Bearer", "scopes": [], "lasts": 28800, "refreshToken": "ghr_1",
        }),
        renewal: Some((
            json!("access_token=ghu_2&expires_in=28800&refresh_token=ghr_2&scope=&token_type=bearer"),
            json!({"accessToken": "ghu_2", "refreshToken": "ghr_2"}),
        )),
        ends: Some([
            "DELETE https://api.github.com/applications/sidegate/token",
            "Basic sidegate:s%2F1",
            r#"{"access_token":"ghu_2"}"#,
        ]),
        ..github()
    }
}

/// Offline access must be asked for, and consent each time. A renewal brings no refresh token.
pub(super) fn google() -> Row {
    let claims = json!({
        "iss": "https://accounts.google.com", "aud": "sidegate", "sub": "1", "email": "ada@example.com",
        "iat": 1_800_000_000, "exp": 1_800_003_600, "nonce": "nonce-1",
    });
    Row {
        preset: "google",
        authorization: "https://accounts.google.com/o/oauth2/v2/auth",
        token: "https://oauth2.googleapis.com/token",
        keys: "https://www.googleapis.com/oauth2/v3/certs",
        scopes: &["openid", "email"],
        asks: &[
            ("scope", "openid email"),
            ("nonce", "nonce-1"),
            ("access_type", "offline"),
            ("prompt", "consent"),
        ],
        answer: json!({
            "access_token": "ya29.1", "expires_in": 3599, "refresh_token": "1//1", "scope": "openid email",
            "token_type": "Bearer", "id_token": claims,
        }),
        gives: json!({
            "accessToken": "ya29.1", "tokenType": "Bearer", "scopes": ["openid", "email"], "lasts": 3599,
            "refreshToken": "1//1", "idTokenClaims": claims, "account": "ada@example.com",
        }),
        renewal: Some((
            json!({"access_token": "ya29.2", "expires_in": 3000, "scope": "openid email", "token_type": "Bearer"}),
            json!({"accessToken": "ya29.2", "lasts": 3000}),
        )),
        ends: Some(["POST https://oauth2.googleapis.com/revoke", "", "token=1%2F%2F1"]),
        ..Row::default()
    }
}

/// The person's token, not the bot's beside it; after a renewal it stands at the top.
pub(super) fn slack() -> Row {
    Row {
        preset: "slack",
        authorization: "https://slack.com/oauth/v2/authorize",
        token: "https://slack.com/api/oauth.v2.access",
        scopes: &["chat:write", "users:read"],
        asks: &[("user_scope", "chat:write,users:read")],
        unchallenged: true,
        answer: json!({
            "ok": true, "app_id": "A1", "access_token": "xoxb-1", "token_type": "bot", "scope": "commands",
            "expires_in": 600, "refresh_token": "bots", "team": {"id": "T1", "name": "Acme"}, "enterprise": null,
            "authed_user": {
                "id": "U1", "scope": "chat:write,users:read", "access_token": "xoxe.xoxp-1", "token_type": "user",
                "expires_in": 43200, "refresh_token": "xoxe-1",
            },
        }),
        gives: json!({
            "accessToken": "xoxe.xoxp-1", "tokenType": "Bearer", "scopes": ["chat:write", "users:read"],
            "lasts": 43200, "refreshToken": "xoxe-1", "account": "Acme",
        }),
        renewal: Some((
            json!({
                "ok": true, "access_token": "xoxe.xoxp-2", "token_type": "user", "expires_in": 43100,
                "refresh_token": "xoxe-2", "scope": "chat:write,users:read", "user_id": "U1",
            }),
            json!({"accessToken": "xoxe.xoxp-2", "lasts": 43100, "refreshToken": "xoxe-2"}),
        )),
        ends: Some(["POST https://slack.com/api/auth.revoke", "Bearer xoxe.xoxp-2", ""]),
        ..Row::default()
    }
}

/// The tenant stands in the URLs. The issuer differs with the person, so that ID tokens are left alone.
pub(super) fn entra() -> Row {
    Row {
        preset: "entra",
        lines: "variables = { tenant = \"acme.onmicrosoft.com\" }",
        authorization: "https://login.microsoftonline.com/acme.onmicrosoft.com/oauth2/v2.0/authorize",
        token: "https://login.microsoftonline.com/acme.onmicrosoft.com/oauth2/v2.0/token",
        scopes: &["openid", "Mail.Read"],
        asks: &[("scope", "openid Mail.Read offline_access"), ("nonce", "nonce-1")],
        answer: json!({
            "token_type": "Bearer", "scope": "openid Mail.Read", "expires_in": 4500, "ext_expires_in": 4500,
            "access_token": "ey-1", "refresh_token": "1.A-1", "id_token": {"tid": "t", "oid": "o"},
        }),
        gives: json!({
            "accessToken": "ey-1", "tokenType": "Bearer", "scopes": ["openid", "Mail.Read"], "lasts": 4500,
            "refreshToken": "1.A-1",
        }),
        renewal: Some((
            json!({"token_type": "Bearer", "expires_in": 4400, "access_token": "ey-2", "refresh_token": "1.A-2"}),
            json!({"accessToken": "ey-2", "lasts": 4400, "refreshToken": "1.A-2"}),
        )),
        ..Row::default()
    }
}

/// For whom the token is must be said. Each refresh token is for one use, and nothing can be revoked.
pub(super) fn atlassian() -> Row {
    Row {
        preset: "atlassian",
        authorization: "https://auth.atlassian.com/authorize",
        token: "https://auth.atlassian.com/oauth/token",
        scopes: &["read:jira-work", "read:me"],
        asks: &[
            ("scope", "read:jira-work read:me offline_access"),
            ("audience", "api.atlassian.com"),
            ("prompt", "consent"),
        ],
        json: true,
        answer: json!({
            "access_token": "ey-1", "refresh_token": "ey-r1", "expires_in": 3600, "token_type": "Bearer",
            "scope": "read:jira-work offline_access read:me",
        }),
        gives: json!({
            "accessToken": "ey-1", "tokenType": "Bearer", "scopes": ["read:jira-work", "offline_access", "read:me"],
            "lasts": 3600, "refreshToken": "ey-r1",
        }),
        renewal: Some((
            json!({"access_token": "ey-2", "refresh_token": "ey-r2", "expires_in": 3500}),
            json!({"accessToken": "ey-2", "lasts": 3500, "refreshToken": "ey-r2"}),
        )),
        ..Row::default()
    }
}

/// No scopes: they are not sent, though asked for. Everything is JSON.
pub(super) fn notion() -> Row {
    Row {
        preset: "notion",
        authorization: "https://api.notion.com/v1/oauth/authorize",
        token: "https://api.notion.com/v1/oauth/token",
        scopes: &["read"],
        asks: &[("owner", "user")],
        basic: true,
        json: true,
        answer: json!({
            "access_token": "ntn_1", "token_type": "bearer", "refresh_token": "nrt_1", "bot_id": "b-1",
            "workspace_id": "w-1", "workspace_name": "Acme", "owner": {"user": {"name": "Ada"}},
        }),
        gives: json!({
            "accessToken": "ntn_1", "tokenType": "Bearer", "scopes": ["read"], "refreshToken": "nrt_1",
            "extra": {"workspace_id": "w-1", "bot_id": "b-1"}, "account": "Acme",
        }),
        renewal: Some((
            json!({"access_token": "ntn_2", "refresh_token": "nrt_2", "owner": {"user": {"name": "Ada"}}}),
            json!({"accessToken": "ntn_2", "refreshToken": "nrt_2", "account": "Ada"}),
        )),
        ends: Some([
            "POST https://api.notion.com/v1/oauth/revoke",
            "Basic sidegate:s/1",
            r#"{"token":"ntn_2"}"#,
        ]),
        ..Row::default()
    }
}

/// Asks each time, so that the person can choose the workspace.
pub(super) fn linear() -> Row {
    Row {
        preset: "linear",
        authorization: "https://linear.app/oauth/authorize",
        token: "https://api.linear.app/oauth/token",
        scopes: &["read", "write"],
        asks: &[("scope", "read,write"), ("prompt", "consent")],
        answer: json!({
            "access_token": "lin_1", "token_type": "Bearer", "expires_in": 86399, "refresh_token": "r-1",
            "scope": "read write",
        }),
        gives: json!({
            "accessToken": "lin_1", "tokenType": "Bearer", "scopes": ["read", "write"], "lasts": 86399,
            "refreshToken": "r-1",
        }),
        renewal: Some((
            json!({"access_token": "lin_2", "expires_in": 86000, "refresh_token": "r-2", "scope": ["read"]}),
            json!({"accessToken": "lin_2", "scopes": ["read"], "lasts": 86000, "refreshToken": "r-2"}),
        )),
        ends: Some(["POST https://api.linear.app/oauth/revoke", "", "token=r-2"]),
        ..Row::default()
    }
}

/// Its API is where the answer says. A lifetime is not said.
pub(super) fn salesforce() -> Row {
    Row {
        preset: "salesforce",
        lines: "variables = { host = \"acme.my.salesforce.com\" }",
        authorization: "https://acme.my.salesforce.com/services/oauth2/authorize",
        token: "https://acme.my.salesforce.com/services/oauth2/token",
        scopes: &["api"],
        asks: &[("scope", "api refresh_token")],
        answer: json!({
            "access_token": "00D!1", "refresh_token": "5Aep1", "signature": "x", "scope": "api refresh_token",
            "instance_url": "https://acme.my.salesforce.com", "id": "https://login.salesforce.com/id/00D/005",
            "token_type": "Bearer", "issued_at": "1800000000000",
        }),
        gives: json!({
            "accessToken": "00D!1", "tokenType": "Bearer", "scopes": ["api", "refresh_token"], "lasts": 7200,
            "refreshToken": "5Aep1", "extra": {
                "instance_url": "https://acme.my.salesforce.com", "id": "https://login.salesforce.com/id/00D/005",
            },
        }),
        renewal: Some((
            // The organisation has moved.
            json!({"access_token": "00D!2", "instance_url": "https://na9.salesforce.com", "token_type": "Bearer"}),
            json!({"accessToken": "00D!2", "extra": {
                "instance_url": "https://na9.salesforce.com", "id": "https://login.salesforce.com/id/00D/005",
            }}),
        )),
        ends: Some(["POST https://acme.my.salesforce.com/services/oauth2/revoke", "", "token=5Aep1"]),
        ..Row::default()
    }
}

/// Only refresh tokens can be revoked.
pub(super) fn hubspot() -> Row {
    Row {
        preset: "hubspot",
        authorization: "https://app.hubspot.com/oauth/authorize",
        token: "https://api.hubapi.com/oauth/v3/token",
        scopes: &["oauth", "crm.objects.contacts.read"],
        asks: &[("scope", "oauth crm.objects.contacts.read")],
        answer: json!({
            "access_token": "CN1", "refresh_token": "na1-1", "expires_in": 1800, "token_type": "bearer",
            "hub_id": 1_234_567, "user_id": 7, "scopes": ["oauth", "crm.objects.contacts.read"],
        }),
        gives: json!({
            "accessToken": "CN1", "tokenType": "Bearer", "scopes": ["oauth", "crm.objects.contacts.read"],
            "lasts": 1800, "refreshToken": "na1-1", "extra": {"hub_id": 1_234_567},
        }),
        renewal: Some((
            json!({"access_token": "CN2", "refresh_token": "na1-1", "expires_in": 1800, "token_type": "bearer"}),
            json!({"accessToken": "CN2"}),
        )),
        ends: Some([
            "POST https://api.hubapi.com/oauth/v3/token/revoke",
            "",
            "token_type_hint=refresh_token&token=na1-1&client_id=sidegate&client_secret=s%2F1",
        ]),
        ..Row::default()
    }
}

/// As the specification has it.
pub(super) fn discord() -> Row {
    Row {
        preset: "discord",
        authorization: "https://discord.com/oauth2/authorize",
        token: "https://discord.com/api/oauth2/token",
        scopes: &["identify", "guilds"],
        asks: &[("scope", "identify guilds")],
        answer: json!({
            "access_token": "d-1", "token_type": "Bearer", "expires_in": 604_800, "refresh_token": "dr-1",
            "scope": "guilds identify",
        }),
        gives: json!({
            "accessToken": "d-1", "tokenType": "Bearer", "scopes": ["guilds", "identify"], "lasts": 604_800,
            "refreshToken": "dr-1",
        }),
        renewal: Some((
            json!({"access_token": "d-2", "expires_in": 604_700, "refresh_token": "dr-2"}),
            json!({"accessToken": "d-2", "lasts": 604_700, "refreshToken": "dr-2"}),
        )),
        ends: Some([
            "POST https://discord.com/api/oauth2/token/revoke",
            "",
            "token=dr-2&client_id=sidegate&client_secret=s%2F1",
        ]),
        ..Row::default()
    }
}

/// One's own server, which is its own issuer.
pub(super) fn gitlab() -> Row {
    let claims = json!({
        "iss": "https://gitlab.acme.example", "aud": "sidegate", "sub": "7", "preferred_username": "ada",
        "iat": 1_800_000_000, "exp": 1_800_000_120, "nonce": "nonce-1",
    });
    Row {
        preset: "gitlab",
        lines: "variables = { host = \"gitlab.acme.example\" }",
        authorization: "https://gitlab.acme.example/oauth/authorize",
        token: "https://gitlab.acme.example/oauth/token",
        keys: "https://gitlab.acme.example/oauth/discovery/keys",
        scopes: &["openid", "read_api"],
        asks: &[("scope", "openid read_api"), ("nonce", "nonce-1")],
        answer: json!({
            "access_token": "g-1", "token_type": "Bearer", "expires_in": 7200, "refresh_token": "gr-1",
            "scope": "openid read_api", "created_at": 1_800_000_000, "id_token": claims,
        }),
        gives: json!({
            "accessToken": "g-1", "tokenType": "Bearer", "scopes": ["openid", "read_api"], "lasts": 7200,
            "refreshToken": "gr-1", "idTokenClaims": claims, "account": "ada",
        }),
        renewal: Some((
            json!({"access_token": "g-2", "expires_in": 7100, "refresh_token": "gr-2"}),
            json!({"accessToken": "g-2", "lasts": 7100, "refreshToken": "gr-2"}),
        )),
        ends: Some([
            "POST https://gitlab.acme.example/oauth/revoke",
            "",
            "token=gr-2&client_id=sidegate&client_secret=s%2F1",
        ]),
        ..Row::default()
    }
}

/// Its API is where the answer says. Each refresh token is for one use.
pub(super) fn zoom() -> Row {
    Row {
        preset: "zoom",
        authorization: "https://zoom.us/oauth/authorize",
        token: "https://zoom.us/oauth/token",
        scopes: &["user:read", "meeting:read"],
        asks: &[("scope", "user:read,meeting:read")],
        basic: true,
        answer: json!({
            "access_token": "z-1", "token_type": "bearer", "refresh_token": "zr-1", "expires_in": 3599,
            "scope": "user:read meeting:read", "api_url": "https://api-us.zoom.us",
        }),
        gives: json!({
            "accessToken": "z-1", "tokenType": "Bearer", "scopes": ["user:read", "meeting:read"], "lasts": 3599,
            "refreshToken": "zr-1", "extra": {"api_url": "https://api-us.zoom.us"},
        }),
        renewal: Some((
            json!({"access_token": "z-2", "refresh_token": "zr-2", "expires_in": 3500}),
            json!({"accessToken": "z-2", "lasts": 3500, "refreshToken": "zr-2"}),
        )),
        ends: Some(["POST https://zoom.us/oauth/revoke", "Basic sidegate:s/1", "token=z-2"]),
        ..Row::default()
    }
}

/// Offline access must be asked for. A renewal brings no refresh token; revoking is a call of the API.
pub(super) fn dropbox() -> Row {
    Row {
        preset: "dropbox",
        authorization: "https://www.dropbox.com/oauth2/authorize",
        token: "https://api.dropboxapi.com/oauth2/token",
        scopes: &["account_info.read", "files.content.read"],
        asks: &[("scope", "account_info.read files.content.read"), ("token_access_type", "offline")],
        answer: json!({
            "access_token": "sl.1", "token_type": "bearer", "expires_in": 14400, "refresh_token": "dr-1",
            "scope": "account_info.read files.content.read", "uid": "12", "account_id": "dbid:1",
        }),
        gives: json!({
            "accessToken": "sl.1", "tokenType": "Bearer", "scopes": ["account_info.read", "files.content.read"],
            "lasts": 14400, "refreshToken": "dr-1",
        }),
        renewal: Some((
            json!({"access_token": "sl.2", "token_type": "bearer", "expires_in": 14000}),
            json!({"accessToken": "sl.2", "lasts": 14000}),
        )),
        ends: Some(["POST https://api.dropboxapi.com/2/auth/token/revoke", "Bearer sl.2", ""]),
        ..Row::default()
    }
}

/// Connect: what counts is the account, which ends by its name. A renewal need not say it again.
pub(super) fn stripe() -> Row {
    Row {
        preset: "stripe",
        authorization: "https://connect.stripe.com/oauth/authorize",
        token: "https://connect.stripe.com/oauth/token",
        scopes: &["read_write"],
        asks: &[("scope", "read_write")],
        answer: json!({
            "access_token": "sk_1", "livemode": false, "refresh_token": "rt_1", "token_type": "bearer",
            "stripe_publishable_key": "pk_1", "stripe_user_id": "acct_1", "scope": "read_write",
        }),
        gives: json!({
            "accessToken": "sk_1", "tokenType": "Bearer", "scopes": ["read_write"], "refreshToken": "rt_1",
            "extra": {"stripe_user_id": "acct_1", "livemode": false}, "account": "acct_1",
        }),
        renewal: Some((
            json!({"access_token": "sk_2", "livemode": true, "refresh_token": "rt_2", "scope": "read_write"}),
            json!({
                "accessToken": "sk_2", "refreshToken": "rt_2",
                "extra": {"stripe_user_id": "acct_1", "livemode": true},
            }),
        )),
        ends: Some([
            "POST https://connect.stripe.com/oauth/deauthorize",
            "",
            "stripe_user_id=acct_1&client_id=sidegate&client_secret=s%2F1",
        ]),
        ..Row::default()
    }
}
