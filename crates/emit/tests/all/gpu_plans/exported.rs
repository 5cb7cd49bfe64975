//! Exported plans: every algorithm among ranks, read back, and run by the second implementation.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use unisono_algorithms::{ALGORITHMS, Case, Means, Params, Ranks};
use unisono_collective::{Collective, Dtype, Kind, Operator};
use unisono_emit::{Asked, Emitter, Importer, mscclpp::MscclPp};
use unisono_lower::{File, VerifiedFile};
use unisono_schedule::{
    Schedule,
    verify::{Method, verify},
};

use super::wrong;

fn emit(schedule: &Schedule) -> Result<String, String> {
    let file = File { schedule: schedule.clone(), placement: None, machine: None };
    let proven = VerifiedFile::new(&file, Method::Auto).map_err(|proof| format!("{:?}", proof.diagnostics))?;
    MscclPp.emit(&proven).map(|mut files| files.remove(0).1.text().unwrap().to_owned()).map_err(|e| e.to_string())
}

fn build(name: &str, kind: Kind, ranks: u32, elements: u64) -> Option<Schedule> {
    let algorithm = ALGORITHMS.iter().find(|a| a.name() == name)?;
    let c = Collective::new(kind, ranks, elements, 0, Operator::Sum, Dtype::I32).unwrap();
    let case = Case::on_ranks(c, Ranks { latency_ns: 400.0, issue_ns: 100.0, ..Ranks::default() });
    algorithm.supports(&case, &Params::new()).ok()?;
    Some(algorithm.build(&case, &Params::new()).unwrap().schedule)
}

#[test]
fn every_algorithm_is_exported_and_reads_back() {
    let (mut written, mut refused) = (BTreeMap::<(&str, u32), u32>::new(), BTreeMap::<String, u32>::new());
    let mut protocols = BTreeSet::new();
    for algorithm in ALGORITHMS.iter().filter(|a| a.info().needs.contains(&Means::Messages)) {
        for &kind in algorithm.info().collectives {
            for ranks in [2, 3, 4, 8, 16] {
                for elements in [u64::from(ranks) * 12, u64::from(ranks) << 16] {
                    let Some(schedule) = build(algorithm.name(), kind, ranks, elements) else { continue };
                    let what = format!("{} {kind} on {ranks} ranks, {elements} elements", algorithm.name());
                    let text = match emit(&schedule) {
                        Err(reason) => {
                            assert!(!reason.contains("please report"), "{what}: {reason}");
                            *refused.entry(reason).or_default() += 1;
                            continue;
                        }
                        Ok(text) => text,
                    };
                    *written.entry((algorithm.name(), ranks)).or_default() += 1;
                    let plan: Value = serde_json::from_str(&text).unwrap();
                    protocols.insert(plan["protocol"].as_str().unwrap().to_owned());
                    let asked = Asked { elements: Some(elements), dtype: Some(Dtype::I32), ..Asked::default() };
                    let back = MscclPp.import(&text, &asked).unwrap().schedule;
                    let class = |s: &Schedule| verify(s, Method::Auto).expression_class;
                    assert!(class(&back).is_some() && class(&back) == class(&schedule), "{what}");
                    for seed in 0..if ranks <= 4 { 6 } else { 0 } {
                        assert_eq!(wrong(&plan, 1, seed), None, "{what}, seed {seed}");
                    }
                }
            }
        }
    }
    assert_eq!(protocols.len(), 2, "{protocols:?}");
    for (name, most) in [("ring", 16), ("recursive-doubling", 16), ("pairwise", 8), ("rabenseifner", 16)] {
        for ranks in [2, 4, 8, 16].into_iter().filter(|&r| r <= most) {
            assert!(written.contains_key(&(name, ranks)), "{name} on {ranks}: {refused:#?}");
        }
    }
}

#[test]
fn what_a_plan_cannot_hold_is_refused_with_the_reason() {
    let refused = |name, kind| emit(&build(name, kind, 4, 16).unwrap()).unwrap_err();
    assert_eq!(
        refused("binomial", Kind::Broadcast),
        "mscclpp cannot express this schedule: broadcast is no collective of plans; there are allgather, allreduce, \
         alltoall and reduce-scatter"
    );
    let c = Collective::new(Kind::Allreduce, 4, 16, 0, Operator::Max, Dtype::F32).unwrap();
    let ring = ALGORITHMS.iter().find(|a| a.name() == "ring").unwrap();
    let schedule = ring.build(&Case::on_ranks(c, Ranks::default()), &Params::new()).unwrap().schedule;
    assert_eq!(
        emit(&schedule).unwrap_err(),
        "mscclpp cannot express this schedule: the runtime adds, and the operator is max"
    );
}
