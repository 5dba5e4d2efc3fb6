#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tw/ir/program.h"
#include "tw/target/gpu.h"
#include "tw/target/mapping.h"
#include "tw/tensor/tensor.h"

namespace tw {

/// A file of CUDA source that Kernel::eject() wrote, and its owner may have changed since, with
/// what its comments say of it.
struct EjectedSource {
  std::string path, text;
  std::string program;   ///< "softmax"
  std::string arch;      ///< "sm_90a"
  std::string mapping;   ///< "cuda1"
  std::string made_for;  ///< what its tiles were chosen for; empty where it does not say
};
/// Throws UserError for a file that cannot be read or does not begin as eject() begins them.
EjectedSource read_ejected(const std::string& path);

/// The kernels of such a file, compiled for the emulator: the lines from `struct Args` on are the
/// file's, functions before them that are as eject() wrote them have the emulator's form.
class EjectedKernels {
 public:
  /// `p`: the program that the file was made of. Throws UserError that names file and line where
  /// the file lacks what eject() writes, changes functions that only the emulator's form stands
  /// for, or does not compile.
  EjectedKernels(const EjectedSource& source, const Program& p);
  ~EjectedKernels();

  size_t count() const;
  const std::string& name(size_t k) const;
  /// Runs the kernel with that number where these tensors have what it relies on, else the last,
  /// which takes all that lie as the file's comment says: UserError for others. Arguments as
  /// Kernel's. DeviceError for a report that is not clean; schedules count on as those of "emu:0".
  void run(size_t k, const std::vector<TensorView>& inputs,
           const std::vector<TensorView>& outputs) const;
  uint64_t ran() const;  ///< bit k: kernel k did

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tw
