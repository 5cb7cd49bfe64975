// Thousands of communicators, each with collectives: LIVE of them at once, or as many as the library has room for, then
// TURNS one after the other. Prints "ok RANKS" from rank 0, and the KiB by which the process has grown during the
// turns, if any; with "count", the number of communicators at once. Usage: many LIVE TURNS [count]
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

// Seconds within which a communicator is made, used and freed on a busy machine; after them the process is ended.
enum { PATIENCE = 300 };

static int rank, ranks;

static long peak(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;
}

static void use(MPI_Comm comm, int k) {
    alarm(PATIENCE);
    int mine[40], all[40], members;
    MPI_Comm_size(comm, &members);
    for (int i = 0; i < 40; i++) mine[i] = k + i;
    MPI_Allreduce(mine, all, 40, MPI_INT, MPI_SUM, comm);
    for (int i = 0; i < 40; i++) {
        if (all[i] == members * mine[i]) continue;
        fprintf(stderr, "rank %d: communicator %d: element %d is %d\n", rank, k, i, all[i]);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int live = atoi(argv[1]), turns = atoi(argv[2]);
    MPI_Comm *all = malloc((live + 1) * sizeof *all);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int k = 0; k < live; k++) {
        if (MPI_Comm_dup(MPI_COMM_WORLD, &all[k]) == MPI_SUCCESS) use(all[k], k);
        else live = k;
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    // Each of them again, the last first.
    for (int k = live; k-- > 0;) use(all[k], k);
    for (int k = 0; k < live; k++) MPI_Comm_free(&all[k]);
    long before = 0;
    for (int turn = 0; turn < turns; turn++) {
        MPI_Comm comm;
        if (turn % 3) MPI_Comm_dup(MPI_COMM_WORLD, &comm);
        else MPI_Comm_split(MPI_COMM_WORLD, turn / 3 % 2 ? rank % 2 : 0, -rank, &comm);
        use(comm, turn);
        MPI_Comm_free(&comm);
        if (turn == turns / 4) before = peak();
    }
    long grown = turns ? peak() - before : 0, most = 0;
    PMPI_Allreduce(&grown, &most, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("ok %d", ranks);
        if (argc > 3) printf(" %d", live);
        printf(most < 1024 ? "\n" : ", grown by %ld KiB\n", most);
    }
    free(all);
    MPI_Finalize();
    return 0;
}
