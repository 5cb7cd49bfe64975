//! Operations that involve all ranks of a communicator, and the handling of its errors.

use std::ffi::c_int;

use unisono_collective::Kind;

use crate::library::{Comm, Failed, Library, Outcome, check, int};

impl Library {
    /// Gathers `N` integers of every rank on all ranks, in rank order. All ranks of `comm` call this.
    pub fn all_numbers<const N: usize>(&self, mine: [c_int; N], comm: Comm, ranks: u32) -> Outcome<Vec<[c_int; N]>> {
        let mut all = vec![[0; N]; ranks as usize];
        let (from, to, bytes) = (mine.as_ptr() as usize, all.as_mut_ptr() as usize, int(size_of::<[c_int; N]>())?);
        let (f, byte) = (&self.functions, self.constants.byte);
        // SAFETY: the input has the bytes of this rank's integers, and the output those of every rank.
        check(unsafe { (f.Allgather)(from, bytes, byte, to, bytes, byte, comm) })?;
        Ok(all)
    }

    /// Returns the ranks in `other` of the ranks `0..ranks` of `comm`; negative for a process that is not in `other`.
    /// This function does not wait for other ranks.
    pub fn ranks_in(&self, comm: Comm, ranks: u32, other: Comm) -> Outcome<Vec<c_int>> {
        let group = |comm: Comm| {
            let mut group = 0usize;
            // SAFETY: one handle is written, of 32 or 64 bits; the word was 0 before.
            check(unsafe { (self.functions.Comm_group)(comm, &raw mut group) }).map(|()| group)
        };
        let free = |mut group: usize| {
            // SAFETY: one handle is read and written.
            unsafe { (self.functions.Group_free)(&raw mut group) }
        };
        let from: Vec<c_int> = (0..int(ranks)?).collect();
        let mut to = vec![-1; from.len()];
        let (own, others) = (group(comm)?, group(other)?);
        let translate = self.functions.Group_translate_ranks;
        // SAFETY: both arrays have `ranks` integers.
        let code = unsafe { translate(own, int(ranks)?, from.as_ptr(), others, to.as_mut_ptr()) };
        free(own);
        free(others);
        check(code).map(|()| to)
    }

    /// Gathers the words of all ranks on rank 0 of the communicator, one list a rank. Other ranks get an empty list.
    pub fn gather(&self, mine: &[u64], comm: Comm) -> Outcome<Vec<Vec<u64>>> {
        let (ranks, rank) = (self.size(comm)? as usize, self.rank(comm)?);
        let (f, word) = (&self.functions, self.constants.uint64);
        let length = mine.len() as u64;
        let mut lengths = vec![0u64; ranks];
        let (from, to) = (&raw const length as usize, lengths.as_mut_ptr() as usize);
        // SAFETY: one word of each rank.
        check(unsafe { (f.Gather)(from, 1, word, to, 1, word, 0, comm) })?;
        let (mut counts, mut starts, mut end) = (Vec::with_capacity(ranks), Vec::with_capacity(ranks), 0u64);
        for &length in &lengths {
            starts.push(int(end)?);
            counts.push(int(length)?);
            end += length;
        }
        let mut all = vec![0u64; usize::try_from(end).map_err(|_| Failed::COUNT)?];
        let (from, to, length) = (mine.as_ptr() as usize, all.as_mut_ptr() as usize, int(length)?);
        // SAFETY: the root's vector holds the sum of the lengths that the ranks gave it.
        check(unsafe { (f.Gatherv)(from, length, word, to, counts.as_ptr(), starts.as_ptr(), word, 0, comm) })?;
        if rank != 0 {
            return Ok(Vec::new());
        }
        let mut rest = all.as_slice();
        Ok(lengths
            .iter()
            .map_while(|&n| {
                let (own, others) = rest.split_at_checked(usize::try_from(n).ok()?)?;
                rest = others;
                Some(own.to_vec())
            })
            .collect())
    }

