//! The number of embeddings that share each link, of one collective and of several at once.

use unisono_base::{Diagnostic, Diagnostics, NodeId, narrow};
use unisono_machine::in_network::{Layout, MEMORY, Port};

use super::{
    Configured,
    registers::{NONE, ports},
};

/// The number of edges of embeddings, for requests and for responses, on each directed link. The value 255 means 255 or
/// more.
#[derive(Clone, Debug)]
pub struct LinkLoads {
    /// The index of the first link of each switch within a node of the machine; the last entry is the number of links
    /// of a node.
    first: Vec<u32>,
    links: u32,
    locals: u32,
    loads: Vec<u8>,
}

impl LinkLoads {
    fn new(layout: &Layout) -> Self {
        let mut first = vec![0];
        for local in 0..layout.locals() {
            first.push(first[local as usize] + u32::from(layout.ports(local)));
        }
        let links = first[layout.locals() as usize];
        let all = u64::from(links) * u64::from(layout.nodes());
        Self { first, links, locals: layout.locals(), loads: vec![0; narrow(all)] }
    }

    fn row(&self, switch: u32, port: Port) -> usize {
        let (node, local) = (switch / self.locals, switch % self.locals);
        (node as usize) * self.links as usize + self.first[local as usize] as usize + usize::from(port)
    }

    /// Returns the number of edges that leave a switch by the link at a port.
    pub fn leaving(&self, switch: u32, port: Port) -> u8 {
        self.loads[self.row(switch, port)]
    }

    pub fn most(&self) -> u8 {
        self.loads.iter().copied().max().unwrap_or(0)
    }

    /// Returns the numbers of directed links that carry 1, 2, ... edges.
    pub fn histogram(&self) -> Vec<u64> {
        let mut of = vec![0; usize::from(self.most()) + 1];
        for &load in &self.loads {
            of[usize::from(load)] += 1;
        }
        of.split_off(1)
    }
}

/// Returns the loads that the registers of valid embeddings put on links. Each edge counts at the switch that it
/// leaves.
pub fn loads<'a>(layout: &Layout, all: impl IntoIterator<Item = &'a Configured>) -> LinkLoads {
    let mut of = LinkLoads::new(layout);
    for embedding in all.into_iter().flat_map(|c| &c.embeddings) {
        for &(switch, r) in &embedding.registers {
            let up = Some(r.request_output).filter(|&port| port != NONE);
            for port in up.into_iter().chain(ports(r.response_outputs & !(1 << MEMORY))) {
                let row = of.row(switch, port);
                of.loads[row] = of.loads[row].saturating_add(1);
            }
        }
    }
    of
}

/// Checks whether collectives that [`super::lower()`] accepts one by one can be configured together. A switch has one
/// replica of registers for each identifier, so embeddings with the same identifier may not share a switch. Returns an
/// empty list if they can.
pub fn check_together<'a>(layout: &Layout, all: impl IntoIterator<Item = &'a Configured>) -> Vec<Diagnostic> {
    let mut found = Diagnostics::default();
    let mut used = vec![0_u64; layout.switches() as usize];
    for embedding in all.into_iter().flat_map(|c| &c.embeddings) {
        let bit = 1_u64.checked_shl(u32::from(embedding.identifier)).unwrap_or(0);
        for &(switch, _) in &embedding.registers {
            let Some(used) = used.get_mut(switch as usize) else { continue };
            if *used & bit != 0 {
                found.push("clash", Some(NodeId(switch)), None, || {
                    format!(
                        "switch {switch} has one set of registers for identifier {}, and two embeddings want it",
                        embedding.identifier
                    )
                });
            }
            *used |= bit;
        }
    }
    found.into_vec()
}
