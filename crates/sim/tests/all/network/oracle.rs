//! Compares the packet simulator with a direct implementation of its rules.

use proptest::prelude::*;
use unisono_sim::{
    endpoint::{self, TraceRequest},
    network::{Interconnect, Options, run},
};

use crate::network::{
    common::{TOPOLOGIES, interconnect, traffic},
    straight,
};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(crate::soak::cases(300)))]

    /// Every message arrives at the picosecond of the direct implementation.
    #[test]
    fn messages_arrive_when_the_rules_say(
        topology in prop::sample::select(TOPOLOGIES.to_vec()),
        places in 1u32..5,
        machines in 1u32..5,
        hop_ns in 0u64..100,
        pairs in prop::collection::vec((any::<u16>(), any::<u16>(), 0u64..12_000), 1..120),
        starts in prop::collection::vec(0u64..300, 128),
    ) {
        let mut net = interconnect(topology);
        net.timing.places = places;
        net.timing.links[0].hop_ps = 1000 * hop_ns;
        arrive_when_the_rules_say(&net, machines, &pairs, &starts)?;
    }

    /// The same holds for random graphs whose links have different rates and latencies, so that packets wait for their
    /// tails.
    #[test]
    fn unlike_links_follow_the_rules(
        (accelerators, nodes) in (2u32..6, 0u32..3).prop_map(|(accelerators, switches)| (accelerators, accelerators + switches)),
        parents in prop::collection::vec(any::<u16>(), 8),
        cables in prop::collection::vec((any::<u16>(), any::<u16>()), 0..8),
        speeds in prop::collection::vec((0usize..5, 0usize..12), 24),
        places in 1u32..5,
        machines in 1u32..5,
        pairs in prop::collection::vec((any::<u16>(), any::<u16>(), 0u64..12_000), 1..60),
        starts in prop::collection::vec(0u64..300, 128),
    ) {
        // A tree of all nodes, and additional cables.
        let tree = (1..nodes).zip(&parents).map(|(node, &parent)| (node, u32::from(parent) % node));
        let more = cables.iter().map(|&(a, b)| (u32::from(a) % nodes, u32::from(b) % nodes));
        // There are more latencies than queues for latencies. 5 ns is less than the time of a packet.
        let line = |((a, b), &(rate, latency)): ((u32, u32), &(usize, usize))| {
            let gbps = ["", " gbps=100", " gbps=800", " gbps=3200", " gbps=33.3"][rate];
            let ns = if latency == 0 { String::new() } else { format!(" ns={}", 5 * latency * latency) };
            format!("{a} {b}{gbps}{ns}\n")
        };
        let lines: String = tree.chain(more).filter(|(a, b)| a != b).zip(&speeds).map(line).collect();
        let mut net = interconnect(&format!("name = 'graph'\naccelerators = {accelerators}\nedges = \"\"\"\n{lines}\"\"\""));
        net.timing.places = places;
        arrive_when_the_rules_say(&net, machines, &pairs, &starts)?;
    }
}

/// Simulates messages between pairs of accelerators by both implementations.
fn arrive_when_the_rules_say(
    net: &Interconnect,
    machines: u32,
    pairs: &[(u16, u16, u64)],
    starts: &[u64],
) -> Result<(), TestCaseError> {
    let ranks = net.plane.accelerators();
    let mut messages: Vec<_> =
        pairs.iter().map(|&(a, b, bytes)| (u32::from(a) % ranks, u32::from(b) % ranks, bytes)).collect();
    // Messages are in the order in which the ranks begin. No two ranks begin at the same time.
    let start: Vec<u64> = (0..ranks).map(|r| 1000 * starts[r as usize % 128] + u64::from(r)).collect();
    messages.sort_by_key(|m| start[m.0 as usize]);
    let times: Vec<u64> = messages.iter().map(|m| start[m.0 as usize]).collect();
    let expected = straight::simulate(net, machines as usize, &messages, &times);

    // A rank that begins later takes its message later too.
    let taken = |to: u32, t: &Option<u64>| t.expect("it arrives").max(start[to as usize]);
    let mut wanted: Vec<_> =
        messages.iter().zip(&expected).map(|(&(from, to, bytes), t)| (from, to, bytes, taken(to, t))).collect();
    let hosts = endpoint::Options { start, trace: TraceRequest { ranks: (0..ranks).collect() }, ..Default::default() };
    let options = Options { hosts, send_machines: Some(machines), ..Options::default() };
    let run = run(&traffic(ranks, &messages), net, &options).unwrap();
    let mut found: Vec<_> = run
        .hosts
        .trace
        .iter()
        .filter(|e| e.kind == "recv")
        .map(|e| (e.peer.unwrap(), e.rank, e.bytes, e.start))
        .collect();
    found.sort_unstable();
    wanted.sort_unstable();
    prop_assert_eq!(found, wanted);
    Ok(())
}
