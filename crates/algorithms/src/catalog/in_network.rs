//! Collectives in switches that reduce: by one tree, or several trees for parts of the vector; a scan uses a chain.
//!
//! On a machine of kind `in-network`, m elements take T(m) = alpha + beta m, with the latency alpha of the longest path
//! up and down, and beta by Eq. 2. On a network whose switches reduce, the schedule is timed message by message, and
//! the vector is cut into chunks; scans and barriers are not supported there.
//! Source: "Accelerating Allreduce with in-network reduction on Intel PIUMA", sections "Allreduce Embedding" and
//! "Analysis".

use unisono_base::narrow;
use unisono_collective::{Collective, Kind, Operator};
use unisono_lower::{
    Placed, Placement,
    switches::{Configured, RaiseError, raise},
};

use crate::{
    Algorithm, AlgorithmError, Case, Info, Means, Param, Params, Place, Profile, Size,
    compose::lacks,
    switches::{
        self, TreeSlice,
        over_links::{self, Cuts},
    },
};
use unisono_synthesis::Fabric;

pub struct InNetwork;

const INFO: Info = Info {
    name: "in-network",
    summary: "reduced and copied in the switches, along shortest paths that merge where they meet",
    reference: "Lakhotia et al., \"Accelerating Allreduce with in-network reduction on Intel PIUMA\", 2022",
    collectives: &[Kind::Allreduce, Kind::Barrier, Kind::Broadcast, Kind::Reduce, Kind::Scan],
    params: &[EMBEDDINGS, CHUNKS],
    formulas: &[],
    needs: &[Means::ReducingSwitches],
    ..Info::ON_GRID
};

const EMBEDDINGS: Param = Param {
    name: "embeddings",
    values: "trees that share the vector: 1 to the machine's identifiers, on a network to 64 (default: 1, on a network the best for its links)",
};
const CHUNKS: Param = Param {
    name: "chunks",
    values: "on a network: pieces of each tree's part that follow each other, 1 to 4096 (default: of at most 64 KiB, at most 64)",
};
const MOST_EMBEDDINGS: u32 = 64;
const MOST_CHUNKS: u32 = 4096;
/// The numbers of chunks that a plan considers on a network. If there are several chunks, each has at least
/// `LEAST_BYTES`. By default a chunk has at most `USUAL_BYTES`, unless a tree would then have more than `USUAL_CHUNKS`
/// chunks.
const CHUNKS_TRIED: [u32; 7] = [1, 2, 4, 16, 64, 128, 256];
const LEAST_BYTES: u64 = 4096;
const USUAL_BYTES: u64 = 1 << 16;
const USUAL_CHUNKS: u64 = 64;
/// The most instructions of a schedule that a plan considers; the time of such a schedule is computed in less than a
/// second.
const MOST_INSTRUCTIONS: u64 = 5 << 17;

/// Returns true if each switch of the machine executes one collective at a time; false on a network.
fn in_turn(case: &Case) -> bool {
    matches!(&case.place, Place::Switches(site) if site.machine.exclusive_switches)
}

impl Algorithm for InNetwork {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let no = |reason: String| Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        let c = &case.collective;
        let embeddings = params.number(INFO.name, EMBEDDINGS.name, 1..=MOST_EMBEDDINGS)?.unwrap_or(1);
        let chunks = params.number(INFO.name, CHUNKS.name, 1..=MOST_CHUNKS)?;
        if !case.offers().contains(&Means::ReducingSwitches) {
            return Err(lacks(&INFO, case.offers()));
        }
        if !INFO.collectives.contains(&c.kind) {
            return no(format!("switches make no {}", c.kind));
        }
        if c.operator == Operator::Ordered && c.kind.reduces() && c.kind != Kind::Scan {
            return no("switches reduce in the order of their ports, which is not that of ranks".to_owned());
        }
        if let Place::Network { fabric, .. } = case.place {
            if matches!(c.kind, Kind::Scan | Kind::Barrier) {
                return no(format!("on a network it makes no {}", c.kind));
            }
            return over_links::trees(c, fabric, embeddings).map(drop).or_else(no);
        }
        if chunks.is_some() {
            return no("chunks are for networks; packets here follow each other by themselves".to_owned());
        }
        if embeddings > 1 && in_turn(case) {
            return no(
                "each switch executes one collective at a time, so several embeddings follow each other".to_owned()
            );
        }
        if embeddings > 1 && matches!(c.kind, Kind::Scan | Kind::Barrier) {
            return no(format!("a {} has one embedding", c.kind));
        }
        Ok(())
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        if let Place::Network { fabric, .. } = case.place {
            return on_network(&case.collective, fabric);
        }
        let one = matches!(case.collective.kind, Kind::Scan | Kind::Barrier) || in_turn(case);
        let most = if one { 1 } else { 4 };
        (1..=most).map(|n| Params::new().with(EMBEDDINGS.name, n)).collect()
    }

    fn chosen(&self, case: &Case, params: &Params) -> Params {
        if let Some((_, cuts)) = cuts(case, params) {
            let Cuts { trees, chunks } = cuts;
            return params.clone().with(EMBEDDINGS.name, trees).with(CHUNKS.name, chunks);
        }
        if params.get(EMBEDDINGS.name).is_some() { params.clone() } else { params.clone().with(EMBEDDINGS.name, 1) }
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        if let Some((fabric, cuts)) = cuts(case, params) {
            return over_links::build(INFO.name, case, fabric, cuts);
        }
        let Place::Switches(site) = case.place else { return Err(lacks(&INFO, case.offers())) };
        let (schedule, placement) = raise(&site.layout, &configure(case, params)?).map_err(|error| match error {
            RaiseError::Build(error) => AlgorithmError::from(error),
            RaiseError::Registers(_) => unreachable!("the registers of a tree agree: {error}"),
        })?;
        Ok(Placed { schedule, placement: Some(Placement::Switches(placement)) })
    }

    /// Counts, except on a network, two instructions of each tree at each rank and each switch: one for requests, one
    /// for responses.
    fn size(&self, case: &Case, params: &Params) -> Size {
        if let Some((fabric, cuts)) = cuts(case, params) {
            let instructions = over_links::instructions(&case.collective, fabric, cuts);
            return Size { instructions: Some(instructions), ..Size::default() };
        }
        let Place::Switches(site) = case.place else { return Size::default() };
        let embeddings = params.number(INFO.name, EMBEDDINGS.name, 1..=MOST_EMBEDDINGS).ok().flatten().unwrap_or(1);
        let nodes = u64::from(case.collective.ranks) + u64::from(site.layout.switches());
        Size { instructions: Some(2 * nodes * u64::from(embeddings)), ..Size::default() }
    }

    /// Returns the registers, whose time has a closed form on machines of any size; `None` on a network.
    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        configure(case, params).ok().map(Profile::Registers)
    }
}

