//! Concurrent collectives. Each collective gets the first identifier whose registers are free at all switches of its
//! tree.

use unisono_base::narrow;
use unisono_collective::Collective;
use unisono_lower::switches::Configured;

use super::{Site, grow::TreeSlice, tree::shortest};
use crate::AlgorithmError;

/// A collective, and the cores of its ranks.
pub struct Wanted<'a> {
    pub collective: Collective,
    pub site: &'a Site,
}

/// Embeds one tree for each collective. Collectives without common switches may share an identifier.
///
/// # Errors
/// Returns an error if the machine has no further identifier.
pub fn embed_together(wanted: &[Wanted]) -> Result<Vec<Configured>, AlgorithmError> {
    let switches = wanted.first().map_or(0, |w| w.site.layout.switches());
    let mut used = vec![0_u64; switches as usize];
    let mut made = Vec::new();
    for w in wanted {
        let part = TreeSlice { identifier: 0, first: 0, elements: w.collective.elements };
        let mut embedding = shortest(w.site, &w.collective, part);
        let taken = embedding.registers.iter().fold(0, |all, &(switch, _)| all | used[switch as usize]);
        let identifier = taken.trailing_ones();
        if identifier >= w.site.machine.identifiers {
            return Err(used_up(w.site, narrow::<u32>(wanted.len())));
        }
        embedding.identifier = narrow::<u8>(identifier);
        for (switch, r) in &mut embedding.registers {
            r.identifier = narrow::<u8>(identifier);
            used[*switch as usize] |= 1 << identifier;
        }
        made.push(Configured { collective: w.collective, ranks: w.site.cores.clone(), embeddings: vec![embedding] });
    }
    Ok(made)
}

pub(crate) fn used_up(site: &Site, wanted: u32) -> AlgorithmError {
    let (name, has) = (&site.machine.name, site.machine.identifiers);
    AlgorithmError::Unsupported {
        algorithm: "in-network",
        reason: format!("{wanted} embeddings at once use up the {has} identifiers of {name}"),
    }
}
