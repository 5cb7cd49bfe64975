//! All ranks of a program in one thread: a message layer on `unisono_runtime::Mail`, and collectives that are executed
//! when all ranks have started them. A seed determines the moments at which messages and collectives complete.

use std::{
    collections::BTreeMap,
    ffi::c_int,
    sync::{Arc, Mutex},
};

use unisono_mpi::{Function, Outcome, Shares};
use unisono_runtime::Mail;
use unisono_taskrun::{Arguments, MessageLayer, RunError};

/// The operators of 64-bit elements; their handles are the indices.
pub const OPERATORS: [fn(i64, i64) -> i64; 2] = [i64::wrapping_add, max];

fn max(a: i64, b: i64) -> i64 {
    a.max(b)
}

/// The memory of a collective's input or result.
struct Memory {
    address: usize,
    counts: Vec<usize>,
    places: Vec<usize>,
    in_place: bool,
}

impl Memory {
    fn of(shares: &Shares<'_>) -> Self {
        let numbers = |list: &[c_int]| list.iter().map(|&n| usize::try_from(n).expect("not negative")).collect();
        let (counts, places) = (numbers(shares.counts), numbers(shares.places));
        Self { address: shares.address.expose_provenance(), counts, places, in_place: shares.in_place }
    }

    fn count(&self, rank: usize) -> usize {
        *self.counts.get(rank).unwrap_or(&self.counts[0])
    }

    /// Returns the address of a rank's part; equal parts are consecutive.
    fn at(&self, rank: usize, unit: usize) -> usize {
        self.address + unit * self.places.get(rank).copied().unwrap_or(rank * self.counts[0])
    }
}

struct Joined {
    call: Arguments,
    from: Memory,
    to: Memory,
}

#[derive(Default)]
pub struct Inner {
    mail: Mail<(usize, usize)>,
    /// The participants of each communicator, by handle.
    comms: Vec<Vec<u32>>,
    /// The number of collectives of each rank on each communicator.
    counts: BTreeMap<(usize, u32), usize>,
    /// The ranks that have started a collective, by communicator and number; removed when it is executed.
    joined: BTreeMap<(usize, usize), BTreeMap<u32, Joined>>,
    done: Vec<(usize, usize)>,
}

/// The messages of all ranks.
#[derive(Clone, Default)]
pub struct World(Arc<Mutex<Inner>>);

/// The layer of one rank.
pub struct Local {
    pub rank: u32,
    pub world: World,
}

pub enum Request {
    Message(usize),
    Collective(usize, usize),
}

fn read(address: usize, bytes: usize) -> Vec<u8> {
    let mut copy = vec![0; bytes];
    // SAFETY: the run under test keeps the memory of an exchange until the exchange is complete.
    unsafe { std::ptr::copy_nonoverlapping(std::ptr::with_exposed_provenance(address), copy.as_mut_ptr(), bytes) };
    copy
}

fn write(address: usize, data: &[u8]) {
    let to = std::ptr::with_exposed_provenance_mut(address);
    // SAFETY: as above.
    unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), to, data.len()) };
}

/// Combines 64-bit elements.
pub fn combine(into: &mut [u8], other: &[u8], op: usize) {
    for (a, b) in into.chunks_exact_mut(8).zip(other.chunks_exact(8)) {
        let number = |bytes: &[u8]| i64::from_ne_bytes(bytes.try_into().expect("8 bytes"));
        a.copy_from_slice(&OPERATORS[op](number(a), number(b)).to_ne_bytes());
    }
}

impl World {
    /// Returns the handle of the communicator of some ranks.
    pub fn communicator(&self, participants: &[u32]) -> usize {
        let comms = &mut self.0.lock().expect("no thread panicked").comms;
        comms.iter().position(|known| known == participants).unwrap_or_else(|| {
            comms.push(participants.to_vec());
            comms.len() - 1
        })
    }

    /// Delivers one message, or executes one collective; returns false if there is none.
    pub fn deliver(&self, pick: u64) -> bool {
        let inner = &mut *self.0.lock().expect("no thread panicked");
        let complete = |row: &(&(usize, usize), &BTreeMap<u32, Joined>)| row.1.len() == inner.comms[row.0.0].len();
        let ready: Vec<_> = inner.joined.iter().filter(complete).map(|row| *row.0).collect();
        if let Some(&key) = ready.get((pick / 2) as usize % ready.len().max(1)).filter(|_| pick.is_multiple_of(2)) {
            let joined = inner.joined.remove(&key).expect("it was just found");
            carry_out(&joined.into_values().collect::<Vec<_>>());
            inner.done.push(key);
            return true;
        }
        let Some(delivery) = inner.mail.deliver(pick / 2) else { return !ready.is_empty() };
        assert_eq!(delivery.sent.1, delivery.received.1, "a message and its receive have one length");
        write(delivery.received.0, &read(delivery.sent.0, delivery.sent.1));
        true
    }
}

