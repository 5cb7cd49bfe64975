// Collectives on other communicators than a program's world, and beside them: MPI_COMM_SELF, attributes whose functions
// make collectives while their communicator is freed, error handlers, two groups and their union, and counts and
// datatypes beyond an int. Prints "ok RANKS" from rank 0, or ends with exit code 3.
#define _GNU_SOURCE
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { COUNT = 300 };

static int rank, size, copied, deleted;

static void expect(int right, const char *what) {
    if (right) return;
    fprintf(stderr, "rank %d: %s is wrong\n", rank, what);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

static int sum_of(int mine, MPI_Comm comm) {
    int all = -1;
    MPI_Allreduce(&mine, &all, 1, MPI_INT, MPI_SUM, comm);
    return all;
}

static void alone(void) {
    int in[COUNT], out[COUNT];
    for (int k = 0; k < COUNT; k++) in[k] = rank + k;
#define BOTH(call)                                             \
    for (int k = 0; k < COUNT; k++) out[k] = -1;               \
    call;                                                      \
    for (int k = 0; k < COUNT; k++) expect(out[k] == in[k], #call)
    MPI_Comm self = MPI_COMM_SELF;
    BOTH(MPI_Allreduce(in, out, COUNT, MPI_INT, MPI_SUM, self));
    BOTH(MPI_Reduce(in, out, COUNT, MPI_INT, MPI_MAX, 0, self));
    BOTH(MPI_Allgather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, self));
    BOTH(MPI_Alltoall(in, COUNT, MPI_INT, out, COUNT, MPI_INT, self));
    BOTH(MPI_Reduce_scatter_block(in, out, COUNT, MPI_INT, MPI_SUM, self));
    BOTH(MPI_Gather(in, COUNT, MPI_INT, out, COUNT, MPI_INT, 0, self));
    BOTH(MPI_Scatter(in, COUNT, MPI_INT, out, COUNT, MPI_INT, 0, self));
    BOTH(MPI_Scan(in, out, COUNT, MPI_INT, MPI_SUM, self));
    BOTH(for (int k = 0; k < COUNT; k++) out[k] = in[k]; MPI_Bcast(out, COUNT, MPI_INT, 0, self));
    MPI_Barrier(self);
}

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag) {
    (void)key, (void)extra;
    int members;
    MPI_Comm_size(comm, &members);
    expect(sum_of(1, comm) == members, "a sum while an attribute is copied");
    *(void **)out = in;
    *flag = 1;
    copied++;
    return MPI_SUCCESS;
}

// The last attribute is that of MPI_COMM_SELF, which MPI_Finalize deletes while MPI still runs.
static int delete(MPI_Comm comm, int key, void *value, void *extra) {
    (void)key, (void)extra;
    MPI_Comm over = value ? MPI_COMM_WORLD : comm;
    int members;
    MPI_Comm_size(over, &members);
    expect(sum_of(1, over) == members, "a sum while an attribute is deleted");
    deleted++;
    if (value && rank == 0) printf("ok %d\n", size);
    return MPI_SUCCESS;
}

// Communicators of other members get the handles of those that were freed.
static void attributes(int key) {
    for (int turn = 0; turn < 8; turn++) {
        MPI_Comm all, twin, part;
        MPI_Comm_dup(MPI_COMM_WORLD, &all);
        if (turn % 2) expect(sum_of(1, all) == size, "a sum before there is an attribute");
        MPI_Comm_set_attr(all, key, NULL);
        expect(sum_of(2, all) == 2 * size, "a sum beside an attribute");
        copied = deleted = 0;
        MPI_Comm_dup(all, &twin);
        expect(copied == 1 && sum_of(3, twin) == 3 * size, "a sum on a copy");
        if (turn % 4 < 2) MPI_Comm_free(&twin);
        else MPI_Comm_disconnect(&twin);
        MPI_Comm_free(&all);
        expect(deleted == 2, "the number of deleted attributes");
        MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &part);
        expect(sum_of(1, part) == (rank ? size - 1 : 1), "a sum on a part");
        MPI_Comm_free(&part);
    }
}

