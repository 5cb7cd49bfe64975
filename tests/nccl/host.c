/* Loads a tuner plugin as NCCL does, and asks it: `host PLUGIN RANKS NODES`, the file in NCCL_TUNER_CONFIG_FILE.
 * Each line of standard input is a call, `collective bytes calls registered`; each line of output is the choice,
 * `algorithm protocol channels`, with `-` for an algorithm that NCCL chooses itself. It ends with 3 if the plugin does
 * not start. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner.h"

int main(int argc, char **argv) {
    if (argc != 4) {
        fprintf(stderr, "usage: host PLUGIN RANKS NODES\n");
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    const struct tuner *tuner = library ? dlsym(library, "ncclTunerPlugin_v6") : NULL;
    if (!tuner) {
        fprintf(stderr, "%s\n", dlerror());
        return 2;
    }
    void *context = NULL;
    size_t ranks = strtoull(argv[2], NULL, 10), nodes = strtoull(argv[3], NULL, 10);
    if (tuner->init(&context, 1, ranks, nodes, NULL, NULL, NULL) != 0) {
        return 3;
    }
    char name[32];
    unsigned long long bytes;
    int calls, registered;
    while (scanf("%31s %llu %d %d", name, &bytes, &calls, &registered) == 4) {
        int collective = 0, channels = 0;
        while (collective < COLLECTIVES && strcmp(name, collective_names[collective]) != 0) {
            collective++;
        }
        float costs[ALGORITHMS][PROTOCOLS];
        for (int n = 0; n < ALGORITHMS * PROTOCOLS; n++) {
            costs[n / PROTOCOLS][n % PROTOCOLS] = 1;
        }
        if (collective == COLLECTIVES || tuner->choose(context, collective, bytes, calls, (float **)costs, ALGORITHMS,
                                                       PROTOCOLS, registered, &channels) != 0) {
            return 4;
        }
        const char *algorithm = "-", *protocol = "-";
        for (int n = 0; n < ALGORITHMS * PROTOCOLS; n++) {
            if (costs[n / PROTOCOLS][n % PROTOCOLS] == 0) {
                algorithm = algorithm_names[n / PROTOCOLS];
                protocol = protocol_names[n % PROTOCOLS];
            }
        }
        printf("%s %s %d\n", algorithm, protocol, channels);
    }
    return tuner->finalize(context);
}
