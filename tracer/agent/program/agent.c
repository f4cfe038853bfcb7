/* Start of the preloaded agent: reads its orders, hides from the program's children, finds the hotspot's module.
 * Without LAYOUT_ADVISE_AGENT in the environment it does nothing at all.
 * SPDX-License-Identifier: MIT */
#define _GNU_SOURCE
#include "agent.h"
#include <link.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/stat.h>

struct la_config la_config;
struct la_further la_further[LA_MAX_FURTHER];
uint64_t la_further_count;
struct la_status *la_status;
char la_folder[4096];
static volatile uint32_t *alive_page;
static int hooked;

/* A page that the kernel wipes in forked children: cheaper and surer than asking for the pid or pthread_atfork. */
int la_alive(void) { return alive_page && *alive_page; }
void la_revive(void)
{
    /* From the park on every process is ours; the advice must not be in a dump. */
    la_madvise((uint64_t)alive_page, LA_PAGE, 19 /* MADV_KEEPONFORK */);
    *alive_page = 1;
}

void la_error(const char *text)
{
    size_t n = la_length(text);
    if (la_status && !la_status->error[0])
        la_copy(la_status->error, text, n < sizeof la_status->error - 1 ? n : sizeof la_status->error - 1);
}

static void drop_variable(char **environment, const char *name, const char *replacement)
{
    size_t n = la_length(name);
    for (char **v = environment; *v; v++) {
        if (!la_starts(*v, name) || (*v)[n] != '=')
            continue;
        if (replacement && replacement[0]) { /* never longer: the launcher put the agent before it */
            la_copy(*v + n + 1, replacement, la_length(replacement) + 1);
            return;
        }
        char **w = v;
        do
            w[0] = w[1];
        while (*w++);
        return;
    }
}

