//! The programs of Table 3 and listing 1 of "Automatic Discovery of Collective Communication Patterns" (Knorr and
//! others, 2024), for measurements of how fast programs are read.

use unisono_base::BufferId;

use crate::{
    discovery::Discovery,
    error::DiscoverError,
    mapper::Mapper,
    split::Geometry,
    task::{Access, Buffer, Mode, Task},
};

unisono_base::named! {
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    pub enum Example {
        AllGather = "all-gather",
        GatherScatter = "gather-scatter",
        GatherBcast = "gather-bcast",
        AllToAll = "all-to-all",
        Stencil = "stencil",
        NBody = "n-body",
    }
}

impl Example {
    /// Submits `tasks` tasks of the program's loop, two for each iteration, on buffers of `n` or `n x n` points, and
    /// drops the output after the first of every hundred tasks.
    pub fn submit(self, to: &mut Discovery, n: i64, tasks: usize) -> Result<(), DiscoverError> {
        let flat = !matches!(self, Self::AllToAll | Self::Stencil);
        let shape: &[i64] = if flat { &[n] } else { &[n, n] };
        let a = to.buffer(Buffer::new("A", shape, 8, true)?);
        let b = to.buffer(Buffer::new("B", shape, 8, true)?);
        let many = Geometry::of(shape);
        let step = |geometry, accesses: [(BufferId, Mode, Mapper); 2]| {
            (geometry, accesses.map(|(buffer, mode, mapper)| Access::new(buffer, mode, mapper)))
        };
        let swapping = |read: Mapper| {
            [(a, b), (b, a)]
                .map(|(from, to)| step(many, [(from, Mode::Read, read.clone()), (to, Mode::Write, Mapper::OneToOne)]))
        };
        let through_one = |read: Mapper| {
            let one = step(Geometry::of(&[1]), [(a, Mode::Read, Mapper::All), (b, Mode::Write, Mapper::All)]);
            [one, step(many, [(b, Mode::Read, read), (a, Mode::Write, Mapper::OneToOne)])]
        };
        let steps = match self {
            Self::AllGather => swapping(Mapper::All),
            Self::GatherScatter => through_one(Mapper::OneToOne),
            Self::GatherBcast => through_one(Mapper::All),
            Self::AllToAll => swapping(Mapper::Transposed([1, 0, 0])),
            Self::Stencil => swapping(Mapper::Neighborhood([1, 1, 0])),
            Self::NBody => [
                step(many, [(a, Mode::Read, Mapper::All), (b, Mode::ReadWrite, Mapper::OneToOne)]),
                step(many, [(b, Mode::Read, Mapper::OneToOne), (a, Mode::ReadWrite, Mapper::OneToOne)]),
            ],
        };
        for k in 0..tasks {
            let (geometry, accesses) = &steps[k % 2];
            to.submit(&Task { name: "step", geometry: *geometry, accesses })?;
            if k % 100 == 0 {
                to.drop_output();
            }
        }
        to.flush();
        Ok(())
    }
}
