/* The parked process obeys a command file: CHANNEL.cmd in the run folder, consumed when read; CHANNEL.res answers.
 * No file stays open between commands, so that a dump holds none.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char channel[256] = "0";

struct la_reply la_fail(const char *text) { return (struct la_reply){-1, la_length(text), text}; }
struct la_reply la_answer(const void *data, uint64_t bytes) { return (struct la_reply){0, bytes, data}; }

/* /proc files have no size: read until the end, into room that doubles. */
char *la_read_file(const char *path, uint64_t *bytes)
{
    uint64_t room = 1u << 16, n = 0;
    char *text = la_memory(room);
    int fd = la_open(path, O_RDONLY, 0);
    while (text && fd >= 0) {
        long got = la_sys(SYS_read, fd, text + n, room - n - 1);
        if (got <= 0)
            break;
        n += (uint64_t)got;
        if (room - n < 8192) {
            long moved = la_sys6(SYS_mremap, (long)text, (long)room, (long)(2 * room), MREMAP_MAYMOVE, 0, 0);
            if (moved < 0 && moved > -4096)
                break;
            text = (char *)moved;
            room *= 2;
        }
    }
    if (fd >= 0)
        la_close(fd);
    *bytes = room;
    if (text && fd < 0) {
        la_munmap(text, room);
        return NULL;
    }
    return text;
}
void la_free_file(char *text, uint64_t bytes)
{
    if (text)
        la_munmap(text, bytes);
}

/* The lock on "alive" is held by the controller for as long as it lives: a pid would mean nothing inside a restored
 * PID namespace. */
static int controller_gone(void)
{
    char path[4096];
    la_join(path, la_folder, "alive", "");
    int fd = la_open(path, O_RDONLY, 0);
    if (fd < 0)
        return 1;
    long locked = la_sys(SYS_flock, fd, LOCK_SH | LOCK_NB, 0);
    la_close(fd);
    return locked == 0;
}

static struct la_reply fork_program(const struct la_command *c)
{
    static int64_t pid;
    const char *name = la_command_path(c);
    uint64_t n = c->path_bytes;
    if (n == 0 || n >= sizeof channel)
        return la_fail("bad channel name");
    long parent = la_sys(SYS_getpid, 0, 0, 0);
    /* No exit signal: the program's SIGCHLD handler, if it has one, never hears of it. */
    pid = la_sys6(SYS_clone, 0, 0, 0, 0, 0, 0);
    if (pid < 0)
        return la_fail("clone failed");
    if (pid == 0) {
        la_copy(channel, name, n);
        channel[n] = 0;
        la_sys(SYS_prctl, PR_SET_PDEATHSIG, 9, 0);
        if (la_sys(SYS_getppid, 0, 0, 0) != parent)
            la_sys(SYS_exit_group, 137, 0, 0);
        la_files_own();
        return (struct la_reply){1, 0, NULL};
    }
    return la_answer(&pid, sizeof pid);
}

static struct la_reply reap(const struct la_command *c)
{
    static int32_t status;
    status = 0;
    la_sys6(SYS_wait4, (long)c->word[0], (long)&status, 0x40000000 /* __WALL */, 0, 0, 0);
    return la_answer(&status, sizeof status);
}

