//! Times that can be derived by hand. The test network takes 80 ns a hop and 20 ns for a full packet of 1000 bytes.

use unisono_algorithms::{Case, Params, Ranks, resolve};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::tasks::{draft, pattern};
use unisono_sim::network::{Options, run};

use crate::network::common::{TOPOLOGIES, interconnect, network, simulate, traffic};

const NS: u64 = 1000;

#[test]
fn a_packet_takes_its_hops_and_its_length_once() {
    let ring = interconnect("name = 'torus'\ndims = [9]");
    for hops in 1..=4 {
        for bytes in [0_u64, 1, 500, 1000] {
            let run = simulate(&ring, &[(0, hops, bytes)]);
            assert_eq!(run.hosts.makespan, 80 * NS * u64::from(hops) + 20 * bytes, "{hops} hops, {bytes} bytes");
            assert_eq!((run.packets, run.hops), (1, u64::from(hops)));
        }
    }
}

#[test]
fn hosts_take_their_overhead_at_both_ends() {
    let mut machine = network("name = 'torus'\ndims = [9]");
    machine.host_overhead_ns = 1.0;
    let ring = unisono_sim::network::Interconnect::new(&machine).unwrap();
    assert_eq!(simulate(&ring, &[(0, 1, 1000)]).hosts.makespan, (1 + 80 + 20 + 1) * NS);
}

#[test]
fn a_stream_runs_at_full_rate() {
    let ring = interconnect("name = 'torus'\ndims = [9]");
    for (hops, packets) in [(1, 10), (4, 100)] {
        let run = simulate(&ring, &[(0, hops, 1000 * packets)]);
        assert_eq!(run.hosts.makespan, (80 * u64::from(hops) + 20 * packets) * NS);
    }
    // The last packet has half the length: its tail is 10 ns behind its head.
    let run = simulate(&ring, &[(0, 2, 2500)]);
    assert_eq!(run.hosts.makespan, (2 * 80 + 2 * 20 + 10) * NS);
}

#[test]
fn planes_share_a_message_evenly() {
    let mut machine = network("name = 'torus'\ndims = [9]");
    machine.planes = 4;
    let ring = unisono_sim::network::Interconnect::new(&machine).unwrap();
    let run = simulate(&ring, &[(0, 1, 100_000)]);
    assert_eq!((run.hosts.makespan, run.packets), ((80 + 25 * 20) * NS, 25));
}

/// A place is free for the next packet 80 (hop) + 20 (packet) + 40 (credit) ns after a start: with one place a packet
/// starts every 140 ns, with two every 70, with seven the credits always return in time.
#[test]
fn few_places_slow_a_stream() {
    for (places, every) in [(1, 140), (2, 70), (7, 20)] {
        let mut ring = interconnect("name = 'torus'\ndims = [9]");
        ring.timing.places = places;
        let packets = 1 + 20 * u64::from(places);
        let run = simulate(&ring, &[(0, 1, 1000 * packets)]);
        // The first `places` packets start 20 ns after each other; each round of them starts 140 ns after the previous
        // round.
        let last_start = if every == 20 { (packets - 1) * 20 } else { 20 * 140 };
        assert_eq!(run.hosts.makespan, (last_start + 80 + 20) * NS, "{places}");
    }
}

/// Packets that arrive over a link and those of the node's own interface take turns: one packet each.
#[test]
fn two_flows_share_a_link_in_halves() {
    let ring = interconnect("name = 'torus'\ndims = [9]");
    let packets = 1000;
    let run = simulate(&ring, &[(0, 2, 1000 * packets), (1, 3, 1000 * packets)]);
    // The link that both flows use is never idle. The second flow is 4 packets ahead while the first flow travels to
    // node 1.
    let all = (80 + 2 * packets * 20) * NS;
    let (first, second) = (run.hosts.finish[2], run.hosts.finish[3]);
    assert_eq!(first, all, "{first}");
    assert!(second.abs_diff(all) <= (80 + 5 * 20) * NS, "{second} and {all}");
}

#[test]
fn neighbors_exchange_at_full_rate() {
    let ring = interconnect("name = 'torus'\ndims = [8]");
    let messages: Vec<_> = (0..8).flat_map(|r| [(r, (r + 1) % 8, 50_000), (r, (r + 7) % 8, 50_000)]).collect();
    let run = simulate(&ring, &messages);
    assert!(run.hosts.finish.iter().all(|&t| t == (80 + 50 * 20) * NS), "{:?}", run.hosts.finish);
}

