//! The accelerators on which a schedule runs: those of a part, or those of an earlier placement.

use std::collections::BTreeSet;

use unisono_algorithms::ranks::Extents;
use unisono_base::narrow;
use unisono_cost::network::NetworkPart;
use unisono_lower::{File, Placement};
use unisono_machine::{
    Machine,
    network::{AcceleratorGrid, Network, Topology},
};
use unisono_tables::Spread;

use crate::{
    Part, PlanError, Problem,
    targets::{Placing, first_ranks, machine_of},
};

/// Places a schedule by the first rule that applies: on the given places; in the part that a shape names; on its
/// present places on this machine; in the part with the shape that it has on another machine; on the first
/// accelerators.
pub(super) fn place(placing: &Placing) -> Result<Option<Placement>, PlanError> {
    let machine = placing.machine;
    let network: &Network = machine.get().expect("the kind of the machine");
    let topology = network.topology(&network.name)?;
    let ranks = placing.ranks();
    if placing.schedule.check_ranks_only().is_err() {
        return place_with_switches(placing, network, &*topology);
    }
    let of_shape = |shape| AcceleratorGrid::of(&network.name, &*topology, Some(shape)).map(|part| part.nodes);
    let nodes = match (placing.part, placing.kept) {
        (Part::Places(places), _) => places.clone(),
        (Part::Shape(shape), _) => of_shape(*shape)?,
        (_, Some(Placement::Nodes(kept))) if keeps_places(placing.before, network, &*topology)? => {
            return Ok(Some(Placement::Nodes(kept.clone())));
        }
        _ => {
            let kept_shape = placing.was.and_then(|shape| of_shape(shape).ok());
            kept_shape.filter(|nodes| nodes.len() == ranks as usize).unwrap_or_else(|| (0..ranks).collect())
        }
    };
    if nodes.len() != ranks as usize {
        return Err(placing.other_size(ranks.into(), "ranks", nodes.len() as u64, "accelerators"));
    }
    network.check_nodes(&*topology, &nodes)?;
    Ok(Some(Placement::Nodes(nodes)))
}

/// Keeps the places of a schedule with nodes on switches. Ranks cannot move, because a switch has fixed neighbors.
fn place_with_switches(
    placing: &Placing,
    network: &Network,
    topology: &dyn Topology,
) -> Result<Option<Placement>, PlanError> {
    let asked = match placing.part {
        Part::All | Part::Nodes(_) => None,
        Part::Places(places) => Some(places.clone()),
        Part::Shape(shape) => Some(AcceleratorGrid::of(&network.name, topology, Some(*shape))?.nodes),
    };
    let kept = match placing.kept {
        Some(Placement::Nodes(kept)) => kept,
        None => return on_own_switches(placing, network, topology, asked),
        Some(_) => {
            placing.refuse_switches()?;
            return Ok(None);
        }
    };
    let keeps = placing.before == Some(placing.machine);
    let (ranks, _) = kept.split_at(kept.len().min(placing.ranks() as usize));
    if keeps && asked.is_none_or(|asked| asked == ranks) {
        return Ok(Some(Placement::Nodes(kept.clone())));
    }
    let moved = |found| PlanError::MovedSwitches { found, machine: network.name.clone() };
    placing.schedule.check_ranks_only().map_err(moved)?;
    Ok(None)
}

