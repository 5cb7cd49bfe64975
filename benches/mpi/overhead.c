// The cost that the preload library adds to a call that it leaves to the MPI library: MPI_Allreduce beside
// PMPI_Allreduce, in bursts of calls, in turns. On one rank the fastest burst of each counts, since other work only
// adds to a time. On several ranks the time of a burst is the slowest rank's, and the lower quartile counts, because
// the ranks also wait for each other. If other programs use the cores, a call may wait for a time slice of the
// scheduler, so the bursts end after SECONDS.
// Usage: overhead [BYTES]. Prints "added NANOSECONDS to NANOSECONDS" from rank 0, the latter those of PMPI_Allreduce.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BURSTS = 600, CALLS = 500, MOST = 65536, SECONDS = 10 };

typedef int Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double burst(Allreduce *f, int count) {
    static float in[MOST / 4], out[MOST / 4];
    PMPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int k = 0; k < CALLS; k++) f(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - start) / CALLS * 1e9;
}

static double typical(double *mine, int bursts, int ranks) {
    double slowest[BURSTS];
    PMPI_Allreduce(mine, slowest, bursts, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(slowest, bursts, sizeof *slowest, order);
    return slowest[ranks == 1 ? 0 : bursts / 4];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, bytes = argc > 1 ? atoi(argv[1]) : 8;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    static double ours[BURSTS], theirs[BURSTS];
    double begin = MPI_Wtime();
    int k = 0;
    for (int goes_on = 1; goes_on && k < BURSTS; k++) {
        // The order alternates from burst to burst.
        if (k % 2) theirs[k] = burst(PMPI_Allreduce, bytes / 4);
        ours[k] = burst(MPI_Allreduce, bytes / 4);
        if (k % 2 == 0) theirs[k] = burst(PMPI_Allreduce, bytes / 4);
        goes_on = MPI_Wtime() - begin < SECONDS;
        PMPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    double to = typical(theirs, k, ranks), added = typical(ours, k, ranks) - to;
    if (rank == 0) printf("added %.1f to %.1f\n", added, to);
    MPI_Finalize();
    return 0;
}
