/* A copy as STREAM does it: threads copy arrays of doubles that they have touched first, all at once; the best pass
 * counts. Prints bytes per second; a byte copied counts once (STREAM counts it twice: read and written).
 *
 *   cc -O3 -pthread stream_copy.c -o stream_copy
 *   stream_copy THREADS MEBIBYTES PASSES       the size is that of one array of one thread
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static pthread_barrier_t gate;
static size_t elements;
static int passes;
static double begun[1024], ended[1024]; /* by each thread itself: main may wait for a processor meanwhile */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + 1e-9 * t.tv_nsec;
}

static void *work(void *number)
{
    size_t me = (size_t)number;
    double *from = malloc(elements * sizeof *from), *to = malloc(elements * sizeof *to);
    if (!from || !to)
        exit(1);
    for (size_t i = 0; i < elements; i++) {
        from[i] = i;
        to[i] = 0;
    }
    for (int pass = 0; pass <= passes; pass++) {
        pthread_barrier_wait(&gate);
        begun[me] = now();
        for (size_t i = 0; i < elements; i++)
            to[i] = from[i];
        __asm__ volatile("" : : "r"(to) : "memory"); /* what nobody reads would not be copied */
        ended[me] = now();
        pthread_barrier_wait(&gate);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int threads = argc == 4 ? atoi(argv[1]) : 0;
    if (threads < 1 || threads > 1024)
        return 64;
    elements = (size_t)atol(argv[2]) * 1048576 / sizeof(double);
    passes = atoi(argv[3]);
    double best = 0;
    pthread_barrier_init(&gate, NULL, threads + 1);
    for (int n = 0; n < threads; n++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(size_t)n))
            return 1;
    }
    for (int pass = 0; pass <= passes; pass++) {
        pthread_barrier_wait(&gate);
        pthread_barrier_wait(&gate);
        double start = begun[0], end = ended[0];
        for (int n = 1; n < threads; n++) {
            start = begun[n] < start ? begun[n] : start;
            end = ended[n] > end ? ended[n] : end;
        }
        double rate = threads * (double)elements * sizeof(double) / (end - start);
        if (pass && rate > best) /* the first one warms up */
            best = rate;
    }
    printf("%.0f\n", best);
    return 0;
}
