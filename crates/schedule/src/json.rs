//! The JSON form of a schedule, version 1: the tables of the schedule with named fields, for other tools.

use serde::{Deserialize, Serialize};
use unisono_base::{InstrId, LaneId, NodeId, StreamId, keyed, narrow};
use unisono_collective::Collective;

use crate::{
    builder::Builder,
    schedule::{Operand, Schedule},
};

pub const VERSION: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    kind: String,
    ranks: u32,
    elements: u64,
    root: u64,
    operator: String,
    dtype: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamRow {
    source: u32,
    sinks: Vec<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    capacity: Option<u32>,
}

#[derive(Serialize, Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    In(u32),
    Out(u32),
    Tmp(u32),
    Stream(u32),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Combine {
    length: u32,
    phase: u32,
    sources: Vec<Place>,
    sinks: Vec<Place>,
    /// Instructions that must have completed before this one starts, numbered over the whole file from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeProgram {
    node: u32,
    #[serde(default)]
    tmp: u32,
    lanes: Vec<Vec<Combine>>,
}

/// Whole document, with optional fields for a machine (TOML) and a placement `P`, which other crates interpret.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Document<P> {
    version: u32,
    collective: Spec,
    origin: String,
    phases: Vec<String>,
    nodes: u32,
    streams: Vec<StreamRow>,
    /// In ascending order of nodes; nodes with neither instructions nor scratch memory may be omitted.
    programs: Vec<NodeProgram>,
    #[serde(default = "Option::default", skip_serializing_if = "Option::is_none")]
    pub machine: Option<String>,
    #[serde(
        default = "Option::default",
        deserialize_with = "keyed::optional",
        bound(deserialize = "P: Deserialize<'de>"),
        skip_serializing_if = "Option::is_none"
    )]
    pub placement: Option<P>,
}

#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct JsonError(pub String);

impl<P> Document<P> {
    pub fn of(schedule: &Schedule) -> Self {
        let c = schedule.collective();
        let streams = schedule
            .all_streams()
            .map(|id| {
                let s = schedule.stream(id);
                StreamRow {
                    source: s.source.0,
                    sinks: schedule.stream_sinks(id).iter().map(|n| n.0).collect(),
                    capacity: (s.capacity != s.len).then_some(s.capacity),
                }
            })
            .collect();
        let programs = schedule
            .all_nodes()
            .filter(|&n| !schedule.lanes(n).is_empty() || schedule.scratch_elements(n) > 0)
            .map(|node| NodeProgram {
                node: node.0,
                tmp: schedule.scratch_elements(node),
                lanes: schedule.lanes(node).map(|l| lane(schedule, LaneId::new(l))).collect(),
            })
            .collect();
        Self {
            version: VERSION,
            collective: Spec {
                kind: c.kind.name().to_owned(),
                ranks: c.ranks,
                elements: u64::from(c.elements),
                root: u64::from(c.root),
                operator: c.operator.name().to_owned(),
                dtype: c.dtype.name().to_owned(),
            },
            origin: schedule.origin().to_owned(),
            phases: schedule.phases().to_vec(),
            nodes: narrow(schedule.node_count()),
            streams,
            programs,
            machine: None,
            placement: None,
        }
    }

    /// # Errors
    /// Returns an error if a version or name is unknown, or if the tables do not fit together.
    pub fn schedule(&self) -> Result<Schedule, JsonError> {
        if self.version != VERSION {
            return Err(JsonError(format!("version {} is not known; this program reads {VERSION}", self.version)));
        }
        let spec = &self.collective;
        let bad = |e: unisono_collective::CollectiveError| JsonError(e.to_string());
        let collective = Collective::new(
            spec.kind.parse().map_err(bad)?,
            spec.ranks,
            spec.elements,
            spec.root,
            spec.operator.parse().map_err(bad)?,
            spec.dtype.parse().map_err(bad)?,
        )
        .map_err(bad)?;
        if self.nodes < spec.ranks || self.nodes > Collective::MAX_RANKS {
            return Err(JsonError(format!(
                "{} nodes do not fit; accepted are {} (the ranks) to {}",
                self.nodes,
                spec.ranks,
                Collective::MAX_RANKS
            )));
        }
        let mut b = Builder::new(collective);
        b.origin(&self.origin);
        b.keep_unused_streams();
        for _ in spec.ranks..self.nodes {
            b.switch();
        }
        for name in &self.phases {
            b.phase(name);
        }
        for row in &self.streams {
            let sinks: Vec<NodeId> = row.sinks.iter().map(|&n| NodeId(n)).collect();
            let stream = b.stream(NodeId(row.source), &sinks);
            if let Some(capacity) = row.capacity {
                b.capacity(stream, capacity);
            }
        }
        self.programs(&mut b)?;
        b.finish().map_err(|e| JsonError(e.to_string()))
    }

    fn programs(&self, b: &mut Builder) -> Result<(), JsonError> {
        let mut last = None;
        for program in &self.programs {
            if last.is_some_and(|l| program.node <= l) {
                return Err(JsonError(format!("node {} comes out of order; nodes ascend", program.node)));
            }
            last = Some(program.node);
            let node = NodeId(program.node);
            b.scratch(node, program.tmp);
            for (n, lane) in program.lanes.iter().enumerate() {
                for instr in lane {
                    if instr.length == 0 {
                        return Err(JsonError(format!("an instruction of node {} has length 0", program.node)));
                    }
                    let Some(phase) = self.phases.get(instr.phase as usize) else {
                        return Err(JsonError(format!(
                            "phase {} does not exist; there are {}",
                            instr.phase,
                            self.phases.len()
                        )));
                    };
                    b.phase(phase);
                    let sources: Vec<Operand> = instr.sources.iter().map(|&p| operand(p)).collect();
                    let sinks: Vec<Operand> = instr.sinks.iter().map(|&p| operand(p)).collect();
                    let id = b.combine(node, narrow(n), instr.length, &sources, &sinks);
                    for &earlier in &instr.after {
                        b.after_stated(id, InstrId(earlier));
                    }
                }
            }
        }
        Ok(())
    }
}

fn lane(schedule: &Schedule, lane: LaneId) -> Vec<Combine> {
    schedule
        .lane_instrs(lane)
        .map(|i| {
            let id = InstrId::new(i);
            Combine {
                length: schedule.instr(id).len,
                phase: schedule.phase(id).0,
                sources: schedule.sources(id).iter().map(place).collect(),
                sinks: schedule.sinks(id).iter().map(place).collect(),
                after: schedule.after(id).iter().map(|d| d.1.0).collect(),
            }
        })
        .collect()
}

fn place(operand: Operand) -> Place {
    match operand {
        Operand::In(start) => Place::In(start),
        Operand::Out(start) => Place::Out(start),
        Operand::Tmp(start) => Place::Tmp(start),
        Operand::Stream(s) => Place::Stream(s.0),
    }
}

fn operand(place: Place) -> Operand {
    match place {
        Place::In(start) => Operand::In(start),
        Place::Out(start) => Operand::Out(start),
        Place::Tmp(start) => Operand::Tmp(start),
        Place::Stream(s) => Operand::Stream(StreamId(s)),
    }
}
