// The work of calls that interception leaves to the library, beside the same calls by PMPI_Allreduce: allocations and
// messages counted by counting.c, and on one rank also processor time, of the fastest of many bursts in turns. Rank 0
// prints "allocations OURS THEIRS, messages OURS THEIRS, nanoseconds OURS THEIRS", of all calls and of a call. Usage:
// uncounted BYTES
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// If other programs keep the cores busy, two ranks need a turn of the scheduler for each call.
enum { BURSTS = 60, BURSTS_OF_SEVERAL = 2, CALLS = 100, MOST = 65536 };

typedef int Allreduce(const void *, void *, int, MPI_Datatype, MPI_Op, MPI_Comm);

unsigned long counting_allocations(void) __attribute__((weak));
unsigned long counting_messages(void) __attribute__((weak));

typedef struct {
    unsigned long allocations, messages;
    double fastest;
} Work;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e9 * t.tv_sec + t.tv_nsec;
}

static void burst(Allreduce *f, int count, Work *work) {
    static float in[MOST / 4], out[MOST / 4];
    unsigned long allocations = counting_allocations(), messages = counting_messages();
    double start = now();
    for (int k = 0; k < CALLS; k++) f(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    double taken = (now() - start) / CALLS;
    work->allocations += counting_allocations() - allocations;
    work->messages += counting_messages() - messages;
    if (work->fastest == 0 || taken < work->fastest) work->fastest = taken;
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank, ranks, count = atoi(argv[1]) / 4;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!counting_allocations) return fprintf(stderr, "counting.c is not loaded\n"), 3;
    Work first = {0}, ours = {0}, theirs = {0};
    // One-time preparations are not work of each call.
    burst(MPI_Allreduce, count, &first);
    burst(PMPI_Allreduce, count, &first);
    for (int k = 0; k < (ranks == 1 ? BURSTS : BURSTS_OF_SEVERAL); k++) {
        // The order alternates from burst to burst.
        if (k % 2) burst(PMPI_Allreduce, count, &theirs);
        burst(MPI_Allreduce, count, &ours);
        if (k % 2 == 0) burst(PMPI_Allreduce, count, &theirs);
    }
    if (rank == 0) {
        printf("allocations %lu %lu, messages %lu %lu, ", ours.allocations, theirs.allocations, ours.messages, theirs.messages);
        printf("nanoseconds %.1f %.1f\n", ours.fastest, theirs.fastest);
    }
    MPI_Finalize();
    return 0;
}
