// Random collectives, each also made by the library itself in its non-blocking form: the results are compared. Sizes 0
// to 4097 and around powers of two, types, operators, roots, in place or not, derived datatypes on some ranks only, two
// communicators. Usage: random SEED CALLS [users]. With "users", also operators of the program, one of which does not
// commute. Prints "ok RANKS CALLS" from rank 0, or ends with exit code 3.
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4100 };

static int rank, size, call;

// One state gives the same numbers on all ranks, another one a rank's own numbers.
static uint64_t shared_state, own_state;
static uint32_t draw(uint64_t *state, uint32_t below) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((*state >> 33) % below);
}
static uint32_t all_draw(uint32_t below) { return draw(&shared_state, below); }
static uint32_t own_draw(uint32_t below) { return draw(&own_state, below); }

static void fail(const char *what, int count, size_t at) {
    fprintf(stderr, "call %d, rank %d: %s of %d differs at byte %zu\n", call, rank, what, count, at);
    MPI_Abort(MPI_COMM_WORLD, 3);
}

typedef enum { SIGNED, UNSIGNED, FLOATING } Family;
typedef struct { MPI_Datatype type; int bytes; Family family; } Type;
static Type types[11];
static MPI_Op ops[10], users[2];
static int with_users;

// User functions on 32-bit integers: sums as of the predefined operator, and the first operand.
static void user_sum(void *in, void *inout, int *n, MPI_Datatype *t) {
    (void)t;
    for (int k = 0; k < *n; k++) ((int *)inout)[k] += ((int *)in)[k];
}
static void user_first(void *in, void *inout, int *n, MPI_Datatype *t) {
    (void)t;
    memcpy(inout, in, (size_t)*n * 4);
}