static void handlers(void) {
    MPI_Comm comm;
    MPI_Errhandler found;
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &found);
    expect(found == MPI_ERRORS_ARE_FATAL, "the handler of the world");
    MPI_Errhandler_free(&found);
    MPI_Comm_get_errhandler(MPI_COMM_SELF, &found);
    expect(found == MPI_ERRORS_ARE_FATAL, "the handler of this rank alone");
    MPI_Errhandler_free(&found);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    expect(sum_of(1, comm) == size, "a sum beside a handler");
    MPI_Comm_get_errhandler(comm, &found);
    expect(found == MPI_ERRORS_RETURN, "the handler of a communicator with calls");
    MPI_Errhandler_free(&found);
    MPI_Comm_free(&comm);
}

static void groups(void) {
    MPI_Comm half, between, both;
    int side = rank % 2, others = side ? (size + 1) / 2 : size / 2, own = size - others, x = 0, *all = malloc(4 * size);
    MPI_Comm_split(MPI_COMM_WORLD, side, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - side, 5, &between);
    for (int turn = 0; turn < 3; turn++) {
        expect(sum_of(1 + side, between) == others * (2 - side), "a sum of the other group");
        x = side ? -1 : 7 + turn;
        MPI_Bcast(&x, 1, MPI_INT, side ? 0 : rank ? MPI_PROC_NULL : MPI_ROOT, between);
        expect(x == 7 + turn, "a broadcast to the other group");
        MPI_Allgather(&rank, 1, MPI_INT, all, 1, MPI_INT, between);
        for (int k = 0; k < others; k++) expect(all[k] == 2 * k + 1 - side, "an all-gather of the other group");
        MPI_Barrier(between);
    }
    MPI_Intercomm_merge(between, side, &both);
    expect(sum_of(1, both) == size && sum_of(rank, both) == size * (size - 1) / 2, "a sum of both groups");
    expect(sum_of(1, half) == own, "a sum of a group");
    MPI_Comm_free(&both), MPI_Comm_free(&between), MPI_Comm_free(&half);
    free(all);
}

// Unwritten memory uses no room.
static void large(void) {
    size_t bytes = ((size_t)3 << 30) + 5;
    char *room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    expect(room != MAP_FAILED, "memory");
    MPI_Datatype empty, part, whole;
    MPI_Type_contiguous(0, MPI_INT, &empty);
    MPI_Type_contiguous(1 << 30, MPI_BYTE, &part);
    MPI_Type_contiguous(3, part, &whole);
    MPI_Type_commit(&empty), MPI_Type_commit(&whole);
    MPI_Bcast(room, 1, whole, 0, MPI_COMM_SELF);
    MPI_Bcast(room, 0, whole, 0, MPI_COMM_WORLD);
#ifndef OPEN_MPI
    // (Open MPI 5.0.11 has none of these.)
    MPI_Bcast_c(room, (MPI_Count)bytes, MPI_BYTE, 0, MPI_COMM_SELF);
    MPI_Bcast_c(room, (MPI_Count)bytes, empty, 0, MPI_COMM_WORLD);
    MPI_Allgather_c(room, (MPI_Count)bytes, empty, room, (MPI_Count)bytes, empty, MPI_COMM_WORLD);
    int mine = rank, all = 0;
    MPI_Allreduce_c(&mine, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(all == size * (size - 1) / 2, "a sum with a wide count");
#endif
    MPI_Type_free(&empty), MPI_Type_free(&part), MPI_Type_free(&whole);
    munmap(room, bytes);
}

int main(int argc, char **argv) {
    int key;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_create_keyval(copy, delete, &key, NULL);
    alone();
    handlers();
    large();
    if (size > 1) attributes(key), groups();
    MPI_Comm_set_attr(MPI_COMM_SELF, key, &size);
    MPI_Finalize();
    return deleted ? 0 : 3;
}
