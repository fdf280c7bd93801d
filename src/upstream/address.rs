//! Which addresses an outgoing request may reach.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Whether `address` may be reached: a globally routable one, or one that `allowed` lists.
#[must_use]
pub fn may_reach(address: IpAddr, allowed: &[IpNet]) -> bool {
    let address = address.to_canonical();
    allowed.iter().any(|network| network.contains(&address)) || is_global(address)
}

fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_global_v4(address),
        IpAddr::V6(address) => is_global_v6(address),
    }
}

/// Leaves out what the IANA special-purpose registry marks as not globally reachable.
fn is_global_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b));
    !special
}

/// Global unicast (`2000::/3`) without the ranges in it that lead elsewhere. An IPv4 address inside counts as what
/// it is.
fn is_global_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    let [first, second, third, ..] = segments;
    let inside = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        is_global_v4(Ipv4Addr::new(a, b, c, d))
    };
    let [.., seventh, eighth] = segments;
    match first {
        // NAT64 (64:ff9b::/96).
        0x64 if second == 0xff9b && segments.iter().skip(2).take(4).all(|part| *part == 0) => {
            inside(seventh, eighth)
        }
        // 6to4.
        0x2002 => inside(second, third),
        // Teredo, benchmarking, ORCHID and documentation.
        0x2001 => !(second < 0x0200 || second == 0x0db8),
        0x3fff => second >= 0x1000,
        first => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r17_addresses_that_are_not_globally_routable_are_refused_in_every_spelling() {
        let refused = [
            "127.0.0.1",
            "127.9.9.9",
            "0.0.0.0",
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "192.0.0.8",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "240.0.0.1",
            "203.0.113.9",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::127.0.0.1",
            "::ffff:10.0.0.1",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "2002:7f00:1::",
            "2001:db8::1",
            "2001::1",
            "100::1",
            "fec0::1",
            "3fff::1",
        ];
        for address in refused {
            assert!(!may_reach(address.parse().unwrap(), &[]), "{address}");
        }
        for address in ["1.1.1.1", "8.8.8.8", "2606:4700::1111", "64:ff9b::101:101", "::ffff:8.8.8.8"] {
            assert!(may_reach(address.parse().unwrap(), &[]), "{address}");
        }
    }

    #[test]
    fn r17_a_listed_network_is_allowed_and_no_other() {
        let allowed = ["10.1.0.0/16".parse().unwrap()];
        assert!(may_reach("10.1.2.3".parse().unwrap(), &allowed));
        assert!(may_reach("::ffff:10.1.2.3".parse().unwrap(), &allowed));
        assert!(!may_reach("10.2.2.3".parse().unwrap(), &allowed));
    }
}
