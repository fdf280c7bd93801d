//! How many requests may come: per client with its key, per address without.

use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;

use actix_web::HttpRequest;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, NotUntil, Quota, RateLimiter};
use ipnet::IpNet;

use super::address::client_address;
use super::problem::Problem;
use crate::domain::ClientId;

/// The rate limits and where they are counted.
pub struct Limits {
    clients: DefaultKeyedRateLimiter<ClientId>,
    addresses: DefaultKeyedRateLimiter<IpAddr>,
    sign_ins: DefaultKeyedRateLimiter<IpAddr>,
    trusted_proxies: Vec<IpNet>,
    clock: DefaultClock,
}

impl Limits {
    /// So many requests a second on average, and twice as many at once.
    #[must_use]
    pub fn new(per_client: NonZeroU32, per_address: NonZeroU32, trusted_proxies: Vec<IpNet>) -> Self {
        let quota = |rate: NonZeroU32| Quota::per_second(rate).allow_burst(rate.saturating_mul(TWICE));
        Self {
            clients: RateLimiter::keyed(quota(per_client)),
            addresses: RateLimiter::keyed(quota(per_address)),
            sign_ins: RateLimiter::keyed(Quota::per_second(SIGN_INS).allow_burst(SIGN_INS_AT_ONCE)),
            trusted_proxies,
            clock: DefaultClock::default(),
        }
    }

    /// Counts a request of a client.
    ///
    /// # Errors
    /// [`Problem`] 429 over the limit.
    pub fn check_client(&self, client: &ClientId) -> Result<(), Problem> {
        self.clients.check_key(client).map_err(|wait| self.problem(&wait))
    }

    /// Counts a request from an address.
    ///
    /// # Errors
    /// [`Problem`] 429 over the limit.
    pub fn check_address(&self, request: &HttpRequest) -> Result<(), Problem> {
        let Some(address) = self.address(request) else { return Ok(()) };
        self.addresses.check_key(&address).map_err(|wait| self.problem(&wait))
    }

    /// Counts a step of a sign-in from an address: each makes the service keep something, or ask others.
    ///
    /// # Errors
    /// [`Problem`] 429 over the limit.
    pub fn check_sign_in(&self, request: &HttpRequest) -> Result<(), Problem> {
        let Some(address) = self.address(request) else { return Ok(()) };
        self.sign_ins.check_key(&address).map_err(|wait| self.problem(&wait))
    }

    fn address(&self, request: &HttpRequest) -> Option<IpAddr> {
        let peer = request.peer_addr()?;
        let forwarded: Vec<&str> =
            request.headers().get_all("x-forwarded-for").filter_map(|value| value.to_str().ok()).collect();
        Some(network(client_address(peer.ip(), &forwarded, &self.trusted_proxies)))
    }

    /// Forgets everybody who has not come lately.
    pub fn forget_idle(&self) {
        self.clients.retain_recent();
        self.addresses.retain_recent();
        self.sign_ins.retain_recent();
        self.addresses.shrink_to_fit();
    }

    fn problem(&self, wait: &NotUntil<<DefaultClock as Clock>::Instant>) -> Problem {
        Problem::too_many_requests(wait.wait_time_from(self.clock.now()))
    }
}

/// Steps of sign-ins from one address: a second on average, and at once.
const SIGN_INS: NonZeroU32 = NonZeroU32::MIN.saturating_add(4);
const SIGN_INS_AT_ONCE: NonZeroU32 = NonZeroU32::MIN.saturating_add(99);
const TWICE: NonZeroU32 = NonZeroU32::MIN.saturating_add(1);

/// Whoever has an IPv6 address has at least a /64 of them.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address @ IpAddr::V4(_) => address,
    }
}
