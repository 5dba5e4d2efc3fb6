#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tw::measure {

/// From now on this process and its threads start no other process and no connection, signal and
/// look into nobody else, write no file and stay on their CPUs; code, constants and shared memory
/// stay as they are, and so do handlers of faults. Forbidden system calls end it by SIGSYS, those
/// that an honest library may try fail. "" or what the kernel refused.
std::string confine(uint64_t key);

/// mprotect() of memory that only those who know the key may change.
int protect(void* at, size_t bytes, int access, uint64_t key);

/// The name of a system call that confine() forbids; "system call 17" of another.
std::string system_call_name(int number);

/// Makes the process look like any other: its words and its name, and no variable of ours.
void look_ordinary(int argc, char** argv);

}  // namespace tw::measure
