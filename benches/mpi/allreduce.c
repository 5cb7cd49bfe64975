// MPI_Allreduce beside PMPI_Allreduce: under the preload library the first is what the plan says, the second always the
// library's own. Rounds are interleaved; a round's time is the slowest rank's mean over its calls.
// Usage: allreduce ROUNDS FIRST_BYTES LAST_BYTES [FACTOR]. One line a size: bytes, medians in microseconds, their
// ratio (library / planned), rounds in which the planned one was faster, rounds in which it was slower than the larger
// of 1.10 times and 200 ns.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int order(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *all, int n) {
    qsort(all, n, sizeof *all, order);
    return n % 2 ? all[n / 2] : (all[n / 2 - 1] + all[n / 2]) / 2;
}

typedef int Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

static double one(Allreduce *f, const float *in, float *out, int n, int calls) {
    PMPI_Barrier(MPI_COMM_WORLD);
    double start = MPI_Wtime();
    for (int i = 0; i < calls; i++) f(in, out, n, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double mine = (MPI_Wtime() - start) / calls, slowest;
    PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return slowest;
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
        int calls = bytes <= 4096 ? 5000 : bytes <= 262144 ? 500 : bytes <= 4 << 20 ? 40 : 12;
        one(MPI_Allreduce, in, out, n, calls / 4 + 1);
        one(PMPI_Allreduce, in, out, n, calls / 4 + 1);
        for (int r = 0; r < rounds; r++) {
            // Whoever comes first changes from round to round.
            if (r % 2) bare[r] = one(PMPI_Allreduce, in, out, n, calls);
            planned[r] = one(MPI_Allreduce, in, out, n, calls);
            if (r % 2 == 0) bare[r] = one(PMPI_Allreduce, in, out, n, calls);
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