/// One message uses all shortest paths: to the far corner of a board there are two.
#[test]
fn a_message_spreads_over_the_ports() {
    let mesh = interconnect("name = 'hxmesh'\nboard = [4, 4]\nboards = [2, 2]");
    // Node 9 is one row and one column of the 8 x 8 grid away.
    let run = simulate(&mesh, &[(0, 9, 100_000)]);
    assert!(run.hosts.makespan < (2 * 80 + 60 * 20) * NS, "{}", run.hosts.makespan);
    assert!(run.hosts.makespan >= (2 * 80 + 50 * 20) * NS);
}

/// Accelerators without a rank also forward packets. Ranks on one accelerator need no link.
#[test]
fn ranks_lie_where_they_are_placed() {
    let ring = interconnect("name = 'torus'\ndims = [9]");
    let graph = traffic(3, &[(0, 1, 1000), (1, 2, 1000)]);
    let options = Options { places: vec![2, 6, 6], ..Options::default() };
    let run = run(&graph, &ring, &options).unwrap();
    assert_eq!(run.hosts.finish[1], (4 * 80 + 20) * NS);
    assert_eq!(run.hosts.finish[2], 0);
}

/// An allreduce around the ring of ranks, by the schedule: 2 (P - 1) rounds of a hop and a chunk, plus the reductions.
#[test]
fn a_schedule_runs_in_its_rounds() {
    let mut ring = interconnect("name = 'torus'\ndims = [8]");
    ring.timing.gamma_ps_per_byte = 10.0;
    let c = Collective::new(Kind::Allreduce, 8, 8 * 250, 0, Operator::Sum, Dtype::F32).unwrap();
    let case = Case::on_ranks(c, Ranks::default());
    let (algorithm, params) = resolve("ring", &case, &Params::new()).unwrap();
    let graph = draft(&algorithm.build(&case, &params).unwrap().schedule).unwrap();
    let run = run(&graph, &ring, &Options::default()).unwrap();
    assert_eq!(run.hosts.makespan, (14 * (80 + 20) + 7 * 10) * NS);
}

/// Each accelerator receives at most the rate of its ports: an alltoall cannot be faster than the links that it
/// crosses.
#[test]
fn an_alltoall_keeps_the_bound_of_its_ports() {
    // 4 x 4 boards of 2 x 2; "HammingMesh", section 3: a share of (1/2a) (N-1) / (N - N/x), here 63/192.
    let mesh = interconnect("name = 'hxmesh'\nboard = [2, 2]\nboards = [4, 4]");
    let bytes = 20_000;
    let run = run(&pattern::linear_alltoall(64, bytes).unwrap(), &mesh, &Options::default()).unwrap();
    let injection = 63.0 * bytes as f64 * 20.0 / 4.0;
    let share = injection / run.hosts.makespan as f64;
    let bound = 0.25 * 63.0 / (64.0 - 16.0);
    assert!(share < bound && share > 0.75 * bound, "{share} of {bound}");
}

/// Returns a chain of links, each given by Gbit/s and ns; a hop takes 40 ns more than the link's latency.
fn chain(links: &[(u32, u32)]) -> unisono_sim::network::Interconnect {
    let line = |(at, (gbps, ns)): (usize, &(u32, u32))| format!("{at} {} gbps={gbps} ns={ns}\n", at + 1);
    let lines: String = links.iter().enumerate().map(line).collect();
    interconnect(&format!("name = 'graph'\naccelerators = {}\nedges = \"\"\"\n{lines}\"\"\"", links.len() + 1))
}

