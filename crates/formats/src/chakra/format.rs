//! Chakra execution traces, and workloads of ASTRA-sim made of them, as registered emitters.

use unisono_collective::Kind;
use unisono_lower::{VerifiedFile, tasks::from_schedule};
use unisono_workload::chakra;

use super::tasks::{Units, from_tasks};
use crate::{About, Contents, Emitter, Files, Refused};

/// Chakra's execution traces, one for each rank.
pub struct Chakra;

/// A workload of ASTRA-sim: one Chakra trace for each rank, and the key of the system file that names the traces.
pub struct AstraSim;

/// Collectives for which ASTRA-sim accepts a custom implementation, each with the prefix of its key in the system file.
const KEYS: [(Kind, &str); 4] = [
    (Kind::Allgather, "all-gather"),
    (Kind::Allreduce, "all-reduce"),
    (Kind::Alltoall, "all-to-all"),
    (Kind::ReduceScatter, "reduce-scatter"),
];

impl Emitter for Chakra {
    fn about(&self) -> About {
        About {
            name: "chakra",
            reference: "mlcommons/chakra, et_def.proto; docs/export.md",
            summary: "an execution trace of each rank with its messages and reductions",
        }
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        traces(self.name(), proven)
    }
}

impl Emitter for AstraSim {
    fn about(&self) -> About {
        About {
            name: "astra-sim",
            reference: "ASTRA-sim 2, examples/system/custom_collectives; docs/export.md",
            summary: "a custom collective of ASTRA-sim: execution traces, and the key of the system file",
        }
    }

    fn emit(&self, proven: &VerifiedFile) -> Result<Files, Refused> {
        let kind = proven.file().schedule.collective().kind;
        let Some((_, key)) = KEYS.iter().find(|(of, _)| *of == kind) else {
            let names: Vec<_> = KEYS.iter().map(|(kind, _)| kind.name()).collect();
            let reason = format!("{kind} has no custom implementation there; accepted are {}", names.join(", "));
            return Err(Refused::new(self.name(), reason));
        };
        let mut files = traces(self.name(), proven)?;
        let system = format!("{{\n  \"{key}-implementation-custom\": [\"{kind}\"]\n}}\n");
        files.insert(0, ("system.json".to_owned(), system.into()));
        Ok(files)
    }
}

fn traces(target: &'static str, proven: &VerifiedFile) -> Result<Files, Refused> {
    let collective = proven.file().schedule.collective();
    let tasks = from_schedule(proven.verified()).map_err(|e| Refused::new(target, e))?;
    // The length of a tick does not matter, because a schedule has no calcs.
    let units = Units { seconds_per_tick: 0.0, element_bytes: collective.dtype.bytes() };
    let program = from_tasks(&tasks, (collective.kind.name(), "chakra"), units).map_err(|e| Refused::new(target, e))?;
    let files = chakra::write(&program).map_err(|e| Refused::new(target, e))?;
    Ok(files.into_iter().map(|(name, bytes)| (name, Contents::Bytes(bytes))).collect())
}
