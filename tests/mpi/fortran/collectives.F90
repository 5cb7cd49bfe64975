! Every collective that a plan serves, from Fortran, with results that the program knows beforehand. The macro BINDING
! chooses how MPI is declared: 1 for mpif.h, 2 for the module mpi, 3 for mpi_f08. Prints "ok RANKS" from rank 0, or ends with
! exit code 3.
#if BINDING == 3
#define HANDLE(kind) type(kind)
#else
#define HANDLE(kind) integer
#endif
module checks
#if BINDING == 3
  use mpi_f08
#elif BINDING == 2
  use mpi
#endif
  implicit none
#if BINDING == 1
  include 'mpif.h'
#endif
  integer :: rank, ranks, error
contains
  subroutine expect(right, what)
    logical, intent(in) :: right
    character(*), intent(in) :: what
    if (right .and. error == MPI_SUCCESS) return
    print *, 'rank', rank, ': ', what, ' is wrong, code', error
    call MPI_Abort(MPI_COMM_WORLD, 3, error)
  end subroutine
end module

program collectives
  use checks
  implicit none
  integer, parameter :: n = 40, rounds = 3
  integer :: k, round, root, last
  integer, allocatable :: mine(:), found(:), counts(:), places(:)
  real :: single(n)
  double precision :: double(n), sums(n)
  complex :: number
  logical :: flag, each
  HANDLE(MPI_Comm) :: half
  HANDLE(MPI_Request) :: requests(7)

  call MPI_Init(error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  allocate (mine(n * ranks), found(n * ranks), counts(ranks), places(ranks))
  counts = n
  places = [(n * (ranks - k), k = 1, ranks)]
  do round = 1, rounds
    root = mod(round, ranks)
    mine = [(1000 * rank + k, k = 1, n * ranks)]
    call MPI_Barrier(MPI_COMM_WORLD, error)
    call MPI_Allreduce(mine, found, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call expect(all(found(:n) == [(1000 * sum_of_ranks() + ranks * k, k = 1, n)]), 'allreduce')
    single = [(0.5 * rank + k, k = 1, n)]
    call MPI_Allreduce(MPI_IN_PLACE, single, n, MPI_REAL, MPI_MAX, MPI_COMM_WORLD, error)
    call expect(all(single == [(0.5 * (ranks - 1) + k, k = 1, n)]), 'allreduce in place')
    double = [(0.25d0 * rank + k, k = 1, n)]
    call MPI_Reduce(double, sums, n, MPI_DOUBLE_PRECISION, MPI_SUM, root, MPI_COMM_WORLD, error)
    if (rank == root) call expect(all(sums == [(0.25d0 * sum_of_ranks() + ranks * k, k = 1, n)]), 'reduce')
    flag = rank == root
    call MPI_Allreduce(flag, each, 1, MPI_LOGICAL, MPI_LOR, MPI_COMM_WORLD, error)
    call expect(each, 'logical or')
    call MPI_Allreduce(flag, each, 1, MPI_LOGICAL, MPI_LAND, MPI_COMM_WORLD, error)
    call expect(each .eqv. ranks == 1, 'logical and')
    number = cmplx(rank, 1)
    call MPI_Allreduce(MPI_IN_PLACE, number, 1, MPI_COMPLEX, MPI_SUM, MPI_COMM_WORLD, error)
    call expect(number == cmplx(sum_of_ranks(), ranks), 'complex sum')
    found = -1
    if (rank == root) found(:n) = [(7 * k, k = 1, n)]
    call MPI_Bcast(found, n, MPI_INTEGER, root, MPI_COMM_WORLD, error)
    call expect(all(found(:n) == [(7 * k, k = 1, n)]), 'bcast')
    call MPI_Allgather(mine, n, MPI_INTEGER, found, n, MPI_INTEGER, MPI_COMM_WORLD, error)
    call expect(all(found == [(1000 * ((k - 1) / n) + mod(k - 1, n) + 1, k = 1, n * ranks)]), 'allgather')
    call MPI_Allgatherv(mine, n, MPI_INTEGER, found, counts, places, MPI_INTEGER, MPI_COMM_WORLD, error)
    last = places(ranks)
    call expect(found(last + 1) == 1000 * (ranks - 1) + 1, 'allgatherv')
    call MPI_Alltoall(mine, n, MPI_INTEGER, found, n, MPI_INTEGER, MPI_COMM_WORLD, error)
    call expect(all(found == [(1000 * ((k - 1) / n) + rank * n + mod(k - 1, n) + 1, k = 1, n * ranks)]), 'alltoall')
    call MPI_Reduce_scatter_block(mine, found, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call expect(all(found(:n) == [(1000 * sum_of_ranks() + ranks * (rank * n + k), k = 1, n)]), 'reduce_scatter_block')
    call MPI_Reduce_scatter(mine, found, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call expect(found(n) == 1000 * sum_of_ranks() + ranks * (rank + 1) * n, 'reduce_scatter')
    call nonblocking(root)
  end do
  call others
  call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, error)
  k = 1
  call MPI_Allreduce(MPI_IN_PLACE, k, 1, MPI_INTEGER, MPI_SUM, half, error)
  call expect(k == (ranks + 1 - mod(rank, 2)) / 2, 'allreduce on a half')
  call MPI_Comm_free(half, error)
  call MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN, error)
  call MPI_Bcast(found, n, MPI_INTEGER, ranks + 7, MPI_COMM_WORLD, error)
  last = error
  error = MPI_SUCCESS
  call expect(last /= MPI_SUCCESS, 'the error of a wrong root')
  if (rank == 0) print '(a,i0)', 'ok ', ranks
  call MPI_Finalize(error)

contains

  integer function sum_of_ranks()
    sum_of_ranks = ranks * (ranks - 1) / 2
  end function

  subroutine nonblocking(root)
    integer, intent(in) :: root
    integer :: sums(n), got(n), pieces(n * ranks), passed(n * ranks), least(n), part(n)
    got = merge(5, 0, rank == root)
    call MPI_Iallreduce(mine, sums, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(1), error)
    call MPI_Ibcast(got, n, MPI_INTEGER, root, MPI_COMM_WORLD, requests(2), error)
    call MPI_Iallgather(mine, n, MPI_INTEGER, pieces, n, MPI_INTEGER, MPI_COMM_WORLD, requests(3), error)
    call MPI_Ialltoall(mine, n, MPI_INTEGER, passed, n, MPI_INTEGER, MPI_COMM_WORLD, requests(4), error)
    call MPI_Ireduce(mine, least, n, MPI_INTEGER, MPI_MIN, root, MPI_COMM_WORLD, requests(5), error)
    call MPI_Ireduce_scatter_block(mine, part, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, requests(6), error)
    call MPI_Ibarrier(MPI_COMM_WORLD, requests(7), error)
    call MPI_Waitall(7, requests, MPI_STATUSES_IGNORE, error)
    call expect(all(sums == [(1000 * sum_of_ranks() + ranks * k, k = 1, n)]), 'iallreduce')
    call expect(all(got == 5), 'ibcast')
    call expect(pieces(n * ranks) == 1000 * (ranks - 1) + n, 'iallgather')
    call expect(passed(n * ranks) == 1000 * (ranks - 1) + (rank + 1) * n, 'ialltoall')
    if (rank == root) call expect(all(least == [(k, k = 1, n)]), 'ireduce')
    call expect(part(1) == 1000 * sum_of_ranks() + ranks * (rank * n + 1), 'ireduce_scatter_block')
  end subroutine

  ! Calls that are passed on, once each.
  subroutine others
    integer :: one(1), sums(1), row(ranks)
    one = rank + 1
    call MPI_Scan(one, sums, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    call expect(sums(1) == (rank + 1) * (rank + 2) / 2, 'scan')
    sums = 0
    call MPI_Exscan(one, sums, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
    if (rank > 0) call expect(sums(1) == rank * (rank + 1) / 2, 'exscan')
    row = -1
    call MPI_Gather(one, 1, MPI_INTEGER, row, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
    if (rank == ranks - 1) call expect(all(row == [(k, k = 1, ranks)]), 'gather')
    one = 0
    call MPI_Scatter(row, 1, MPI_INTEGER, one, 1, MPI_INTEGER, ranks - 1, MPI_COMM_WORLD, error)
    call expect(one(1) == rank + 1, 'scatter')
    if (rank == 0) row(1) = 1
    if (rank == 0) then
      call MPI_Gather(MPI_IN_PLACE, 1, MPI_INTEGER, row, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
      call expect(all(row == [(k, k = 1, ranks)]), 'gather in place')
    else
      call MPI_Gather(one, 1, MPI_INTEGER, row, 1, MPI_INTEGER, 0, MPI_COMM_WORLD, error)
    end if
  end subroutine
end program
