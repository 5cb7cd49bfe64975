// Collectives with a count for every rank, beside the library's own: equal and unlike counts, places with and without gaps
// that differ from rank to rank, in place, derived datatypes, zero counts. Usage: vectors ROUNDS. Prints "ok RANKS" from
// rank 0, or ends with exit code 3.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Elements of all ranks together, of up to nine with the longest counts: 9 * 300 + 301 * 36, and the gaps.
enum { ROOM = 14000 };

static int rank, size;

static void expect(int right, const char *what, int round) {
    if (right) return;
    fprintf(stderr, "rank %d, round %d: %s is wrong\n", rank, round, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int rounds = argc > 1 ? atoi(argv[1]) : 10, one = 1, all;
    int *in = calloc(ROOM, 4), *out = calloc(ROOM, 4), *ref = calloc(ROOM, 4), *counts = calloc(size, 4), *displs = calloc(size, 4);
    MPI_Datatype pair;
    MPI_Type_vector(2, 1, 2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Allreduce(&one, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    for (int round = 0; round < rounds; round++) {
        int n = round % 7 == 6 ? 0 : 1 + 37 * round % 300, unlike = round % 4 == 3, in_place = round % 3 == 2;
        // Pieces in the order of the ranks, backwards, or with gaps, chosen by each rank.
        int how = (round + rank) % 3, gap = how == 2 ? 3 : 0, all_counts = 0;
        // Some differ by a few elements, like parts of an array, and some by so many that room for the longest is too
        // much.
        int step = unlike ? (round % 8 == 7 ? n + 1 : 1) : 0;
        for (int r = 0; r < size; r++) counts[r] = n + step * r, all_counts += counts[r];
        for (int r = 0, at = 11; r < size; r++) {
            int who = how == 1 ? size - 1 - r : r;
            displs[who] = at;
            at += counts[who] + gap;
        }
        for (int k = 0; k < ROOM; k++) in[k] = rank * 1000 + k + round, out[k] = ref[k] = -k;
        if (in_place) {
            memcpy(out + displs[rank], in, 4 * counts[rank]);
            memcpy(ref + displs[rank], in, 4 * counts[rank]);
        }
        const void *from = in_place ? MPI_IN_PLACE : in;
        MPI_Allgatherv(from, counts[rank], MPI_INT, out, counts, displs, MPI_INT, MPI_COMM_WORLD);
        PMPI_Allgatherv(from, counts[rank], MPI_INT, ref, counts, displs, MPI_INT, MPI_COMM_WORLD);
        expect(!memcmp(out, ref, 4 * ROOM), "allgatherv", round);
        // Elements with gaps. (Open MPI chooses an algorithm by the counts, and hangs if ranks have other datatypes.)
        int halves = 0;
        for (int r = 0; r < size && !unlike; r++) counts[r] = n / 2, displs[r] = n * (size - 1 - r);
        for (int k = 0; k < ROOM; k++) out[k] = ref[k] = -k;
        halves = !unlike && 3 * n * size < ROOM;
        if (halves) {
            MPI_Allgatherv(in, n / 2 * 2, MPI_INT, out, counts, displs, pair, MPI_COMM_WORLD);
            PMPI_Allgatherv(in, n / 2 * 2, MPI_INT, ref, counts, displs, pair, MPI_COMM_WORLD);
            expect(!memcmp(out, ref, 4 * ROOM), "allgatherv of elements with gaps", round);
        }
        for (int r = 0; r < size; r++) counts[r] = n + step * r;
        for (int k = 0; k < ROOM; k++) out[k] = ref[k] = in_place ? in[k] : -k;
        MPI_Reduce_scatter(from, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        PMPI_Reduce_scatter(from, ref, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        // In place the library may use the rest of the memory.
        expect(!memcmp(out, ref, 4 * (in_place ? counts[rank] : ROOM)), "reduce_scatter", round);
    }
    MPI_Type_free(&pair);
    if (rank == 0) printf("ok %d\n", size);
    MPI_Finalize();
    return 0;
}
