//! Schedules written as execution traces: a trace that is read back takes the same time as its schedule.

use crate::common;

use common::{every_rank_case, label};
use unisono_collective::{Dtype, Kind, Operator};
use unisono_cost::endpoint::LevelPrices;
use unisono_emit::EMITTERS;
use unisono_formats::{
    Contents, Emitter,
    chakra::{AstraSim, Chakra, to_tasks},
};
use unisono_lower::{File, VerifiedFile, tasks::draft};
use unisono_machine::{Endpoint, EndpointModel, Machine, network::Network};
use unisono_schedule::{Schedule, verify::Method};
use unisono_sim::{
    endpoint::{self, Options},
    network,
};
use unisono_workload::{SourceFile, read};

fn emitted(emitter: &dyn Emitter, schedule: &Schedule) -> Result<Vec<(String, Contents)>, String> {
    let file = File { schedule: schedule.clone(), placement: None, machine: None, blocks: None };
    emitter.emit(&VerifiedFile::new(&file, Method::Auto).unwrap()).map_err(|e| e.to_string())
}

fn traces(schedule: &Schedule) -> Vec<SourceFile> {
    let bytes = |contents| match contents {
        Contents::Bytes(bytes) => bytes,
        Contents::Text(text) => text.into_bytes(),
    };
    emitted(&Chakra, schedule).unwrap().into_iter().map(|(name, contents)| (name, bytes(contents))).collect()
}

#[test]
fn schedules_that_are_read_back_take_the_same_time() {
    let text = "kind = 'endpoint'\nname = 'm'\nmodel = 'loggops'\nL_ns = 1000\no_ns = 300\ng_ns = 200\nG_ns_per_byte = 2\n\
                O_ns_per_byte = 0.5\nS_bytes = 64\ngamma_ns_per_byte = 0.7\ncompute_ns = 50\n";
    let machine = Machine::from_toml(text, "m").unwrap().get::<Endpoint>().unwrap().clone();
    let mut cases = 0;
    every_rank_case(&[19], Operator::Sum, |algorithm, case, params| {
        cases += 1;
        // In the short run, every second case is enough.
        if cases % 2 == 0 && !crate::soak::is_on() {
            return;
        }
        let name = label(algorithm, case, params);
        let schedule = algorithm.build(case, params).unwrap().schedule;
        let program = read(&traces(&schedule), true).unwrap_or_else(|e| panic!("{name}: {e}"));
        let (before, after) = (draft(&schedule).unwrap(), to_tasks(&program, 1e-12).unwrap());
        for model in [EndpointModel::LogGOPS, EndpointModel::LogGP] {
            let prices = LevelPrices::new(&machine, model, schedule.collective().ranks).unwrap();
            let [one, other] =
                [&before, &after].map(|graph| endpoint::run(graph, &prices, &Options::default()).unwrap());
            assert_eq!(one, other, "{name}");
        }
    });
    assert!(cases > crate::soak::cases(1500), "{cases}");
}

#[test]
fn packets_of_a_schedule_that_is_read_back_are_the_same() {
    let network = Machine::preset("torus2d-small").unwrap().get::<Network>().unwrap().clone();
    let interconnect = network::Interconnect::new(&network).unwrap();
    for (name, kind) in [("ring", Kind::Allreduce), ("recursive-doubling", Kind::Allgather), ("binomial", Kind::Reduce)]
    {
        let case = common::among(kind, 16, 5000, 0, Operator::Sum);
        let algorithm = unisono_algorithms::find(name).unwrap();
        let schedule = algorithm.build(&case, &unisono_algorithms::Params::new()).unwrap().schedule;
        let program = read(&traces(&schedule), true).unwrap();
        let run = |graph| network::run(graph, &interconnect, &network::Options::default()).unwrap();
        assert_eq!(run(&draft(&schedule).unwrap()), run(&to_tasks(&program, 1e-12).unwrap()), "{name}");
    }
}

#[test]
fn a_custom_collective_is_its_traces_and_a_key() {
    let schedule = |kind| {
        let mut case = common::among(kind, 4, 8, 0, Operator::Sum);
        case.collective.dtype = Dtype::F32;
        let name = if kind == Kind::Broadcast { "binomial" } else { "ring" };
        unisono_algorithms::find(name).unwrap().build(&case, &unisono_algorithms::Params::new()).unwrap().schedule
    };
    let files = emitted(&AstraSim, &schedule(Kind::Allreduce)).unwrap();
    let names: Vec<&str> = files.iter().map(|(name, _)| &**name).collect();
    assert_eq!(names, ["system.json", "allreduce.0.et", "allreduce.1.et", "allreduce.2.et", "allreduce.3.et"]);
    let expected = "{\n  \"all-reduce-implementation-custom\": [\"allreduce\"]\n}\n";
    assert_eq!(files[0].1.text(), Some(expected));
    assert!(files[1].1.text().is_none());
    assert_eq!(
        emitted(&AstraSim, &schedule(Kind::Broadcast)).unwrap_err(),
        "astra-sim cannot express this schedule: broadcast has no custom implementation there; accepted are allgather, \
         allreduce, alltoall, reduce-scatter"
    );
    assert!(EMITTERS.is_sorted_by_key(|emitter| emitter.name()));
}
