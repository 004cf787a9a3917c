/* Reads each file named, on a kept descriptor, ROUNDS times; prints nanoseconds of CPU a read. */
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
    char buffer[4096];
    int files = argc - 2, rounds = argc > 2 ? atoi(argv[1]) : 0;
    int *descriptors = malloc(sizeof(int) * (files > 0 ? files : 1));
    if (rounds < 1 || !descriptors) return 2;
    for (int i = 0; i < files; i++)
        if ((descriptors[i] = open(argv[i + 2], O_RDONLY)) < 0) return 1;
    double began = used_ns();
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < files; i++)
            if (pread(descriptors[i], buffer, sizeof buffer, 0) < 0) return 1;
    printf("%.1f\n", (used_ns() - began) / ((double)rounds * files));
    return 0;
}
