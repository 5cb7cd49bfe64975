//! A transport for tests, with all ranks in one thread. A message is delivered at a moment drawn from a seed, directly
//! from the sender's memory to the receiver's, and never before its receive is posted. So a program that overwrites
//! memory too early, or receives into it too early, has a wrong result for some seeds, and a cycle of waits causes
//! [`LocalError::Stuck`].

use unisono_collective::Operator;
use unisono_schedule::{
    interpret::Element,
    stored::{Facts, RankProgram, offset},
};

use crate::{
    Blocks, Buffer, Executor, Progress, Slice, Transport,
    mail::{Delivery, Mail},
};

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LocalError {
    /// No rank can continue; the list contains the unfinished ranks.
    Stuck(Vec<u32>),
    /// A message and its receive differ in length.
    Length { sent: usize, received: usize },
    /// The schedule does not support this number of elements.
    Count(usize),
}

struct World<'a, T> {
    operator: Operator,
    inputs: &'a [Vec<T>],
    /// For ranks whose input is in the output: the index of its first element there.
    aliases: Vec<Option<usize>>,
    outputs: Vec<Vec<T>>,
    scratch: Vec<Vec<T>>,
    mail: Mail<Slice>,
}

impl<T: Element> World<'_, T> {
    fn read(&self, rank: u32, slice: Slice) -> &[T] {
        let rank = rank as usize;
        let (memory, start) = match (slice.buffer, self.aliases[rank]) {
            (Buffer::In, None) => (&self.inputs[rank], slice.start),
            (Buffer::In, Some(first)) => (&self.outputs[rank], first + slice.start),
            (Buffer::Out, _) => (&self.outputs[rank], slice.start),
            (Buffer::Scratch, _) => (&self.scratch[rank], slice.start),
        };
        &memory[start..start + slice.len]
    }

    fn write(&mut self, rank: u32, slice: Slice, values: &[T]) {
        let memory = match slice.buffer {
            Buffer::In => unreachable!("inputs are only read"),
            Buffer::Out => &mut self.outputs[rank as usize],
            Buffer::Scratch => &mut self.scratch[rank as usize],
        };
        memory[slice.start..slice.start + slice.len].copy_from_slice(values);
    }

    /// Copies a message whose receive is posted, chosen by `pick`; false if there is none.
    fn deliver(&mut self, pick: u64) -> Result<bool, LocalError> {
        let Some(Delivery { from, to, sent, received }) = self.mail.deliver(pick) else { return Ok(false) };
        if sent.len != received.len {
            return Err(LocalError::Length { sent: sent.len, received: received.len });
        }
        let values = self.read(from, sent).to_vec();
        self.write(to, received, &values);
        Ok(true)
    }
}

struct Port<'w, 'a, T> {
    world: &'w mut World<'a, T>,
    rank: u32,
}

impl<T: Element> Transport for Port<'_, '_, T> {
    type Request = usize;
    type Error = LocalError;

    fn send(&mut self, peer: u32, tag: u32, slice: Slice) -> Result<usize, LocalError> {
        Ok(self.world.mail.send(self.rank, peer, tag, slice))
    }

    fn receive(&mut self, peer: u32, tag: u32, slice: Slice) -> Result<usize, LocalError> {
        Ok(self.world.mail.receive(peer, self.rank, tag, slice))
    }

    fn test(&mut self, request: &mut usize) -> Result<bool, LocalError> {
        Ok(self.world.mail.has_ended(*request))
    }

    fn wait(&mut self, _: &mut usize) -> Result<(), LocalError> {
        unreachable!("polled runs do not wait")
    }

    fn give_up(&mut self, _: &mut usize) {}

    fn copy(&mut self, from: Slice, to: Slice) {
        let values = self.world.read(self.rank, from).to_vec();
        self.world.write(self.rank, to, &values);
    }

    fn combine(&mut self, left: Slice, right: Slice, to: Slice) -> Result<(), LocalError> {
        let pairs = self.world.read(self.rank, left).iter().zip(self.world.read(self.rank, right));
        let values: Vec<T> = pairs.map(|(&a, &b)| T::combine(self.world.operator, a, b)).collect();
        self.world.write(self.rank, to, &values);
        Ok(())
    }
}

/// Runs a stored schedule on `elements` elements of the collective, and returns the outputs by rank. `seed` determines
/// the order of delivery.
///
/// # Errors
/// Returns an error if there is a deadlock, a message and its receive differ in length, or the schedule does not
/// support that number of elements.
pub fn run<T: Element>(
    facts: &Facts,
    programs: &[RankProgram],
    elements: usize,
    inputs: &[Vec<T>],
    seed: u64,
) -> Result<Vec<Vec<T>>, LocalError> {
    run_in_place(facts, programs, elements, inputs, &vec![false; inputs.len()], seed)
}

/// Runs a stored schedule in which some ranks have their input in their output; their programs are those of
/// [`unisono_schedule::stored::in_place()`]. If an output is shorter than the input, its memory is the beginning of the
/// input's.
///
/// # Errors
/// Returns the errors of [`run`].
pub fn run_in_place<T: Element>(
    facts: &Facts,
    programs: &[RankProgram],
    elements: usize,
    inputs: &[Vec<T>],
    in_place: &[bool],
    seed: u64,
) -> Result<Vec<Vec<T>>, LocalError> {
    let blocks = Blocks::new(facts, elements).ok_or(LocalError::Count(elements))?;
    let c = facts.collective;
    // Lengths are proportional to the number of elements, so they follow from the lengths in blocks.
    let out = |rank: u32| c.output_len(rank) as usize / c.elements as usize * elements;
    let mut world = World {
        operator: c.operator,
        inputs,
        aliases: vec![None; inputs.len()],
        outputs: (0..c.ranks).map(|rank| vec![T::default(); out(rank)]).collect(),
        scratch: programs.iter().map(|p| vec![T::default(); blocks.scratch(p.scratch_blocks)]).collect(),
        mail: Mail::default(),
    };
    for (rank, input) in inputs.iter().enumerate().filter(|(rank, _)| in_place[*rank]) {
        let Some(block) = offset(&c, rank as u32) else { continue };
        let first = block as usize / c.elements as usize * elements;
        let output = &mut world.outputs[rank];
        output.resize(output.len().max(first + input.len()), T::default());
        output[first..first + input.len()].copy_from_slice(input);
        world.aliases[rank] = Some(first);
    }
    let mut executors: Vec<Executor<usize>> = programs.iter().cloned().map(Executor::new).collect();
    executors.iter_mut().for_each(Executor::start);
    let mut unfinished: Vec<u32> = (0..c.ranks).collect();
    let mut state = seed;
    let mut random = move || {
        // The multiplier is Knuth's; only the high bits are random.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let mut still = 0;
    while !unfinished.is_empty() {
        let pick = (random() % unfinished.len() as u64) as usize;
        let rank = unfinished[pick];
        let progress = executors[rank as usize].poll(&blocks, &mut Port { world: &mut world, rank })?;
        if progress == Progress::Finished {
            unfinished.swap_remove(pick);
        }
        let delivered = random() % 2 == 0 && world.deliver(random())?;
        still = if progress == Progress::Blocked && !delivered { still + 1 } else { 0 };
        // Every rank was polled many times without progress.
        if still > 64 * (unfinished.len() + 1) && !world.deliver(random())? {
            unfinished.sort_unstable();
            return Err(LocalError::Stuck(unfinished));
        }
    }
    world.outputs.iter_mut().zip(0..).for_each(|(output, rank)| output.truncate(out(rank)));
    Ok(world.outputs)
}
