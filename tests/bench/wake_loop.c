/* Wakes every INTERVAL_MS for SECONDS; reads the first FAST files named each time, and all of them every EVERY-th
   time, on kept descriptors; prints the share of one core that took. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static double used_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

int main(int argc, char **argv) {
    if (argc < 6) return 2;
    char buffer[4096];
    double seconds = atof(argv[1]);
    long interval_ns = atol(argv[2]) * 1000000;
    int every = atoi(argv[3]), fast = atoi(argv[4]), files = argc - 5;
    int *descriptors = malloc(sizeof(int) * files);
    if (interval_ns < 1 || every < 1 || fast > files || !descriptors) return 2;
    for (int i = 0; i < files; i++)
        if ((descriptors[i] = open(argv[i + 5], O_RDONLY)) < 0) return 1;
    struct timespec due;
    clock_gettime(CLOCK_MONOTONIC, &due);
    double began = used_ns();
    long wakes = (long)(seconds * 1e9 / interval_ns);
    for (long wake = 0; wake < wakes; wake++) {
        due.tv_nsec += interval_ns;
        due.tv_sec += due.tv_nsec / 1000000000;
        due.tv_nsec %= 1000000000;
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        for (int i = 0; i < (wake % every ? fast : files); i++)
            if (pread(descriptors[i], buffer, sizeof buffer, 0) < 0) return 1;
    }
    printf("%.6f\n", (used_ns() - began) / ((double)wakes * interval_ns));
    return 0;
}
