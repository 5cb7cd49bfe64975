// Conjugate gradients on the 7-point Laplacian of a cube, in the manner of HPCG: layers of the cube are spread over the
// ranks, halos go by messages, and each iteration makes three sums of one number. Usage: cg EDGE ITERATIONS. Prints
// "result ITERATIONS RESIDUAL SUM" and "seconds S" from rank 0.
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, size, edge, layers;

static double sum(double mine) {
    double all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static double dot(const double *a, const double *b) {
    double mine = 0;
    for (long k = 0; k < (long)layers * edge * edge; k++) mine += a[k] * b[k];
    return sum(mine);
}

// y = A x; x has one layer of each neighbour before and after the rank's own layers, which this function receives.
static void apply(double *x, double *y) {
    long layer = (long)edge * edge;
    int below = rank > 0 ? rank - 1 : MPI_PROC_NULL, above = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Request requests[4];
    MPI_Irecv(x, (int)layer, MPI_DOUBLE, below, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(x + (layers + 1) * layer, (int)layer, MPI_DOUBLE, above, 2, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(x + layer, (int)layer, MPI_DOUBLE, below, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(x + layers * layer, (int)layer, MPI_DOUBLE, above, 1, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    for (int z = 0; z < layers; z++) {
        for (int r = 0; r < edge; r++) {
            for (int c = 0; c < edge; c++) {
                const double *at = x + (z + 1) * layer + r * edge + c;
                double found = 6 * at[0] - at[-layer] - at[layer];
                if (r > 0) found -= at[-edge];
                if (r < edge - 1) found -= at[edge];
                if (c > 0) found -= at[-1];
                if (c < edge - 1) found -= at[1];
                y[z * layer + r * edge + c] = found;
            }
        }
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int given[2] = {argc > 1 ? atoi(argv[1]) : 24, argc > 2 ? atoi(argv[2]) : 50};
    MPI_Bcast(given, 2, MPI_INT, 0, MPI_COMM_WORLD);
    edge = given[0];
    layers = edge / size + (rank < edge % size);
    long layer = (long)edge * edge, n = layers * layer;
    double *x = calloc(n, 8), *r = malloc(n * 8), *p = calloc(n + 2 * layer, 8), *ap = malloc(n * 8), *own = p + layer;
    for (long k = 0; k < n; k++) own[k] = r[k] = 1;
    double rr = dot(r, r), first = rr, start = MPI_Wtime();
    int done = 0;
    for (; done < given[1] && rr > 1e-20 * first; done++) {
        apply(p, ap);
        double step = rr / dot(own, ap), before = rr;
        for (long k = 0; k < n; k++) x[k] += step * own[k], r[k] -= step * ap[k];
        rr = dot(r, r);
        for (long k = 0; k < n; k++) own[k] = r[k] + rr / before * own[k];
    }
    double took = MPI_Wtime() - start, total = 0;
    for (long k = 0; k < n; k++) total += x[k];
    total = sum(total);
    // Sums in another order differ in their last digits.
    if (rank == 0) printf("result %d %.6e %.8e\nseconds %.6f\n", done, sqrt(rr), total, took);
    MPI_Finalize();
    return 0;
}