    /// Sets the error handler of a communicator to one that returns error codes instead of calling the program's
    /// handler.
    pub fn return_errors(&self, comm: Comm) -> Outcome {
        // SAFETY: the handler is MPI's own.
        check(unsafe { (self.functions.Comm_set_errhandler)(comm, self.constants.errors_return) })
    }

    /// Returns for every rank the lowest rank on its node, which identifies the node. All ranks of the communicator
    /// call this.
    pub fn nodes(&self, comm: Comm) -> Outcome<Vec<c_int>> {
        let (ranks, rank) = (self.size(comm)?, self.rank(comm)?);
        let node = self.node(comm)?;
        let (first, _) = self.bounds(u64::from(rank), node)?;
        self.free(node)?;
        Ok(self.all_numbers([int(first)?], comm, ranks)?.into_iter().flatten().collect())
    }

    /// Runs `work` while the error handler of `comm` only returns error codes, and then restores the earlier handler.
    pub fn without_handler<T>(&self, comm: Comm, work: impl FnOnce() -> T) -> Outcome<T> {
        let mut handler = 0usize;
        // SAFETY: one handle is written, of 32 or 64 bits; the word was 0 before.
        check(unsafe { (self.functions.Comm_get_errhandler)(comm, &raw mut handler) })?;
        self.return_errors(comm)?;
        let done = work();
        // SAFETY: the handler is the one that the communicator had.
        check(unsafe { (self.functions.Comm_set_errhandler)(comm, handler) })?;
        // SAFETY: one handle is read and written.
        check(unsafe { (self.functions.Errhandler_free)(&raw mut handler) })?;
        Ok(done)
    }

    /// Returns whether the library reports an error for a call whose input and output have the same address; false for
    /// a barrier and a broadcast. MPI does not require this check. `vector` selects `MPI_Reduce_scatter` or
    /// `MPI_Allgatherv` for these two kinds. `alone` is a communicator of this process alone.
    pub fn refuses_alias(&self, kind: Kind, vector: bool, alone: Comm) -> bool {
        let (c, f) = (&self.constants, &self.functions);
        // Libraries may copy short vectors without the check, so the vector is long.
        let mut words = [0u64; 256];
        let (at, count, first, uint64) = (words.as_mut_ptr() as usize, words.len() as c_int, 0, c.uint64);
        let code = match kind {
            // SAFETY: `words` has `count` elements, and the communicator has this process alone, whose count this is.
            Kind::ReduceScatter if vector => unsafe {
                (f.Reduce_scatter)(at, at, &raw const count, uint64, c.sum, alone)
            },
            // SAFETY: as above, and its part begins at the first element.
            Kind::Allgather if vector => unsafe {
                (f.Allgatherv)(at, count, uint64, at, &raw const count, &raw const first, uint64, alone)
            },
            // SAFETY: `words` has `count` elements, and the communicator has this process alone.
            Kind::Allreduce => unsafe { (f.Allreduce)(at, at, count, uint64, c.sum, alone) },
            // SAFETY: as above.
            Kind::Reduce => unsafe { (f.Reduce)(at, at, count, uint64, c.sum, 0, alone) },
            // SAFETY: as above.
            Kind::ReduceScatter => unsafe { (f.Reduce_scatter_block)(at, at, count, uint64, c.sum, alone) },
            // SAFETY: as above.
            Kind::Allgather => unsafe { (f.Allgather)(at, count, uint64, at, count, uint64, alone) },
            // SAFETY: as above.
            Kind::Scan => unsafe { (f.Scan)(at, at, count, uint64, c.sum, alone) },
            // SAFETY: as above.
            Kind::Gather => unsafe { (f.Gather)(at, count, uint64, at, count, uint64, 0, alone) },
            // SAFETY: as above.
            Kind::Scatter => unsafe { (f.Scatter)(at, count, uint64, at, count, uint64, 0, alone) },
            // SAFETY: as above.
            Kind::Alltoall => unsafe { (f.Alltoall)(at, count, uint64, at, count, uint64, alone) },
            _ => 0,
        };
        code != 0
    }
}
