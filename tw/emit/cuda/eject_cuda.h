#pragma once

#include "tw/emit/cpu/eject.h"
#include "tw/target/gpu.h"

namespace tw {

/// What a program became under some facts.
struct LoweredFor {
  Program program;
  Specialisation facts;
};

/// 900 of "sm_90a": what __CUDA_ARCH__ is.
int arch_number(const std::string& arch);

/// CUDA source for programs lowered by cuda_passes(): `usual`, under facts of addresses perhaps,
/// for calls that have them, and `other`, the same without those facts, for all other calls. Unit
/// and zero strides are the same in both, and checked by the function. UserError as eject_cpu().
Ejected eject_cuda(const LoweredFor& usual, const LoweredFor& other, const GpuMachine& machine,
                   const Mapping& mapping, const EjectNames& names);

}  // namespace tw