fn carry_out(all: &[Joined]) {
    let Arguments { function, reduction, root, .. } = all[0].call;
    assert!(all.iter().all(|one| one.call.function == function), "all ranks begin one function");
    let (unit, root) = (if reduction.is_some() { 8 } else { 1 }, root as usize);
    let op = reduction.map_or(0, |row| row.1);
    let inputs = |bytes: usize| -> Vec<Vec<u8>> {
        let from = |one: &Joined| if one.from.in_place { one.to.address } else { one.from.address };
        all.iter().map(|one| read(from(one), bytes)).collect()
    };
    let sum = |inputs: Vec<Vec<u8>>| {
        inputs.into_iter().reduce(|mut sum, other| {
            combine(&mut sum, &other, op);
            sum
        })
    };
    match function {
        Function::Broadcast => {
            let data = read(all[root].to.address, all[root].to.count(0));
            all.iter().for_each(|one| write(one.to.address, &data));
        }
        Function::Allgather | Function::Allgatherv | Function::Gatherv => {
            let given = |(k, one): (usize, &Joined)| match one.from.in_place {
                true => read(one.to.at(k, 1), one.to.count(k)),
                false => read(one.from.address, one.from.count(0)),
            };
            let parts: Vec<Vec<u8>> = all.iter().enumerate().map(given).collect();
            let gets = |k: &usize| function != Function::Gatherv || *k == root;
            for k in (0..all.len()).filter(gets) {
                parts.iter().enumerate().for_each(|(from, part)| write(all[k].to.at(from, 1), part));
            }
        }
        Function::Scatterv => {
            let from = &all[root].from;
            let parts: Vec<Vec<u8>> = (0..all.len()).map(|k| read(from.at(k, 1), from.count(k))).collect();
            all.iter().zip(parts).for_each(|(one, part)| write(one.to.address, &part));
        }
        Function::Alltoallv => {
            let part = |from: &Joined, k: usize| read(from.from.at(k, 1), from.from.count(k));
            let parts: Vec<Vec<Vec<u8>>> =
                (0..all.len()).map(|k| all.iter().map(|from| part(from, k)).collect()).collect();
            for (one, parts) in all.iter().zip(parts) {
                for (k, part) in parts.iter().enumerate() {
                    assert_eq!(part.len(), one.to.count(k), "both ends agree on the length");
                    write(one.to.at(k, 1), part);
                }
            }
        }
        Function::Allreduce | Function::Reduce => {
            let bytes = unit * all.iter().flat_map(|one| one.from.counts.first()).max().expect("all give");
            let sum = sum(inputs(bytes)).expect("all give");
            let gets = |k: &usize| function == Function::Allreduce || *k == root;
            (0..all.len()).filter(gets).for_each(|k| write(all[k].to.address, &sum));
        }
        Function::ReduceScatter | Function::ReduceScatterBlock => {
            let count = |k: usize| unit * all[0].from.count(k);
            let sum = sum(inputs((0..all.len()).map(count).sum())).expect("all give");
            let mut at = 0;
            for (k, one) in all.iter().enumerate() {
                write(one.to.address, &sum[at..at + count(k)]);
                at += count(k);
            }
        }
    }
}

impl MessageLayer for Local {
    type Request = Request;
    type Inside = ();

    fn enter(&self) -> Result<(), RunError> {
        Ok(())
    }

    unsafe fn send(&self, from: *const u8, bytes: usize, to: u32, tag: c_int) -> Outcome<Request> {
        let mail = &mut self.world.0.lock().expect("no thread panicked").mail;
        Ok(Request::Message(mail.send(self.rank, to, tag.unsigned_abs(), (from.expose_provenance(), bytes))))
    }

    unsafe fn receive(&self, into: *mut u8, bytes: usize, from: u32, tag: c_int) -> Outcome<Request> {
        let mail = &mut self.world.0.lock().expect("no thread panicked").mail;
        Ok(Request::Message(mail.receive(from, self.rank, tag.unsigned_abs(), (into.expose_provenance(), bytes))))
    }

    unsafe fn collective(&self, call: &Arguments, from: Shares<'_>, to: Shares<'_>) -> Outcome<Request> {
        let inner = &mut *self.world.0.lock().expect("no thread panicked");
        let count = inner.counts.entry((call.comm, self.rank)).or_default();
        let key = (call.comm, *count);
        *count += 1;
        let joined = Joined { call: *call, from: Memory::of(&from), to: Memory::of(&to) };
        inner.joined.entry(key).or_default().insert(self.rank, joined);
        Ok(Request::Collective(key.0, key.1))
    }

    fn is_over(&self, request: &mut Request) -> Outcome<bool> {
        let inner = &*self.world.0.lock().expect("no thread panicked");
        Ok(match *request {
            Request::Message(request) => inner.mail.has_ended(request),
            Request::Collective(comm, number) => inner.done.contains(&(comm, number)),
        })
    }
}