/// Places a schedule without places, such as one read from a plan for GPUs. Ranks take the requested or the first
/// accelerators. Every other node takes a switch that computes and has links to all neighbors of the node.
fn on_own_switches(
    placing: &Placing,
    network: &Network,
    topology: &dyn Topology,
    asked: Option<Vec<u32>>,
) -> Result<Option<Placement>, PlanError> {
    let (schedule, ranks) = (placing.schedule, placing.ranks());
    let computing = network.computing(topology)?;
    if computing.are_plain() {
        placing.refuse_switches()?;
    }
    let mut places = asked.unwrap_or_else(|| (0..ranks).collect());
    if places.len() != ranks as usize {
        return Err(placing.other_size(ranks.into(), "ranks", places.len() as u64, "accelerators"));
    }
    network.check_nodes(topology, &places)?;
    let plane = topology.plane()?;
    let mut neighbors = vec![Vec::new(); schedule.node_count()];
    for id in schedule.all_streams() {
        let from = schedule.stream(id).source;
        for &to in schedule.stream_sinks(id) {
            neighbors[from.index()].push(to.index());
            neighbors[to.index()].push(from.index());
        }
    }
    for (node, neighbors) in neighbors.iter().enumerate().skip(ranks as usize) {
        let is_linked = |switch: u32| {
            let mut placed = neighbors.iter().filter_map(|&neighbor| places.get(neighbor));
            placed.all(|&place| plane.links_between(place, switch).next().is_some())
        };
        let free = (plane.accelerators()..plane.nodes()).filter(|switch| !places[ranks as usize..].contains(switch));
        let found = free.filter(|&switch| computing.class(switch).is_some()).find(|&switch| is_linked(switch));
        let Some(found) = found else {
            let found = schedule.check_ranks_only().expect_err("it has nodes that are not ranks");
            return Err(PlanError::NoSwitchFor { found, machine: network.name.clone(), node });
        };
        places.push(found);
    }
    Ok(Some(Placement::Nodes(places)))
}

/// Returns true if accelerators have the same indices as on the machine `before`: a network that is equal, or that
/// differs only in failed links and switches.
fn keeps_places(before: Option<&Machine>, network: &Network, topology: &dyn Topology) -> Result<bool, PlanError> {
    let Some(before) = before.and_then(Machine::get::<Network>) else { return Ok(false) };
    if before == network {
        return Ok(true);
    }
    let whole = |network: &Network| Network { failed: Vec::new(), ..network.clone() };
    Ok(whole(before) == whole(network) && before.topology(&before.name)?.kept() == topology.kept())
}

/// Returns the shape of the ranks' accelerators, or their list if no shape names them.
pub(super) fn part_of(file: &File) -> Result<Part, PlanError> {
    let network: &Network = machine_of(file);
    let Some(nodes) = file.placement.as_ref().and_then(Placement::nodes) else { return first_ranks(file) };
    let (nodes, _) = nodes.split_at(nodes.len().min(file.schedule.collective().ranks as usize));
    let shape = AcceleratorGrid::shape(nodes, &*network.topology(&network.name)?);
    Ok(shape.map_or_else(|| Part::Places(nodes.to_vec()), Part::Shape))
}

pub(super) fn part(part: AcceleratorGrid) -> (Vec<u32>, Extents) {
    let extents = Extents::new(&part.extents).unwrap_or_else(|| line(part.nodes.len()));
    (part.nodes, extents)
}

/// Returns the extents of a row of ranks. A part without ranks is refused when the collective is made.
pub(super) fn line(ranks: usize) -> Extents {
    Extents::new(&[narrow(ranks.max(1))]).expect("one dimension with a rank")
}

/// Returns the number of boxes of GPUs with ranks of a collective, and true if all switches between boxes can reduce
/// its elements. `None` if the machine is not a network of boxes.
pub(crate) fn spread(problem: &Problem) -> Option<Spread> {
    let part: &NetworkPart = problem.target.part().downcast_ref()?;
    let network = &part.network;
    let whole = network.whole_topology(&network.name).ok()?;
    let numbers = whole.numbers_of_boxes()?;
    // If some accelerators have failed, the others are renumbered.
    let kept = part.topology.kept();
    let of = |&node: &u32| kept.map_or(node, |kept| kept[node as usize]) / numbers.accelerators;
    let boxes = part.model.places().iter().map(of).collect::<BTreeSet<u32>>();
    let switches = network.computing(&*whole).ok()?;
    let (operator, dtype) = (problem.collective.operator.name(), problem.collective.dtype.name());
    let reduces = |node| switches.class(node).is_some_and(|class| class.reduces(operator, dtype));
    let network_reduces = (numbers.shared(0)..whole.plane().ok()?.nodes()).all(reduces);
    Some(Spread { boxes: narrow(boxes.len()), network_reduces })
}
