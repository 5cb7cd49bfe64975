//! Runs one simulation on several threads, with the results of one thread.
//!
//! The nodes of a plane are divided into regions ([`partition`]). A thread executes the events of one region, those of
//! its ranks and of its packets, for a window of time. The window is not longer than the latency of any link between
//! regions, so an event of another region has no effect in the same window (Chandy, Misra, "Distributed simulation",
//! 1979). Between windows the threads synchronize. They compute the order in which one thread would have created the
//! events ([`order`]), and take the events that other regions sent ([`border`]). So events of the same time happen in
//! the same order as on one thread, and all results are equal.
//!
//! If a run fails or cannot be divided, one thread runs it and reports the reason. Every thread has tables of the whole
//! plane, and of all ranks and tasks of the graph; estimates of memory count them for each.

mod border;
mod meeting;
mod order;
mod partition;

use std::{
    sync::{PoisonError, RwLock},
    thread,
};

use unisono_base::{interrupt::poll, narrow};
use unisono_lower::tasks::TaskGraph;

pub(super) use self::border::{Border, FOREIGN_BYTES};
use self::{
    border::Window,
    meeting::{Attending, Meeting},
    order::Order,
    partition::Regions,
};
use super::{Interconnect, Options, Run, hosts::HostPrices, messages::Messages, packets::Packets};
use crate::endpoint::{self, parts::Part};

/// State that the threads of all regions share.
struct Shared {
    meeting: Meeting,
    /// Results of each region in the latest window and in the one before it, in turn: a thread that has ended a window
    /// may write while others still read the results of the window before.
    windows: [Vec<RwLock<Window>>; 2],
}

struct Done {
    run: endpoint::Run,
    tasks: u64,
    under_way: u64,
    packets: u64,
    hops: u64,
    link_packets: Vec<u64>,
}

/// Returns the greatest number of regions into which a plane is divided for `jobs` threads.
pub(super) fn most(interconnect: &Interconnect, jobs: usize) -> usize {
    jobs.min(partition::MOST).min(interconnect.plane.accelerators() as usize)
}

/// Runs a graph on at most `options.jobs` threads; returns `None` if the run fails or cannot be divided.
pub(super) fn run(graph: &TaskGraph, interconnect: &Interconnect, options: &Options) -> Option<Run> {
    let regions = Regions::new(graph, interconnect, options, options.jobs as usize)?;
    let count = regions.count;
    let shared = Shared {
        meeting: Meeting::new(count),
        windows: [(); 2].map(|()| (0..count).map(|_| RwLock::default()).collect()),
    };
    let work = |region| {
        let _attending = Attending(&shared.meeting);
        let done = run_region(graph, interconnect, options, &regions, region, &shared);
        if done.is_none() {
            shared.meeting.fail();
        }
        done
    };
    let all = thread::scope(|scope| {
        let others: Vec<_> = (1..count).map(|region| scope.spawn(move || work(region))).collect();
        // An interruption unwinds from this call.
        let first = work(0);
        let others = others.into_iter().map(|thread| thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
        std::iter::once(first).chain(others).collect::<Option<Vec<Done>>>()
    })?;
    join(graph, all)
}

fn run_region(
    graph: &TaskGraph,
    interconnect: &Interconnect,
    options: &Options,
    regions: &Regions,
    region: usize,
    shared: &Shared,
) -> Option<Done> {
    let prices = HostPrices::new(interconnect, options);
    let mut packets = Packets::new(graph, interconnect, options);
    packets.messages = Messages::of_region(narrow(region));
    packets.lengths = regions.lengths.clone();
    packets.border = Some(Border::new(regions, region));
    let node = |rank: u32| options.places.get(rank as usize).copied().unwrap_or(rank);
    let is_own = |rank: u32| usize::from(regions.of_node[node(rank) as usize]) == region;
    let mut part = Part::new(graph, &prices, &options.hosts, packets, is_own);
    let mut order = Order::new(regions.count);
    for windows in shared.windows.iter().cycle() {
        poll();
        let next_ps = part.next_time().into_iter().chain(part.carrier().events.next_time()).min().unwrap_or(u64::MAX);
        part.carrier().end_window(next_ps, &mut windows[region].write().unwrap_or_else(PoisonError::into_inner));
        if !shared.meeting.meet() {
            return None;
        }
        let all: Vec<_> = windows.iter().map(|window| window.read().unwrap_or_else(PoisonError::into_inner)).collect();
        order.merge(&all.iter().map(|window| &window.log[..]).collect::<Vec<_>>());
        part.carrier().renumber(&order);
        for (from, window) in all.iter().enumerate() {
            part.carrier().take(from, window, &order);
        }
        let begin = all.iter().map(|window| window.next_ps).min().unwrap_or(u64::MAX);
        if begin == u64::MAX {
            break;
        }
        drop(all);
        let last = begin.saturating_add(regions.lookahead_ps - 1);
        part.carrier().begin_window(last);
        if !part.run(last) || part.carrier().has_failed() {
            return None;
        }
    }
    let (run, tasks, packets) = part.results();
    let under_way = packets.under_way;
    let (count, hops, link_packets) = packets.counts();
    Some(Done { run, tasks, under_way, packets: count, hops, link_packets })
}

/// Combines the results of all regions; returns `None` if tasks or packets are stuck.
fn join(graph: &TaskGraph, all: Vec<Done>) -> Option<Run> {
    let tasks: u64 = all.iter().map(|done| done.tasks).sum();
    // A region adds the packets that it makes, and subtracts those that arrive in it.
    let under_way = all.iter().fold(0_u64, |sum, done| sum.wrapping_add(done.under_way));
    if tasks != graph.task_count() as u64 || under_way != 0 {
        return None;
    }
    let mut all = all.into_iter();
    let mut sum = all.next()?;
    for done in all {
        let (to, from) = (&mut sum.run, done.run);
        let most = |to: &mut Vec<u64>, from: &[u64]| to.iter_mut().zip(from).for_each(|(a, &b)| *a = (*a).max(b));
        most(&mut to.finish, &from.finish);
        most(&mut to.watched, &from.watched);
        to.sends += from.sends;
        to.receives += from.receives;
        to.calcs += from.calcs;
        to.reduces += from.reduces;
        to.left_over += from.left_over;
        sum.packets += done.packets;
        sum.hops += done.hops;
        sum.link_packets.iter_mut().zip(&done.link_packets).for_each(|(a, b)| *a += b);
    }
    let mut hosts = sum.run;
    hosts.makespan = hosts.finish.iter().copied().max().unwrap_or(0);
    hosts.events = graph.task_count() as u64 + hosts.sends;
    Some(Run::of_plane(hosts, sum.packets, sum.hops, sum.link_packets))
}