static int read_orders(const char *folder)
{
    char path[4096];
    size_t n = la_length(folder);
    if (n >= 3800)
        return -1;
    la_copy(la_folder, folder, n + 1);
    la_join(path, la_folder, "config", "");
    int fd = la_open(path, O_RDONLY, 0);
    if (fd < 0)
        return -1;
    long got = la_sys(SYS_read, fd, &la_config, sizeof la_config);
    la_close(fd);
    if (got != (long)sizeof la_config || la_config.magic != LA_MAGIC)
        return -1;
    la_join(path, la_folder, "further", "");
    fd = la_config.mode == LA_MODE_LIVE ? la_open(path, O_RDONLY, 0) : -1;
    if (fd >= 0) {
        got = la_sys(SYS_read, fd, la_further, sizeof la_further);
        la_close(fd);
        if (got < 0 || (uint64_t)got % sizeof *la_further)
            return -1;
        la_further_count = (uint64_t)got / sizeof *la_further;
    }
    la_join(path, la_folder, "status", "");
    fd = la_open(path, O_RDWR, 0);
    if (fd < 0)
        return -1;
    la_status = la_mmap(NULL, la_up(sizeof *la_status, LA_PAGE), PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    la_close(fd);
    return la_status ? 0 : -1;
}

static int same_file(const char *a, const char *b)
{
    struct stat x, y;
    if (la_sys6(SYS_newfstatat, AT_FDCWD, (long)a, (long)&x, 0, 0, 0) ||
        la_sys6(SYS_newfstatat, AT_FDCWD, (long)b, (long)&y, 0, 0, 0))
        return 0;
    return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int is_module(const struct link_map *m, const char *path)
{
    const char *name = m == _r_debug.r_map ? "/proc/self/exe" : m->l_name;
    return name[0] && same_file(name, path);
}

/* The module that starts parallel regions is not the hotspot's: where that is loaded, if it is. */
static void find_outlined(void)
{
    if (!la_config.outlined)
        return;
    la_status->outlined = 0;
    for (struct link_map *m = _r_debug.r_map; m; m = m->l_next)
        if (is_module(m, la_config.outlined_module)) {
            la_status->load_base = m->l_addr;
            la_status->outlined = m->l_addr + la_config.outlined;
        }
}

/* Also called by the loader (through la_dl_hook) whenever modules came or went; its lock is held then, so nothing
 * here may call into it. A new module is mapped but not yet relocated: no code of it has run. */
void la_on_modules(void) __attribute__((visibility("hidden")));
void la_on_modules(void)
{
    if (!la_alive() || _r_debug.r_state != RT_CONSISTENT)
        return;
    if (la_config.mode == LA_MODE_SAMPLE) {
        la_sample_maps();
        return;
    }
    if (la_status->state >= LA_PARKED)
        return;
    find_outlined();
    for (struct link_map *m = _r_debug.r_map; m; m = m->l_next) {
        if (!is_module(m, la_config.module))
            continue;
        if (!la_entry)
            la_patch(m->l_addr);
        return;
    }
    if (la_entry) { /* the module was closed */
        la_entry = 0;
        la_munmap((void *)la_near, la_near_bytes);
        la_near = 0;
    }
}

/* _dl_debug_state is an empty function in 16 bytes of its own: room for a far jump. */
static void hook_loader(void)
{
    uint64_t at = _r_debug.r_brk;
    const uint8_t *code = (const uint8_t *)at;
    int skip = code && code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa ? 4 : 0;
    if (!at || at % 16 || code[skip] != 0xc3)
        return;
    uint64_t first = la_down(at, LA_PAGE);
    if (la_mprotect(first, LA_PAGE, PROT_READ | PROT_WRITE | PROT_EXEC))
        return;
    uint64_t target = (uint64_t)la_dl_hook;
    la_copy((void *)at, "\xff\x25\x00\x00\x00\x00", 6);
    la_copy((void *)(at + 6), &target, 8);
    la_mprotect(first, LA_PAGE, PROT_READ | PROT_EXEC);
    hooked = 1;
}

/* In a process that the program forked: the status pages are shared with its parent, whose calls alone count. */
static void in_child(void)
{
    la_records_in_child();
    if (!la_near || la_status->state >= LA_PARKED)
        return;
    struct la_status *own = (struct la_status *)(la_near + LA_PAGE);
    la_mmap(own, la_shared_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1);
    own->counter = 1ll << 60;
    for (uint64_t i = 0; i < LA_MAX_FURTHER; i++)
        own->further[i].counter = 1ll << 60;
}

/* The top of the stack for what is done at an entry; 0: on that of the program. */
uint64_t la_event_stack __attribute__((visibility("hidden")));

static void give_stack(void)
{
    enum { BYTES = 1 << 18 };
    uint8_t *stack = la_memory(BYTES + LA_PAGE);
    if (!stack || la_mprotect((uint64_t)stack, LA_PAGE, PROT_NONE))
        return;
    la_event_stack = (uint64_t)stack + LA_PAGE + BYTES;
}

__attribute__((constructor)) static void la_start(int argc, char **argv, char **environment)
{
    (void)argc;
    (void)argv;
    const char *folder = NULL;
    int spared = 0; /* the run that the user asked for: its children are not told by a mark, and it sees none */
    for (char **v = environment; *v; v++) {
        if (la_starts(*v, "LAYOUT_ADVISE_AGENT="))
            folder = *v + la_length("LAYOUT_ADVISE_AGENT=");
        spared |= la_starts(*v, "LAYOUT_ADVISE_START=00000000000");
    }
    if (!folder)
        return;
    int failed = read_orders(folder);
    drop_variable(environment, "LAYOUT_ADVISE_AGENT", NULL);
    drop_variable(environment, "LD_PRELOAD", la_config.preload);
    if (spared)
        drop_variable(environment, "LAYOUT_ADVISE_START", NULL);
    if (failed)
        return;
    /* Dies with the controller (its launching thread), even when that is killed outright. */
    la_sys(SYS_prctl, PR_SET_PDEATHSIG, 9, 0);
    if ((uint64_t)la_sys(SYS_getppid, 0, 0, 0) != la_config.controller)
        la_sys(SYS_exit_group, 137, 0, 0);
    alive_page = la_memory(LA_PAGE);
    if (!alive_page)
        return;
    la_madvise((uint64_t)alive_page, LA_PAGE, 18 /* MADV_WIPEONFORK */);
    *alive_page = 1;
    la_status->pid = (uint64_t)la_sys(SYS_getpid, 0, 0, 0);
    la_status->state = LA_LOADED;
    la_status->magic = LA_MAGIC;
    if (la_config.mode == LA_MODE_SAMPLE) {
        la_sample_start();
    } else {
        pthread_atfork(NULL, NULL, in_child);
        la_probe_start();
        if (la_config.mode == LA_MODE_RECORD)
            la_between_map();
        if (la_config.mode == LA_MODE_LIVE)
            give_stack();
        if (la_config.mode == LA_MODE_ORDER) {
            la_order_start();
        } else if (la_config.mode != LA_MODE_PROBE) {
            la_stacks_start();
            la_blocks_start();
        }
    }
    hook_loader();
    la_on_modules();
    if (!hooked && !la_entry && la_config.mode != LA_MODE_SAMPLE)
        la_error("the hotspot's module is not loaded at the start, and this loader cannot be watched");
}

__attribute__((destructor)) static void la_end(void)
{
    if (la_alive() && la_config.mode == LA_MODE_SAMPLE)
        la_sample_maps();
}
