// Every predefined operator on every predefined datatype, beside the library's own call: the same error class, or the
// same bits. Values are small integers, of both signs if the type has them, so that no sum rounds or overflows. Usage:
// datatypes. Prints "ok RANKS all" from rank 0, or ends with exit code 3.
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { COUNT = 40, WIDEST = 32 };
typedef enum { INTEGER, UNSIGNED, FLOATING, COMPLEX, LONG_DOUBLE } Family;
typedef struct { const char *name; MPI_Datatype type; Family family; } Type;

static int rank;

static void put(char *to, int bytes, Family family, int value) {
    float f = value;
    double d = value;
    long double l = value;
    int64_t i = value;
    switch (family) {
    case UNSIGNED:
    case INTEGER: memcpy(to, &i, bytes < 8 ? bytes : 8); break;
    case FLOATING: memcpy(to, bytes == 4 ? (void *)&f : (void *)&d, bytes < 8 ? bytes : 8); break;
    case COMPLEX: memcpy(to, bytes == 8 ? (void *)&f : (void *)&d, bytes / 2 < 8 ? bytes / 2 : 8); break;
    case LONG_DOUBLE: memcpy(to, &l, 10); break;
    }
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int size, calls = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
#define TYPE(name, family) {#name, name, family}
    Type types[] = {
        TYPE(MPI_CHAR, INTEGER), TYPE(MPI_SIGNED_CHAR, INTEGER), TYPE(MPI_UNSIGNED_CHAR, UNSIGNED), TYPE(MPI_BYTE, INTEGER),
        TYPE(MPI_SHORT, INTEGER), TYPE(MPI_UNSIGNED_SHORT, UNSIGNED), TYPE(MPI_INT, INTEGER), TYPE(MPI_UNSIGNED, UNSIGNED),
        TYPE(MPI_LONG, INTEGER), TYPE(MPI_UNSIGNED_LONG, UNSIGNED), TYPE(MPI_LONG_LONG, INTEGER),
        TYPE(MPI_UNSIGNED_LONG_LONG, UNSIGNED), TYPE(MPI_INT8_T, INTEGER), TYPE(MPI_INT16_T, INTEGER),
        TYPE(MPI_INT32_T, INTEGER), TYPE(MPI_INT64_T, INTEGER), TYPE(MPI_UINT8_T, UNSIGNED), TYPE(MPI_UINT16_T, UNSIGNED),
        TYPE(MPI_UINT32_T, UNSIGNED), TYPE(MPI_UINT64_T, UNSIGNED), TYPE(MPI_AINT, INTEGER), TYPE(MPI_OFFSET, INTEGER),
        TYPE(MPI_COUNT, INTEGER), TYPE(MPI_FLOAT, FLOATING), TYPE(MPI_DOUBLE, FLOATING), TYPE(MPI_LONG_DOUBLE, LONG_DOUBLE),
        TYPE(MPI_C_BOOL, INTEGER), TYPE(MPI_C_FLOAT_COMPLEX, COMPLEX), TYPE(MPI_C_DOUBLE_COMPLEX, COMPLEX),
        TYPE(MPI_CHARACTER, INTEGER), TYPE(MPI_INTEGER, INTEGER), TYPE(MPI_INTEGER1, INTEGER), TYPE(MPI_INTEGER2, INTEGER),
        TYPE(MPI_INTEGER4, INTEGER), TYPE(MPI_INTEGER8, INTEGER), TYPE(MPI_REAL, FLOATING), TYPE(MPI_REAL4, FLOATING),
        TYPE(MPI_REAL8, FLOATING), TYPE(MPI_DOUBLE_PRECISION, FLOATING), TYPE(MPI_LOGICAL, INTEGER),
        TYPE(MPI_COMPLEX, COMPLEX), TYPE(MPI_DOUBLE_COMPLEX, COMPLEX),
    };
    MPI_Op ops[] = {MPI_SUM, MPI_PROD, MPI_MIN, MPI_MAX, MPI_LAND, MPI_LOR, MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR};
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    for (unsigned t = 0; t < sizeof types / sizeof *types; t++) {
        int bytes, is_bool = types[t].type == MPI_C_BOOL || types[t].type == MPI_LOGICAL;
        if (PMPI_Type_size(types[t].type, &bytes) || bytes <= 0 || bytes > WIDEST) continue;
        for (unsigned o = 0; o < sizeof ops / sizeof *ops; o++) {
            char in[COUNT * WIDEST] = {0}, out[COUNT * WIDEST] = {0}, ref[COUNT * WIDEST] = {0};
            for (int k = 0; k < COUNT; k++) {
                int value = is_bool ? (k + rank) % 2 : (k * 7 + rank * 3) % 5 - (types[t].family == UNSIGNED ? 0 : 2);
                // The sign of a zero in a product of complex numbers depends on the order.
                if (types[t].family == COMPLEX) value = 1 + (k + rank) % 2;
                put(in + k * bytes, bytes, types[t].family, value);
            }
            int code = MPI_Allreduce(in, out, COUNT, types[t].type, ops[o], MPI_COMM_WORLD), class = 0;
            int right = PMPI_Allreduce(in, ref, COUNT, types[t].type, ops[o], MPI_COMM_WORLD), expected = 0;
            MPI_Error_class(code, &class);
            MPI_Error_class(right, &expected);
            calls += !right;
            if (class != expected || memcmp(out, ref, COUNT * bytes)) {
                fprintf(stderr, "rank %d: %s, operator %u: class %d and %d\n", rank, types[t].name, o, class, expected);
                MPI_Abort(MPI_COMM_WORLD, 3);
            }
        }
    }
    if (rank == 0) printf("ok %d %s\n", size, calls > 200 ? "all" : "few");
    MPI_Finalize();
    return 0;
}
