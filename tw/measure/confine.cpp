#include "tw/measure/impl/confine.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

#include "tw/base/env.h"

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

/// These change files: they fail.
constexpr int kChanging[] = {
    SYS_unlinkat,  SYS_mkdirat,  SYS_mknodat,  SYS_symlinkat, SYS_linkat,
    SYS_renameat2, SYS_truncate, SYS_fchmodat, SYS_openat2,   SYS_tkill,
#if defined(__x86_64__)
    SYS_unlink,    SYS_mkdir,    SYS_mknod,    SYS_symlink,   SYS_link,
    SYS_rename,    SYS_renameat, SYS_creat,    SYS_chmod,     SYS_rmdir,
#endif
};

using Filter = std::vector<sock_filter>;

constexpr uint32_t argument(int i) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args)) + 8 * static_cast<uint32_t>(i);
}

sock_filter load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter answer(uint32_t with) { return BPF_STMT(BPF_RET | BPF_K, with); }

/// The accumulator holds the call's number: any other goes past the next `length` steps.
sock_filter unless_is(int number, size_t length) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0,
                  static_cast<uint8_t>(length));
}

void append(Filter& f, int number, const Filter& then) {
  f.push_back(unless_is(number, then.size()));
  f.insert(f.end(), then.begin(), then.end());
}

constexpr uint32_t kAllow = SECCOMP_RET_ALLOW, kTrap = SECCOMP_RET_TRAP;
constexpr uint32_t fails(int error) { return SECCOMP_RET_ERRNO | static_cast<uint32_t>(error); }

/// Opening for writing fails: libraries may try to leave a log.
Filter open_filter(int flags_argument) {
  return {load(argument(flags_argument)),
          BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1),
          answer(fails(EACCES)), answer(kAllow)};
}

Filter filter() {
  Filter f = {load(offsetof(seccomp_data, arch)),
              BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0), answer(kTrap),
              load(offsetof(seccomp_data, nr))};
  for (const Call& c : kForbidden) append(f, c.number, {answer(kTrap)});
  const auto self = static_cast<uint32_t>(getpid());
  for (const Call& c : kSignals)
    append(f, c.number,
           {load(argument(0)), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, self, 1, 0), answer(kTrap),
            answer(kAllow)});
  for (const int number : kChanging) append(f, number, {answer(fails(EACCES))});
  append(f, SYS_openat, open_filter(2));
#if defined(__x86_64__)
  append(f, SYS_open, open_filter(1));
#endif
  // A thread may start, a process may not. The flags of clone3 lie in memory: callers go on to
  // clone.
  append(f, SYS_clone3, {answer(fails(ENOSYS))});
  append(f, SYS_clone,
         {load(argument(0)), BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
          answer(kTrap), answer(kAllow)});
  f.push_back(answer(kAllow));
  return f;
}

/// Keeps the process out of /proc/PID/mem of others, which a filter of calls cannot see.
void enter_domain() {
  landlock_ruleset_attr rules = {};
  rules.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE;
  const long made = syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0);
  if (made < 0) return;  // an older kernel
  syscall(SYS_landlock_restrict_self, made, 0);
  close(static_cast<int>(made));
}

}  // namespace

std::string confine() {
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return std::strerror(errno);
  enter_domain();
  Filter steps = filter();
  const sock_fprog program = {static_cast<unsigned short>(steps.size()), steps.data()};
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return std::strerror(errno);
  return "";
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
