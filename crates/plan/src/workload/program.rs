//! A workload file as a program, for everything that is done with programs of other tools.
//!
//! All ranks are one class. Groups with a choice of algorithm are a set of their own. A step is a node that computes, then its
//! communication, each a node after it.

use unisono_workload::{Choice, Collected, Compute, Groups, Queues, RankClass, Work, WorkNode, WorkloadGraph};

use super::{Communication, Pattern, Workload, groups, layout::rectangle};

/// Tables of which each distinct one is stored once.
fn number<T: PartialEq>(rows: &mut Vec<T>, row: T) -> u32 {
    let known = rows.iter().position(|other| *other == row).unwrap_or_else(|| {
        rows.push(row);
        rows.len() - 1
    });
    unisono_base::narrow(known)
}

impl Workload {
    /// The program of one iteration.
    pub fn program(&self) -> WorkloadGraph {
        let (mut all_groups, mut receivers, mut nodes) = (Vec::new(), Vec::new(), Vec::<WorkNode>::new());
        // The last blocking communication, and the last of all.
        let (mut blocked, mut last) = (None, None);
        for step in &self.steps {
            let computed = unisono_base::narrow::<u32>(nodes.len());
            let compute = Work::Compute(Compute::Measured { seconds: step.compute_us * 1e-6 });
            let held_by = if step.waits { last } else { blocked };
            nodes.push(WorkNode::new(&step.name, compute, held_by.into_iter().collect()));
            for c in &step.communication {
                let work = self.work(c, &mut all_groups, &mut receivers);
                last = Some(unisono_base::narrow::<u32>(nodes.len()));
                nodes.push(WorkNode::new(&step.name, work, vec![computed]));
                if c.blocking {
                    blocked = last;
                }
            }
        }
        let (groups, choices) = all_groups.into_iter().unzip();
        WorkloadGraph {
            name: self.name.clone(),
            format: "workload",
            ranks: self.accelerators(),
            groups,
            choices,
            receivers,
            classes: vec![RankClass { ranks: (0..self.accelerators()).collect(), nodes }],
            queues: Queues::InOrder,
            findings: Vec::new(),
            notes: Vec::new(),
            unknown: std::collections::BTreeMap::new(),
        }
    }

    fn work(
        &self,
        c: &Communication,
        all_groups: &mut Vec<(Groups, Choice)>,
        receivers: &mut Vec<Vec<Vec<u32>>>,
    ) -> Work {
        let (groups, bytes) = (groups(self, c), 4 * c.elements);
        // Each rank sends to the one on another place of its group, if there is such a place.
        let table = |place: &dyn Fn(u32) -> u32| -> Vec<u32> {
            let to = |rank: u32| {
                let peer = groups.of(rank).and_then(|(group, own)| group.get(place(own) as usize));
                peer.copied().unwrap_or(rank)
            };
            (0..self.accelerators()).map(to).collect()
        };
        let mut permute = |tables| Work::Permute { bytes, receivers: number(receivers, tables) };
        match c.collective {
            Pattern::Send => permute(vec![table(&|own| own + 1)]),
            Pattern::Exchange => permute(c.partners.iter().map(|&partner| table(&|own| own ^ partner)).collect()),
            Pattern::Collective(kind) => {
                let (algorithm, params) = (c.algorithm.clone(), c.params.clone());
                let groups = number(all_groups, (groups, Choice { algorithm, params, shape: rectangle(self, c) }));
                Work::Collective(Collected { kind, bytes, element_bytes: 4, root: 0, groups })
            }
        }
    }
}