static void make_types(void) {
    Type list[] = {{MPI_INT, 4, SIGNED}, {MPI_FLOAT, 4, FLOATING}, {MPI_DOUBLE, 8, FLOATING}, {MPI_INT64_T, 8, SIGNED},
                   {MPI_UINT8_T, 1, UNSIGNED}, {MPI_SHORT, 2, SIGNED}, {MPI_UNSIGNED, 4, UNSIGNED},
                   {MPI_LONG, 8, SIGNED}, {MPI_UINT16_T, 2, UNSIGNED}, {MPI_SIGNED_CHAR, 1, SIGNED},
                   {MPI_COUNT, 8, SIGNED}};
    memcpy(types, list, sizeof list);
    MPI_Op o[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    memcpy(ops, o, sizeof o);
    MPI_Op_create(user_sum, 1, &users[0]);
    MPI_Op_create(user_first, 0, &users[1]);
}

// Sums of short integers must not overflow: Open MPI saturates some elements then and wraps others.
static void fill(void *memory, int count, Type t) {
    int least = t.family == SIGNED ? -100 / size : 0;
    for (int k = 0; k < count; k++) {
        uint32_t x = own_draw(1000);
        if (t.family != FLOATING) {
            int64_t v = t.bytes <= 2 ? least + (int64_t)x % (100 / size - least + 1) : (int64_t)x + 5 * least;
            memcpy((char *)memory + (size_t)k * t.bytes, &v, t.bytes);
        } else if (t.bytes == 4) {
            ((float *)memory)[k] = 0.5f + x / 1000.0f;
        } else {
            ((double *)memory)[k] = 0.5 + x / 1000.0;
        }
    }
}

static void compare(const char *what, const void *a, const void *b, int count, Type t, int rounds) {
    const unsigned char *x = a, *y = b;
    size_t bytes = (size_t)count * t.bytes;
    if (!rounds) {
        for (size_t k = 0; k < bytes; k++) if (x[k] != y[k]) fail(what, count, k);
        return;
    }
    for (int k = 0; k < count; k++) {
        double p = t.bytes == 4 ? ((float *)a)[k] : ((double *)a)[k], q = t.bytes == 4 ? ((float *)b)[k] : ((double *)b)[k];
        // All values are positive, so the sum of magnitudes is the sum.
        double eps = t.bytes == 4 ? 1.2e-7 : 2.3e-16;
        if (fabs(p - q) > 2 * size * eps * fabs(q)) fail(what, count, (size_t)k * t.bytes);
    }
}

static int random_count(void) {
    switch (all_draw(4)) {
    case 0: return (int)all_draw(12);
    case 1: { int n = (1 << all_draw(13)) + (int)all_draw(3) - 1; return n < 0 ? 0 : n; }
    default: return (int)all_draw(4098);
    }
}

// Memory of `count` ints as a datatype chosen by this rank: plain, with gaps, or in another order.
typedef struct { MPI_Datatype type; int count, stride, swapped; } Layout;

// Constructors of large counts, where MPI has them, make half of the datatypes: MPICH answers fewer queries about those.
static void make_resized(MPI_Datatype *type) {
#if MPI_VERSION >= 4
    if (own_draw(2)) {
        MPI_Type_create_resized_c(MPI_INT, 0, 8, type);
        return;
    }
#endif
    MPI_Type_create_resized(MPI_INT, 0, 8, type);
}

static void make_contiguous(MPI_Datatype *type) {
#if MPI_VERSION >= 4
    if (own_draw(2)) {
        MPI_Type_contiguous_c(1, MPI_INT, type);
        return;
    }
#endif
    MPI_Type_contiguous(1, MPI_INT, type);
}

static Layout random_layout(int count) {
    Layout l = {MPI_INT, count, 1, 0};
    switch (own_draw(4)) {
    case 0:
        make_resized(&l.type);
        l.stride = 2;
        break;
    case 1:
        if (count % 2 == 0) {
            int lengths[] = {1, 1}, places[] = {1, 0};
            MPI_Type_indexed(2, lengths, places, MPI_INT, &l.type);
            l.count = count / 2;
            l.swapped = 1;
        }
        break;
    case 2:
        make_contiguous(&l.type);
        break;
    default:
        return l;
    }
    MPI_Type_commit(&l.type);
    return l;
}

static int at(Layout l, int k) { return (l.swapped ? k ^ 1 : k) * l.stride; }
static void put(Layout l, int *memory, const int *values, int n) { for (int k = 0; k < n; k++) memory[at(l, k)] = values[k]; }
static void get(Layout l, const int *memory, int *values, int n) { for (int k = 0; k < n; k++) values[k] = memory[at(l, k)]; }
static void drop(Layout *l) { if (l->type != MPI_INT) MPI_Type_free(&l->type); }

static void wait(MPI_Request *request) { MPI_Wait(request, MPI_STATUS_IGNORE); }

static void reduction(int which, char *in, char *out, char *ref, MPI_Comm comm, int me, int ranks) {
    Type t = types[all_draw(11)];
    int o = (int)all_draw(t.family == FLOATING ? 4 : 10), n = random_count(), root = (int)all_draw(ranks);
    int in_place = (int)all_draw(3) == 0, rounds = t.family == FLOATING && o < 2;
    int given = which == 2 ? n * ranks : n;
    MPI_Request request;
    // MPI defines no logical operators on the integers for several languages.
    if (t.type == MPI_COUNT && o >= 4 && o <= 6) o += 3;
    MPI_Op op = ops[o];
    if (with_users && all_draw(2)) {
        t = types[0];
        rounds = 0;
        op = users[all_draw(2)];
    }
    fill(in, given, t);
    memset(out, 0x55, (size_t)n * t.bytes);
    if (which == 0) {
        PMPI_Iallreduce(in, ref, n, t.type, op, comm, &request);
        wait(&request);
        if (in_place) memcpy(out, in, (size_t)n * t.bytes);
        MPI_Allreduce(in_place ? MPI_IN_PLACE : in, out, n, t.type, op, comm);
        compare("allreduce", out, ref, n, t, rounds);
    } else if (which == 1) {
        PMPI_Ireduce(in, ref, n, t.type, op, root, comm, &request);
        wait(&request);
        if (in_place && me == root) memcpy(out, in, (size_t)n * t.bytes);
        MPI_Reduce(in_place && me == root ? MPI_IN_PLACE : in, me == root ? out : NULL, n, t.type, op, root, comm);
        if (me == root) compare("reduce", out, ref, n, t, rounds);
    } else {
        PMPI_Ireduce_scatter_block(in, ref, n, t.type, op, comm, &request);
        wait(&request);
        if (in_place) memcpy(out, in, (size_t)given * t.bytes);
        MPI_Reduce_scatter_block(in_place ? MPI_IN_PLACE : in, out, n, t.type, op, comm);
        compare("reduce_scatter_block", out, ref, n, t, rounds);
    }
}

static void movement(int which, int *in, int *out, int *ref, int *scratch, MPI_Comm comm, int me, int ranks) {
    int n = random_count(), root = (int)all_draw(ranks), in_place = (int)all_draw(3) == 0;
    MPI_Request request;
    Type t = types[0];
    if (which == 0) {
        Layout l = random_layout(n);
        for (int k = 0; k < n; k++) ref[k] = me == root ? (int)own_draw(1 << 30) : 0;
        put(l, out, ref, n);
        PMPI_Ibcast(ref, n, MPI_INT, root, comm, &request);
        wait(&request);
        MPI_Bcast(out, l.count, l.type, root, comm);
        get(l, out, scratch, n);
        compare("bcast", scratch, ref, n, t, 0);
        drop(&l);
        return;
    }
    int given = which == 1 ? n : n * ranks, got = n * ranks;
    Layout from = random_layout(n), to = random_layout(n);
    for (int k = 0; k < given; k++) scratch[k] = (int)own_draw(1 << 30);
    if (which == 1) PMPI_Iallgather(scratch, n, MPI_INT, ref, n, MPI_INT, comm, &request);
    else PMPI_Ialltoall(scratch, n, MPI_INT, ref, n, MPI_INT, comm, &request);
    wait(&request);
    put(from, in, scratch, given);
    if (in_place) {
        for (int k = 0; k < given; k++) out[at(to, which == 1 ? me * n + k : k)] = scratch[k];
        if (which == 1) MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, to.count, to.type, comm);
        else MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, out, to.count, to.type, comm);
    } else {
        if (which == 1) MPI_Allgather(in, from.count, from.type, out, to.count, to.type, comm);
        else MPI_Alltoall(in, from.count, from.type, out, to.count, to.type, comm);
    }
    get(to, out, scratch, got);
    compare(which == 1 ? "allgather" : "alltoall", scratch, ref, got, t, 0);
    drop(&from);
    drop(&to);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    int calls = argc > 2 ? atoi(argv[2]) : 100;
    with_users = argc > 3;
    shared_state = seed * 2 + 1;
    own_state = seed * 1000003 + rank;
    make_types();
    MPI_Comm backwards;
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &backwards);
    size_t bytes = (size_t)MOST * size * 8 * 2;
    char *in = calloc(1, bytes), *out = calloc(1, bytes), *ref = calloc(1, bytes), *scratch = calloc(1, bytes);
    for (call = 0; call < calls; call++) {
        int reversed = all_draw(4) == 0;
        MPI_Comm comm = reversed ? backwards : MPI_COMM_WORLD;
        int me = reversed ? size - 1 - rank : rank;
        int which = (int)all_draw(7);
        if (which < 3) reduction(which, in, out, ref, comm, me, size);
        else if (which < 6) movement(which - 3, (int *)in, (int *)out, (int *)ref, (int *)scratch, comm, me, size);
        else MPI_Barrier(comm);
    }
    MPI_Op_free(&users[0]);
    MPI_Op_free(&users[1]);
    MPI_Comm_free(&backwards);
    if (rank == 0) printf("ok %d %d\n", size, calls);
    MPI_Finalize();
    return 0;
}
