/* Logging in which order the chosen regions are entered: a byte for each entry, of one thread.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"

static struct la_order { /* file "order" */
    volatile uint64_t count;
    uint64_t reserved;
    volatile uint8_t region[];
} *order;
static uint64_t logging_thread;

void la_order_start(void)
{
    char path[4096];
    la_join(path, la_folder, "order", "");
    int fd = la_open(path, O_RDWR, 0);
    if (fd >= 0) {
        order = la_mmap(NULL, la_up(sizeof *order + la_config.timed, LA_PAGE), PROT_READ | PROT_WRITE, MAP_SHARED, fd);
        la_close(fd);
    }
    if (!order)
        la_error("cannot map the log of entries");
}

/* Region 0 is the hotspot, the others are the places that else are its exits. A full log ends the program: what comes after
 * would cost time and tell nothing. */
void la_order_note(uint64_t region)
{
    uint64_t thread, nobody = 0;
    __asm__("mov %%fs:0, %0" : "=r"(thread));
    if (!order || !la_alive())
        return;
    if (!logging_thread)
        __atomic_compare_exchange_n(&logging_thread, &nobody, thread, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    if (logging_thread != thread) {
        la_status->threads = 2;
        return;
    }
    if (order->count >= la_config.timed) {
        la_status->state = LA_STOPPED;
        la_libomp_forget();
        la_sys(SYS_exit_group, 0, 0, 0);
    }
    order->region[order->count] = (uint8_t)region;
    order->count = order->count + 1;
}