/* Into the file: all slots, then the stacks from number 0 (empty) on. Answers the number of slots. */
static struct la_reply blocks(const struct la_command *c)
{
    int fd = la_open(la_command_path(c), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        return la_fail("cannot write the block table");
    int64_t failed = la_write_all(fd, la_blocks, la_blocks_slots * sizeof *la_blocks);
    if (!failed && la_stacks)
        failed = la_write_all(fd, la_stacks, (la_stacks_count + 1) * sizeof *la_stacks);
    la_close(fd);
    if (c->words) { /* the program is about to go on */
        la_blocks_go_on();
        la_clock_go_on();
    }
    return failed ? la_fail("cannot write the block table (disk full?)") : la_answer(&la_blocks_slots, sizeof la_blocks_slots);
}

/* The agent's file and its .bss, which has no name in maps. */
void la_own_image(uint64_t *start, uint64_t *end)
{
    extern char __ehdr_start[] __attribute__((visibility("hidden"))), _end[] __attribute__((visibility("hidden")));
    *start = (uint64_t)__ehdr_start;
    *end = la_up((uint64_t)_end, LA_PAGE);
}

static struct la_reply info(void)
{
    static uint64_t words[18];
    words[0] = la_status->load_base;
    words[1] = la_status->entry;
    words[2] = (uint64_t)la_stack;
    words[3] = LA_STACK_BYTES + LA_PAGE;
    words[4] = (uint64_t)la_blocks;
    words[5] = la_blocks_slots * sizeof *la_blocks;
    words[6] = (uint64_t)la_status;
    words[7] = la_up(sizeof *la_status, LA_PAGE);
    la_own_image(&words[8], &words[9]);
    words[9] -= words[8];
    words[10] = la_near;
    words[11] = la_near ? la_near_bytes : 0;
    words[12] = (uint64_t)la_stacks;
    words[13] = la_stacks ? la_stacks_bytes() : 0;
    words[14] = la_parked_thread; /* what lets it go on as if it had not been parked */
    words[15] = la_parked_signals;
    words[16] = (uint64_t)la_parked_xsave;
    words[17] = la_xsave_mask;
    return la_answer(words, sizeof words);
}

/* Which blocks come and go in the traced call: the table goes on while it runs. */
static struct la_reply trace_watched(const struct la_command *c)
{
    la_blocks_go_on();
    struct la_reply reply = la_cmd_trace(c);
    la_blocks_stop();
    return reply;
}

static struct la_reply execute(const struct la_command *c)
{
    switch (c->verb) {
    case LA_CMD_PING: return la_answer(NULL, 0);
    case LA_CMD_REGISTERS: return la_answer(&la_parked, sizeof la_parked);
    case LA_CMD_BLOCKS: return blocks(c);
    case LA_CMD_FORK: return fork_program(c);
    case LA_CMD_TRACE: return trace_watched(c);
    case LA_CMD_LOAD: return la_cmd_load(c);
    case LA_CMD_RUN: return la_cmd_run(c);
    case LA_CMD_PREPARE: return la_cmd_prepare(c);
    case LA_CMD_BLOCK: return la_cmd_block(c);
    case LA_CMD_CONVERT: return la_cmd_convert(c);
    case LA_CMD_BATCH: return la_cmd_batch(c);
    case LA_CMD_REAP: return reap(c);
    case LA_CMD_INFO: return info();
    case LA_CMD_TEAM: return la_cmd_team(c);
    case LA_CMD_TRACE_TEAM: return la_cmd_trace_team(c);
    case LA_CMD_THREADS: return la_cmd_threads(c);
    case LA_CMD_MEMBERS: return la_cmd_members(c);
    case LA_CMD_MAP: return la_cmd_map(c);
    case LA_CMD_SETTLE: return la_cmd_settle(c);
    case LA_CMD_PUT: return la_cmd_put(c);
    case LA_CMD_PUT_NS: return la_cmd_put_ns(c);
    case LA_CMD_MOVE: return la_answer(NULL, 0); /* the loop changes the channel after the answer */
    default: return la_fail("unknown command");
    }
}

static void answer(uint64_t sequence, struct la_reply r)
{
    char path[4096], final[4096];
    uint64_t head[4] = {LA_MAGIC, sequence, (uint64_t)r.status, r.bytes};
    la_join(path, la_folder, channel, ".tmp");
    la_join(final, la_folder, channel, ".res");
    int fd = la_open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (fd < 0)
        return;
    la_write_all(fd, head, sizeof head);
    la_write_all(fd, r.data, r.bytes);
    la_close(fd);
    la_sys(SYS_rename, path, final, 0);
}

/* The kernel ends a command that hangs even if nobody is left to watch it. */
static int watchdog(uint64_t ns)
{
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGKILL};
    int id = -1;
    if (!ns || la_sys(SYS_timer_create, CLOCK_MONOTONIC, &event, &id))
        return -1;
    struct itimerspec once = {{0, 0}, {(time_t)(ns / 1000000000u) + 2, 0}};
    la_sys6(SYS_timer_settime, id, 0, (long)&once, 0, 0, 0);
    return id;
}

/* Frees the command's text before it answers: who has the answer may look at what is mapped, and takes that for the
 * program's. */
static void obey(char *text, uint64_t room)
{
    const struct la_command *c = (struct la_command *)text;
    if (c->magic != LA_MAGIC || sizeof *c + 8 * c->words + c->path_bytes + 1 > room) {
        la_free_file(text, room);
        return;
    }
    int timer = watchdog(c->timeout_ns);
    struct la_reply r = execute(c);
    if (timer >= 0 && r.status != 1)
        la_sys(SYS_timer_delete, timer, 0, 0);
    char next[sizeof channel] = "";
    if (c->verb == LA_CMD_MOVE && c->path_bytes < sizeof channel)
        la_copy(next, la_command_path(c), c->path_bytes);
    const uint64_t sequence = c->sequence;
    la_free_file(text, room);
    if (r.status == 1) /* the new child: its parent answers; timers are not inherited */
        return;
    answer(sequence, r);
    if (next[0])
        la_copy(channel, next, sizeof channel);
}

void la_loop(void)
{
    uint64_t idle = 0;
    for (;;) {
        char path[4096];
        struct stat s;
        la_join(path, la_folder, channel, ".cmd");
        if (la_sys6(SYS_newfstatat, AT_FDCWD, (long)path, (long)&s, 0, 0, 0) == 0) {
            uint64_t room;
            char *text = la_read_file(path, &room);
            la_sys(SYS_unlink, path, 0, 0);
            if (text)
                obey(text, room);
            idle = 0;
            continue;
        }
        idle++;
        if (idle % 256 == 0 && controller_gone())
            la_sys(SYS_exit_group, 137, 0, 0);
        /* 50 us at first, so that a chain of commands is quick; 2 ms after about half a second */
        struct timespec pause = {0, idle < 5000 ? 50000 : 2000000};
        la_sys(SYS_nanosleep, &pause, 0, 0);
    }
}
