//! Loads of random messages on random networks, compared with a direct implementation of the rule in the head of
//! `loads.rs`.

use unisono_base::mix;
use unisono_cost::{
    internals::loads::{Loads, Sent},
    network::NetworkModel,
};
use unisono_machine::{
    Machine,
    network::{Header, Network},
};

fn network(topology: &str) -> Network {
    let text = format!(
        "name = \"drawn\"\nkind = \"network\"\nplanes = 1\nlink_gbps = 400\nlink_latency_ns = 40\ninput_latency_ns = 20\n\
         output_latency_ns = 20\npacket_bytes = 8192\nbuffer_bytes = 33554432\nhost_overhead_ns = 1\n\
         gamma_ns_per_byte = 0.0025\n[topology]\n{topology}"
    );
    Machine::from_toml(&text, "drawn").unwrap().get::<Network>().unwrap().clone()
}

/// Networks with runs of hops, with overlapping lists of hops, with links of two rates, with choices of the source, and
/// with paths of different lengths.
fn networks(draw: &mut impl FnMut(u32) -> u32) -> Vec<Network> {
    let (down, up) = (1 + draw(5), 1 + draw(6));
    let [leaves, pods] = [2 + draw(6), 1 + draw(3)];
    let [rows, columns] = [1 + draw(3), 1 + draw(3)];
    [
        format!(
            "name = \"fattree\"\naccelerators = {}\nlevels = 2\ndown = {down}\nup = {up}",
            down * leaves - draw(down)
        ),
        format!("name = \"fattree\"\naccelerators = {}\nlevels = 3\ndown = 1\nup = {up}", 32 * pods + draw(20)),
        format!("name = \"fattree\"\naccelerators = 70\nlevels = 3\ndown = 2\nup = {up}\nrouting = \"destination\""),
        format!("name = \"hxmesh\"\nboard = [{rows}, {columns}]\nboards = [{}, {}]", 2 + draw(4), 2 + draw(20)),
        format!("name = \"torus\"\ndims = [{}, {}]", 3 + draw(5), 3 + draw(5)),
        format!(
            "name = \"hyperx\"\ndims = [{}, 3]\nterminals = 2\ncables = [2, 1]\nterminal_gbps = {}",
            2 + draw(3),
            300 + draw(2) * 100
        ),
        "name = \"dragonfly\"\np = 2\na = 4\nh = 2\ng = 9\nrouting = \"valiant\"".to_owned(),
        format!("name = \"dragonfly\"\np = 2\na = 4\nh = {}\ng = {}", 1 + draw(3), 2 + draw(3)),
    ]
    .iter()
    .map(|topology| network(topology))
    .collect()
}

/// Routes all parts of messages one by one: on the first hop with room, or else on the least loaded hop.
fn routed(network: &Network, messages: &[Sent], parts: u32, room: f64) -> (f64, bool) {
    let topology = network.topology("drawn").unwrap();
    let (plane, routing) = (topology.plane().unwrap(), topology.routing());
    let speeds = network.speeds(&plane);
    let is_even = speeds.len() == 1;
    let weight = |link: u32| network.own_speed().gbps / speeds[usize::from(plane.link(link).speed)].gbps;
    let (mut load, mut chose) = (vec![0.0; plane.links().len()], false);
    for m in messages.iter().filter(|m| m.from != m.to) {
        let choices = routing.choices(m.from, m.to);
        let parts = if choices.len() > 1 { 8 } else { parts };
        let mut any = choices.len() > 1;
        for part in 0..parts {
            let mut share = m.bytes / f64::from(parts);
            let (mut at, mut header) =
                (m.from, Header { to: m.to, vc: 0, way: choices[part as usize * choices.len() / parts as usize] });
            let mut way = Vec::new();
            while at != m.to {
                let mut hops = Vec::new();
                routing.hops(at, header, &mut hops);
                any |= hops.len() > 1;
                let on = |link: u32| load[link as usize] + if is_even { 0.0 } else { share * weight(link) };
                let most = room * (1.0 + 1e-9) - if is_even { share } else { 0.0 };
                let roomy = hops.iter().find(|hop| room > 0.0 && on(hop.link) <= most);
                // Of equally loaded links, `min_by` returns the first.
                let least = hops.iter().min_by(|a, b| on(a.link).total_cmp(&on(b.link)));
                let hop = *roomy.or(least).unwrap();
                way.push(hop.link);
                (at, header.vc) = (plane.link(hop.link).to, hop.vc);
            }
            share = if any { share } else { m.bytes };
            way.into_iter().for_each(|link| load[link as usize] += share * weight(link));
            if !any {
                break;
            }
        }
        chose |= any;
    }
    (load.into_iter().fold(0.0, f64::max), chose)
}

#[test]
fn messages_take_the_least_loaded_or_the_first_roomy_links() {
    let mut state = 1;
    let mut draw = |below: u32| {
        state = mix(state + 1);
        (state % u64::from(below.max(1))) as u32
    };
    for _ in 0..12 {
        for network in networks(&mut draw) {
            let topology = network.topology("drawn").unwrap();
            let n = topology.accelerators();
            let model = NetworkModel::new(&network, (0..n).collect()).unwrap();
            let (plane, routing) = (topology.plane().unwrap(), topology.routing());
            let mut loads = Loads::new(&plane, &*routing, model.speeds());
            for flows in [1, 1 + draw(40)] {
                let (all_alike, size) = (draw(2) == 0, 1 + draw(1000));
                let shifts: Vec<(u32, u32)> =
                    (0..flows).map(|_| (draw(n), if all_alike { size } else { 1 + draw(1000) })).collect();
                let sent =
                    |(by, bytes): &(u32, u32), from: u32| Sent { from, to: (from + by) % n, bytes: f64::from(*bytes) };
                let messages: Vec<Sent> = shifts.iter().flat_map(|of| (0..n).map(move |from| sent(of, from))).collect();
                let parts = (256 / flows).clamp(2, 8);
                let longest = messages.iter().map(|m| m.bytes).fold(0.0, f64::max);
                let least_weight = if network.speeds(&plane).iter().any(|speed| speed.gbps > network.own_speed().gbps) {
                    network.own_speed().gbps / network.speeds(&plane).iter().map(|speed| speed.gbps).fold(0.0, f64::max)
                } else {
                    1.0
                };
                let (even, chose) = routed(&network, &messages, parts, 0.0);
                let (roomy, _) = routed(&network, &messages, parts, longest * least_weight);
                let found = loads.busiest(&messages);
                let sent_by =
                    |node: u32| messages.iter().filter(move |m| m.from == node && m.to != node).map(|m| m.bytes);
                let rate = |link: u32| network.link_speed(&plane, link).gbps / network.own_speed().gbps;
                let least = (0..n).map(|node| sent_by(node).sum::<f64>() / plane.leaving(node).map(rate).sum::<f64>());
                // The second routing is omitted if the first is already the best possible.
                let bound = least.fold(longest * least_weight, f64::max);
                let is_good = !chose || even <= bound * (1.0 + 1e-9);
                let expected = if is_good { even } else { even.min(roomy) };
                assert_eq!(found, expected, " {shifts:?} on {:?}", topology);
            }
        }
    }
}