/// Returns the links of a network, and the trees and chunks into which the parameters divide the vector; `None` on
/// other machines.
fn cuts<'a>(case: &Case<'a>, params: &Params) -> Option<(&'a Fabric, Cuts)> {
    let Place::Network { fabric, .. } = case.place else { return None };
    let c = &case.collective;
    let trees = params.number(INFO.name, EMBEDDINGS.name, 1..=MOST_EMBEDDINGS).ok().flatten();
    let trees = trees.or_else(|| over_links::worthwhile(c, fabric).last().copied()).unwrap_or(1);
    let chunks = params.number(INFO.name, CHUNKS.name, 1..=MOST_CHUNKS).ok().flatten();
    let usual = || narrow(part_bytes(c, trees).div_ceil(USUAL_BYTES).clamp(1, USUAL_CHUNKS));
    Some((fabric, Cuts { trees, chunks: chunks.unwrap_or_else(usual) }))
}

fn part_bytes(c: &Collective, trees: u32) -> u64 {
    u64::from(c.elements.div_ceil(trees)) * c.element_bytes()
}

/// Returns the parameters that a plan considers on a network.
fn on_network(c: &Collective, fabric: &Fabric) -> Vec<Params> {
    let mut all = Vec::new();
    for trees in over_links::worthwhile(c, fabric) {
        for chunks in CHUNKS_TRIED {
            let is_long = chunks == 1 || part_bytes(c, trees) / u64::from(chunks) >= LEAST_BYTES;
            if is_long && over_links::instructions(c, fabric, Cuts { trees, chunks }) <= MOST_INSTRUCTIONS {
                all.push(Params::new().with(EMBEDDINGS.name, trees).with(CHUNKS.name, chunks));
            }
        }
    }
    all
}

fn configure(case: &Case, params: &Params) -> Result<Configured, AlgorithmError> {
    let Place::Switches(site) = case.place else { return Err(lacks(&INFO, case.offers())) };
    let c = &case.collective;
    let count = params.number(INFO.name, EMBEDDINGS.name, 1..=MOST_EMBEDDINGS)?.unwrap_or(1);
    let known = &site.machine.operators;
    if c.kind.reduces() && !known.iter().any(|o| o == c.operator.name()) {
        let reason = format!("the engine of {} lacks {}; it has {}", site.machine.name, c.operator, known.join(", "));
        return Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
    }
    if u32::from(site.taken) + count > site.machine.identifiers {
        return Err(switches::used_up(site, u32::from(site.taken) + count));
    }
    let cut = |at: u32| narrow::<u32>(u64::from(c.elements) * u64::from(at) / u64::from(count));
    let parts: Vec<TreeSlice> = (0..count)
        .map(|at| TreeSlice {
            identifier: site.taken + narrow::<u8>(at),
            first: cut(at),
            elements: cut(at + 1) - cut(at),
        })
        .collect();
    if c.kind == Kind::Scan {
        return switches::chain(site, c, parts[0]);
    }
    let embeddings = match parts[..] {
        // A broadcast on one rank moves no data.
        _ if c.kind == Kind::Broadcast && c.ranks == 1 => Vec::new(),
        [whole] => vec![switches::shortest(site, c, whole)],
        _ => switches::several(site, c, &parts),
    };
    Ok(Configured { collective: *c, ranks: site.cores.clone(), embeddings })
}
