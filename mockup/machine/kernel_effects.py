"""Functions of the system's libraries that act outside of the process: what they did cannot be taken back and done again."""

from __future__ import annotations

from layout_advise.errors import NotLiftedError
from layout_advise.mockup.ir.lifted import Lifted, OpaqueCall, everything

_OUTPUT = (
    "printf fprintf vprintf vfprintf dprintf puts fputs putchar putc fputc perror fwrite fread fgets fgetc getc "
    "getchar gets scanf fscanf getline getdelim ungetc fflush fopen fdopen freopen fclose fseek fseeko rewind setvbuf "
    "printf_chk fprintf_chk vprintf_chk vfprintf_chk puts_unlocked IO_putc IO_getc overflow uflow"
)
_KERNEL = (
    "read write pread pwrite pread64 pwrite64 readv writev open open64 openat creat close lseek lseek64 ftruncate "
    "fsync fdatasync dup dup2 pipe pipe2 socket connect accept bind listen send sendto sendmsg recv recvfrom recvmsg "
    "select poll ppoll epoll_wait epoll_ctl ioctl fcntl unlink rename mkdir rmdir stat fstat lstat mkstemp remove "
    "fork vfork execve execv execvp system popen pclose kill raise signal sigaction alarm setitimer sleep usleep "
    "nanosleep clock_nanosleep pause wait waitpid exit _exit abort shmget shmat semop msgsnd msgrcv"
)
_THREADS = (
    "pthread_create pthread_join pthread_cond_wait pthread_cond_timedwait pthread_barrier_wait sem_wait thrd_create "
    "thrd_join GOMP_parallel GOMP_task kmpc_fork_call"
)
_FORTRAN = "gfortran_st_write gfortran_st_read gfortran_st_open gfortran_st_close gfortran_stop_string"
_NAMES = frozenset(f"{_OUTPUT} {_KERNEL} {_THREADS} {_FORTRAN}".split())
_STREAMS = ("_ZNSo", "_ZStls", "_ZNSt13basic_filebuf", "_ZNSi", "_ZNSt14basic_ofstream", "_ZNSt14basic_ifstream")
"""Output and input streams of C++, by the start of their mangled names."""


def acts_outside(name: str | None) -> bool:
    """Returns whether the function of this name is known to read or write files, to wait, or to start something."""
    bare = (name or "").partition("@")[0]
    return bare in _NAMES or bare.lstrip("_") in _NAMES or bare.startswith(_STREAMS)


def unrepeatable(lifted: Lifted) -> NotLiftedError | None:
    """The refusal of a hotspot whose calls act outside of the process; None where none is known to."""
    for item in everything(lifted.body):
        if isinstance(item, OpaqueCall) and acts_outside(item.function):
            why = f"calls {item.function}, which acts outside of the process and cannot be run again for a comparison"
            return NotLiftedError(item.origin.pc, f"call {item.function}", why)
    return None
