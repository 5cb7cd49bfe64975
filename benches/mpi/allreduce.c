// MPI_Allreduce beside PMPI_Allreduce: under the preload library the first follows the plan, and the second is always
// the library's own. A round has many short bursts of calls, in turns. A burst's time is the slowest rank's mean over
// its calls, a round's the lower quartile over its bursts, because other work on the cores makes whole bursts tens of
// times as long.
// Usage: allreduce ROUNDS FIRST_BYTES LAST_BYTES [FACTOR]. One line a size: bytes, medians of the rounds in microseconds,
// their ratio (library / planned), rounds in which the planned call was faster, and rounds in which it was slower than
// the library's by more than 10 % and by more than 200 ns.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_BURSTS = 64 };

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *all, int n) {
    qsort(all, n, sizeof *all, order);
    return n % 2 ? all[n / 2] : (all[n / 2 - 1] + all[n / 2]) / 2;
}

typedef int Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

static double burst(Allreduce *f, const float *in, float *out, int n, int calls) {
    PMPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++) f(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    return (MPI_Wtime() - start) / calls;
}

static double quartile(double *mine, int bursts) {
    double slowest[MOST_BURSTS];
    PMPI_Allreduce(mine, slowest, bursts, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    qsort(slowest, bursts, sizeof *slowest, order);
    return slowest[bursts / 4];
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, rounds = argc > 1 ? atoi(argv[1]) : 6;
    long first = argc > 2 ? atol(argv[2]) : 8, last = argc > 3 ? atol(argv[3]) : 16 << 20;
    long factor = argc > 4 ? atol(argv[4]) : 8;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    float *in = calloc(last / 4 + 1, 4), *out = calloc(last / 4 + 1, 4);
    double *planned = malloc(rounds * sizeof *planned), *bare = malloc(rounds * sizeof *bare);
    if (rank == 0) printf("%10s %12s %12s %7s %5s %5s\n", "bytes", "planned_us", "library_us", "ratio", "won", "slow");
    for (long bytes = first; bytes <= last; bytes *= factor) {
        int n = (int)(bytes / 4), won = 0, slow = 0;
        int calls = bytes <= 4096 ? 200 : bytes <= 65536 ? 20 : bytes <= 1 << 20 ? 4 : 1;
        int bursts = bytes <= 1 << 20 ? MOST_BURSTS : bytes <= 4 << 20 ? 24 : 8;
        double ours[MOST_BURSTS], theirs[MOST_BURSTS];
        burst(MPI_Allreduce, in, out, n, calls);
        burst(PMPI_Allreduce, in, out, n, calls);
        for (int r = 0; r < rounds; r++) {
            for (int b = 0; b < bursts; b++) {
                // The order alternates from burst to burst.
                if (b % 2) theirs[b] = burst(PMPI_Allreduce, in, out, n, calls);
                ours[b] = burst(MPI_Allreduce, in, out, n, calls);
                if (b % 2 == 0) theirs[b] = burst(PMPI_Allreduce, in, out, n, calls);
            }
            planned[r] = quartile(ours, bursts);
            bare[r] = quartile(theirs, bursts);
            won += planned[r] < bare[r];
            double allowed = bare[r] * 1.10 > bare[r] + 200e-9 ? bare[r] * 1.10 : bare[r] + 200e-9;
            slow += planned[r] > allowed;
        }
        double p = median(planned, rounds) * 1e6, b = median(bare, rounds) * 1e6;
        if (rank == 0) printf("%10ld %12.3f %12.3f %7.2f %3d/%d %3d/%d\n", bytes, p, b, b / p, won, rounds, slow, rounds);
    }
    MPI_Finalize();
    return 0;
}
