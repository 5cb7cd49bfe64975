//! Collectives in the switches: one tree, or several for parts of the vector; a chain for a scan.
//!
//! T(m) = alpha + beta m with alpha the latency of the longest way up and down, beta by Eq. 2.
//! "Accelerating Allreduce with in-network reduction on Intel PIUMA", "Allreduce Embedding", "Analysis".

use unisono_base::narrow;
use unisono_collective::{Kind, Operator};
use unisono_lower::{
    Placed, Placement,
    switches::{Configured, RaiseError, raise},
};

use crate::{
    Algorithm, AlgorithmError, Case, Info, Means, Param, Params, Place, Profile, Size,
    compose::lacks,
    switches::{self, TreeSlice},
};

pub struct InNetwork;

const INFO: Info = Info {
    name: "in-network",
    summary: "reduced and copied in the switches, along shortest paths that merge where they meet",
    reference: "Lakhotia et al., \"Accelerating Allreduce with in-network reduction on Intel PIUMA\", 2022",
    collectives: &[Kind::Allreduce, Kind::Barrier, Kind::Broadcast, Kind::Reduce, Kind::Scan],
    params: &[EMBEDDINGS],
    needs: &[Means::ReducingSwitches],
    composed: false,
};

const EMBEDDINGS: Param = Param { name: "embeddings", values: "1 to the machine's identifiers (1)" };

impl Algorithm for InNetwork {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn supports(&self, case: &Case, params: &Params) -> Result<(), AlgorithmError> {
        let no = |reason: String| Err(AlgorithmError::Unsupported { algorithm: INFO.name, reason });
        let c = &case.collective;
        let embeddings = params.number(INFO.name, EMBEDDINGS.name, 1..=64)?.unwrap_or(1);
        if case.offers() != Means::ReducingSwitches {
            return Err(lacks(&INFO, case.offers()));
        }
        if c.operator == Operator::Ordered && c.kind.reduces() && c.kind != Kind::Scan {
            return no("switches reduce in the order of their ports, which is not that of ranks".to_owned());
        }
        if embeddings > 1 && matches!(c.kind, Kind::Scan | Kind::Barrier) {
            return no(format!("a {} has one embedding", c.kind));
        }
        Ok(())
    }

    fn candidates(&self, case: &Case) -> Vec<Params> {
        let most = if matches!(case.collective.kind, Kind::Scan | Kind::Barrier) { 1 } else { 4 };
        (1..=most).map(|n| Params::new().with(EMBEDDINGS.name, n)).collect()
    }

    fn chosen(&self, _case: &Case, params: &Params) -> Params {
        if params.get(EMBEDDINGS.name).is_some() { params.clone() } else { params.clone().with(EMBEDDINGS.name, 1) }
    }

    fn build(&self, case: &Case, params: &Params) -> Result<Placed, AlgorithmError> {
        let Place::Switches(site) = case.place else { return Err(lacks(&INFO, case.offers())) };
        let (schedule, placement) = raise(&site.layout, &configure(case, params)?).map_err(|error| match error {
            RaiseError::Build(error) => AlgorithmError::from(error),
            RaiseError::Registers(_) => unreachable!("the registers of a tree agree: {error}"),
        })?;
        Ok(Placed { schedule, placement: Some(Placement::Switches(placement)) })
    }

    /// At each core and each switch an instruction for requests and one for responses.
    fn size(&self, case: &Case, params: &Params) -> Size {
        let Place::Switches(site) = case.place else { return Size::default() };
        let embeddings = params.number(INFO.name, EMBEDDINGS.name, 1..=64).ok().flatten().unwrap_or(1);
        let nodes = u64::from(case.collective.ranks) + u64::from(site.layout.switches());
        Size { instructions: Some(2 * nodes * u64::from(embeddings)), ..Size::default() }
    }

    /// The registers have a closed form for their time, however large the machine.
    fn profile(&self, case: &Case, params: &Params) -> Option<Profile> {
        configure(case, params).ok().map(Profile::Registers)
    }
}

/// The registers of a case.
fn configure(case: &Case, params: &Params) -> Result<Configured, AlgorithmError> {
    let Place::Switches(site) = case.place else { return Err(lacks(&INFO, case.offers())) };
    let c = &case.collective;
    let count = params.number(INFO.name, EMBEDDINGS.name, 1..=64)?.unwrap_or(1);
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
        // A broadcast to nobody moves nothing.
        _ if c.kind == Kind::Broadcast && c.ranks == 1 => Vec::new(),
        [whole] => vec![switches::shortest(site, c, whole)],
        _ => switches::several(site, c, &parts),
    };
    Ok(Configured { collective: *c, ranks: site.cores.clone(), embeddings })
}
