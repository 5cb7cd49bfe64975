/* The interface of NCCL's tuner plugins, version 6, as far as a file of lines needs it. */
#ifndef UNISONO_TESTS_TUNER_H
#define UNISONO_TESTS_TUNER_H

#include <stddef.h>
#include <stdint.h>

enum { ALGORITHMS = 7, PROTOCOLS = 3, COLLECTIVES = 5 };

struct tuner {
    const char *name;
    int (*init)(void **context, uint64_t id, size_t ranks, size_t nodes, void *log, void *domain, void *constants);
    int (*choose)(void *context, int collective, size_t bytes, int calls, float **costs, int algorithms, int protocols,
                  int registered, int *channels);
    int (*finalize)(void *context);
    int (*chunk)(void *context, int collective, size_t bytes, int algorithm, int protocol, int channels, size_t *chunk);
};

static const char *const collective_names[COLLECTIVES] = {"broadcast", "reduce", "allgather", "reducescatter", "allreduce"};
static const char *const algorithm_names[ALGORITHMS] = {"tree", "ring", "collnet_direct", "collnet_chain",
                                                        "nvls", "nvls_tree", "pat"};
static const char *const protocol_names[PROTOCOLS] = {"ll", "ll128", "simple"};

#endif
