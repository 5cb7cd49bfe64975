/* A tuner plugin that reads lines for NCCL's example plugin, and refuses files that the example takes in silence:
 * unknown names, numbers with other characters, empty sizes, and more or fewer fields than 8 to 10. The first line that
 * holds is taken; without one, the plugin says one channel. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tuner.h"

enum { LONGEST = 256, FIELDS = 10, MOST = 4096, FAILED = 3 };

struct line {
    int collective, algorithm, protocol;
    unsigned long long first, last;
    long channels, nodes, ranks, calls, registered;
};

struct file {
    size_t ranks, nodes, count;
    struct line lines[MOST];
};

static int find(const char *const *names, int count, const char *name) {
    for (int n = 0; n < count; n++) {
        if (strcmp(names[n], name) == 0) {
            return n;
        }
    }
    return -1;
}

static int read_line(char *text, struct line *line) {
    char *fields[FIELDS + 1], *end;
    int count = 0;
    for (char *at = text; at && count <= FIELDS; count++) {
        fields[count] = at;
        at = strchr(at, ',');
        if (at) {
            *at++ = 0;
        }
    }
    if (count < 8 || count > FIELDS) {
        return FAILED;
    }
    line->collective = find(collective_names, COLLECTIVES, fields[0]);
    line->algorithm = find(algorithm_names, ALGORITHMS, fields[3]);
    line->protocol = find(protocol_names, PROTOCOLS, fields[4]);
    if (line->collective < 0 || line->algorithm < 0 || line->protocol < 0) {
        return FAILED;
    }
    unsigned long long *sizes[] = {&line->first, &line->last};
    errno = 0;
    for (int n = 0; n < 2; n++) {
        *sizes[n] = strtoull(fields[1 + n], &end, 10);
        if (errno || *end || end == fields[1 + n] || fields[1 + n][0] == '-') {
            return FAILED;
        }
    }
    line->calls = line->registered = -1;
    long *numbers[] = {&line->channels, &line->nodes, &line->ranks, &line->calls, &line->registered};
    for (int n = 5; n < count; n++) {
        *numbers[n - 5] = strtol(fields[n], &end, 10);
        if (errno || *end || end == fields[n] || *numbers[n - 5] < -1) {
            return FAILED;
        }
    }
    return line->first <= line->last ? 0 : FAILED;
}

static int init(void **context, uint64_t id, size_t ranks, size_t nodes, void *log, void *domain, void *constants) {
    (void)id, (void)log, (void)domain, (void)constants;
    const char *path = getenv("NCCL_TUNER_CONFIG_FILE");
    FILE *stream = path ? fopen(path, "r") : NULL;
    struct file *file = stream ? calloc(1, sizeof *file) : NULL;
    int failed = !file;
    char text[LONGEST];
    while (!failed && fgets(text, sizeof text, stream)) {
        size_t length = strcspn(text, "\n");
        if (text[length] == 0) {
            failed = FAILED;
        }
        text[length] = 0;
        if (!failed && length > 0 && text[0] != '#') {
            failed = file->count == MOST ? FAILED : read_line(text, &file->lines[file->count++]);
        }
    }
    if (stream) {
        fclose(stream);
    }
    if (failed) {
        free(file);
        return FAILED;
    }
    file->ranks = ranks;
    file->nodes = nodes;
    *context = file;
    return 0;
}

static int holds(long wanted, long is) {
    return wanted == -1 || wanted == is;
}

static int choose(void *context, int collective, size_t bytes, int calls, float **costs, int algorithms, int protocols,
                  int registered, int *channels) {
    struct file *file = context;
    float *table = (float *)costs;
    *channels = 1;
    for (size_t n = 0; n < file->count; n++) {
        const struct line *l = &file->lines[n];
        if (l->collective == collective && l->first <= bytes && bytes <= l->last && l->algorithm < algorithms &&
            l->protocol < protocols && holds(l->nodes, (long)file->nodes) && holds(l->ranks, (long)file->ranks) &&
            holds(l->calls, calls) && holds(l->registered, registered)) {
            table[l->algorithm * protocols + l->protocol] = 0;
            if (l->channels != -1) {
                *channels = (int)l->channels;
            }
            break;
        }
    }
    return 0;
}

static int finalize(void *context) {
    free(context);
    return 0;
}

const struct tuner ncclTunerPlugin_v6 = {"lines", init, choose, finalize, NULL};
