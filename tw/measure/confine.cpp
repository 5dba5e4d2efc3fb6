#include "tw/measure/impl/confine.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <initializer_list>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tw/base/env.h"
#include "tw/measure/impl/system_call_filter.h"

namespace tw::measure {

namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#else
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#endif

struct Call {
  int number;
  const char* name;
};

/// No library that computes has a reason for these.
constexpr Call kForbidden[] = {
    {SYS_ptrace, "ptrace"},
    {SYS_process_vm_readv, "process_vm_readv"},
    {SYS_process_vm_writev, "process_vm_writev"},
    {SYS_pidfd_open, "pidfd_open"},
    {SYS_pidfd_send_signal, "pidfd_send_signal"},
    {SYS_socket, "socket"},
    {SYS_execve, "execve"},
    {SYS_execveat, "execveat"},
    {SYS_unshare, "unshare"},
    {SYS_setns, "setns"},
    {SYS_seccomp, "seccomp"},
    {SYS_sched_setaffinity, "sched_setaffinity"},  // it has its CPUs
    {SYS_io_uring_setup, "io_uring_setup"},        // calls that no filter sees
    {SYS_io_uring_enter, "io_uring_enter"},
    {SYS_io_uring_register, "io_uring_register"},
    {SYS_userfaultfd, "userfaultfd"},
    {SYS_perf_event_open, "perf_event_open"},
    {SYS_bpf, "bpf"},
    {SYS_chroot, "chroot"},
    {SYS_mount, "mount"},
    {SYS_remap_file_pages, "remap_file_pages"},
    // These outlive a process.
    {SYS_shmget, "shmget"},
    {SYS_shmat, "shmat"},
    {SYS_msgget, "msgget"},
    {SYS_semget, "semget"},
    {SYS_mq_open, "mq_open"},
    {SYS_mq_unlink, "mq_unlink"},
    {SYS_add_key, "add_key"},
    {SYS_keyctl, "keyctl"},
#if defined(__x86_64__)
    {SYS_fork, "fork"},
    {SYS_vfork, "vfork"},
#endif
};

/// Where the number after `kill` and its kin must be that of this process.
constexpr Call kSignals[] = {{SYS_kill, "kill"},
                             {SYS_tgkill, "tgkill"},
                             {SYS_rt_sigqueueinfo, "rt_sigqueueinfo"},
                             {SYS_rt_tgsigqueueinfo, "rt_tgsigqueueinfo"}};

/// fchmodat2, which older headers do not name.
constexpr int kChangeMode = 452;

/// These change files, or how others run: they fail.
constexpr int kChanging[] = {
    SYS_unlinkat,       SYS_mkdirat,       SYS_mknodat,      SYS_symlinkat,
    SYS_linkat,         SYS_renameat2,     SYS_truncate,     SYS_fchmodat,
    SYS_openat2,        SYS_tkill,         SYS_fchmod,       SYS_fchown,
    SYS_fchownat,       SYS_utimensat,     SYS_setxattr,     SYS_lsetxattr,
    SYS_fsetxattr,      SYS_removexattr,   SYS_lremovexattr, SYS_fremovexattr,
    kChangeMode,        SYS_setpriority,   SYS_ioprio_set,   SYS_sched_setscheduler,
    SYS_sched_setparam, SYS_sched_setattr,
#if defined(__x86_64__)
    SYS_unlink,         SYS_mkdir,         SYS_mknod,        SYS_symlink,
    SYS_link,           SYS_rename,        SYS_renameat,     SYS_creat,
    SYS_chmod,          SYS_rmdir,         SYS_chown,        SYS_lchown,
    SYS_utime,          SYS_utimes,        SYS_futimesat,
#endif
};

/// Opening for writing fails: libraries may try to leave a log.
Filter open_filter(int flags_argument) {
  return {load(argument(flags_argument)),
          jump_if(BPF_JSET, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1), answer(fails(EACCES)),
          answer(kAllow)};
}

/// What asks for signals to others fails.
Filter second_argument_filter(std::initializer_list<uint32_t> refused) {
  Filter f = {load(argument(1))};
  for (const uint32_t what : refused) {
    f.push_back(jump_if(BPF_JEQ, what, 0, 1));
    f.push_back(answer(fails(EACCES)));
  }
  f.push_back(answer(kAllow));
  return f;
}

/// Handlers of faults are the judge's.
Filter handler_filter() {
  Filter f = {load(argument(0))};
  const auto skip = [](uint32_t signal, size_t if_it_is, size_t if_not) {
    return jump_if(BPF_JEQ, signal, if_it_is, if_not);
  };
  f.insert(f.end(), {skip(SIGSEGV, 3, 0), skip(SIGBUS, 2, 0), skip(SIGSYS, 1, 0), answer(kAllow),
                     load(argument(1)), skip(0, 0, 2), load(argument(1) + 4), skip(0, 1, 0),
                     answer(fails(EPERM)), answer(kAllow)});
  return f;
}

Filter filter(uint64_t key) {
  Filter f = {load(offsetof(seccomp_data, arch)), jump_if(BPF_JEQ, kArchitecture, 1, 0),
              answer(kTrap), load(offsetof(seccomp_data, nr))};
  for (const Call& c : kForbidden) append(f, c.number, {answer(kTrap)});
  const auto self = static_cast<uint32_t>(getpid());
  for (const Call& c : kSignals)
    append(f, c.number,
           {load(argument(0)), jump_if(BPF_JEQ, self, 1, 0), answer(kTrap), answer(kAllow)});
  for (const int number : kChanging) append(f, number, {answer(fails(EACCES))});
  append(f, SYS_openat, open_filter(2));
#if defined(__x86_64__)
  append(f, SYS_open, open_filter(1));
#endif
  // A thread may start, a process may not. The flags of clone3 lie in memory: callers go on to
  // clone.
  append(f, SYS_clone3, {answer(fails(ENOSYS))});
  append(f, SYS_clone,
         {load(argument(0)), jump_if(BPF_JSET, CLONE_THREAD, 1, 0), answer(kTrap), answer(kAllow)});
  append(f, SYS_prlimit64,
         {load(argument(0)), jump_if(BPF_JEQ, 0, 1, 0), jump_if(BPF_JEQ, self, 0, 1),
          answer(kAllow), answer(fails(EPERM))});
  append(f, SYS_fcntl, second_argument_filter({F_SETOWN, F_SETOWN_EX, F_SETSIG}));
  append(f, SYS_ioctl, second_argument_filter({FIOSETOWN, SIOCSPGRP, FIOASYNC, TIOCSTI}));
  append(f, SYS_rt_sigaction, handler_filter());
  append_memory_filter(f, key);
  return f;
}

/// Keeps the process from files, connections and signals in ways that a filter of calls cannot see
/// (/proc/PID/mem of others, a signal when a file is ready), as far as the kernel can.
void enter_domain() {
  struct {
    uint64_t files, connections, scopes;
  } rules = {};
  const long version = syscall(SYS_landlock_create_ruleset, nullptr, 0, 1);
  if (version < 1) return;  // an older kernel
  constexpr uint64_t kWriting = 1 << 1, kAllOfRemovingAndMaking = 0x1ff0, kReferring = 1 << 13,
                     kTruncating = 1 << 14;
  rules.files = kWriting | kAllOfRemovingAndMaking | (version >= 2 ? kReferring : 0) |
                (version >= 3 ? kTruncating : 0);
  if (version >= 4) rules.connections = 3;  // binding and connecting
  if (version >= 6) rules.scopes = 3;       // abstract sockets, signals
  const size_t size = version >= 6 ? 24 : version >= 4 ? 16 : 8;
  const long made = syscall(SYS_landlock_create_ruleset, &rules, size, 0);
  if (made < 0) return;
  syscall(SYS_landlock_restrict_self, made, 0);
  close(static_cast<int>(made));
}

}  // namespace

std::string confine(uint64_t key) {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return std::strerror(errno);
  enter_domain();
  Filter steps = filter(key);
  const sock_fprog program = {static_cast<unsigned short>(steps.size()), steps.data()};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return std::strerror(errno);
  return "";
}

int protect(void* at, size_t bytes, int access, uint64_t key) {
  return static_cast<int>(syscall(SYS_mprotect, at, bytes, access, 0, 0, key));
}

std::string system_call_name(int number) {
  for (const Call& c : kForbidden)
    if (c.number == number) return c.name;
  for (const Call& c : kSignals)
    if (c.number == number) return c.name;
  return number == SYS_clone ? "clone" : "system call " + std::to_string(number);
}

void look_ordinary(int argc, char** argv) {
  constexpr std::string_view kName = "a.out";
  const size_t room = std::strlen(argv[0]);
  for (int i = 0; i < argc; ++i) std::memset(argv[i], 0, std::strlen(argv[i]));
  std::memcpy(argv[0], kName.data(), std::min(room, kName.size()));
  prctl(PR_SET_NAME, kName.data());
  for (const EnvFlag& flag : env_table())
    if (std::string_view(flag.name).starts_with("TW_")) unsetenv(flag.name);
}

}  // namespace tw::measure