/// A packet of n bytes takes 8 n / gbps ns on a link. If each link is slower than the one before, the last link
/// determines the delay of the packet's tail. Before a faster link, the packet waits for the difference. After it, the
/// packet is as short as on the fast link.
#[test]
fn a_packet_crosses_unlike_links() {
    let fast_slow = chain(&[(800, 10), (400, 40), (100, 100)]);
    assert_eq!(simulate(&fast_slow, &[(0, 3, 1000)]).hosts.makespan, (50 + 80 + 140 + 80) * NS);
    // Backwards, the packet takes 80 ns on the first link, 20 ns on the second and 10 ns on the third. So it waits for
    // 60 ns and then for 10 ns.
    assert_eq!(simulate(&fast_slow, &[(3, 0, 1000)]).hosts.makespan, (140 + 60 + 80 + 10 + 50 + 10) * NS);
    // The wait depends on the packet's own length.
    assert_eq!(simulate(&fast_slow, &[(3, 0, 500)]).hosts.makespan, (140 + 30 + 80 + 5 + 50 + 5) * NS);
    assert_eq!(simulate(&fast_slow, &[(3, 0, 0)]).hosts.makespan, (140 + 80 + 50) * NS);
    let narrow_inside = chain(&[(800, 10), (100, 40), (800, 10)]);
    assert_eq!(simulate(&narrow_inside, &[(0, 3, 1000)]).hosts.makespan, (50 + 80 + 70 + 50 + 10) * NS);
}

/// The slowest link of a path determines the rate: 100 packets leave this link at intervals of 80 ns.
#[test]
fn a_stream_runs_at_the_rate_of_its_narrowest_link() {
    let net = chain(&[(800, 10), (100, 40), (800, 10)]);
    let run = simulate(&net, &[(0, 3, 100_000)]);
    assert_eq!(run.hosts.makespan, (50 + 80 + 99 * 80 + 70 + 50 + 10) * NS);
}

/// Eight accelerators on slow links send to one accelerator behind a link with the sum of their rates. Each packet
/// waits for its own tail, and no packet waits for another, so a slow link does not slow the fast link.
#[test]
fn slow_links_fill_a_fast_one() {
    let lines: String = (0..8).map(|a| format!("{a} 9 gbps=50 ns=10\n")).collect();
    let net = interconnect(&format!("name = 'graph'\naccelerators = 9\nedges = \"\"\"\n{lines}8 9 ns=10\n\"\"\""));
    let messages: Vec<_> = (0..8).map(|from| (from, 8, 100_000)).collect();
    let run = simulate(&net, &messages);
    // Packets take 160 ns on a slow link and 20 ns on the fast link. The first packets are ready after 50 + 140 ns, and
    // packets alternate from then on.
    assert_eq!(run.hosts.makespan, (50 + 140 + 800 * 20 + 50) * NS);
}

/// Two paths of one hop, of 100 and 400 Gbit/s. Of 30 packets, the fast link takes as many as it can send while the
/// slow link sends the others.
#[test]
fn packets_choose_the_link_that_is_through_first() {
    let net = interconnect("name = 'graph'\naccelerators = 2\nedges = \"\"\"\n0 1 gbps=100\n0 1\n\"\"\"");
    let run = simulate(&net, &[(0, 1, 30_000)]);
    assert!(run.link_packets[0] * 3 <= run.link_packets[1], "{:?}", run.link_packets);
    assert!(run.link_packets[0] > 0);
}

/// If cables state the machine's own rates and latencies, times are the same, to the picosecond, as if cables state
/// nothing.
#[test]
fn the_own_speed_stated_changes_nothing() {
    for topology in TOPOLOGIES.iter().filter(|t| !t.contains("gbps")) {
        let plane = interconnect(topology).plane;
        let lines = |speed: &str| -> String {
            let once = plane.links().iter().zip(0..).filter(|(link, id)| link.back > *id);
            once.map(|(link, _)| format!("{} {}{speed}\n", link.from, link.to)).collect()
        };
        let ranks = plane.accelerators();
        let graph = pattern::linear_alltoall(ranks, 3500).unwrap();
        let ran = [lines(""), lines(" gbps=400 ns=40")].map(|lines| {
            let net = interconnect(&format!("name = 'graph'\naccelerators = {ranks}\nedges = \"\"\"\n{lines}\"\"\""));
            assert!(net.plane.is_uniform());
            run(&graph, &net, &Options::default()).unwrap()
        });
        assert_eq!(ran[0], ran[1], "{topology}");
        // A separate class of links with the machine's own values changes nothing either.
        let mut net = interconnect(&format!(
            "name = 'graph'\naccelerators = {ranks}\nedges = \"\"\"\n{}\"\"\"",
            lines(" gbps=100 ns=1")
        ));
        net.timing = interconnect(topology).timing;
        net.timing.links.push(net.timing.links[0]);
        assert_eq!(run(&graph, &net, &Options::default()).unwrap(), ran[0], "{topology}");
    }
}
