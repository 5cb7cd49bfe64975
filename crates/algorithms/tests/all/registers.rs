//! Tests that registers which do not implement a collective are refused, by the proof of their schedule or by the check
//! of its placement. The tests flip fields of random configurations.

use proptest::prelude::*;
use unisono_algorithms::{
    ALGORITHMS, AlgorithmError, Case, Params, Profile,
    switches::{Site, Wanted, embed_together},
};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_lower::switches::{Configured, NONE, VirtualChannel, check_together, lower, raise};
use unisono_machine::{InNetwork, Machine};
use unisono_schedule::verify::{Method, Verified};

fn small(nodes: u32) -> InNetwork {
    let m = Machine::preset("piuma").unwrap().get::<InNetwork>().unwrap().clone();
    let m = InNetwork { cores_per_socket: 4, mesh: [2, 2], sockets_per_node: 4, ..m };
    InNetwork { socket_ports: vec![0, 1], node_ports: vec![3, 2], ..m }.with_nodes(nodes).unwrap()
}

fn embed(site: &Site, c: Collective, embeddings: u32) -> Result<Configured, AlgorithmError> {
    let unit = ALGORITHMS.iter().find(|a| a.name() == "in-network").unwrap();
    let params = Params::new().with("embeddings", embeddings);
    let case = Case::on_switches(c, site);
    unit.supports(&case, &params)?;
    unit.build(&case, &params)?;
    let Some(Profile::Registers(made)) = unit.profile(&case, &params) else { panic!("it has registers") };
    Ok(made)
}

/// Returns the first fault of registers; `None` if they raise to a schedule that is proved and that lowers to the same
/// registers.
fn fault(site: &Site, made: &Configured) -> Option<String> {
    let (schedule, placement) = match raise(&site.layout, made) {
        Ok(raised) => raised,
        Err(fault) => return Some(fault.to_string()),
    };
    let proven = match Verified::of(&schedule, Method::Auto) {
        Ok(proven) => proven,
        Err(proof) => return Some(proof.diagnostics[0].to_string()),
    };
    match lower(&site.machine, &site.layout, &proven, &placement) {
        Ok(lowered) => (&lowered != made).then(|| "they lower to other registers".to_owned()),
        Err(fault) => Some(fault.message),
    }
}

const KINDS: [Kind; 5] = [Kind::Allreduce, Kind::Barrier, Kind::Broadcast, Kind::Reduce, Kind::Scan];

