//! Whose address counts when requests come through proxies.

use std::net::IpAddr;

use ipnet::IpNet;

/// The address of whoever made a request: the peer, or, if the peer is a trusted proxy, the nearest address in
/// `X-Forwarded-For` that is none. `forwarded_for` are the header's lines in order. What a client wrote at the
/// left is never reached past the proxy that added to it (R46).
#[must_use]
pub fn client_address(peer: IpAddr, forwarded_for: &[&str], trusted: &[IpNet]) -> IpAddr {
    let is_trusted =
        |address: IpAddr| trusted.iter().any(|network| network.contains(&address.to_canonical()));
    let mut address = peer;
    let hops = forwarded_for.iter().rev().flat_map(|line| line.rsplit(','));
    for hop in hops {
        if !is_trusted(address) {
            break;
        }
        match hop.trim().parse() {
            Ok(hop) => address = hop,
            // Whoever wrote that is not to be believed; the proxy that passed it on is as far as one can see.
            Err(_) => break,
        }
    }
    address.to_canonical()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn address(peer: &str, lines: &[&str]) -> String {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
        client_address(peer.parse().unwrap(), lines, &trusted).to_string()
    }

    #[test]
    fn r46_the_address_is_taken_from_the_right_skipping_trusted_proxies() {
        assert_eq!(
            address("203.0.113.1", &["9.9.9.9"]),
            "203.0.113.1",
            "an untrusted peer's header is nothing"
        );
        assert_eq!(address("10.0.0.1", &[]), "10.0.0.1");
        assert_eq!(address("10.0.0.1", &["9.9.9.9"]), "9.9.9.9");
        assert_eq!(
            address("10.0.0.1", &["1.1.1.1, 9.9.9.9"]),
            "9.9.9.9",
            "what stands at the left is ignored"
        );
        assert_eq!(address("10.0.0.1", &["1.1.1.1, 9.9.9.9, 10.0.0.2"]), "9.9.9.9");
        assert_eq!(address("10.0.0.1", &["1.1.1.1", "9.9.9.9"]), "9.9.9.9", "lines are one list");
        assert_eq!(address("::ffff:10.0.0.1", &["9.9.9.9"]), "9.9.9.9");
        assert_eq!(address("10.0.0.1", &["9.9.9.9, nonsense"]), "10.0.0.1");
    }

    proptest! {
        #[test]
        fn r46_nothing_at_the_left_changes_the_answer(junk in ".{0,60}") {
            let line = format!("{junk}, 9.9.9.9");
            prop_assert_eq!(address("10.0.0.1", &[&line]), "9.9.9.9");
        }
    }
}
