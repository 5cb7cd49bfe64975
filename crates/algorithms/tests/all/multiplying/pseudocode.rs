//! Algorithms 2 to 6 of the paper, line by line with its errors corrected, run by every process. The code is
//! independent of the library: the schedule is a list of stage texts, and the roles follow the paper's variables.

use super::{built, case, streams};
use unisono_algorithms::multiplying::{count, list};
use unisono_base::{InstrId, NodeId};
use unisono_collective::Operator;
use unisono_schedule::Schedule;

/// One process in one stage.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Act {
    sends: Vec<usize>,
    receives: Vec<usize>,
    reduces_own: bool,
}

fn numbers(stage: &str) -> Vec<usize> {
    stage.split(|c: char| !c.is_ascii_digit()).filter(|n| !n.is_empty()).map(|n| n.parse().unwrap()).collect()
}

/// Returns the acts of process `rank` of `size`, stage by stage.
fn process(rank: usize, size: usize, schedule: &str) -> Vec<Act> {
    let (mut stage_mask, mut pthres, mut pbase, mut remainder) = (1, 0, 1, 0);
    let mut wid = Some(rank);
    let mut acts = Vec::new();
    for stage in schedule.split(',') {
        let given = numbers(stage);
        let mut act = Act { reduces_own: true, ..Act::default() };
        match stage.as_bytes()[0] {
            b'a' => {
                let sfactor = given[0];
                let sbase = sfactor * stage_mask;
                if let Some(wid) = wid {
                    for index in 0..sfactor - 1 {
                        let mask = (index + 1) * stage_mask;
                        let block = wid / sbase * sbase;
                        let offset = (wid + mask) % sbase;
                        let peer = block + offset;
                        let rpeer = if peer < pthres / pbase {
                            peer * pbase + pbase - 1
                        } else {
                            peer + pthres / pbase * (pbase - 1)
                        };
                        act.sends.push(rpeer + remainder);
                        // The exchange is symmetric: the process receives from its destinations.
                        act.receives.push(rpeer + remainder);
                    }
                }
                stage_mask *= sfactor;
            }
            b'c' => {
                (pthres, pbase) = (given[0], given[1]);
                if rank < pthres {
                    let first = rank / pbase * pbase;
                    if rank % pbase != pbase - 1 {
                        act.sends.push(first + pbase - 1);
                        wid = None;
                    } else {
                        act.receives.extend(first..first + pbase - 1);
                        wid = Some(rank / pbase);
                    }
                } else {
                    wid = Some(rank - pthres / pbase * (pbase - 1));
                }
            }
            b'e' => {
                if rank < pthres {
                    let first = rank / pbase * pbase;
                    if rank % pbase == pbase - 1 {
                        act.sends.extend((0..pbase - 1).map(|b| first + b));
                    } else {
                        act.receives.push(first + pbase - 1);
                        act.reduces_own = false;
                    }
                }
            }
            b'm' => {
                let (groups, factor) = (given[1], given[2]);
                remainder = given[0];
                let group_size = factor;
                if rank < remainder {
                    wid = None;
                    let group_first = remainder + rank % groups * group_size;
                    act.sends.extend(group_first..group_first + group_size);
                } else {
                    let own = rank - remainder;
                    wid = Some(own);
                    let group = own / group_size;
                    for k in 1..group_size {
                        let peer = group * group_size + (own + k) % group_size;
                        act.sends.push(peer + remainder);
                        act.receives.push(peer + remainder);
                    }
                    act.receives.extend((0..remainder).filter(|r| r % groups == group));
                }
                stage_mask *= factor;
            }
            b'n' => {
                let factor = given[2];
                match wid {
                    None => {
                        // All members of the process's group send the values that they had before this stage.
                        let members = (0..size - remainder).filter(|w| w % stage_mask == rank % stage_mask);
                        act.receives.extend(members.map(|w| w + remainder));
                        act.reduces_own = false;
                    }
                    Some(own) => {
                        let at = own / stage_mask;
                        for k in 1..factor {
                            let peer = own % stage_mask + (at + k) % factor * stage_mask;
                            act.sends.push(peer + remainder);
                            act.receives.push(peer + remainder);
                        }
                        act.sends.extend((0..remainder).filter(|r| r % stage_mask == own % stage_mask));
                    }
                }
            }
            other => panic!("{other}"),
        }
        act.receives.sort_unstable();
        acts.push(act);
    }
    acts
}

/// Returns the acts of a rank of a built schedule, stage by stage, from its instructions and their phases.
fn read_back(schedule: &Schedule, rank: usize, stages: usize) -> Vec<Act> {
    let mut acts = vec![Act { reduces_own: true, ..Act::default() }; stages];
    for id in schedule.node_instrs(NodeId::new(rank)) {
        let id = InstrId::new(id);
        let name = &schedule.phases()[schedule.phase(id).index()];
        let act = &mut acts[name.split('-').next().unwrap().parse::<usize>().unwrap() - 1];
        let (from, to): (Vec<_>, Vec<_>) =
            (streams(schedule.sources(id)).collect(), streams(schedule.sinks(id)).collect());
        if to.is_empty() {
            act.receives.extend(from.iter().map(|s| schedule.stream(*s).source.index()));
            act.reduces_own = from.len() < schedule.sources(id).len();
        } else {
            assert_eq!(schedule.sources(id).len(), 1, "the own value is sent");
            for stream in to {
                let [sink] = schedule.stream_sinks(stream) else { panic!("a put goes to one rank") };
                act.sends.push(sink.index());
            }
        }
    }
    acts
}

/// Compares every schedule of few ranks, and a sample of the schedules of more ranks.
#[test]
fn messages_are_those_of_the_pseudocode() {
    let mut compared = 0;
    for ranks in 2..=64u32 {
        let all = count(ranks);
        let every = (all.factored + all.split + all.merge).div_ceil(40).max(1) as usize;
        let case = case(ranks, 1, Operator::Sum);
        for stages in list(ranks).iter().skip(ranks as usize % every).step_by(if ranks <= 14 { 1 } else { every }) {
            let text = stages.to_string();
            let schedule = built(&case, &text);
            let mut messages = 0;
            for rank in 0..ranks as usize {
                let wanted = process(rank, ranks as usize, &text);
                assert_eq!(read_back(&schedule, rank, wanted.len()), wanted, "rank {rank} of {ranks}, {text}");
                messages += wanted.iter().map(|act| act.sends.len() as u64).sum::<u64>();
            }
            assert_eq!(messages, stages.messages(), "{text}");
            compared += 1;
        }
    }
    assert!(compared > 2000, "{compared}");
}