/// Draws a configuration: a collective, ranks on a machine, and one embedding or several.
fn configurations() -> impl Strategy<Value = (Site, Configured)> {
    (0..KINDS.len(), 1_u32..20, 0_u32..4, any::<u64>(), 1_u32..4).prop_map(|(kind, nodes, which, root, count)| {
        let kind = KINDS[kind];
        // A machine of this size has a chain only for some numbers of nodes.
        let m = small(if kind == Kind::Scan { 1 } else { nodes });
        let site = match which {
            _ if kind == Kind::Scan => Site::all(&m),
            0 => Site::first(&m, 2 + (root % u64::from(m.cores() - 1)) as u32).unwrap(),
            1 => Site::on_nodes(&m, &[0, (root % u64::from(nodes)) as u32]).unwrap(),
            _ => Site::all(&m),
        };
        let ranks = site.ranks();
        let c = Collective::new(kind, ranks, 16, root % u64::from(ranks), Operator::Sum, Dtype::F32).unwrap();
        let count = if matches!(kind, Kind::Scan | Kind::Barrier) { 1 } else { count };
        let made = embed(&site, c, count).unwrap();
        (site, made)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::soak::cases(200), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flipped_fields_are_refused((site, made) in configurations(), at in any::<u64>(), bit in 0_u32..64, other in any::<u8>()) {
        let wrong = |m: &Configured| fault(&site, m).is_some();
        prop_assert_eq!(fault(&site, &made), None);
        let embedding = (at % made.embeddings.len() as u64) as usize;
        let places = made.embeddings[embedding].registers.len() as u64;
        let place = (at / 7 % places) as usize;
        for field in 0..11 {
            let mut flipped = made.clone();
            let e = &mut flipped.embeddings[embedding];
            let (switch, r) = &mut e.registers[place];
            match field {
                0 => r.request_inputs ^= 1 << bit,
                1 => r.response_outputs ^= 1 << bit,
                2 if r.request_output != other => r.request_output = other,
                3 if r.response_input != other => r.response_input = other,
                4 => r.request_channel ^= 1 << (bit % 8),
                5 => r.response_channel ^= 1 << (bit % 8),
                6 => r.identifier ^= 1 << (bit % 8),
                7 => r.operator = if r.operator.is_none() { Some(Operator::Sum) } else { None },
                8 if r.operator.is_some() => r.operator = Some(Operator::Max),
                9 => *switch ^= 1 << (bit % 9),
                10 => { e.registers.remove(place); }
                _ => continue,
            }
            if flipped != made {
                prop_assert!(wrong(&flipped), "field {field} of {:?}", made.embeddings[embedding].registers[place]);
            }
        }
        for flip in [|c: &mut Configured| c.embeddings[0].first += 1, |c: &mut Configured| c.embeddings[0].elements += 1] {
            let mut flipped = made.clone();
            flip(&mut flipped);
            prop_assert!(wrong(&flipped));
        }
    }

    /// A placement with a node at another switch, or a stream on another channel, is refused unless it is another valid
    /// placement.
    #[test]
    fn damaged_placements_are_refused(
        (site, made) in configurations(),
        (at, to) in any::<(u64, u64)>(),
        channel in (0_u8..10, 0_u8..3),
    ) {
        let (schedule, placement) = raise(&site.layout, &made).unwrap();
        let proven = Verified::of(&schedule, Method::Auto).unwrap();
        let of = |count: usize| (at % count.max(1) as u64) as usize;
        let mut damaged = [placement.clone(), placement.clone(), placement.clone(), placement.clone()];
        damaged[0].nodes[of(placement.nodes.len())] = (to % u64::from(site.layout.switches() + 1)) as u32;
        damaged[1].nodes.swap(of(placement.nodes.len()), to as usize % placement.nodes.len());
        let identifier = VirtualChannel { identifier: channel.0, channel: channel.1 };
        damaged[2].channels[of(placement.channels.len())] = identifier;
        damaged[3].channels.pop();
        for damaged in damaged.iter().filter(|damaged| **damaged != placement) {
            match lower(&site.machine, &site.layout, &proven, damaged) {
                Ok(lowered) => prop_assert_eq!(fault(&site, &lowered), None),
                Err(fault) => prop_assert!(!fault.message.is_empty() && !fault.message.contains('\n')),
            }
        }
        prop_assert!(lower(&site.machine, &site.layout, &proven, &damaged[2]).is_err() || damaged[2] == placement);
        prop_assert!(lower(&site.machine, &site.layout, &proven, &damaged[3]).is_err());
    }

    /// Flips every single port of a switch's registers.
    #[test]
    fn every_port_is_refused((site, made) in configurations(), at in any::<u64>()) {
        let places = made.embeddings[0].registers.len() as u64;
        let place = (at % places) as usize;
        for port in 0..64 {
            for set in 0..2 {
                let mut flipped = made.clone();
                let r = &mut flipped.embeddings[0].registers[place].1;
                if set == 0 { r.request_inputs ^= 1 << port } else { r.response_outputs ^= 1 << port }
                prop_assert!(fault(&site, &flipped).is_some(), "port {port}");
            }
        }
        let mut flipped = made.clone();
        let r = &mut flipped.embeddings[0].registers[place].1;
        r.request_output = if r.request_output == NONE { 0 } else { NONE };
        prop_assert!(fault(&site, &flipped).is_some());
    }
}

fn of(site: &Site, kind: Kind) -> Collective {
    Collective::new(kind, site.ranks(), 8, 0, Operator::Sum, Dtype::F32).unwrap()
}

#[test]
fn collectives_apart_share_an_identifier_and_others_do_not() {
    let m = small(16);
    let sites = [[0, 1, 2], [3, 4, 5], [6, 7, 8], [0, 7, 15]].map(|nodes| Site::on_nodes(&m, &nodes).unwrap());
    let wanted: Vec<Wanted> = sites.iter().map(|site| Wanted { collective: of(site, Kind::Allreduce), site }).collect();
    let made = embed_together(&wanted).unwrap();
    let identifiers: Vec<u8> = made.iter().map(|c| c.embeddings[0].identifier).collect();
    assert_eq!(identifiers, [0, 0, 0, 1]);
    assert_eq!(check_together(&sites[0].layout, &made), []);
    for (site, c) in sites.iter().zip(&made) {
        assert_eq!(fault(site, c), None);
    }
    // The same registers clash with themselves.
    let clash = check_together(&sites[0].layout, [&made[0], &made[0]]);
    assert!(clash[0].message.contains("one set of registers for identifier 0"), "{}", clash[0].message);
}

#[test]
fn what_a_machine_lacks_is_one_sentence() {
    let m = InNetwork { identifiers: 2, operators: vec!["max".to_owned()], ..small(2) };
    let site = Site::all(&m);
    let e = embed(&site, of(&site, Kind::Allreduce), 1).unwrap_err().to_string();
    assert_eq!(e, "in-network does not support this case: the engine of piuma lacks sum; it has max");
    let e = embed(&site, of(&site, Kind::Broadcast), 3).unwrap_err().to_string();
    assert_eq!(e, "in-network does not support this case: 3 embeddings at once use up the 2 identifiers of piuma");
    let e = embed_together(&[0, 1, 2].map(|_| Wanted { collective: of(&site, Kind::Broadcast), site: &site }));
    assert!(e.unwrap_err().to_string().contains("use up the 2 identifiers"));
    let e = Site::first(&m, 33).unwrap_err().to_string();
    assert_eq!(e, "33 ranks were asked for; piuma has cores for 1 to 32");
    let e = Site::on_nodes(&m, &[0, 2]).unwrap_err().to_string();
    assert_eq!(e, "the subset names node 2; nodes of piuma are 0 to 1, at least one");
    let m = InNetwork { exclusive_switches: true, ..small(2) };
    let site = Site::all(&m);
    let e = embed(&site, of(&site, Kind::Broadcast), 2).unwrap_err().to_string();
    assert!(e.contains("one collective at a time"), "{e}");
    let m = InNetwork { operators: vec!["nor".to_owned()], ..small(2) };
    assert!(m.check("a machine").unwrap_err().to_string().contains("associative operators"));
    let m = small(2);
    let half = Site::first(&m, 16).unwrap();
    assert!(embed(&half, of(&half, Kind::Scan), 1).unwrap_err().to_string().contains("all 32 cores"));
}

#[test]
fn registers_of_presets_are_those_of_their_schedule() {
    let mut number = 0;
    for name in ["piuma", "piuma-a100", "piuma-wide"] {
        let preset = Machine::preset(name).unwrap().get::<InNetwork>().unwrap().clone();
        for nodes in [1, 2, 16, 30] {
            let site = Site::all(&preset.with_nodes(nodes).unwrap());
            for kind in KINDS {
                let chain = kind == Kind::Scan;
                for embeddings in [1, 2, 4] {
                    let one = chain || kind == Kind::Barrier;
                    if (one && embeddings > 1) || (chain && nodes > 1) {
                        continue;
                    }
                    number += 1;
                    if nodes > 2 && !crate::soak::runs(number) {
                        continue;
                    }
                    let made = embed(&site, of(&site, kind), embeddings).unwrap();
                    assert_eq!(fault(&site, &made), None, "{kind} on {nodes} nodes of {name}, {embeddings} embeddings");
                }
            }
        }
    }
}

#[test]
fn a_node_has_a_chain_through_all_cores() {
    for name in ["piuma", "piuma-a100", "piuma-wide"] {
        let m = Machine::preset(name).unwrap().get::<InNetwork>().unwrap().clone();
        let site = Site::all(&m);
        let made = embed(&site, of(&site, Kind::Scan), 1).unwrap();
        assert_eq!(fault(&site, &made), None, "{name}");
    }
}

/// Any two of the three nodes on a line of eight are one link apart, so the root is the node nearest to the middle of
/// the line. If latency grows with distance, the root is the middle node of the three.
#[test]
fn the_root_is_at_the_node_of_least_eccentricity() {
    for (node_step_ns, root) in [(0.0, 3), (10.0, 2)] {
        let m = InNetwork { node_step_ns, ..small(8) };
        let site = Site::on_nodes(&m, &[0, 2, 3]).unwrap();
        let c = Collective::new(Kind::Allreduce, site.ranks(), 4, 0, Operator::Sum, Dtype::F32).unwrap();
        let made = embed(&site, c, 1).unwrap();
        let top = made.embeddings[0].registers.iter().find(|(_, r)| r.request_output == NONE).unwrap();
        assert_eq!(site.layout.node_of(top.0), root, "{node_step_ns} ns a step");
    }
}
