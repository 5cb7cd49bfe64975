// Several threads make, use and free communicators at once, and collectives whose order only the program's messages
// determine. Prints "ok RANKS" from rank 0, or "no threads" if the library has no MPI_THREAD_MULTIPLE.
#include <mpi.h>
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 4, TURNS = 24 };
static MPI_Comm parents[THREADS], late, other;
static MPI_Group everyone;
static int rank, ranks;

static void sum(MPI_Comm comm, int mine) {
    int all = 0;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm);
    if (all == ranks * mine) return;
    fprintf(stderr, "rank %d: the sum is %d, not %d\n", rank, all, ranks * mine);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static void *work(void *given) {
    int me = (int)(long)given;
    for (int turn = 0; turn < TURNS; turn++) {
        MPI_Comm copy;
        MPI_Request request;
        switch (turn % 3) {
        case 0: MPI_Comm_dup(parents[me], &copy); break;
        case 1: MPI_Comm_create_group(MPI_COMM_WORLD, everyone, me, &copy); break;
        default:
            MPI_Comm_idup(parents[me], &copy, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        sum(copy, me + turn);
        MPI_Barrier(copy);
        sum(parents[me], turn);
        MPI_Comm_free(&copy);
    }
    return NULL;
}

// The first call on a communicator waits for a rank that first makes another one.
static void *early(void *given) {
    (void)given;
    sum(late, 1);
    return NULL;
}

int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided < MPI_THREAD_MULTIPLE) {
        printf("no threads\n");
        MPI_Finalize();
        return 0;
    }
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Comm_group(MPI_COMM_WORLD, &everyone);
    pthread_t threads[THREADS];
    for (int k = 0; k < THREADS; k++) MPI_Comm_dup(MPI_COMM_WORLD, &parents[k]);
    for (long k = 0; k < THREADS; k++) pthread_create(&threads[k], NULL, work, (void *)k);
    for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
    for (int k = 0; k < THREADS; k++) MPI_Comm_free(&parents[k]);

    MPI_Comm_dup(MPI_COMM_WORLD, &late);
    if (rank == ranks - 1) {
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        early(NULL);
    } else {
        pthread_create(&threads[0], NULL, early, NULL);
        MPI_Comm_dup(MPI_COMM_WORLD, &other);
        pthread_join(threads[0], NULL);
    }
    sum(other, 2);
    MPI_Comm_free(&other), MPI_Comm_free(&late), MPI_Group_free(&everyone);
    if (rank == 0) printf("ok %d\n", ranks);
    MPI_Finalize();
    return 0;
}
