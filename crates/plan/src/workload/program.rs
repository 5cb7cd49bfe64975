//! Converts a workload file to a program, which is then treated like programs of other tools.
//!
//! Ranks that run the same steps form one class. Groups of the same ranks that use different algorithms are stored as
//! different sets. A step becomes a node that computes, followed by a node for each communication.

use rustc_hash::FxHashMap;
use unisono_workload::{Choice, Collected, Compute, Groups, RankClass, Work, WorkNode, WorkloadGraph};

use super::{Communication, Pattern, Step, Workload, groups, layout::rectangle};

/// The format name of programs made from workload files.
pub(super) const WORKLOAD_FORMAT: &str = "workload";

/// Returns the index of a row in a table of distinct rows. Adds the row if it is new.
fn number<T: PartialEq>(rows: &mut Vec<T>, row: T) -> u32 {
    let known = rows.iter().position(|other| *other == row).unwrap_or_else(|| {
        rows.push(row);
        rows.len() - 1
    });
    unisono_base::narrow(known)
}

/// The groups and the receivers of a program under construction.
#[derive(Default)]
struct Tables {
    groups: Vec<(Groups, Choice)>,
    receivers: Vec<Vec<Vec<u32>>>,
}

impl Workload {
    /// Returns the program of one iteration.
    pub fn program(&self) -> WorkloadGraph {
        let mut tables = Tables::default();
        let work: Vec<Vec<Option<Work>>> = self
            .steps
            .iter()
            .map(|step| step.communication.iter().map(|c| self.work(step, c, &mut tables)).collect())
            .collect();
        let classes = self
            .classes()
            .into_iter()
            .map(|(runs, ranks)| RankClass { ranks, nodes: self.nodes(&work, &runs) })
            .collect();
        let (groups, choices) = tables.groups.into_iter().unzip();
        WorkloadGraph {
            name: self.name.clone(),
            format: WORKLOAD_FORMAT,
            ranks: self.accelerators(),
            groups,
            choices,
            receivers: tables.receivers,
            classes,
            ..WorkloadGraph::default()
        }
    }

    /// Returns the classes of ranks that run the same steps, in the order of their first ranks. For each class: true
    /// for each step that it runs, and its ranks.
    fn classes(&self) -> Vec<(Vec<bool>, Vec<u32>)> {
        let ranks = self.accelerators();
        if !self.is_concurrent() {
            return vec![(vec![true; self.steps.len()], (0..ranks).collect())];
        }
        let (mut classes, mut known) = (Vec::<(Vec<bool>, Vec<u32>)>::new(), FxHashMap::default());
        for rank in 0..ranks {
            let runs: Vec<bool> = self.steps.iter().map(|step| self.runs(step, rank)).collect();
            let class = *known.entry(runs.clone()).or_insert(classes.len());
            if class == classes.len() {
                classes.push((runs, Vec::new()));
            }
            classes[class].1.push(rank);
        }
        classes
    }

    /// Returns the nodes of a class of ranks.
    fn nodes(&self, work: &[Vec<Option<Work>>], runs: &[bool]) -> Vec<WorkNode> {
        let mut nodes = Vec::<WorkNode>::new();
        // The latest blocking communication, and the latest communication of all.
        let (mut blocked, mut last) = (None, None);
        let steps = self.steps.iter().zip(work).zip(runs);
        for ((step, of_step), _) in steps.filter(|(_, runs)| **runs) {
            let computed = unisono_base::narrow::<u32>(nodes.len());
            let compute = Work::Compute(Compute::Measured { seconds: step.compute_us * 1e-6 });
            let held_by = if step.waits { last } else { blocked };
            nodes.push(WorkNode::new(&step.name, compute, held_by.into_iter().collect()));
            for (c, work) in step.communication.iter().zip(of_step) {
                let Some(work) = work else { continue };
                last = Some(unisono_base::narrow::<u32>(nodes.len()));
                nodes.push(WorkNode::new(&step.name, *work, vec![computed]));
                if c.blocking {
                    blocked = last;
                }
            }
        }
        nodes
    }

    /// Returns the communication of all groups; `None` if each group has one rank.
    fn work(&self, step: &Step, c: &Communication, tables: &mut Tables) -> Option<Work> {
        if self.group_size(c) == 1 {
            return None;
        }
        // A group runs the step as a whole or not at all.
        let all = groups(self, c);
        let of_step = all.iter().filter(|group| self.runs(step, group[0])).map(<[u32]>::to_vec);
        let groups = Groups::new(self.accelerators(), of_step).expect("some of the groups");
        let bytes = 4 * c.elements;
        // Each rank sends to the rank at a given other position of its group, if this position exists.
        let table = |place: &dyn Fn(u32) -> u32| -> Vec<u32> {
            let to = |rank: u32| {
                let peer = groups.of(rank).and_then(|(group, own)| group.get(place(own) as usize));
                peer.copied().unwrap_or(rank)
            };
            (0..self.accelerators()).map(to).collect()
        };
        let mut permute = |sets| Work::Permute { bytes, receivers: number(&mut tables.receivers, sets) };
        Some(match c.collective {
            Pattern::Send => permute(vec![table(&|own| own + 1)]),
            Pattern::Exchange => permute(c.partners.iter().map(|&partner| table(&|own| own ^ partner)).collect()),
            Pattern::Collective(kind) => {
                let (algorithm, params) = (c.algorithm.clone(), c.params.clone());
                let choice = Choice { algorithm, params, shape: rectangle(self, c) };
                let groups = number(&mut tables.groups, (groups, choice));
                Work::Collective(Collected { kind, bytes, element_bytes: 4, root: 0, groups })
            }
        })
    }
}
