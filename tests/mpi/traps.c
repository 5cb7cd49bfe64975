// Floating-point exceptions end the program; none may come from memory that is not the program's: pieces of unlike
// lengths, after calls with integers that are signalling NaN as doubles. Prints "ok RANKS" from rank 0.
#define _GNU_SOURCE
#include <fenv.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 36 };
static int rank, ranks;

// Every second rank has one element less. Returns their number.
static int unlike(int *counts, int turn) {
    int all = 0;
    for (int r = 0; r < ranks; r++) all += counts[r] = LENGTH - (r + turn) % 2;
    return all;
}

int main(int argc, char **argv) {
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int n = LENGTH * ranks, wrong = 0, any = 0, *counts = malloc(ranks * sizeof *counts);
    uint64_t *words = malloc(n * sizeof *words), *bits = malloc(n * sizeof *bits);
    double *x = malloc(n * sizeof *x), *sums = malloc(n * sizeof *sums);
    for (int k = 0; k < n; k++) words[k] = 0x7ff0000000000001, x[k] = rank + k;
    // A first collective prepares the communicator.
    MPI_Barrier(MPI_COMM_WORLD);
    for (int turn = 0; turn < 4; turn++) {
        unlike(counts, turn);
        MPI_Reduce_scatter(words, bits, counts, MPI_UINT64_T, MPI_BOR, MPI_COMM_WORLD);
        for (int k = 0; k < counts[rank]; k++) wrong |= bits[k] != words[0];
    }
    for (int turn = 0; turn < 4; turn++) {
        int all = unlike(counts, turn), first = 0;
        for (int r = 0; r < rank; r++) first += counts[r];
        MPI_Reduce_scatter(x, sums, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        for (int k = 0; k < counts[rank]; k++) {
            wrong |= first + k >= all || sums[k] != ranks * (first + k) + ranks * (ranks - 1) / 2;
        }
    }
    wrong |= fetestexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    PMPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    free(counts), free(words), free(bits), free(x), free(sums);
    if (rank == 0 && !any) printf("ok %d\n", ranks);
    MPI_Finalize();
    return any;
}
